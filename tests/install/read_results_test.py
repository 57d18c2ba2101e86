"""examples/read_results.py on exports: what it prints is what the tables say, and what it draws can be read: no text covers another one or
leaves the picture, gaps have a logarithmic axis, every panel and method has its name. The scenarios of the library are drawn with their own
axes and labels and made-up numbers, so that neither their data nor hours are needed.

    python3 tests/install/read_results_test.py FEDBITS SOURCE      in an empty folder; needs matplotlib"""
import csv
import math
import pathlib
import random
import re
import subprocess
import sys

FEDBITS, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "examples"))
import read_results  # noqa: E402

EXAMPLE = [sys.executable, "-B", str(SOURCE / "examples" / "read_results.py")]
PLAIN = """rounds = 20
data = { name = "mushrooms", rows = 400, test_fraction = 0.2 }
compressor.up = { kind = "top_k", ratio = 0.05 }
feedback.up = { kind = "ef14" }
"""
STUDIES = {
    "two": PLAIN + 'model = { kind = "logistic_regression", l2 = 0.001 }\nsweep.seeds = 2\n',
    "swept": PLAIN + 'model = { kind = "logistic_regression", l2 = 0.001 }\npartition = { kind = "dirichlet_client", clients = 8 }\n'
    'participation = { kind = "uniform", clients = 4 }\nevaluate.every = 2\n[sweep]\nseeds = 2\n'
    'axis = [{ key = "partition.alpha", values = [10, 0.1] }, { key = "compressor.up", values = ['
    '{ label = "=top", kind = "top_k", k = 3 }, { label = "none", kind = "identity" }] }]\n',
    "network": PLAIN + 'model = { kind = "mlp", hidden = [4] }\nlocal = { kind = "sgd", steps = 2, batch = 10 }\n'
    'compressor.down = { kind = "top_k", ratio = 0.1 }\nevaluate = { every = 5, train_loss = false, optimum = false }\n',
}


def export(name, text):
    """Runs a study and exports it. Returns the paths of both tables."""
    pathlib.Path(f"{name}.toml").write_text(f'name = "{name}"\n' + text)
    subprocess.run([FEDBITS, "run", f"{name}.toml", "--out", name, "-q"], check=True)
    tables = [f"{name}-runs.csv", f"{name}-rounds.csv"]
    subprocess.run([FEDBITS, "export", name, "--runs", tables[0], "--rounds", tables[1]], check=True)
    return tables


def made_up(scenario, header):
    """Writes tables with the runs of a scenario of the library, as `sweep --list` names them, and curves that fall. Returns their
    paths."""
    listed = subprocess.check_output([FEDBITS, "sweep", str(scenario), "--list", "--out", "nowhere"], text=True)
    measure = "test_accuracy" if re.search(r"^optimum *= *false", scenario.read_text(), re.M) else "f_gap"
    fixed = header[:header.index("cumulative_bits_down") + 1]
    runs, rounds, axes, chosen = [], [], [], {}
    for number, line in enumerate(listed.splitlines()):
        name, *labels = line.split("  ")[1:-1] if not line.startswith("(when") else re.split("  +", line)[1:-1]
        labels = dict(label.split("=", 1) for label in labels)
        seed = labels.pop("seed")
        labels = {key: label for key, label in labels.items() if label != "tuned" and key != "bits"}
        axes = axes or list(labels)
        drawn = random.Random(str(labels))
        rate, bits = chosen.setdefault(tuple(labels.values()), (0.02 + 0.1 * drawn.random(), 10 ** (4 + 3 * drawn.random())))
        runs.append({"run": str(number), "name": name, "seed": seed, "status": "done", **labels})
        for r in range(0, 41, 4):
            gap = 0.6 * math.exp(-rate * r) * (1 + 0.02 * (int(seed) % 7))
            rounds.append({**dict.fromkeys(fixed, ""), "run": str(number), "round": r, measure: gap if measure == "f_gap" else 1 - gap,
                           "cumulative_bits_up": round(bits * r), "cumulative_bits_down": 1000 * r, **labels})
    paths = [f"{scenario.stem}-{table}.csv" for table in ("runs", "rounds")]
    for path, rows in zip(paths, (runs, rounds)):
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return paths


def texts_of(figure):
    """Returns the texts that are visible, with their boxes in pixels."""
    from matplotlib.text import Text
    renderer = figure.canvas.get_renderer()
    found = []
    for text in figure.findobj(Text):
        box = text.get_window_extent(renderer) if text.get_visible() and text.get_text().strip() else None
        if box is not None and box.width > 0:
            found.append((text.get_text(), box))
    return found


def is_drawn(axes, axis, at):
    """Returns true for the place of a tick that lies on its axis; matplotlib keeps labels of others."""
    low, high = sorted(axis.get_view_interval())
    return low <= at <= high


