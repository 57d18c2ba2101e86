# The mixed model of first/plan.md, a check of sensitivity: exported differences in, one line for each group and pair out.
#
#     Rscript --vanilla conjecture_study/mixed.R OUT.csv differences.csv.xz ...
#
# For each problem and pair, log ratios d of group g, seed s and level l are fitted by
#
#     d_gsl = a_g + b_g x_sl + (u_gs + v_gs x_sl) + e_gsl,     x_sl = log zeta^2(x*) of the seed's split, centred,
#
# with a random intercept u and a random slope v for each seed within its group. Groups have fixed effects, so that no slope is drawn towards that of
# another group, and problems are fitted apart. The variances of u, v and e are the same in all groups of a problem. Degrees of freedom are
# Satterthwaite's (lmerTest; Kuznetsova, Brockhoff and Christensen, Journal of Statistical Software 82, 2017).
suppressPackageStartupMessages(library(lmerTest))

read_differences <- function(path) {
  lines <- read.csv(xzfile(path), check.names = FALSE, colClasses = c(level = "character"))
  lines <- lines[lines$bits == "up" & !is.na(lines$difference) & !is.na(lines$x), ]
  data.frame(problem = lines$data.name, group = lines$group, a = lines$a, b = lines$b, seed = lines$seed, x = lines$x, d = lines$difference)
}

# Returns what lme4 says of a fit: a variance or a correlation at its bound, or an optimiser that did not arrive.
state_of <- function(fit) {
  if (isSingular(fit)) "singular" else if (length(fit@optinfo$conv$lme4$messages) > 0) "not converged" else "regular"
}

# Returns the slopes of all groups of one problem and pair.
slopes_of <- function(lines) {
  lines$x <- lines$x - mean(lines$x)
  lines$group <- factor(lines$group, levels = sort(unique(lines$group), method = "radix"))  # the order of bytes, in every locale
  lines$unit <- interaction(lines$group, lines$seed, drop = TRUE)
  formula <- if (nlevels(lines$group) > 1) d ~ 0 + group + group:x + (1 + x | unit) else d ~ 1 + x + (1 + x | unit)
  fit <- suppressMessages(suppressWarnings(lmer(formula, lines)))
  found <- coef(summary(fit, ddf = "Satterthwaite"))
  found <- found[grepl(":x$|^x$", rownames(found)), , drop = FALSE]
  half <- qt(0.975, found[, "df"]) * found[, "Std. Error"]
  deviations <- as.data.frame(VarCorr(fit))$sdcor
  data.frame(group = levels(lines$group), a = lines$a[1], b = lines$b[1], seeds = as.vector(tapply(lines$seed, lines$group, function(s) length(unique(s)))),
             slope = found[, "Estimate"], se = found[, "Std. Error"], df = found[, "df"], t = found[, "t value"], p = found[, "Pr(>|t|)"],
             slope_low = found[, "Estimate"] - half, slope_high = found[, "Estimate"] + half,
             deviation_intercept = deviations[1], deviation_slope = deviations[2], deviation_residual = deviations[4], fit = state_of(fit))
}

arguments <- commandArgs(trailingOnly = TRUE)
lines <- do.call(rbind, lapply(arguments[-1], read_differences))
cells <- sort(unique(paste(lines$a, lines$problem)), method = "radix")
slopes <- do.call(rbind, lapply(cells, function(cell) slopes_of(lines[paste(lines$a, lines$problem) == cell, ])))
numbers <- vapply(slopes, is.numeric, logical(1))
slopes[numbers] <- lapply(slopes[numbers], signif, 8)
write.csv(slopes, arguments[1], row.names = FALSE, quote = 1, eol = "\n", na = "nan")
