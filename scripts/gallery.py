#!/usr/bin/env python3
"""Draws the pictures of docs/gallery.md. Needs nothing but Python.

    python3 scripts/gallery.py draw                                  docs/gallery/*.csv become docs/gallery/*.svg
    python3 scripts/gallery.py draw --out DIR                        the same pictures in another folder
    python3 scripts/gallery.py take PICTURE ROUNDS.csv [RUNS.csv]    the few numbers that a picture needs, out of an export, to docs/gallery

ROUNDS.csv and RUNS.csv are what `fedbits export STORE --rounds ROUNDS.csv --runs RUNS.csv` writes, and for the picture of splits the file of
`fedbits plan FILE --split-csv`. docs/gallery.md has the command behind each picture."""
import argparse
import csv
import pathlib

from svg_charts import BOTTOM, HEIGHT, RIGHT, TOP, WIDTH, Axis, Chart, curves_of, line_chart, mean, read, thinned_log, with_unit

ROOT = pathlib.Path(__file__).resolve().parent.parent

FOLDER = ROOT / "docs" / "gallery"
POINTS = 40  # of a curve, at most


def write(path, rows):
    """Writes rows of equal keys as CSV."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def digits(value, count=5):
    return f"{value:.{count}g}"


def thinned(points, count=POINTS):
    """Returns at most `count` points, evenly spaced in their order; the first and the last one stay."""
    if len(points) <= count:
        return points
    return [points[round(i * (len(points) - 1) / (count - 1))] for i in range(count)]


def long_form(curves, keys):
    return [{keys[0]: name, keys[1]: digits(x, 6), keys[2]: digits(y)} for name, curve in curves.items() for x, y in curve]


def short_form(rows):
    """Returns the curves of a file: its first column is their name."""
    name, x, y = list(rows[0])[:3]
    curves = {}
    for row in rows:
        curves.setdefault(row[name], []).append((float(row[x]), float(row[y])))
    return curves


# ---- pictures: take_NAME chooses the numbers, draw_NAME draws them ----

def take_equal_bits(rounds, runs):
    curves = curves_of(rounds, runs, "bits_up", "f_gap", "compressor.up", [("partition.alpha", "0.1")])
    return long_form({name: thinned_log([p for p in curve if p[0] > 0], POINTS) for name, curve in curves.items()}, ["method", "bits_up", "f_gap"])


def draw_equal_bits(rows):
    return line_chart("The same loss for fewer bits", "mushrooms, 20 clients of mostly one class (alpha = 0.1); mean of five seeds", short_form(rows),
                      "bits sent up, by all clients", "f - f*", x_log=True, y_log=True, x_unit="bit")


def take_demand(rounds, runs):
    sent = curves_of(rounds, runs, "round", "density", "partition.alpha", [("compressor.up", "hard")])
    top = curves_of(rounds, runs, "round", "density", "partition.alpha", [("compressor.up", "top-5%")])
    curves = {f"hard, alpha = {alpha}": curve for alpha, curve in sent.items()}
    curves["top-5%, every alpha"] = [(x, mean([curve[i][1] for curve in top.values()])) for i, (x, _) in enumerate(next(iter(top.values())))]
    return long_form({name: thinned([p for p in curve if p[0] > 0]) for name, curve in curves.items()}, ["method", "round", "density"])


def draw_demand(rows):
    return line_chart("A threshold sends what the data demand", "share of the 113 entries that a client sends; mean of five seeds", short_form(rows),
                      "round", "share sent", y_from=0)


def take_error(rounds, runs):
    curves = curves_of(rounds, runs, "round", "error_norm_sq", "compressor.up")
    return long_form({name: thinned([p for p in curve if p[0] > 0], 60) for name, curve in curves.items()}, ["method", "round", "error_norm_sq"])


def draw_error(rows):
    return line_chart("What error feedback carries", "madelon, 20 workers, one row each: squared norm of the error memory (Sahu et al. 2021, Fig. 7)",
                      short_form(rows), "round", "|error|^2", y_log=True)


def take_accuracy(rounds, runs):
    curves = curves_of(rounds, runs, "round", "test_accuracy", "name")
    return long_form({name: thinned(curve, 60) for name, curve in curves.items()}, ["split", "round", "test_accuracy"])


def draw_accuracy(rows):
    names = {"mcmahan-2nn-iid": "rows dealt at random", "mcmahan-2nn-2shard": "two digits per client"}
    return line_chart("What label skew costs FedAvg", "MNIST, 100 clients, 10 in a round, one local epoch; one seed",
                      {names[name]: curve for name, curve in short_form(rows).items()}, "round", "test accuracy", y_from=0)


def take_split(cells, _):
    """The first twelve clients at the lowest and the highest alpha: the order of the file."""
    order = list(dict.fromkeys(cell["split"] for cell in cells))
    return [{"split": "alpha = 0.1" if cell["split"] == order[0] else "alpha = 100", "client": cell["client"], "class": cell["class"],
             "rows": cell["class_rows"]}
            for cell in cells if cell["split"] in (order[0], order[-1]) and int(cell["client"]) < 12]


def draw_split(rows):
    chart = Chart("Who holds what", "Fashion-MNIST, ten classes in ten colours, twelve of 100 clients with 600 rows each")
    splits = list(dict.fromkeys(row["split"] for row in rows))
    clients, room = 12, (WIDTH - 36 - 30) / 2
    y = Axis(0, 600, HEIGHT - 40, 90)
    for place, split in enumerate(splits):
        left = 18 + place * (room + 30)
        chart.text(left + room / 2, 78, split, "ink", "middle", bold=True)
        below = [0.0] * clients
        for row in rows:
            client, count = int(row["client"]), int(row["rows"])
            if row["split"] != split or count == 0:
                continue
            top = below[client] + count
            chart.rectangle(left + client * room / clients + 2, y.at(top), room / clients - 4, y.at(below[client]) - y.at(top),
                            f"a{row['class']}")
            below[client] = top
        chart.text(left + room / 2, HEIGHT - 18, "client", "faint", "middle", 12)
    return chart.svg()


def take_directions(_, runs):
    wanted, methods = [run for run in runs if run["partition.alpha"] == "0.1"], {}
    for run in wanted:
        methods.setdefault(run["compressor.up"], []).append((float(run["bits_up"]), float(run["bits_down"])))
    return [{"method": name, "bits_up": digits(mean([u for u, _ in pairs]), 6), "bits_down": digits(mean([d for _, d in pairs]), 6)}
            for name, pairs in methods.items()]


def draw_directions(rows):
    chart = Chart("Both directions are counted", "bits of 200 rounds, mushrooms, alpha = 0.1; mean of five seeds")
    most = max(float(row["bits_up"]) + float(row["bits_down"]) for row in rows)
    x = Axis(0, most * 1.02, 90, WIDTH - RIGHT)
    for tick in x.ticks():
        chart.line(x.at(tick), TOP, x.at(tick), HEIGHT - BOTTOM, "grid")
        chart.text(x.at(tick), HEIGHT - BOTTOM + 18, with_unit(tick, "bit"), "faint", "middle", 12)
    height = (HEIGHT - BOTTOM - TOP - 24) / len(rows)
    for i, row in enumerate(rows):
        top, up, down = TOP + 24 + i * height, float(row["bits_up"]), float(row["bits_down"])
        chart.text(80, top + height / 2, row["method"], "ink", "end")
        chart.rectangle(x.at(0), top + 6, x.at(up) - x.at(0), height - 16, "a0")
        chart.rectangle(x.at(up), top + 6, x.at(up + down) - x.at(up), height - 16, "a1")
    for i, name in enumerate(["up", "down"]):
        chart.rectangle(18 + i * 80, 55, 14, 10, f"a{i}")
        chart.text(38 + i * 80, 64, name)
    return chart.svg()


def draw_tutorial(rows):
    return line_chart("Three compressors, one of them our own", "the tutorial's last study; mean of three seeds", short_form(rows),
                      "bits sent up, by all clients", "f - f*", x_log=True, y_log=True, x_unit="bit")


def take_tutorial(rounds, runs):
    curves = curves_of(rounds, runs, "bits_up", "f_gap", "compressor.up")
    return long_form({name: thinned_log([p for p in curve if p[0] > 0], POINTS) for name, curve in curves.items()}, ["method", "bits_up", "f_gap"])


PICTURES = ["equal_bits", "demand", "directions", "error", "accuracy", "split", "tutorial"]


def draw(out):
    for name in PICTURES:
        (out / f"{name}.svg").write_text(globals()[f"draw_{name}"](read(FOLDER / f"{name}.csv")))


def take(name, rounds, runs):
    write(FOLDER / f"{name}.csv", globals()[f"take_{name}"](read(rounds), read(runs) if runs else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="draw the gallery")
    drawing.add_argument("--out", type=pathlib.Path, default=FOLDER)
    taking = commands.add_parser("take", help="take a picture's numbers out of an export")
    taking.add_argument("picture", choices=PICTURES)
    taking.add_argument("rounds")
    taking.add_argument("runs", nargs="?")
    arguments = parser.parse_args()
    if arguments.command == "draw":
        draw(arguments.out)
    else:
        take(arguments.picture, arguments.rounds, arguments.runs)


main()
