"""The sections of docs/choose.md about what was measured. Every number and every ranking comes from an Evidence. Needs nothing but Python."""
import math
import statistics

from choose_evidence import ALIKE, ALL, DIFFERENT, TENTH, USUAL, above, below
from choose_words import (FEEDBACKS, LEVELS, OPERATORS, SHARES, TITLES, case_text, clear_text, counts_text, link, points, range_of, times)
from conjecture_study import results
from conjecture_study.answer import listed, number_of, paragraph
from conjecture_study.results import markdown
from fair_study_tables import WORDS, ahead_text, of_pair

CASES = [(share, level) for share in (ALL, TENTH) for level in (ALIKE, DIFFERENT)]
PAIRS = ("hard", "top-k"), ("rounding", "three-lc")


def ratios_in(study, settings, method, other=USUAL):
    """Returns the ratios of two methods in those settings in which none of their runs diverged."""
    return [ratio for ratio in (study.ratio(at, method, other) for at in settings) if ratio]


def settings_of(study, cases):
    return [at for share, level in cases for at in study.settings(share=share, level=level)]


def choice_in(study, case):
    return study.choice(settings_of(study, [case]))


# ---- how the choices are made ----

def decided(found):
    first, small = found.first, found.small
    short, cells = first.num_short(settings_of(first, CASES))
    return "\n\n".join([
        "## How the choices are made",
        paragraph(f"For small convex models the page takes the [first study](../research/absolute-compressors/first/page.md): logistic regression on a9a and w8a, one and ten local steps, all of 20 "
                  f"clients or two in a round, minibatches, {first.num_seeds()} seeds, and the uplink bits that Top-k sends in 400 rounds with 5% of the entries (1% for the slow "
                  "uplink). Step sizes, thresholds, grid steps and EControl's eta were tuned for these bits in each setting. The gap is that at the end of a run. In "
                  f"{short} of the {cells} cells that the page uses of the budget of 5%, a run ended after 1,600 rounds with less than 95% of its bits, which is to the "
                  "disadvantage of its method."),
        paragraph("A case has four settings: two problems, and one and ten local steps. The operator is that of the method whose gap is smallest on the geometric mean, "
                  "relative to the smallest gap of each setting. The feedback is EF14, unless EF21, and then EControl, has an interval of its ratio below 1 in at least "
                  "half of the settings and above 1 in none. A choice is *clear* if its interval against Top-k under EF14 lies below 1 in at least half of the settings, "
                  "and in more of them than above 1. Choices are made on the figures that are shown, so their leads are flattered."),
        paragraph(f"Intervals are Student's 95% intervals of differences paired by seed, with the noise of [tuning](../research/absolute-compressors/first/page.md#what-tuning-adds-to-the-noise) (a standard "
                  f"deviation of {first.deviation:.2f} of a log ratio at the large budget and {small.deviation:.2f} at the small one) in their error. They are not "
                  "corrected for the number of comparisons, so about one in twenty misses by chance. The ratios are descriptive: the tests of the studies are about pairs of "
                  "operators, and are on their own pages. The plan of the first study rests no conclusion on the budget of 1% alone. **The first study tuned the threshold "
                  "and the grid, with four times as many candidates as Top-k and 3LC had; k of Top-k and the code of 3LC were fixed. EControl had three times as many candidates as the "
                  "other feedbacks.** A lead of any of these may come from that. Rounding is to the nearest (`rounding = \"nearest\"`) in both studies.")])


# ---- small convex models ----

def convex(found):
    parts = ["## Small convex models"]
    for study, name in ((found.first, "The budget of 5%"), (found.small, "A slow uplink: the budget of 1%")):
        parts += [f"### {name}", operators_text(study), paragraph("The gap of the first candidate of each case over that of Top-k under EF14:"), choice_table(study)]
    parts += ["### Which error feedback", feedback_text(found.first), feedback_table(found.first)]
    return "\n\n".join(parts)


def operators_text(study):
    ends = settings_of(study, CASES)
    said = [f"under {title} {counts_text(study.operator_wins(feedback, ends), TITLES)}" for feedback, title in FEEDBACKS.items()]
    return paragraph(f"The smallest gap of the four operators, in {number_of(len(ends), 'setting')} for each feedback, data alike or different, {study.num_seeds()} seeds, is "
                     f"{'; '.join(said)}.")


def choice_table(study):
    rows = []
    for share, level in CASES:
        method = choice_in(study, (share, level))
        clear = "yes" if study.is_clear(settings_of(study, [(share, level)]), method) else "no"
        for steps in ("1", "10"):
            cells = [times(study.ratio(at, method)) for at in study.settings(share=share, level=level, steps=steps)]
            rows.append([SHARES[share], LEVELS[level], steps, f"`{OPERATORS[method[1]]}` under `{method[0]}`", *cells, clear])
    return markdown(["clients in a round", "data", "local steps", "method", *problems_of(study), "clear"], rows)


