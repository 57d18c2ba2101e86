"""What the page and the README of the study say in sentences: the conclusions, what they mean in practice, and three rules of thumb. Every number
and every turn of a sentence is computed from the lines of a study by the rules of docs/conjecture-plan.md."""
import math
import textwrap

from conjecture_study import figures, results

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


def picture(name, text, folder="conjecture"):
    return f"![{text}]({folder}/figures/{name}.svg)"


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


def short_text(budget, second):
    """Returns the result in one sentence where no pair has the same claim in all groups, "" otherwise: then the conclusions are short themselves."""
    kinds = {results.conclusion_of(results.of_pair(budget.slopes, pair), len(budget.groups)) for pair in results.pairs_of(budget.slopes)}
    if kinds != {"mixed"}:
        return ""
    counted, (_, opposite), (turned, claims) = results.counts(budget.slopes), feedback_counts(budget.between, budget), claims_turned(second, budget)
    return (f"**In short: no general rule.** Of {claims} claims {counted[FOR]} are for the conjecture and {counted[AGAINST]} against it. Another feedback turns the "
            f"sign round in {opposite} of {len(budget.between)} comparisons, a smaller budget in {turned} of the claims.")


def answer(budget, second=None, robustness="", networks=()):
    """Returns the first part of the page: the state, a conclusion for each pair, and what feedbacks, another budget, other conditions and networks showed."""
    said = [paragraph(conclusion_text(budget, pair), "- ", "  ") for pair in results.pairs_of(budget.slopes)]
    if budget.between:
        said.append(paragraph(f"**Between feedbacks.** {feedbacks_text(budget)}", "- ", "  "))
    if second is not None and second.blocks:
        said.append(paragraph(f"**At a budget of {second.name}%.** {budgets_text(second, budget)}", "- ", "  "))
    if robustness:
        said.append(paragraph(f"**Under other conditions.** {robustness}", "- ", "  "))
    short = paragraph(short_text(budget, second)) if second is not None else ""
    return "\n\n".join(filter(None, [short, paragraph(state_text(budget)), "\n".join(filter(None, [*said, networks_text(networks)]))]))


VERDICTS = {"open": "no conclusion can be drawn yet, because a part has not run", "holds": "absolute compressors gained ground as clients differ more",
            "fails": "absolute compressors lost ground as clients differ more",
            "mixed": "absolute compressors were not in general the better choice when clients differ more"}


def trend_text(pair, lines):
    """Returns how one pair's gaps moved against each other and who was ahead at the end, as a part of a sentence."""
    found = results.counts(lines)
    return (f"{WORDS[pair[0]]} lost ground to {WORDS[pair[1]]} in {found[AGAINST]} of {number_of(len(lines), 'group')}, gained in {found[FOR]}, and was better in "
            f"{margin_counts(lines)['superior']} where clients differ most")


def short_answer(budget, second):
    """Returns the answer in four sentences and one picture, for the README."""
    pairs = {pair: results.of_pair(budget.slopes, pair) for pair in results.pairs_of(budget.slopes)}
    kinds = {pair: results.conclusion_of(lines, len(budget.groups)) for pair, lines in pairs.items()}
    said = list(dict.fromkeys(kinds.values()))
    verdict = VERDICTS[said[0]] if len(said) == 1 else listed([f"{VERDICTS[kind]} ({words_of(pair)})" for pair, kind in kinds.items()])
    opposed, claims = claims_turned(second, budget)
    rule = "; what the hard threshold gained or lost changed with feedback and local steps by no simple rule" if said == ["mixed"] else ""
    turned = f", and a smaller budget turned {opposed} of these {claims} trends round" if opposed else ""
    text = ("Sahu et al. (NeurIPS 2021) conjecture that absolute compressors are the better choice when clients differ; in tests of logistic regression on two "
            f"data sets, with a plan written before the runs, {verdict}. At equal uplink bits {'; '.join(trend_text(*one) for one in pairs.items())}{rule}{turned}. The "
            "threshold and the grid were tuned, while k of Top-k and the code of 3LC were not, so that "
            "a lead may come from tuning. Compare the two at equal bits in your own setting, with both tuned ([figures, limits and commands](docs/conjecture.md)).")
    about = "Does the hard threshold lose against Top-k as clients differ more? Slopes by group"
    return paragraph(text) + "\n\n" + picture(f"slopes-hard-{budget.name}", about, "docs/conjecture")


# ---- what it means ----

def better_text(pair, lines):
    """Returns what somebody with the most different clients finds for one pair."""
    ratios = sorted(math.exp(float(line["difference"])) for line in lines if line["difference"]) or [math.nan]
    return (f"{WORDS[pair[0]]} ended at {ratios[0]:.2f} to {ratios[-1]:.2f} times the gap of {WORDS[pair[1]]}: of {number_of(len(lines), 'group')} it is "
            f"{margin_text(lines)}")


def practice(budget):
    """Returns one paragraph for somebody who has to choose a compressor."""
    counted, start = results.counts(budget.slopes), "So far" if budget.missing else "In this study"
    parts = [better_text(pair, results.of_pair(budget.slopes, pair)) for pair in results.pairs_of(budget.slopes)]
    return paragraph(
        f"{start}, the trend with growing heterogeneity was against the absolute compressor in {counted[AGAINST]} of {sum(counted.values())} "
        f"comparisons, in its favour in {counted[FOR]}, and uncertain in {counted[NONE]}. With the most different clients (similarity 0%) "
        f"{'; '.join(parts)}. {advice(budget)} Compare the two operators at equal bits, with the feedback, the participation and the local steps of the "
        "application, and with the threshold tuned there.")


def advice(budget):
    kinds = {results.conclusion_of(results.of_pair(budget.slopes, pair), len(budget.groups)) for pair in results.pairs_of(budget.slopes)}
    if kinds == {"holds"}:
        return "That clients differ is a reason to prefer an absolute compressor, as far as this study goes."
    return "That clients differ is therefore not by itself a reason to prefer the class of absolute compressors."
