"""The results of the study of first/plan.md: exports of its blocks, joined to families, and tables of them.

Each block has a store of its own. What is kept of it are three exported tables, compressed: `runs`, `differences` and `slopes`. A family of tests
is larger than a block, so p-values are adjusted here again, over all blocks of a budget, by the rules of fedbits."""
import csv
import io
import itertools
import lzma
import math
import pathlib
import subprocess
import tempfile

TABLES = ("runs", "differences", "slopes")
FINISHED = "done", "diverged"  # a diverged run counts with its bounded end point


def read_table(path):
    """Returns the lines of a compressed table, each as a dictionary of texts."""
    with lzma.open(path, "rt", newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def export_block(fedbits, store, folder, num_runs):
    """Writes the tables of a block's store into a folder. Raises ValueError if runs are missing or have failed."""
    with tempfile.TemporaryDirectory() as temporary:
        files = {name: pathlib.Path(temporary) / f"{name}.csv" for name in TABLES}
        words = [word for name, path in files.items() for word in (f"--{name}", path)]
        subprocess.run([fedbits, "export", store, "--reproducible", *words], check=True, stdout=subprocess.DEVNULL)
        runs = list(csv.DictReader(io.StringIO(files["runs"].read_text())))
        if len(runs) != num_runs:
            raise ValueError(f"{store} has {len(runs)} of {num_runs} runs")
        others = sorted({run["status"] for run in runs} - set(FINISHED))
        if others:
            raise ValueError(f"{store} has runs that are neither done nor diverged: {', '.join(others)}")
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            (folder / f"{name}.csv.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def blocks_in(folder, names):
    """Returns the names of those blocks that have been exported, in the order given."""
    return [name for name in names if (folder / name / "slopes.csv.xz").exists()]


def number(text):
    return float(text) if text else None


def holm_adjusted(p_values):
    """Returns p-values adjusted by Holm's rule, in the order of the input."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def chain_adjusted(chains):
    """Returns adjusted p-values of chains of two hypotheses, the second of which is tested only after its first was rejected. Every unfinished
    chain has an equal share of the level, and passes it on when both are rejected."""
    adjusted, stage, largest = [list(chain) for chain in chains], [0] * len(chains), 0.0
    while any(one < 2 for one in stage):
        unfinished = sum(one < 2 for one in stage)
        least = min((i for i in range(len(chains)) if stage[i] < 2), key=lambda i: chains[i][stage[i]])
        largest = max(largest, min(1.0, unfinished * chains[least][stage[least]]))
        adjusted[least][stage[least]] = largest
        stage[least] += 1
    return adjusted


def join_families(lines):
    """Adjusts the p-values of lines of slopes.csv over the families that they form together: slopes, differences of slopes, and margins, each for
    one measure at one kind of bits. A line of fewer than two seeds belongs to no family."""
    families = {}
    for line in lines:
        if int(line["seeds"]) >= 2:
            families.setdefault((line["measure"], line["bits"], bool(line["between"])), []).append(line)
    for family in families.values():
        for raw, name in (("p", "p_holm"), ("p_flip", "p_flip_holm")):
            for line, value in zip(family, holm_adjusted([float(line[raw]) for line in family])):
                line[name] = value
        chains = [line for line in family if line["difference_low"]]
        for line, pair in zip(chains, chain_adjusted([(float(line["p_non_inferior"]), float(line["p_superior"])) for line in chains])):
            line["p_non_inferior_adjusted"], line["p_superior_adjusted"] = pair
    return lines


def joined_slopes(folder, names):
    """Returns the lines of all blocks' slopes.csv, with the name of their block, adjusted over the families that they form."""
    return join_families([{**line, "block": name} for name in names for line in read_table(folder / name / "slopes.csv.xz")])


# What fedbits says of a line where only the tests decided. Any other reason excludes a claim.
OF_SLOPE_TEST, OF_MARGIN_TEST = "not after Holm's correction", "the margin is not excluded"


def verdict_of(line, level=0.05):
    """Returns what a slope says about the conjecture: a negative one of a gap is for it, and a positive one of an accuracy."""
    if line["why"] not in ("", OF_SLOPE_TEST) or float(line["p_holm"]) > level:
        return "no claim"
    return "for" if (float(line["slope"]) < 0) == (line["measure"] == "f_gap") else "against"


def margin_result_of(line, level=0.025):
    """Returns what is shown at the most heterogeneous level; "" where there is no margin."""
    if not line["margin"]:
        return ""
    if line["result_why"] not in ("", OF_MARGIN_TEST) or float(line["p_non_inferior_adjusted"]) > level:
        return "not shown"
    return "superior" if float(line["p_superior_adjusted"]) <= level else "non-inferior"


def is_worse(line):
    """Returns whether the 95% interval at the most heterogeneous level lies beyond the margin. The plan has no test of it, so it is descriptive."""
    if not line["margin"] or line["result_why"] not in ("", OF_MARGIN_TEST):
        return False
    if line["margin"].endswith("x"):
        return float(line["difference_low"]) > math.log(float(line["margin"][:-1]))
    return float(line["difference_high"]) < -float(line["margin"].removesuffix("pt")) / 100


def has_short_window(line, column="why"):
    """Returns whether the bits that both runs of a pair sent have too few evaluations for an end point."""
    return " evaluation" in line[column]


MARGIN_RESULTS = "superior", "non-inferior", "worse", "undecided", "not comparable"


def shown_of(line):
    """Returns which of MARGIN_RESULTS a line has; "" where there is no margin."""
    tested = margin_result_of(line)
    if tested != "not shown":
        return tested
    return "not comparable" if has_short_window(line, "result_why") else "worse" if is_worse(line) else "undecided"


# The factors that make groups, with their axes.
FACTORS = {"problem": "data.name", "feedback": "feedback.up", "share of clients": "participation.fraction", "local steps": "local.steps"}
VERDICTS = "for", "against", "no claim"


def pairs_of(lines):
    """Returns the pairs (absolute, contraction) in the order of the lines."""
    return list(dict.fromkeys((line["a"], line["b"]) for line in lines))


def of_pair(lines, pair):
    return [line for line in lines if (line["a"], line["b"]) == pair]


def counts(lines):
    """Returns how many groups have each verdict."""
    found = [verdict_of(line) for line in lines]
    return {verdict: found.count(verdict) for verdict in VERDICTS}


def conclusion_of(lines, num_groups):
    """Returns the plan's conclusion for one pair: "holds" and "fails" need the same claim in every group, and nothing is concluded from a part."""
    if len(lines) < num_groups:
        return "open"
    found = counts(lines)
    return "holds" if found["for"] == num_groups else "fails" if found["against"] == num_groups else "mixed"


def counts_by_factor(lines):
    """Returns {factor: {label: counts}} of the groups of one pair."""
    by_factor = {}
    for name, axis in FACTORS.items():
        labels = {}
        for line in lines:
            labels.setdefault(settings_of(line["group"]).get(axis, ""), []).append(line)
        by_factor[name] = {label: counts(with_label) for label, with_label in labels.items()}
    return by_factor


def separating_factors(lines):
    """Returns the smallest set of one or two factors whose labels tell the claims for from the claims against, with the counts of the verdicts of each
    combination of labels. Returns ((), {}) if there is none, or if there are no opposite claims. A group without a claim agrees with both."""
    if not {"for", "against"} <= {verdict_of(line) for line in lines}:
        return (), {}
    for size in (1, 2):
        for factors in itertools.combinations(FACTORS, size):
            found = {}
            for line in lines:
                labels = tuple(settings_of(line["group"]).get(FACTORS[factor], "") for factor in factors)
                found.setdefault(labels, []).append(line)
            counted = {labels: counts(with_labels) for labels, with_labels in found.items()}
            if not any(count["for"] and count["against"] for count in counted.values()):
                return factors, counted
    return (), {}


def difference_of(line):
    """Returns what the difference of two slopes shows."""
    return "no claim" if verdict_of(line) == "no claim" else "differ"


def sign_depends(line, slopes):
    """Returns whether the two slopes of a difference that is a claim have claims of opposite signs."""
    of_group = {slope["group"]: verdict_of(slope) for slope in of_pair(slopes, (line["a"], line["b"]))}
    return difference_of(line) == "differ" and {of_group[line["group"]], of_group[line["other_group"]]} == {"for", "against"}


def settings_of(group):
    """Returns the labels of a group as a dictionary: "data.name=libsvm/a9a,local.steps=1" gives two."""
    return dict(part.split("=", 1) for part in group.replace(", ", ",").split(","))


def p_value(line):
    if line["p_holm"] == "":
        return ""
    return f"{float(line['p_holm']):.2g}" if float(line["p_holm"]) >= 1e-99 else "< 1e-99"


def signed(text):
    return f"{float(text):+.3f}" if text else ""


def interval(low, high):
    return f"{float(low):+.3f} to {float(high):+.3f}" if low and high else ""


# Titles of the axes in tables.
TITLES = {"data.name": "problem", "feedback.up": "feedback", "participation.fraction": "share of clients", "local.steps": "steps"}


def group_cells(line):
    """Returns {title: label} of a line's group, without the axis between whose labels slopes are compared."""
    between = line["between"].split("=")[0]
    return {TITLES[axis]: label.split("/")[-1] for axis, label in settings_of(line["group"]).items() if axis != between}


SHORT_WINDOW = "\u2020"


def why_cell(text, why):
    """Returns what a line shows, with a mark where there are too few evaluations for a claim."""
    return f"{text} {SHORT_WINDOW}" if " evaluation" in why else text


def capped_mark(count):
    return "\\*" if int(count) else ""


# What the levels of a study are, where they are not percentages of rows that are dealt at random.
LEVELS = {"robust-dirichlet": "alpha = {}", "robust-quadratics": "zeta^2 = {}"}


def level_text(study, level):
    return LEVELS.get(study, "{}%").format(level)


def margin_text_of(line):
    """Returns the margin as the numbers beside it are: a factor, or a difference of accuracies."""
    return line["margin"] if line["margin"].endswith("x") else f"{float(line['margin'].removesuffix('pt')) / 100:.2f}"


def slope_cells(line):
    """Returns {title: text} of a slope (H1)."""
    return {**group_cells(line), "pair": f"{line['a']} : {line['b']}", "seeds": line["seeds"], "slope": signed(line["slope"]) + capped_mark(line["capped"]),
            "95% interval": interval(line["slope_low"], line["slope_high"]), "p (Holm)": p_value(line),
            "the conjecture": why_cell(verdict_of(line), line["why"])}


def margin_cells(line):
    """Returns {title: text} of the test at the most heterogeneous level (H2)."""
    what = "log ratio" if line["measure"] == "f_gap" else "difference"
    return {**group_cells(line), "pair": f"{line['a']} : {line['b']}",
            f"{what} at {level_text(line['block'], line['level'])}": signed(line["difference"]) + capped_mark(line["capped_there"]),
            "95% interval": interval(line["difference_low"], line["difference_high"]),
            f"result (margin {margin_text_of(line)})": why_cell(shown_of(line), line["result_why"])}


def between_cells(line):
    """Returns {title: text} of a difference of slopes (H3)."""
    return {**group_cells(line), "pair": f"{line['a']} : {line['b']}", "feedbacks": line["between"].split("=", 1)[1],
            "difference of slopes": signed(line["slope"]), "95% interval": interval(line["slope_low"], line["slope_high"]),
            "p (Holm)": p_value(line), "result": why_cell(difference_of(line), line["why"])}


def table(lines, cells):
    """Returns a Markdown table of lines whose cells are {title: text}."""
    rows = [cells(line) for line in lines]
    return markdown(list(rows[0]), [row.values() for row in rows]) if rows else ""


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def results_of(folder, planned, bits="up"):
    """Returns the exported blocks among the planned ones, and their lines of slopes and of differences between slopes at one kind of bits."""
    names = blocks_in(folder, planned)
    lines = [line for line in joined_slopes(folder, names) if line["bits"] == bits]
    mark_capped(folder, lines)
    return names, [line for line in lines if not line["between"]], [line for line in lines if line["between"]]


def mark_capped(folder, lines):
    """Adds to each line the number of seeds whose end points are capped where clients differ most, of either operator and of the second one."""
    found = {}
    for name in {line["block"] for line in lines if int(line["capped"])}:
        for one in read_table(folder / name / "differences.csv.xz"):
            at = found.setdefault((name, one["measure"], one["bits"], one["group"], one["a"], one["b"], one["level"]), [0, 0])
            at[0] += int(one["capped_a"]) or int(one["capped_b"])
            at[1] += int(one["capped_b"])
    for line in lines:
        key = line["block"], line["measure"], line["bits"], line["group"], line["a"], line["b"], line["level"]
        line["capped_there"], line["capped_partner"] = found.get(key, (0, 0)) if int(line["capped"]) else (0, 0)


def tables(folder, planned, bits="up"):
    """Returns the tables of H1, H2 and H3 as Markdown, over those of the planned blocks that have been exported."""
    names, slopes, between = results_of(folder, planned, bits)
    part = "" if len(names) == len(planned) else " These p-values are adjusted over a part of the family, and no conclusion is drawn from it."
    return "\n\n".join([f"{len(names)} of {len(planned)} blocks have run: {', '.join(names)}.{part}",
                        "\n".join(count_line(pair, of_pair(slopes, pair)) for pair in pairs_of(slopes)),
                        table(slopes, slope_cells), table(slopes, margin_cells), table(between, between_cells)]) + "\n"


def count_line(pair, lines):
    found = counts(lines)
    return f"- {pair[0]} : {pair[1]}: " + ", ".join(f"{found[kind]} {'group' if found[kind] == 1 else 'groups'} {kind}" for kind in VERDICTS)
