#!/usr/bin/env python3
"""The page of the study is what its command makes: the text between marks and every figure have the same bytes. The plan's counting rule decides as
the plan says on lines made up for each case.

    conjecture_page_test.py SOURCE"""
import csv
import lzma
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "research" / "absolute-compressors"))
import conjecture
from conjecture_study import answer, contrasts, descriptive, limits_page as limits, noise, page as study_page, results, robustness, rules, secondary, student
from conjecture_study.answer import Agreement

PAGE, TABLES, FIGURES, RESULTS = (conjecture.FOLDER / name for name in ("page.md", "tables.md", "figures", "results"))


def made_in(folder, change=lambda results: None):
    """Makes the page of a copy of the study, after a change of its text and perhaps of its results, and returns the copy."""
    shutil.copytree(SOURCE / conjecture.FOLDER, folder / conjecture.FOLDER)
    change(folder / RESULTS)
    page = (SOURCE / PAGE).read_text()
    assert "<!-- begin answer -->\n" in page
    (folder / PAGE).write_text(page.replace("<!-- begin answer -->\n", "<!-- begin answer -->\nnot computed\n"))
    (folder / TABLES).write_text((SOURCE / TABLES).read_text().replace("<!-- begin tables -->\n", "<!-- begin tables -->\nnot computed\n"))
    (folder / FIGURES / "left-over.svg").write_text("")
    subprocess.run([sys.executable, "-B", conjecture.__file__, "--root", str(folder), "page"], check=True)
    return folder


def check_page():
    with tempfile.TemporaryDirectory() as name:
        copy = made_in(pathlib.Path(name))
        for page in (PAGE, TABLES):
            assert (copy / page).read_bytes() == (SOURCE / page).read_bytes(), f"{page} is not what `conjecture.py page` makes"
        made, committed = ({path.name: path.read_bytes() for path in (root / FIGURES).iterdir()} for root in (copy, SOURCE))
        assert sorted(made) == sorted(committed), sorted(set(made) ^ set(committed))
        changed = [name for name in made if made[name] != committed[name]]
        assert not changed, f"`conjecture.py page` makes other figures: {changed}"
        shown = (SOURCE / PAGE).read_text()
        hidden = [name for name in made if f"(figures/{name})" not in shown]
        assert not hidden, f"the page does not show {hidden}"
    print(f"the page and {len(made)} figures are what the command makes")


def play_all(folder):
    """Adds the blocks that are missing, as copies of one that has run under other labels."""
    for study, blocks in conjecture.studies().items():
        for name, block in blocks.items():
            if (folder / name).exists() or study not in conjecture.BUDGETS + ("robust-published", "descriptive-operators"):
                continue
            (folder / name).mkdir()
            for table in results.TABLES:
                text = lzma.decompress((folder / "a9a-5-steps-1" / f"{table}.csv.xz").read_bytes()).decode()
                text = text.replace("libsvm/a9a", block.fixed.get("data.name", "libsvm/a9a")).replace("local.steps=1", f"local.steps={block.fixed.get('local.steps', 1)}")
                text = text.replace("hard", "ef-sign") if study == "descriptive-operators" else text
                (folder / name / f"{table}.csv.xz").write_bytes(lzma.compress(text.encode(), preset=0))