def check_readable(figure, name):
    """Throws where a text covers another one or leaves the picture."""
    figure.canvas.draw()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                tick.label1.set_visible(tick.label1.get_visible() and axes.get_visible() and is_drawn(axes, axis, tick.get_loc()))
        for text in [axes.title, axes.xaxis.label, axes.yaxis.label]:
            text.set_visible(axes.get_visible())
    texts = texts_of(figure)
    assert len(texts) > 6, (name, texts)
    room = figure.bbox
    for i, (text, box) in enumerate(texts):
        is_inside = room.x0 - 1 <= box.x0 and box.x1 <= room.x1 + 1 and room.y0 - 1 <= box.y0 and box.y1 <= room.y1 + 1
        assert is_inside, f"{name}: '{text}' leaves the picture"
        for other, other_box in texts[i + 1:]:
            common_width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
            common_height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
            covered = common_width > 1 and common_height > 1
            assert not covered, f"{name}: '{text}' and '{other}' cover each other"


def draw(name, tables):
    """Draws an export in this process. Returns the figure's panels and the number of methods."""
    runs, rounds, axes = read_results.read_study(*tables)
    rows = [row for run in runs for row in rounds[run.hash]]
    measure = next(name for name in read_results.MEASURES if any(row[name] for row in rows if row["round"] != "0"))
    panels, notes = read_results.curves_of(runs, rounds, read_results.distinct_axes(runs, axes), measure, "cumulative_bits_up")
    assert not notes, notes
    figure = read_results.draw(panels, name, "cumulative_bits_up", measure, f"{name}.png")
    check_readable(figure, name)
    visible = [axes for axes in figure.axes if axes.get_visible()]
    assert len(visible) == len(panels), (name, len(visible))
    for axes in visible:
        assert axes.get_ylabel() and axes.get_xlabel(), name
        assert axes.get_yscale() == ("log" if measure == "f_gap" else "linear"), (name, measure, axes.get_yscale())
    return panels


def check_printed():
    """The last line of each curve says what the exports say."""
    tables = export("two", STUDIES["two"])
    said = subprocess.run(EXAMPLE + tables + ["two.png", "--measure", "train_loss"], check=True, capture_output=True, text=True).stdout
    runs = list(csv.DictReader(open(tables[0])))
    mean, bits = (sum(float(run[column]) for run in runs) / 2 for column in ("train_loss", "bits_up"))
    found = re.fullmatch(r"  two: train_loss (\S+)  \[(\S+), (\S+)\] over 2 runs at cumulative_bits_up (\S+)\n", said)
    assert found, said
    assert abs(float(found[1]) - mean) < 1e-3 * mean and abs(float(found[4]) - bits) < 1e-5 * bits, (said, mean, bits)
    assert pathlib.Path("two.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    wrong = subprocess.run(EXAMPLE + tables + ["no.png", "--where", "name=three"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "there are two" in wrong.stderr, wrong.stderr
    without = "import runpy, sys; sys.modules['matplotlib'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    missing = subprocess.run([sys.executable, "-B", "-c", without, EXAMPLE[-1]] + tables + ["no.png"], capture_output=True, text=True)
    assert missing.returncode == 1 and missing.stderr.startswith("no.png is not drawn: Python has no matplotlib"), missing.stderr
    subprocess.run(EXAMPLE + tables + ["two.svg", "--against", "round"], check=True, capture_output=True)
    assert ">two</text>" in pathlib.Path("two.svg").read_text()
    return list(csv.DictReader(open(tables[1])).fieldnames)


def check_left_out(header):
    """A cell with a run that did not end well has no curve, and is named."""
    tables = made_up(SOURCE / "scenarios" / "library" / "quickstart.toml", header)
    text = pathlib.Path(tables[0]).read_text().replace("done,0.1,none", "diverged,0.1,none", 1)
    pathlib.Path(tables[0]).write_text(text)
    said = subprocess.run(EXAMPLE + tables + ["left.png"], check=True, capture_output=True, text=True).stderr
    assert said == "partition.alpha = 0.1: none: left out, 1 of 5 runs did not end well\n", said


header = check_printed()
panels = draw("swept", export("swept", STUDIES["swept"]))
assert list(panels) == ["partition.alpha = 0.1", "partition.alpha = 10"], panels
assert [curve.label for curve in panels["partition.alpha = 0.1"]] == ["=top", "none"], panels
draw("network", export("network", STUDIES["network"]))
check_left_out(header)
scenarios = sorted((SOURCE / "scenarios" / "library").rglob("*.toml"))
assert len(scenarios) > 12, scenarios
methods = {scenario.stem: {curve.label for curves in draw(scenario.stem, made_up(scenario, header)).values() for curve in curves}
           for scenario in scenarios}
assert methods["heterogeneity-study"] == {"none", "fp16", "top-1%", "hard"}, methods
assert len(methods["compressor-gallery"]) == 99 and "SCAFFOLD, epochs = 10" in methods["scaffold-epochs"], {k: len(v) for k, v in methods.items()}
print(f"{len(scenarios)} scenarios of the library and 3 studies were drawn")
