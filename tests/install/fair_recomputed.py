#!/usr/bin/env python3
"""Recomputes every number of docs/conjecture.md, and of the answer in README.md, from the exported tables, with NumPy and SciPy and without a line of
the program that made the page.

    fair_recomputed.py SOURCE        checks SOURCE/docs/conjecture.md against the tables of the second study

A number on the page is compared as it is printed, to every digit. Prints what differs and how many numbers agree."""
import csv
import functools
import io
import lzma
import pathlib
import re
import sys

import numpy as np
from scipy import stats

SOURCE = pathlib.Path(sys.argv[1]).resolve()
RESULTS = SOURCE / "research" / "absolute-compressors" / "second" / "results"
PAGE, README = ((SOURCE / name).read_text() for name in ("docs/conjecture.md", "README.md"))
AXES = ("data.name", "local.steps", "participation.fraction", "feedback.up")
PAIRS = ("hard", "top-k"), ("rounding", "three-lc")
NAMES = ("the hard threshold", "Top-k"), ("absolute rounding", "3LC")
REPETITIONS = {"core-5": 5, "core-2": 5, "both-5": 5, "target": 5, "images": 3, "feedbacks-5": 5, "sign-5": 5, "decay-5": 5}
numbers_checked, faults = 0, []


@functools.cache
def table(part, repetition, kind):
    path = RESULTS / f"{part}-{repetition + 1}-{kind}.csv.xz"
    return list(csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode()))) if path.exists() else None


def tables(part, kind):
    return [lines for lines in (table(part, number, kind) for number in range(REPETITIONS[part])) if lines is not None]


def group_of(line):
    return tuple(line[axis] for axis in AXES if line.get(axis))


def section(name):
    return re.search(rf"<!-- begin {name} -->\n(.*?)<!-- end {name} -->", PAGE, re.DOTALL)[1]


def printed(name):
    """Returns the tables of a section, each a list of dictionaries by column title. A title that appears twice keeps the first place."""
    found, header = [], None
    for line in section(name).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            header = None
        elif header is None:
            header = cells
            found.append([])
        elif not set("".join(cells)) <= set("-: "):
            found[-1].append(dict(zip(header, cells)))
    return found


def expect(where, shown, right):
    global numbers_checked
    numbers_checked += 1
    if str(shown) != str(right):
        faults.append(f"{where}: the page has {shown}, the exports give {right}")


# --- the statistics of the plan -----------------------------------------------------------------------------------------------------------------------
@functools.cache
def values_of(part, statistic, pair, bits="up", measure="f_gap"):
    """Returns {group: array of the repetitions' statistics} of a pair; statistic(levels) has arrays [seeds, 2] of log zeta^2 and difference by level."""
    found = {}
    for lines in tables(part, "differences"):
        levels = {}
        for line in lines:
            if line["bits"] == bits and (line["a"], line["b"]) == pair and line["difference"] and line.get("measure", measure) == measure:
                x = np.log(float(line.get("zeta_sq_optimum") or line["zeta_sq"]))
                levels.setdefault(group_of(line), {}).setdefault(line["level"], []).append((x, float(line["difference"])))
        for group, by_level in levels.items():
            value = statistic({level: np.array(points) for level, points in by_level.items()})
            if value is not None:
                found.setdefault(group, []).append(value)
    return {group: np.array(values) for group, values in found.items() if len(values) > 1}


def contrast(levels, different="0"):
    return levels[different][:, 1].mean() - levels["100"][:, 1].mean() if {"100", different} <= set(levels) else None


def slope(levels):
    points = np.concatenate(list(levels.values()))
    return stats.linregress(points[:, 0], points[:, 1]).slope if len(levels) > 1 else None


def ahead(level):
    return lambda levels: levels[level][:, 1].mean() if level in levels else None


def family(part, statistic, pairs=PAIRS, bits="up", measure="f_gap"):
    """Returns {(pair, group): dictionary} with mean, interval, p, adjusted p and own p."""
    made = {}
    for pair in pairs:
        values = values_of(part, statistic, pair, bits, measure)
        freedom = sum(len(one) - 1 for one in values.values())
        pooled = sum(((one - one.mean()) ** 2).sum() for one in values.values()) / freedom if freedom else 0
        for group, one in values.items():
            error = np.sqrt(pooled / len(one))
            half = stats.t.ppf(0.975, freedom) * error
            made[pair, group] = {"mean": one.mean(), "low": one.mean() - half, "high": one.mean() + half, "p": 2 * stats.t.sf(abs(one.mean() / error), freedom),
                                 "own": stats.ttest_1samp(one, 0).pvalue}
    return with_holm(made, "p")


