"""The words and numbers of docs/choose.md: names with links, ratios with intervals, and tables of them. Needs nothing but Python."""
import math
import typing

from choose_evidence import above, below
from conjecture_study.answer import listed, number_of

OPERATORS = {"top-k": "top_k", "hard": "hard_threshold", "three-lc": "three_lc", "rounding": "absolute_rounding", "qsgd": "qsgd", "powersgd": "powersgd",
             "low-rank": "absolute_low_rank", "rank-r": "rank_r_svd"}
TITLES = {"top-k": "Top-k", "hard": "the hard threshold", "three-lc": "3LC", "rounding": "absolute rounding", "qsgd": "QSGD"}
FEEDBACKS = {"ef14": "EF14", "ef21": "EF21", "econtrol": "EControl"}
SHARES = {"1": "all", "0.1": "a tenth"}
LEVELS = {"100": "alike", "0": "different"}


class Evidence(typing.NamedTuple):
    """Everything that the page rests on; scripts/choose_page.py says where each comes from."""
    root: object
    first: object
    small: object
    core: object
    second_parts: dict
    both: dict
    published: tuple
    perceptron: object
    cnn: object
    powersgd: object
    low_rank: object
    images: dict
    parts: dict
    unbiased: list
    times: dict
    hooks: dict


def link(name):
    """Returns the name of a part as a link to its description."""
    return f"[`{name}`](compressors.md#{name})"


def method_text(method):
    feedback, operator = method
    return f"{link(OPERATORS[operator])} under {link(feedback)}"


def times(ratio):
    """Returns a log ratio as a factor with its interval: "0.42 (0.31 to 0.55)"."""
    if ratio is None:
        return "a run diverged"
    return f"{math.exp(ratio.mean):.2f} ({math.exp(ratio.low):.2f} to {math.exp(ratio.high):.2f})"


def points(ratio):
    """Returns a difference of accuracies in points with its interval: "+3.7 (+3.1 to +4.2)"."""
    return f"{100 * ratio.mean:+.1f} ({100 * ratio.low:+.1f} to {100 * ratio.high:+.1f})"


def range_of(ratios, text=times):
    """Returns the smallest and the largest of some ratios, each with its interval."""
    return f"{text(min(ratios))} to {text(max(ratios))}"


def clear_text(ratios, noun="setting", bound="1"):
    """Returns in how many cases the interval lies on one side."""
    return f"the interval lies below {bound} in {below(ratios)} of {number_of(len(ratios), noun)} and above it in {above(ratios)}"


def counts_text(wins, names):
    """Returns counts by name, the largest first, without those that are zero: "that of absolute rounding in 46 and that of Top-k in 6"."""
    return listed([f"that of {names[name]} in {count}" for name, count in sorted(wins.items(), key=lambda one: (-one[1], one[0])) if count])


def grouped(cases, best):
    """Returns {what is best: the cases for which it is}, in the order of the cases."""
    found = {}
    for case in cases:
        found.setdefault(best(case), []).append(case)
    return found


def case_text(case):
    """Returns who takes part, and whether the clients' data are alike, in words."""
    share, level = case
    return f"{'all clients take part' if share == '1' else 'a tenth of the clients takes part'}, data {LEVELS[level]}"


def cases_text(cases):
    """Returns cases in words, those of one share of the clients together: "all clients take part, data alike or different"."""
    return "; ".join(f"{case_text((share, levels[0]))}{''.join(f' or {LEVELS[level]}' for level in levels[1:])}"
                     for share, levels in ((share, [level for of, level in cases if of == share]) for share in SHARES) if levels)


def methods_text(methods):
    """Returns methods with links, an operator before its feedback, with "or" between them."""
    return " or ".join(map(method_text, methods))
