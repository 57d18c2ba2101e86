"""What the page of the study says in sentences: the conclusions, what they mean in practice, and three rules of thumb. Every number
and every turn of a sentence is computed from the lines of a study by the rules of first/plan.md."""
import math
import textwrap

from conjecture_study import contrasts, figures, results

FOR, AGAINST, NONE = results.VERDICTS
WORDS = {"hard": "the hard threshold", "top-k": "Top-k", "rounding": "absolute rounding", "three-lc": "3LC", "low-rank": "absolute low rank",
         "rank-r": "a fixed rank"}

NETWORKS = {"network-core": "perceptron", "network-low-rank": "small perceptron", "network-grid": "perceptron, whole grid", "cifar-core": "small CNN"}


def words_of(pair):
    return f"{WORDS[pair[0]]} against {WORDS[pair[1]]}"


def title_of(pair):
    return words_of(pair).removeprefix("the ").capitalize().replace("3lc", "3LC").replace("top-k", "Top-k")


def paragraph(text, first="", rest=""):
    """Returns text in lines of the width of the other pages."""
    return textwrap.fill(text, 150, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def number_of(count, noun):
    """Returns a number with its noun: "1 group", "3 groups"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(texts):
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def picture(name, text, folder="figures"):
    return f"![{text}]({folder}/{name}.svg)"


# What each result at the most different clients says of the absolute operator.
RESULT_WORDS = {"superior": "better in {}", "non-inferior": "at least as good within the margin in {} more", "worse": "worse by more than the margin in {}",
                "undecided": "undecided in {}", "not comparable": "not comparable in {}, for want of evaluations at the bits that both sent"}


def margin_counts(lines):
    found = [results.shown_of(line) for line in lines]
    return {kind: found.count(kind) for kind in results.MARGIN_RESULTS}


def margin_text(lines):
    """Returns the counts of the results at the most different clients, without those that no group has."""
    return listed([RESULT_WORDS[kind].format(count) for kind, count in margin_counts(lines).items() if count])


def verdict_text(lines):
    counted = results.counts(lines)
    return (f"the slope has a claim for the conjecture in {number_of(counted[FOR], 'group')}, against it in {counted[AGAINST]}, "
            f"and no claim in {counted[NONE]}{short_windows_text(lines)}")


def short_windows_text(lines):
    """Returns how many groups have no claim because their end points rest on too few evaluations, "" if none has."""
    short = sum(results.has_short_window(line) for line in lines)
    return f" ({short} of them for want of evaluations at the bits that both sent)" if short else ""


def conclusion_text(budget, pair):
    """Returns the plan's conclusion for a pair."""
    lines = results.of_pair(budget.slopes, pair)
    said = verdict_text(lines)
    kind = results.conclusion_of(lines, len(budget.groups))
    name = f"**{title_of(pair)}**"
    if kind == "open":
        return f"{name}: no conclusion yet, {len(lines)} of {len(budget.groups)} groups have run. So far {said}."
    if kind in ("holds", "fails"):
        return f"{name}: the conjecture {kind}; {said}. {ahead_text(pair, lines)}"
    return f"{name}: the conjecture neither holds nor fails in general; {said}. {separation_text(lines)} {ahead_text(pair, lines)}"


def ahead_text(pair, lines):
    """Returns who is ahead with the most different clients."""
    return f"Where clients differ most, {WORDS[pair[0]]} is {margin_text(lines)}."


def label_text(factor, label):
    """Returns a label as a sentence has it: "under EF14", "on a9a", "with local steps 10"."""
    name = figures.FEEDBACKS.get(label, label.split("/")[-1])
    return {"problem": f"on {name}", "feedback": f"under {name}"}.get(factor, f"with {factor} {name}")


def separation_text(lines):
    """Returns which factors tell the claims for from the claims against, with the counts for each combination of their labels."""
    factors, counted = results.separating_factors(lines)
    if not factors:
        return "No factor and no two factors tell the claims for from the claims against; a table below counts them by factor."
    words = {FOR: "for", AGAINST: "against", NONE: "without a claim"}
    said = []
    for labels, found in counted.items():
        where = " ".join(label_text(*pair) for pair in zip(factors, labels))
        said.append(f"{where} {listed([f'{count} {words[verdict]}' for verdict, count in found.items() if count])}")
    return f"{listed(list(factors)).capitalize()} tell{'' if len(factors) > 1 else 's'} the claims for from the claims against: {'; '.join(said)}."


def state_text(budget):
    """Returns which blocks have run and which are missing."""
    if budget.whole():
        return f"All {len(budget.planned)} blocks of the budget of {budget.name}% have run."
    missing = ", ".join(f"`{block}`" for block in budget.missing)
    return (f"**Provisional.** {len(budget.blocks)} of {len(budget.planned)} blocks of the budget of {budget.name}% have run; missing: {missing}. "
            "P-values are adjusted over the part of the family that has run, and the plan draws no conclusion from a part.")


class Agreement:
    """How the verdicts of two analyses agree: in how many groups both have the same claim, none of them has a claim, one of them has none, and their
    claims are opposite ones."""

    def __init__(self, verdicts):
        found = list(verdicts)
        self.same = sum(one == other != NONE for one, other in found)
        self.neither = sum(one == other == NONE for one, other in found)
        self.opposite = sum({one, other} == {FOR, AGAINST} for one, other in found)
        self.one_without = len(found) - self.same - self.neither - self.opposite
        self.total = len(found)

    def text(self):
        return (f"the same claim in {self.same} of {number_of(self.total, 'group')}, the opposite one in {self.opposite}, one of the two without a claim in "
                f"{self.one_without}, and both in {self.neither}")


def beside(lines, primary, pair):
    """Returns how the verdicts of a pair agree with those of the primary study."""
    of_primary = {line["group"]: results.verdict_of(line) for line in results.of_pair(primary.slopes, pair)}
    return Agreement((results.verdict_of(line), of_primary[line["group"]]) for line in lines if line["group"] in of_primary)


def budgets_text(budget, primary):
    """Returns how the claims of another budget agree with those of the primary one."""
    pairs = results.pairs_of(budget.slopes)
    said = [f"{words_of(pair)} has {beside(results.of_pair(budget.slopes, pair), primary, pair).text()}" for pair in pairs]
    return f"Compared with the budget of {primary.name}%, {'; '.join(said)}."


def networks_text(studies):
    """Returns what the studies of networks that have run found, "" before the first one."""
    said = []
    for study in studies:
        for pair in results.pairs_of(study.slopes):
            lines = results.of_pair(study.slopes, pair)
            counted = results.counts(lines)
            said.append(f"{words_of(pair)} ({NETWORKS[study.name]}): of {number_of(len(lines), 'group')} a claim for the conjecture in {counted[FOR]}, against it in "
                        f"{counted[AGAINST]} and none in {counted[NONE]}{short_windows_text(lines)}; where clients differ most {margin_text(lines)}"
                        f"{at_chance_text(pair, lines)}")
    if not said:
        return ""
    head = paragraph("**On networks**, by the accuracy on test rows, in small studies that are no part of these conclusions:", "- ", "  ")
    return "\n".join([head, *(paragraph(f"{text[0].upper()}{text[1:]}.", "  - ", "    ") for text in said)])


def at_chance_text(pair, lines):
    """Returns in how many of the groups in which the absolute operator is better its partner has runs that learned nothing, "" if in none."""
    count = sum(results.shown_of(line) == "superior" and line["capped_partner"] > 0 for line in lines)
    return f"; in {count} of the groups in which it is better, runs of {WORDS[pair[1]]} end at the accuracy of chance" if count else ""


def feedback_counts(lines, budget):
    """Returns in how many differences between feedbacks the slopes differ by a claim, and in how many of these they have claims of opposite signs."""
    return sum(results.difference_of(line) == "differ" for line in lines), sum(results.sign_depends(line, budget.slopes) for line in lines)


def feedbacks_text(budget):
    """Returns what the differences between feedbacks show for each pair."""
    said = []
    for pair in results.pairs_of(budget.between):
        lines = results.of_pair(budget.between, pair)
        differ, opposite = feedback_counts(lines, budget)
        said.append(f"{words_of(pair)} differ by a claim in {differ} of {len(lines)} comparisons, and have claims of opposite signs in {opposite}")
    return f"The slopes under two feedbacks of {'; those of '.join(said)}."


def claims_turned(second, budget):
    """Returns how many claims of the primary study are the opposite ones at another budget, and how many claims there are."""
    turned = sum(beside(results.of_pair(second.slopes, pair), budget, pair).opposite for pair in results.pairs_of(second.slopes))
    return turned, sum(results.verdict_of(line) != NONE for line in budget.slopes)


def counted_text(lines, noun="group"):
    """Returns counts of verdicts in words: "for the conjecture in 4 of 8 groups, against it in 2, and open in 2"."""
    counted = results.counts(lines)
    return f"for the conjecture in {counted[FOR]} of {number_of(len(lines), noun)}, against it in {counted[AGAINST]}, and open in {counted[NONE]}"


def short_text(evidence, second):
    """Returns the result in one paragraph where no pair has the same claim in all groups, "" otherwise: then the conclusions are short themselves."""
    budget, noisy = evidence.budget, evidence.noisy
    kinds = {results.conclusion_of(results.of_pair(budget.slopes, pair), len(budget.groups)) for pair in results.pairs_of(budget.slopes)}
    if kinds != {"mixed"}:
        return ""
    of_ef14 = of_feedbacks(evidence.contrasts, THEORY)
    (_, opposite), (turned, claims) = feedback_counts(noisy.between, noisy), claims_turned(second.noisy, noisy)
    return ("**In short: no general rule.** The contrast of the most different clients with the most similar ones, with the noise of tuning in its error, is under EF14 "
            f"{counted_text(of_ef14, 'comparison')}. With EF21 and EControl as well it is {counted_text(evidence.contrasts, 'comparison')}. Another feedback turns the sign "
            f"of the slope round in {opposite} of {len(noisy.between)} comparisons of feedbacks, and a smaller budget that of {turned} of {claims} slopes with a claim.")


THEORY = "ef14",
EXTENSION = "ef21", "econtrol"


def of_feedbacks(lines, feedbacks):
    return [line for line in lines if results.settings_of(line["group"])["feedback.up"] in feedbacks]


def counts_table(evidence):
    """Returns the counts of each pair, EF14 first: contrasts and slopes, with the noise of tuning and without it."""
    tests = evidence.contrasts, evidence.contrasts_without, evidence.noisy.slopes, evidence.budget.slopes
    rows = []
    for pair in results.pairs_of(evidence.budget.slopes):
        for title, feedbacks in (("EF14, the conjecture", THEORY), ("EF21, EControl, the extension", EXTENSION), ("all", THEORY + EXTENSION)):
            cells = [of_feedbacks(results.of_pair(lines, pair), feedbacks) for lines in tests]
            rows.append([f"{pair[0]} : {pair[1]}", title, len(cells[-1]), *(" / ".join(map(str, results.counts(lines).values())) for lines in cells)])
    return results.markdown(["pair", "feedback", "groups", "contrast", "contrast, seeds alone", "slope", "slope, seeds alone"], rows)


def contrast_text(evidence, pair):
    """Returns what the contrasts of a pair say under EF14, and under the other feedbacks."""
    lines = results.of_pair(evidence.contrasts, pair)
    return (f"**{title_of(pair)}**: under EF14 the contrast is {counted_text(of_feedbacks(lines, THEORY))}. Under EF21 and EControl it is "
            f"{counted_text(of_feedbacks(lines, EXTENSION))}.")


def agreement_text(evidence):
    """Returns in how many groups contrast and slope have the same verdict."""
    by_seeds = contrasts.same_verdicts(evidence.contrasts_without, evidence.budget.slopes)
    noisy = contrasts.same_verdicts(evidence.contrasts, evidence.noisy.slopes)
    return (f"**Contrasts and slopes.** The contrast has the verdict of the slope in {by_seeds} of {len(evidence.budget.slopes)} comparisons by the seeds alone, "
            f"and in {noisy} with the noise of tuning in both.")


def before_budget_text(evidence):
    """Returns the counts without the groups that have a pair which is compared at clearly less than its budget, "" if there are none."""
    groups, short, total = evidence.short
    if not groups:
        return ""
    said = []
    for pair in results.pairs_of(evidence.budget.slopes):
        counted = [results.counts(kept) for kept in ([line for line in results.of_pair(lines, pair) if (line["group"], pair) not in groups]
                                                     for lines in (evidence.noisy.slopes, evidence.budget.slopes))]
        said.append(f"{words_of(pair)} {counted[0][FOR]} for and {counted[0][AGAINST]} against ({counted[1][FOR]} and {counted[1][AGAINST]} by the seeds alone)")
    return (f"**Pairs compared below the budget.** In {len(short)} of {number_of(total, 'cell')} a run ended before it had sent 95% of the budget. Without the "
            f"{len(groups)} groups that have such a cell, the slopes are: {'; '.join(said)}.")


FIXED_TEXT = ("**Who is ahead.** The threshold and the grid step were tuned at each level, while k of Top-k and the code of 3LC were fixed. The counts of who "
              "is better where clients differ most answer whether a tuned density beats a fixed one.")


def of_contrasts(evidence, details):
    """Returns what leads the answer: the contrasts of each pair, the table of counts, and what stands beside them."""
    said = [paragraph(contrast_text(evidence, pair), "- ", "  ") for pair in results.pairs_of(evidence.budget.slopes)]
    notes = [agreement_text(evidence), *([before_budget_text(evidence)] if details else []), *([FIXED_TEXT] if details else [])]
    key = paragraph("Counts of groups, each as for / against / open. *Contrast* and *slope* have the noise of tuning in their errors; *seeds alone* leaves it out.")
    return "\n\n".join(["\n".join(said), key, counts_table(evidence), "\n".join(paragraph(text, "- ", "  ") for text in notes if text)])


def answer(evidence, second=None, robustness="", networks=()):
    """Returns the first part of the page: the state, the contrasts, the plan's conclusion for each pair, and what feedbacks, another budget, other
    conditions and networks showed."""
    budget = evidence.budget
    said = [paragraph(conclusion_text(budget, pair), "- ", "  ") for pair in results.pairs_of(budget.slopes)]
    if budget.between:
        noisy = {pair: feedback_counts(results.of_pair(evidence.noisy.between, pair), evidence.noisy) for pair in results.pairs_of(budget.between)}
        said.append(paragraph(f"**Between feedbacks.** {feedbacks_text(budget)} With the noise of tuning in the errors these counts are "
                              f"{listed([f'{differ} and {opposite} for {words_of(pair)}' for pair, (differ, opposite) in noisy.items()])}.", "- ", "  "))
    if second is not None and second.budget.blocks:
        turned, claims = claims_turned(second.noisy, evidence.noisy)
        said.append(paragraph(f"**At a budget of {second.budget.name}%.** {budgets_text(second.budget, budget)} With the noise of tuning in both, {turned} of "
                              f"{claims} claims become the opposite one.", "- ", "  "))
    if robustness:
        said.append(paragraph(f"**Under other conditions.** {robustness}", "- ", "  "))
    short = paragraph(short_text(evidence, second)) if second is not None else ""
    plan = paragraph("The plan counts slopes, all feedbacks together, by the seeds alone:")
    leading = [of_contrasts(evidence, second is not None), plan] if evidence.contrasts else []
    return "\n\n".join(filter(None, [short, paragraph(state_text(budget)), *leading, "\n".join(filter(None, [*said, networks_text(networks)]))]))


# ---- what it means ----

def better_text(pair, lines):
    """Returns what somebody with the most different clients finds for one pair."""
    ratios = sorted(math.exp(float(line["difference"])) for line in lines if line["difference"]) or [math.nan]
    return (f"{WORDS[pair[0]]} ended at {ratios[0]:.2f} to {ratios[-1]:.2f} times the gap of {WORDS[pair[1]]}: of {number_of(len(lines), 'group')} it is "
            f"{margin_text(lines)}")


def practice(evidence):
    """Returns one paragraph for somebody who has to choose a compressor."""
    budget, counted = evidence.budget, results.counts(evidence.contrasts)
    start = "So far" if budget.missing else "In this study"
    parts = [better_text(pair, results.of_pair(budget.slopes, pair)) for pair in results.pairs_of(budget.slopes)]
    return paragraph(
        f"{start}, from the most similar clients to the most different ones the absolute compressor lost ground in {counted[AGAINST]} of {sum(counted.values())} "
        f"comparisons, gained in {counted[FOR]}, and the rest, {counted[NONE]}, is within the noise of the seeds and of tuning. With the most different clients "
        f"(similarity 0%) {'; '.join(parts)}. These leads are of a tuned threshold or grid over a fixed k or code, and may come from tuning. {advice(budget)} "
        "Compare the two operators at equal bits, with the feedback, the participation and the local steps of the application, and with both tuned there: k of "
        "Top-k as well as the threshold.")


def advice(budget):
    kinds = {results.conclusion_of(results.of_pair(budget.slopes, pair), len(budget.groups)) for pair in results.pairs_of(budget.slopes)}
    if kinds == {"holds"}:
        return "That clients differ is a reason to prefer an absolute compressor, as far as this study goes."
    return "That clients differ is therefore not by itself a reason to prefer the class of absolute compressors."