def with_holm(made, p):
    """Adds the p-values of a column adjusted by Holm's rule, and the signs of the claims."""
    order = sorted(made, key=lambda at: made[at][p])
    largest = 0
    for rank, at in enumerate(order):
        largest = max(largest, min(1, (len(order) - rank) * made[at][p]))
        made[at]["holm"] = largest
        made[at]["sign"] = 0 if largest > 0.05 else int(np.sign(made[at]["mean"]))
    return made


def place_of(row):
    """Returns pair and group of a row of a table."""
    group = []
    if "problem" in row:
        group.append("libsvm/" + row["problem"])
    if "steps" in row:
        group.append(row["steps"])
    if "clients" in row:
        group.append({"all": "1", "a tenth": "0.1"}[row["clients"]])
    if "feedback" in row:
        group.append({"EF21": "ef21", "EControl": "econtrol"}[row["feedback"]])
    return tuple(row["pair"].split(" : ")), tuple(group)


def signed(value):
    return f"{value:+.3f}"


def p_text(p):
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


VERDICT = {-1: "for", 0: "open", 1: "against"}


def check_estimate(where, row, one, column):
    expect(where, row[column], signed(one["mean"]))
    expect(where, row["95% interval"], f"{signed(one['low'])} .. {signed(one['high'])}")
    expect(where, row["p (Holm)"], p_text(one["holm"]))
    expect(where, row["own variance: p"], p_text(one["own"]))


@functools.cache
def forecast():
    with open(RESULTS / "forecast.csv", newline="") as file:
        return {(*(line[axis] for axis in AXES[:3]), line["partition.percent"]): float(line["forecast"]) for line in csv.DictReader(file)}


def predicted(value):
    return 0 if abs(value) <= 0.05 else int(np.sign(value))


def predicted_contrast(group):
    return predicted(forecast()[*group, "0"] - forecast()[*group, "100"])


def hits(verdicts, expected):
    found = [0, 0, 0]
    for (_, group), one in verdicts.items():
        found[0 if one["sign"] == expected(group) else 2 if one["sign"] == 0 else 1] += 1
    return tuple(found)


def hits_words(found):
    hit, miss, still_open = found
    return f"{hit} hit{'' if hit == 1 else 's'}, {miss} miss{'' if miss == 1 else 'es'}, {still_open} predicted and open"


def of_pair(verdicts, pair):
    return {at: one for at, one in verdicts.items() if at[0] == pair}


def counts(verdicts):
    return tuple(sum(one["sign"] == sign for one in verdicts.values()) for sign in (-1, 1, 0))


def counted(verdicts):
    found = counts(verdicts)
    return f"for the conjecture in {found[0]} of {len(verdicts)} group{'s' if len(verdicts) != 1 else ''}, against it in {found[1]}, and open in {found[2]}"


def ahead_counts(verdicts):
    is_alike = [one["sign"] == 0 and -np.log(1.1) < one["low"] and one["high"] < np.log(1.1) for one in verdicts.values()]
    signs = [one["sign"] for one in verdicts.values()]
    return signs.count(-1), signs.count(1), sum(is_alike), signs.count(0) - sum(is_alike)


def says(where, words):
    expect(where, " ".join(words.split()) in " ".join(section(where).replace("\n- ", " ").split()) or f"not: {words}", True)