def problems_of(study):
    return [at.problem for at in study.settings(share=ALL, level=ALIKE, steps="1")]


def feedback_operators(first):
    return sorted({operator for _, operator in first.methods()}, key=list(OPERATORS).index)


def feedback_text(first):
    said = []
    for case in CASES:
        words = []
        for feedback in ("ef21", "econtrol"):
            ratios = [ratio for operator in feedback_operators(first)
                      for ratio in ratios_in(first, settings_of(first, [case]), (feedback, operator), (USUAL[0], operator))]
            words.append(f"the gap under {FEEDBACKS[feedback]} is {math.exp(statistics.median(one.mean for one in ratios)):.2f} times that under EF14 in the median, and "
                         f"{clear_text(ratios, 'comparison')}")
        said.append(paragraph(f"{case_text(case).capitalize()}: {'; '.join(words)}.", "- ", "  "))
    opening = paragraph("The gap under another feedback over that under EF14, for the same operator and each tuned by itself. A case has 16 comparisons, those of four "
                        "operators in four settings. Below 1 the other feedback is ahead.")
    return "\n\n".join([opening, "\n".join(said)])


def feedback_table(first):
    rows = []
    for share, level in CASES:
        for steps in ("1", "10"):
            settings = first.settings(share=share, level=level, steps=steps)
            for operator in feedback_operators(first):
                cells = [times(first.ratio(at, (feedback, operator), (USUAL[0], operator))) for feedback in ("ef21", "econtrol") for at in settings]
                rows.append([SHARES[share], LEVELS[level], steps, f"`{OPERATORS[operator]}`", *cells])
    titles = [f"{FEEDBACKS[feedback]} / EF14, {problem}" for feedback in ("ef21", "econtrol") for problem in problems_of(first)]
    return markdown(["clients in a round", "data", "local steps", "operator", *titles], rows)


# ---- all operators tuned alike ----

def tuned_alike(found):
    """Returns what the second study has so far, which tunes all operators alike."""
    core = found.core
    opening = paragraph("The [second study](conjecture.md) tunes every operator with the same number of candidates, under EF14, on a9a, w8a and letter, and repeats the "
                        "tuning five times.")
    return "\n\n".join(["## With all operators tuned alike", opening, core_text(found), *([core_table(core)] if len(core.part.runs) > 1 else []),
                        state_of_parts(found.second_parts)])


def core_text(found):
    core = found.core
    if not core.part.runs:
        return paragraph("No repetition of `core-5` has been exported, so nothing is said here.")
    state = (f"All {core.part.planned} repetitions of `core-5` have run. " if core.part.is_whole else
             f"**{len(core.part.runs)} of {core.part.planned} repetitions of `core-5` have run. The plan decides nothing before all of them have, so these figures are "
             "described, and no choice on this page rests on them.** ")
    settings = core.settings()
    text = (f"{state}The smallest gap of {listed([TITLES[name] for name in core.operators()])}, on the mean over the repetitions of {number_of(core.num_seeds(), 'seed')} each, is "
            f"{counts_text(core.wins(settings), TITLES)} of {number_of(len(settings), 'setting')} (five levels of similarity).")
    return paragraph(text + (f" {verdicts_text(core)} {agreement_text(found)}" if core.part.is_whole else ""))


def verdicts_text(core):
    """Returns who is ahead by the plan's tests, for a part that is whole."""
    said = []
    for level in (ALIKE, DIFFERENT):
        verdicts = core.verdicts(level)
        said += [f"{WORDS[pair]}, data {LEVELS[level]}: {ahead_text(of_pair(verdicts, pair))}" for pair in PAIRS]
    return f"By the tests of the plan, {'; '.join(said)}."


def agreement_text(found):
    """Returns in how many cases the second study has the smallest gap with the operator that the page names first."""
    same = [case for case in CASES if found.core.best(settings_of(found.core, [case])) == choice_in(found.first, case)[1]]
    return (f"In {len(same)} of the {len(CASES)} cases of the page's first table the operator with the smallest gap on the geometric mean is the one that is named there.")


def core_table(core):
    """Returns the ratios of every operator to Top-k at both ends, as ranges over the settings of a case."""
    rows = []
    for share, level in CASES:
        for operator in core.operators():
            ratios = list(core.ratios(operator, "top-k", core.settings(share=share, level=level)).values())
            if operator != "top-k" and ratios:
                rows.append([SHARES[share], LEVELS[level], f"`{OPERATORS[operator]}`", times(min(ratios)), times(max(ratios)), f"{below(ratios)} / {above(ratios)}", len(ratios)])
    header = ["clients in a round", "data", "operator", "smallest ratio of its gap to Top-k's", "largest ratio", "intervals below / above 1", "settings"]
    text = f"Intervals are over {number_of(len(core.part.runs), 'repetition')}, with a variance that is pooled over the settings of a line:"
    return "\n\n".join([paragraph(text), markdown(header, rows)])