def add_curves(folder):
    """Writes made-up secondary end points of the blocks that have none."""
    for name, block in conjecture.studies()["5"].items():
        fixed = {key: str(value) for key, value in block.fixed.items()}
        if (folder / name / "secondary.csv").exists():
            continue
        cells = dict.fromkeys(tuple({**run, **fixed}[key] for key in secondary.CELL) for run in results.read_table(folder / name / "runs.csv.xz"))
        with open(folder / name / "secondary.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, secondary.COLUMNS)
            writer.writeheader()
            for cell in cells:
                absolute = cell[-1] in secondary.PARTNERS
                writer.writerow({**dict(zip(secondary.CELL, cell)), "runs": 30, "diverged": 0, "swing": 0.3 if absolute else 0.1, "oscillating": 2 if absolute else 0,
                                 "updates": 1000, "refused": 1 if absolute else 0, "target": 0.01, "arrived": 30 if absolute else 29,
                                 "median_bits": "inf" if absolute and cell[-2] == "0" else 500 if absolute else 1000})


def whole(folder):
    play_all(folder)
    add_curves(folder)


def check_whole():
    """Checks that the page of a study whose blocks have all run draws conclusions and shows every figure."""
    with tempfile.TemporaryDirectory() as name:
        copy = made_in(pathlib.Path(name), whole)
        page, tables, drawn = (copy / PAGE).read_text(), (copy / TABLES).read_text(), [path.name for path in (copy / FIGURES).iterdir()]
    answer = page[page.index("<!-- begin answer -->"):page.index("<!-- end answer -->")]
    assert "Provisional" not in answer and "no conclusion yet" not in answer and "All 4 blocks" in answer, answer
    hidden = [name for name in drawn if f"(figures/{name})" not in page]
    assert not hidden and "robustness.svg" in drawn and "slopes-hard-1.svg" in drawn, (hidden, drawn)
    others = page[page.index("<!-- begin descriptive -->"):page.index("<!-- end descriptive -->")]
    for name, shown in (("descriptive-operators", "| a9a | EF14 | 1 | ef-sign : top-k | -0.775 ("), ("descriptive-powersgd", "`descriptive-powersgd` has not run.")):
        assert (SOURCE / RESULTS / name).exists() or shown in others, (shown, others)
    fit = " ".join(page[page.index("<!-- begin mixed -->"):page.index("<!-- end mixed -->")].split())
    covered = {line["group"] for line in csv.DictReader((SOURCE / RESULTS / "mixed-5.csv").open())}
    lacking = [name for name, block in conjecture.studies()["5"].items()
               if not any(f"{block.fixed['data.name']}," in at and at.endswith(f"local.steps={block.fixed['local.steps']}") for at in covered)]
    for name in lacking:
        assert "The fit is older than the exports" in fit and f"`{name}`" in fit, (name, fit)
    curves = tables[tables.index("## Whole curves"):tables.index("## Bits up and down")]
    assert "Tables: [Whole curves](tables.md#whole-curves)." in page
    assert "Without these end points" not in curves and len(re.findall("^\\| [aw][89]a ", curves, re.MULTILINE)) == 48, curves
    if not all((SOURCE / RESULTS / name / "secondary.csv").exists() for name in conjecture.studies()["5"]):
        assert "were refused" in page and "| 0.30 : 0.10 | 0.30 : 0.10 | 10 : 0 | 0.50 (30 : 29) | no median (30 : 29) |" in curves, curves
    print(f"a whole study has conclusions and {len(drawn)} figures")


def check_intervals():
    """Compares the intervals of differences at the most heterogeneous level with those that fedbits exported."""
    lines = results.read_table(SOURCE / RESULTS / "a9a-5-steps-1/slopes.csv.xz")
    differences = [line for line in results.read_table(SOURCE / RESULTS / "a9a-5-steps-1/differences.csv.xz") if line["bits"] == "up"]
    cells = descriptive.cells_of(differences)
    margins = [line for line in lines if line["margin"] and line["bits"] == "up"]
    for line in margins:
        shown = descriptive.mean_text(cells[(line["group"], line["measure"], line["a"], line["b"])][line["level"]])
        assert shown == f"{results.signed(line['difference'])} ({results.interval(line['difference_low'], line['difference_high'])})", (shown, line)
    assert margins and descriptive.mean_text([1.0] * 9) == "9 seeds only"
    assert abs(descriptive.student(9) - 2.2621572) < 4e-5
    print(f"{len(margins)} intervals of differences are those of fedbits")


def check_two_levels():
    """Compares slopes over two levels, their intervals and their claims with those that fedbits exported of a study that has two levels."""
    folder = SOURCE / RESULTS / "robust-dirichlet"
    lines = [line for line in results.joined_slopes(SOURCE / RESULTS, ["robust-dirichlet"]) if line["bits"] == "up" and not line["between"]]
    differences = [line for line in results.read_table(folder / "differences.csv.xz") if line["bits"] == "up"]
    slopes = robustness.two_level_slopes(differences, ("1000", "0.1"))
    assert len(slopes) == len(lines) == 12, (len(slopes), len(lines))
    for line in lines:
        slope = slopes[robustness.key(line)]
        for ours, theirs in zip(slope.interval, ("slope_low", "slope", "slope_high")):
            assert abs(ours - float(line[theirs])) < 1e-5 * max(1, abs(float(line[theirs]))), (slope.interval, line)
        assert slope.claim == results.verdict_of(line), (slope.claim, line)
    assert {slope.claim for slope in slopes.values()} == set(results.VERDICTS), "the study has every claim"
    print("slopes over two levels and their claims are those of fedbits")


def check_holm():
    """Checks that claims over two levels are adjusted: p-values of Student's t with 29 degrees of freedom by the rule of results.py."""
    def slope_of(t):
        values = [1.0, -1.0] * 15
        return robustness.Slope([one + t * statistics.stdev(values) / math.sqrt(len(values)) for one in values])

    for claims, ts in ((["for", "no claim", "no claim"], (-2.6, 2.2, -2.2)),         # 0.0145 * 3 < 0.05, 0.0359 * 2 > 0.05
                       (["against", "for", "against"], (2.6, -2.4, 2.1)),            # and 0.0231 * 2 < 0.05, 0.0445 < 0.05
                       (["no claim", "no claim", "no claim"], (2.4, 2.3, 2.2))):     # 0.0231 * 3 > 0.05
        slopes = [slope_of(t) for t in ts]
        robustness.decide(slopes)
        assert [slope.claim for slope in slopes] == claims, (ts, [(slope.t, slope.claim) for slope in slopes])
    print("claims over two levels are adjusted by Holm's rule")


def check_most_different():
    margin = lambda low, high, p=(1, 1), **more: {"margin": "1.1x", "result_why": results.OF_MARGIN_TEST, "difference_low": str(low), "difference_high": str(high),
                                                  "p_non_inferior_adjusted": p[0], "p_superior_adjusted": p[1], **more}
    assert results.shown_of(margin(-0.5, -0.2, p=(0.001, 0.001))) == "superior"
    assert results.shown_of(margin(-0.05, 0.05, p=(0.001, 0.4))) == "non-inferior"
    assert results.shown_of(margin(0.0954, 0.3)) == "worse" and results.shown_of(margin(0.0953, 0.3)) == "undecided"
    assert results.shown_of(margin(0.2, 0.3, result_why="fewer than 5 evaluations")) == "not comparable"
    assert results.shown_of(margin(0.2, 0.3, result_why="fewer than 2 seeds")) == "undecided"
    assert results.shown_of(margin(-0.03, -0.011, margin="1pt")) == "worse" and results.shown_of(margin(-0.03, -0.009, margin="1pt")) == "undecided"
    assert results.shown_of({"margin": ""}) == ""
    print("results at the most different clients are those of the page")


def check_edges():
    grids = {"feedback.up.eta": [0.05, 0.2, 0.5], "local.learning_rate": ["0.25/L", "0.5/L"]}
    cell = dict.fromkeys(limits.CELL, "")
    for eta, rate, expected in (("1", "1/L", "eta in 1 cell"), ("0.5", "4.0*(2.0/L)", "step size in 1 cell"), ("0.5", "1/L", "none"),
                                ("1", "0.0625*(0.25/L)", "eta in 1 cell; step size in 1 cell")):
        found = limits.values_at_edge([{**cell, "feedback.up.eta": eta, "local.learning_rate": rate}], grids)
        assert limits.edge_text(found) == expected, (eta, rate, limits.edge_text(found))
    print("values at the end of a grid are found")


def line(group, slope, p="0.001", why=""):
    return {"group": group, "a": "hard", "b": "top-k", "measure": "f_gap", "slope": str(slope), "p_holm": p, "why": why}


def group(feedback, steps):
    return f"data.name=libsvm/a9a, feedback.up={feedback}, participation.fraction=1, local.steps={steps}"


def check_counting():
    groups = [group(feedback, steps) for feedback in ("ef14", "ef21") for steps in ("1", "10")]
    conclusion = lambda slopes, **more: results.conclusion_of([line(at, slope, **more) for at, slope in zip(groups, slopes)], len(groups))
    assert conclusion([-1, -2, -1, -3]) == "holds"
    assert conclusion([1, 2, 1, 3]) == "fails"
    assert conclusion([-1, -2, -1, 3]) == "mixed"
    assert conclusion([-1, -2, -1]) == "open"
    assert conclusion([-1, -2, -1, -3], p="0.2") == "mixed", "no claims decide nothing"
    assert conclusion([-1, -2, -1, -3], why="fewer than 5 evaluations") == "mixed"
    gains = {**line(groups[0], 1), "measure": "test_accuracy"}
    assert results.verdict_of(gains) == "for" and results.verdict_of(line(groups[0], 1)) == "against"
    by_feedback = [line(at, slope) for at, slope in zip(groups, [-1, -2, 1, 3])]
    counted = lambda **more: {"for": 0, "against": 0, "no claim": 0, **more}
    expected = ("feedback",), {("ef14",): counted(**{"for": 2}), ("ef21",): counted(against=2)}
    assert results.separating_factors(by_feedback) == expected, results.separating_factors(by_feedback)
    assert results.separating_factors([line(at, 1) for at in groups]) == ((), {}), "one verdict needs no factor"
    without = [line(groups[0], -1, p="0.9"), *by_feedback[1:]]
    assert results.separating_factors(without)[1][("ef14",)] == counted(**{"for": 1, "no claim": 1}), "no claim agrees with both"
    assert results.separating_factors([line(at, 1, p=p) for at, p in zip(groups, ("0.001", "0.9", "0.001", "0.9"))]) == ((), {}), "no opposite claims"
    by_two = results.separating_factors([line(at, slope) for at, slope in zip(groups, [-1, 2, 1, -3])])
    assert by_two[0] == ("feedback", "local steps") and by_two[1][("ef21", "1")] == counted(against=1), by_two
    agreement = Agreement([("for", "for"), ("against", "for"), ("no claim", "for"), ("no claim", "no claim"), ("against", "against")])
    assert (agreement.same, agreement.opposite, agreement.one_without, agreement.neither, agreement.total) == (2, 1, 1, 1, 5)
    difference = {**line(groups[0], -2), "other_group": groups[2]}
    assert results.sign_depends(difference, by_feedback)
    assert not results.sign_depends(difference, [line(at, slope) for at, slope in zip(groups, [-1, -2, -1, 3])]), "one sign"
    assert not results.sign_depends({**difference, "p_holm": "0.5"}, by_feedback), "a difference without a claim"
    assert [limits.value_of(text) for text in ("0.25/L", "2.0*(16/L)", "0.048", "4.0*0.768")] == [0.25, 32, 0.048, 3.072]
    print("the counting rule is that of the plan")


def check_noise():
    """Checks the noise of tuning on a made-up study: where tuning chose other values, the log ratio at 0% is 0.2 larger than at 1%."""
    labels = {"data.name": "libsvm/a9a", "feedback.up": "ef14", "participation.fraction": "1"}
    runs, differences = [], []
    for steps, change in (("1", 0.0), ("10", 0.2)):
        for place, level in enumerate(("100", "1", "0")):
            rate = "2/L" if change and level == "0" else "1/L"
            differences.append({"group": f"{group('ef14', steps)}", "a": "hard", "b": "top-k", "level": level, "x": str(place),
                                "difference": str(0.1 + (change if level == "0" else 0.0))})
            runs += [{**labels, "local.steps": steps, "partition.percent": level, "compressor.up": method, "local.learning_rate": rate, "feedback.up.eta": "",
                      "compressor.up.threshold": "", "compressor.up.step": ""} for method in ("hard", "top-k")]
    same, other = noise.split_by_tuning(noise.means_of(differences), noise.tuned_values(runs))
    assert len(same) == len(other) == 1 and abs(same[0]) < 1e-12 and abs(other[0] - 0.2) < 1e-12, (same, other)
    levels = {str(x): (x, 0.0) for x in (1.0, 2.0, 3.0)}
    assert abs(noise.deviation_of_slope(levels, 0.3) - 0.3 / math.sqrt(2)) < 1e-12, "least squares: sigma / sqrt(sum of squared deviations of x)"
    print("the noise of tuning is told from that of the seeds")


def check_student():
    """Compares p-values of Student's t with those that fedbits exported, and quantiles with those of tables."""
    lines = [line for line in conjecture.exported(SOURCE, "5").slopes + conjecture.exported(SOURCE, "network-core").slopes if float(line["p"]) > 1e-60]
    for line in lines:
        freedom = int(line["seeds"]) - 1
        error = (float(line["slope_high"]) - float(line["slope_low"])) / 2 / student.quantile(freedom)
        ours = student.two_sided_p(float(line["slope"]) / error, freedom)
        assert abs(ours - float(line["p"])) <= 1e-9 * float(line["p"]), (ours, line)
    for freedom, level, expected in ((29, 0.05, 2.045229642), (9, 0.05, 2.262157163), (2, 0.05, 4.302652730), (10, 0.01, 3.169272673), (1, 0.5, 1.0)):
        assert abs(student.quantile(freedom, level) - expected) < 1e-8, (freedom, level, student.quantile(freedom, level))
    assert student.two_sided_p(0, 5) == 1.0
    print(f"{len(lines)} p-values of Student's t are those of fedbits")


class Contrasted:
    """A made-up study of two groups, whose contrasts over four seeds are known."""
    seeds = {"ef14": (-1.0, -1.2, -0.8, -1.0), "ef21": (0.3, -0.3, 0.5, -0.1)}

    def __init__(self, why="the interval contains zero"):
        self.slopes = [{**line(group(feedback, "1"), 9, why=why), "slope_low": "8", "slope_high": "10", "p": "1", "seeds": "4"} for feedback in self.seeds]
        self.between = [{**line(group("ef14", "1"), -1), "slope_low": "-1.5", "slope_high": "-0.5", "p": "1", "seeds": "4", "other_group": group("ef21", "1")}]

    def differences(self):
        level = lambda name, seed, value: {"group": group(name, "1"), "a": "hard", "b": "top-k", "seed": seed, **value}
        return [level(name, seed, ends) for name, values in self.seeds.items() for seed, value in enumerate(values)
                for ends in ({"level": "100", "difference": "0.5"}, {"level": "10", "difference": "7"}, {"level": "0", "difference": str(0.5 + value)})] \
            + [level("ef14", 9, {"level": "0", "difference": "100"})]  # a seed without its other end


def check_contrasts():
    """Checks contrasts and the variance of tuning on a made-up study: means, errors, t tests and Holm's rule by hand."""
    study = Contrasted()
    for deviation in (0.0, 0.3):
        made = contrasts.lines_of(study, deviation)
        ps = []
        for found, values in zip(made, study.seeds.values()):
            error = math.sqrt(statistics.variance(values) / 4 + deviation**2)
            assert abs(float(found["slope"]) - statistics.mean(values)) < 1e-12, found
            assert abs(float(found["slope_high"]) - statistics.mean(values) - 3.182446305 * error) < 1e-8, found
            ps.append(student.two_sided_p(statistics.mean(values) / error, 3))
        assert [found["p_holm"] for found in made] == results.holm_adjusted(ps) and ps[0] < ps[1], made
        assert [results.verdict_of(found) for found in made] == ["for" if deviation == 0 else "no claim", "no claim"], made
    assert {results.verdict_of(found) for found in contrasts.lines_of(Contrasted("3 evaluations in a window"))} == {"no claim"}, "no claim for other reasons"
    wide = contrasts.with_tuning(study, 0.4)
    for lines, others, deviation in ((study.slopes, wide.slopes, 0.4), (study.between, wide.between, 0.4 * math.sqrt(2))):
        for one, other in zip(lines, others):
            halves = [(float(found["slope_high"]) - float(found["slope_low"])) / 2 / 3.182446305 for found in (one, other)]
            assert abs(halves[1] - math.hypot(halves[0], deviation)) < 1e-8 and float(other["slope"]) == float(one["slope"]), (one, other)
    assert study.slopes[0]["slope_high"] == "10", "the study itself stays as it is"
    assert contrasts.same_verdicts(study.slopes, study.slopes) == 2 and contrasts.same_verdicts(contrasts.lines_of(study), study.slopes) == 1
    levels = {"a": (0.0, 0.0), "b": (1.0, 1.0), "c": (2.0, 0.0)}  # deviations of 1/3, 2/3 and 1/3 from a level line, sum of squares 2/3 over 1 degree
    assert abs(noise.lack_of_fit(levels) - math.sqrt(2 / 3 / 2)) < 1e-12, noise.lack_of_fit(levels)
    first = conjecture.exported(SOURCE, "5")
    again = contrasts.with_tuning(first, 0.0)
    for one, other in zip(first.slopes + first.between, again.slopes + again.between):
        assert results.verdict_of(one) == results.verdict_of(other) and abs(float(one["p_holm"]) - float(other["p_holm"])) <= 1e-9 * float(one["p_holm"]), (one, other)
    print("contrasts and the variance of tuning are those by hand")


def check_answer():
    """Checks that the counts of the answer are those of its tests, EF14 apart, and the sentences that depend on them."""
    first = conjecture.exported(SOURCE, "5")
    evidence = noise.Evidence(first, first.runs())
    for pair in results.pairs_of(first.slopes):
        rows = [row for row in answer.counts_table(evidence).splitlines() if row.startswith(f"| {pair[0]} :")]
        numbers = [[[int(count) for count in cell.split(" / ")] for cell in row.strip("| ").split(" | ")[3:]] for row in rows]
        assert len(rows) == 3 and [[sum(two) for two in zip(*cells)] for cells in zip(*numbers[:2])] == numbers[2], rows
        assert numbers[2][3] == list(results.counts(results.of_pair(first.slopes, pair)).values()), rows
        of_ef14 = [one for one in results.of_pair(evidence.contrasts, pair) if "feedback.up=ef14" in one["group"]]
        assert len(of_ef14) == 8 and numbers[0][0] == list(results.counts(of_ef14).values()), rows
    groups, short, total = evidence.short
    assert total == 5 * len(first.slopes) == 240 and len(short) >= len(groups) == len({at for at in groups}) > 0, (len(short), len(groups), total)
    kept = [one for one in first.slopes if (one["group"], (one["a"], one["b"])) not in groups]
    assert len(kept) == len(first.slopes) - len(groups)
    text = answer.before_budget_text(evidence)
    for pair in results.pairs_of(first.slopes):
        counted = results.counts(results.of_pair(kept, pair))
        assert f"({counted['for']} and {counted['against']} by the seeds alone)" in text and f"In {len(short)} of 240 cells" in text, text
    figure = (SOURCE / FIGURES / "slopes-hard-5.svg").read_text().splitlines()
    assert sum("stroke-width:1\"" in one for one in figure) == sum(one.startswith('<circle') for one in figure) == 24, "each group has both intervals"
    versions = limits.versions_of([{"configuration": '{"results_version": 2}'}, {"configuration": "{}"}])
    assert versions == "2 and not known", versions
    assert set(limits.commits_of(SOURCE / RESULTS)) == {path.name for path in (SOURCE / RESULTS).iterdir() if path.is_dir()}
    print("the answer counts what it says")


def by_hand(study, line, level):
    """Returns the means over the seeds of a pair: the end points' difference and that of the last values at a level, and the rounds of both runs."""
    ends, last, rounds = [], [], ([], [])
    runs = {(run["feedback.up"], run["participation.fraction"], run["partition.percent"], run["compressor.up"], run["seed"]): run for run in study.runs()}
    labels = results.settings_of(line["group"])
    for one in study.differences():
        if (one["group"], one["a"], one["b"], one["level"]) == (line["group"], line["a"], line["b"], level):
            pair = [runs[labels["feedback.up"], labels["participation.fraction"], level, method, one["seed"]] for method in (line["a"], line["b"])]
            ends.append(float(one["value_a"]) - float(one["value_b"]))
            last.append(float(pair[0]["test_accuracy"]) - float(pair[1]["test_accuracy"]))
            for found, run in zip(rounds, pair):
                found.append(int(run["rounds"]))
    return statistics.mean(ends), statistics.mean(last), [statistics.mean(found) for found in rounds]


def check_ends():
    """Compares what stands beside the margins of networks with means of the exported tables."""
    for name in ("network-core", "network-low-rank"):
        study = conjecture.exported(SOURCE, name)
        ends = robustness.AtTheEnds(study)
        for line in study.slopes:
            cells = ends.cells(line)
            assert cells["difference at 0%"].startswith(results.signed(line["difference"])), (cells, line)
            alike, (_, last, rounds) = by_hand(study, line, "100")[0], by_hand(study, line, "0")
            assert cells["difference at 100%"].startswith(f"{alike:+.3f} ("), (cells, alike)
            assert cells["last values at 0%"].startswith(f"{last:+.3f} ("), (cells, last)
            assert cells["rounds at 0%"] == " : ".join(f"{mean:.0f}" for mean in rounds), (cells, rounds)
        print(f"{name}: {len(study.slopes)} margins have the differences at their ends")


def check_capped():
    """Checks that exactly those results where clients differ most are marked which rest on capped end points there."""
    for name in ("robust-published", "network-core", "cifar-core"):
        study, marked = conjecture.exported(SOURCE, name), 0
        for line in study.slopes:
            here = [one for one in study.differences() if all(one[key] == line[key] for key in ("group", "a", "b", "level"))]
            capped = any("1" in (one["capped_a"], one["capped_b"]) for one in here)
            assert here and bool(line["capped_there"]) == capped, (line, capped)
            assert line["capped_partner"] == sum(int(one["capped_b"]) for one in here), line
            assert any("\\*" in str(text) for title, text in results.margin_cells(line).items() if " at " in title) == capped, line
            marked += capped
        print(f"{name}: {marked} results rest on capped end points")


def check_outside():
    """Checks the counts of rule 1 and the directions of rule 3 on made-up runs."""
    gaps = {("0", "one", "rounding"): -3.0, ("100", "one", "rounding"): -5.0}
    others = {("0", "one", "qsgd"): -4.0, ("100", "one", "qsgd"): -4.5, ("0", "two", "qsgd"): -9.0, ("0", "one", "top-k"): -9.0}
    assert rules.others_below(gaps, "rounding", others) == {"qsgd": [True, False]}, "only operators outside of the pairs, where both have run"
    labels = {"data.name": "libsvm/a9a", "feedback.up": "ef14", "participation.fraction": "1", "local.steps": "1", "local.learning_rate": "1/L"}
    cells = {("hard", "1"): ("0.048", "0.192"), ("hard", "10"): ("0.192", "0.048"), ("rounding", "1"): ("0.04", "4.0*0.04"), ("rounding", "10"): ("0.04", "0.04")}
    runs = [{**labels, "local.steps": steps, "compressor.up": method, "partition.percent": level, rules.TUNED[method]: value}
            for (method, steps), values in cells.items() for level, value in zip(("100", "0"), values)]
    said = rules.changed_text(runs)
    assert "in 3 of 4 cells" in said and "it grew in 2 and shrank in 1" in said, said
    for run in runs:  # all updates of the level 0% are of a step four times as large, so the thresholds in units of the gradient are a quarter
        run["local.learning_rate"] = "2.0*(2/L)" if run["partition.percent"] == "0" else "1/L"
    assert rules.in_gradients(runs[1]) == 0.048 and rules.in_gradients(runs[0]) == 0.048, runs[:2]
    said = rules.changed_text(runs)
    assert "in 2 of 4 cells" in said and "it grew in 0 and shrank in 2" in said and "in units of the gradient" in said, said
    first, published = conjecture.exported(SOURCE, "5"), conjecture.exported(SOURCE, "robust-published")
    tuned = rules.core_of(first, published.slopes)
    assert len(tuned) == len(published.slopes) == 12 and {results.settings_of(line["group"])["local.steps"] for line in tuned} == {"1"}
    print("the rules of thumb count what they say")


def check_trends():
    """Checks, on made-up lines, the counts of claims whose ends disagree with them and of claims that another budget turns round."""
    class MadeUp:
        def __init__(self, slopes, ends):
            self.slopes = [line(at, slope) for at, slope in slopes]
            self.ends = ends

        def differences(self):
            return [{"group": at, "a": "hard", "b": "top-k", "level": level, "difference": str(value)}
                    for at, values in self.ends.items() for level, value in zip(("100", "0"), values)]

    one, two, three = group("ef14", "1"), group("ef14", "10"), group("ef21", "1")
    study = MadeUp([(one, -1), (two, 2), (three, -1)], {one: (0.5, 0.1), two: (0.1, 0.5), three: (0.1, 0.2)})
    assert "in 1 of 3 claims" in study_page.ends_text(study), study_page.ends_text(study)
    other = MadeUp([(one, 1), (two, 2), (three, 1)], {})
    for no_claim in other.slopes[1:]:
        no_claim["p_holm"] = "0.9"
    assert answer.claims_turned(other, study) == (1, 3), answer.claims_turned(other, study)
    print("claims that the ends or another budget turn round are counted")


check_page()
check_whole()
check_noise()
check_student()
check_contrasts()
check_answer()
check_ends()
check_capped()
check_outside()
check_trends()
check_intervals()
check_two_levels()
check_holm()
check_most_different()
check_edges()
check_counting()