# --- the sections -------------------------------------------------------------------------------------------------------------------------------------
def check_contrasts(where, part, pairs=PAIRS, bits="up", expected=None):
    verdicts = family(part, contrast, pairs, bits)
    rows = printed(where)[0] if printed(where) else []
    expect(where, len(rows), len(verdicts))
    for row in rows:
        at = place_of(row)
        check_estimate(f"{where} {at}", row, verdicts[at], "contrast")
        for level, column in (("100", "at 100%"), ("0", "at 0%")):
            expect(f"{where} {at}", row[column], signed(values_of(part, ahead(level), at[0], bits)[at[1]].mean()))
        expect(f"{where} {at}", row["the conjecture"], VERDICT[verdicts[at]["sign"]])
        if expected:
            expect(f"{where} {at}", row["predicted"], VERDICT[expected(at[1])])
    for pair in pairs if verdicts else ():
        says(where, counted(of_pair(verdicts, pair)) + (f"; predictions: {hits_words(hits(of_pair(verdicts, pair), expected))}" if expected else ""))
    return verdicts


def check_budget(name):
    part = f"core-{name}"
    contrasts = check_contrasts(f"contrasts-{name}", part, expected=predicted_contrast)
    slopes = family(part, slope)
    for row in printed(f"slopes-{name}")[0] if printed(f"slopes-{name}") else []:
        at = place_of(row)
        check_estimate(f"slopes-{name} {at}", row, slopes[at], "slope")
        expect(f"slopes-{name} {at}", row["the conjecture"], VERDICT[slopes[at]["sign"]])
    both = {}
    for number, level in enumerate(("100", "0")):
        both[level] = family(part, ahead(level))
        for row in printed(f"ahead-{name}")[number] if printed(f"ahead-{name}") else []:
            at, one = place_of(row), both[level][place_of(row)]
            where = f"ahead-{name} {at} {level}"
            expect(where, row["ratio of gaps"], f"{np.exp(one['mean']):.3f}")
            expect(where, row["95% interval"], f"{np.exp(one['low']):.3f} .. {np.exp(one['high']):.3f}")
            expect(where, row["p (Holm)"], p_text(one["holm"]))
            expect(where, row["result"], ("better", "worse", "alike", "open")[ahead_counts({at: one}).index(1)])
            expect(where, row["predicted"], {-1: "better", 0: "open", 1: "worse"}[predicted(forecast()[*at[1], level])])
        for pair in PAIRS if both[level] else ():
            found = of_pair(both[level], pair)
            says(f"ahead-{name}", "better in {} of {n} groups, worse in {}, alike within a factor of 1.1 in {}, and open in {}; predictions: ".format(
                *ahead_counts(found), n=len(found)) + hits_words(hits(found, lambda group, level=level: predicted(forecast()[*group, level]))))
    for row in printed("answer")[0] if printed("answer") else []:
        if row["budget"].split(",")[0] != f"{name}%":
            continue
        ran, planned = len(tables(part, "runs")), REPETITIONS[part]
        expect("answer", row["budget"], f"{name}%" if ran == planned else f"{name}%, a part: {ran} of {planned} repetitions")
        pair = tuple(row["pair"].split(" : "))
        expect("answer", row["contrasts: for / against / open"], " / ".join(map(str, counts(of_pair(contrasts, pair)))))
        expect("answer", row["slopes"], " / ".join(map(str, counts(of_pair(slopes, pair)))))
        expect("answer", row["at 100%: better / worse / alike / open"], " / ".join(map(str, ahead_counts(of_pair(both["100"], pair)))))
        expect("answer", row["at 0%"], " / ".join(map(str, ahead_counts(of_pair(both["0"], pair)))))
        expect("answer", row["predictions: hit / miss / open"], " / ".join(map(str, hits(of_pair(contrasts, pair), predicted_contrast))))
    if name == "5" and contrasts:
        for pair in PAIRS:
            says("answer", counted(of_pair(contrasts, pair)))
            says("answer", "better in {} of {n} groups, worse in {}, alike within a factor of 1.1 in {}, and open in {}".format(
                *ahead_counts(of_pair(both["0"], pair)), n=len(of_pair(both["0"], pair))))
        says("answer", hits_words(hits(contrasts, predicted_contrast)))
        check_answer(part, contrasts, both)
    check_short(name, part, contrasts)