def state_of_parts(parts):
    states = [f"`{name}` {len(part.runs)} of {part.planned}" for name, part in parts.items()]
    return paragraph(f"Repetitions that have been exported: {', '.join(states)}. [The page of the study](conjecture.md) has what each part shows.")


# ---- without tuning ----

def untuned(found):
    ratios, worse = found.published
    text = (f"The threshold 1/(2 sqrt(k)) of Sahu et al., as published and with a tuned step size, ended at {range_of(ratios)} times the gap of Top-k where data are different: "
            f"{number_of(len(ratios), 'group')} of problem, feedback and participation, one local step, {ratios[0].samples} seeds, intervals over the seeds alone. It was worse by "
            f"more than a margin of 1.1 in {worse}. [Rule 3 of the study](../research/absolute-compressors/first/page.md#what-it-means-in-practice) says in how many cells the best threshold changed with "
            "heterogeneity.")
    advice = ("k of Top-k follows from the bits that may be sent, and the levels of QSGD and 3LC are relative to the message, so none of these has a number in the unit of a "
              "gradient. Which of them is best without tuning is not known here. [studies.md](studies.md#tuning) says how to tune; "
              "`fedbits suggest` turns k into a threshold that sends about as many bits.")
    return "\n\n".join(["## Without tuning", paragraph(text), paragraph(advice)])


# ---- networks ----

def networks(found):
    return "\n\n".join(["## Perceptrons and CNNs", perceptron_text(found.perceptron), perceptron_table(found.perceptron), cnn_text(found)])


def perceptron_text(study):
    seeds = study.difference(CASES[0], study.best(CASES[0]), USUAL).samples
    return paragraph(f"A perceptron with 64 units on 10,000 rows of Fashion-MNIST, ten local steps, EF14 and EF21, the bits of Top-1% in 100 rounds, {seeds} seeds, tuned once on two "
                     "seeds with three to four times as many candidates for the absolute operators ([the study](../research/absolute-compressors/first/page.md#networks)). It has one data set and a reduced "
                     "grid, and is no part of that study's conclusions. The table has the accuracy on test rows at the end of the runs. *Sent* is the share of the budget "
                     "that was sent before 400 rounds were over: a method with less than 100% reached its accuracy with fewer bits.")


def perceptron_table(study):
    rows = []
    for case in CASES:
        for method in sorted(study.accuracies[case], key=lambda one: (-study.mean(case, one), one)):
            difference = "" if method == USUAL else points(study.difference(case, method, USUAL))
            rows.append([SHARES[case[0]], LEVELS[case[1]], f"`{OPERATORS[method[1]]}` under `{method[0]}`", f"{study.mean(case, method):.3f}", difference,
                         f"{100 * study.share_sent(case, method):.0f}%"])
    return markdown(["clients in a round", "data", "method", "accuracy", "points above Top-k under EF14", "sent"], rows)


def cnn_text(found):
    differences = found.cnn.differences(("hard", "top-k"))
    said = [f"{points(one)} points under {FEEDBACKS[feedback]} with data {LEVELS[level]}" for (feedback, _, level), one in sorted(differences.items())]
    text = (f"**CNN.** In an exploratory study of a small CNN on CIFAR-10, one local step, {next(iter(differences.values())).samples} seeds, the accuracy of the hard threshold "
            f"minus that of Top-k at equal bits is {listed(said)}. The study has {claims_text(found.cnn)}; {short_windows_text(found.cnn)}.")
    return paragraph(f"{text} {images_text(found)}")


def claims_text(networks):
    """Returns in how many groups a study of networks has a claim of a trend: "a claim in 0 of 2 groups"."""
    lines = networks.study.slopes
    return f"a claim in {sum(results.verdict_of(line) != 'no claim' for line in lines)} of {number_of(len(lines), 'group')}"


def short_windows_text(networks):
    """Returns in how many groups too few evaluations lie behind the end points for a claim."""
    short = sum(results.has_short_window(line) or results.has_short_window(line, "result_why") for line in networks.study.slopes)
    return f"in {short} of them too few evaluations lie behind the end points for one"


def images_text(found):
    part = found.second_parts["images"]
    if not found.images:
        return f"The part of the second study on images, a CNN on Fashion-MNIST, has {len(part.runs)} of {part.planned} repetitions."
    said = [f"{points(one)} points ({WORDS[pair].removeprefix('the ')}, alpha = {alpha})" for (pair, alpha), one in found.images.items()]
    state = "" if part.is_whole else f" Only {len(part.runs)} of {part.planned} repetitions have run, so nothing is decided."
    return f"In the part of the second study on images, a CNN on Fashion-MNIST, the absolute operator's accuracy minus its partner's is {listed(said)}.{state}"