def check_answer(part, contrasts, both):
    """Checks what qualifies the answer, and the answer in README.md."""
    found = hits(contrasts, predicted_contrast)
    claims = sum(one["sign"] == predicted_contrast(group) and one["sign"] != 0 for (_, group), one in contrasts.items())
    says("answer", f"Of the hits {claims} are claims of the predicted sign, and {found[0] - claims} are groups without a claim where none was predicted.")
    for level, where in (("100", "where rows are dealt at random"), ("0", "where clients differ most")):
        says("answer", f"{hits_words(hits(both[level], lambda group, level=level: predicted(forecast()[*group, level])))} {where}")
    short, number, total = short_of_budget(part)
    own = with_holm({at: dict(one) for at, one in contrasts.items()}, "own")
    kept = {at: one for at, one in contrasts.items() if not any((operator, at[1]) in short for operator in at[0])} if number else contrasts
    if number:
        says("answer", f"In {number} of {total:,} runs less than 95% of the budget was sent.")
    shaken = 0
    for pair, name in zip(PAIRS, NAMES):
        for checked in ((kept, own) if number else (own,)):
            says("answer", f"{name[0]} against {name[1]} is {counted(of_pair(checked, pair))}")
        shaken += any(conclusion(of_pair(one, pair)) != conclusion(of_pair(contrasts, pair)) for one in (kept, own))
        gained, _, _ = counts(of_pair(kept, pair))
        _, lost, _ = counts(of_pair(own, pair))
        all_of = of_pair(contrasts, pair)
        states(f"{name[0]} gained on {name[1]} in {counts(all_of)[0]} of {len(all_of)} settings and lost ground in {counts(all_of)[1]}")
        states("{0[0]} was better than {0[1]} in {1} and worse in {2}".format(name, *ahead_counts(of_pair(both["0"], pair))))
        states(f"{name[0]} lost ground in {lost}")
        if number:
            states(f"{name[0]} gained in {gained} of {len(of_pair(kept, pair))}")
    says("answer", ("Two checks leave both conclusions as they are.", "is not firm.", "Neither conclusion is firm.")[shaken])
    states("These counts are not firm:" if shaken else "Two checks agree:")
    states(f"Of {len(contrasts)} predictions {found[0]} hit, {found[1]} missed, and {found[2]} are open.")


def conclusion(verdicts):
    return tuple(bool(number) for number in counts(verdicts)[:2])


def states(words):
    """Expects words in the answer of README.md."""
    shown = " ".join(re.search(r"<!-- begin answer -->\n(.*?)<!-- end answer -->", README, re.DOTALL)[1].split())
    expect("README.md", words in shown or f"not: {words}", True)


def check_state():
    """Checks which parts are said to be whole, begun and not begun."""
    shown = " ".join(section("state").split())
    for part, planned in REPETITIONS.items():
        ran = len(tables(part, "runs"))
        kind = "Whole" if ran == planned else "In part" if ran else "Not begun"
        sentence = re.search(rf"{kind}: ([^.]*)\.", shown)
        expect(f"state {part}", sentence is not None and f"`{part}`" + (f" ({ran} of {planned} repetitions)" if kind == "In part" else "") in sentence[1], True)


def short_of_budget(part):
    """Returns the set of (operator, group) with a run that ended below 95% of its budget, the number of such runs, and of all."""
    short, number, total = set(), 0, 0
    for line in (line for lines in tables(part, "runs") for line in lines):
        total += 1
        both = bool(line.get("stop.bits"))
        budget = float(line.get("stop.bits") or line.get("stop.bits_up") or 0)
        if budget and float(line["bits_up"]) + (float(line["bits_down"]) if both else 0) < 0.95 * budget:
            short.add((line["compressor.up"], group_of(line)))
            number += 1
    return short, number, total


def check_short(name, part, contrasts):
    short, number, total = short_of_budget(part)
    if not contrasts or not number:
        return
    says(f"contrasts-{name}", f"{number} of {total:,} runs ended below 95% of the budget")
    for pair in PAIRS:
        says(f"contrasts-{name}", counted({at: one for at, one in of_pair(contrasts, pair).items() if not any((operator, at[1]) in short for operator in pair)}))


def check_target():
    logs, missed = {}, {}
    for number, lines in enumerate(tables("target", "runs")):
        bits = {}
        for line in lines:
            there = line["status"] == "done" and line["f_gap"] and float(line["f_gap"]) <= float(line["stop.f_gap"])
            bits[group_of(line), line["partition.percent"], line["seed"], line["compressor.up"]] = float(line["bits_up"]) if there else np.inf
        for (group, level, seed, operator), value in bits.items():
            missed[operator, level] = missed.get((operator, level), 0) + np.isinf(value)
            plain = bits.get((group, level, seed, "none"), np.inf)
            if np.isfinite(value) and np.isfinite(plain):
                logs.setdefault((operator, level), {}).setdefault(number, []).append(np.log(value / plain))
    for row in printed("target")[0] if printed("target") else []:
        at = row["operator"].strip("`"), row["dealt at random"].rstrip("%")
        means = np.array([np.mean(values) for values in logs[at].values()])
        expect(f"target {at}", row["bits over those without compression"], f"{np.exp(means.mean()):.4f}")
        if len(means) > 1:
            expect(f"target {at}", row["95% interval"], interval_of(means, 4))
        expect(f"target {at}", row["runs that never reached it"], int(missed[at]))


def interval_of(means, digits):
    half = stats.t.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return " .. ".join(f"{np.exp(means.mean() + side * half):.{digits}f}" for side in (-1, 1))


def ends(lines, pair, column):
    return {(group_of(line), line["level"], line["seed"]): float(line[column]) for line in lines
            if line["bits"] == "up" and (line["a"], line["b"]) == pair and line[column]}


def check_sign():
    for row in printed("sign")[0] if printed("sign") else []:
        level, column = row["dealt at random"].rstrip("%"), "value_a" if "ef-sign" in row["operator"] else "value_b"
        means = []
        for fixed, tuned in zip(tables("sign-5", "differences"), tables("core-5", "differences")):
            best = ends(tuned, ("hard", "top-k"), "value_b")
            means.append(np.mean([np.log(value / best[at]) for at, value in ends(fixed, ("ef-sign", "top-k"), column).items() if at[1] == level and at in best]))
        expect(f"sign {level}", row["gap over that of the tuned Top-k"], f"{np.exp(np.mean(means)):.3f}")
        expect(f"sign {level}", row["95% interval"], interval_of(np.array(means), 3))


def check_images():
    for row in printed("images")[0] if printed("images") else []:
        measure = "train_loss" if row["measure"].startswith("training") else "test_accuracy"
        pair = tuple(row["pair"].split(" : "))
        one = family("images", lambda levels: contrast(levels, "0.1"), measure=measure)[pair, ()]
        check_estimate(f"images {measure} {pair}", row, one, "contrast")
        for level, column in (("100", "at alpha = 100"), ("0.1", "at alpha = 0.1")):
            expect(f"images {measure} {pair}", row[column], signed(values_of("images", ahead(level), pair, measure=measure)[()].mean()))
        expect(f"images {measure} {pair}", row["the conjecture"], VERDICT[one["sign"] * (1 if measure == "train_loss" else -1)])


def check_feedbacks():
    check_contrasts("feedbacks", "feedbacks-5")
    found = [one for level in ("100", "0") for (pair, group), one in family("feedbacks-5", ahead(level)).items()
             if pair == PAIRS[0] and group[3] == "ef21" and group[2] == "1"]
    if found:
        kinds = np.sum([ahead_counts({0: one}) for one in found], axis=0)
        says("feedbacks", f"It is worse in {kinds[1]} of {len(found)} groups and levels, better in {kinds[0]}, alike in {kinds[2]}, and open in {kinds[3]}.")


def check_ran():
    for row in printed("ran")[0]:
        part = row["part"].strip("`")
        runs = tables(part, "runs")
        expect(f"ran {part}", row["repetitions"], f"{len(runs)} of {REPETITIONS[part]}")
        _, number, total = short_of_budget(part)
        expect(f"ran {part}", row["runs"], f"{total:,}")
        expect(f"ran {part}", row["ended below 95% of the budget"], f"{number:,}")
        expect(f"ran {part}", row["diverged"], sum(line["status"] == "diverged" for lines in runs for line in lines))


for budget in ("5", "2"):
    check_budget(budget)
check_contrasts("both", "both-5", bits="both")
check_contrasts("decay", "decay-5", PAIRS[:1])
check_feedbacks()
check_target()
check_sign()
check_images()
check_ran()
check_state()
print("\n".join(faults[:40]))
print(f"{numbers_checked - len(faults)} of {numbers_checked} numbers and sentences agree")
sys.exit(1 if faults else 0)
