#!/usr/bin/env python3
"""The table of bench/results/gpu.md, from the JSON files of bench/gpu_check.sh; without a file nothing has been run.

    gpu_table.py [FILE]...                prints the table
    gpu_table.py [FILE]... --write PAGE   puts it between the two marks in a page

Of several files, as of the three plans, a later one replaces rows of the same name. Tests that were run again with CUDA_LAUNCH_BLOCKING=1 are not
counted.
"""
import argparse
import json
import pathlib
import sys

BEGIN, END = "<!-- the table of scripts/gpu_table.py -->", "<!-- its end -->"

FLOOR = "of 12 bytes per parameter at the speed of the copy"
PERCEPTRON, SOFTMAX, CNN = "perceptron 784-200-10", "softmax regression 784-10", "CNN of McMahan, 1.66M"
COUNTED = None  # the row counts the verdicts of a stage

# Label, goal on an H200, stage, names of its rows.
ROWS = (
    ("copy on the device, read and written", "the measure of the others", "device", ["copy on the device"]),
    ("matrix product of PyTorch: float32, TF32, BF16", "the measure of the others", "device", [f"matrix product, {kind}" for kind in ("float32", "TF32", "BF16")]),
    ("kernels against the CPU", "all the same", "kernels", COUNTED),
    ("training steps and whole runs against the CPU", "all the same", "runs", COUNTED),
    ("ten repeats of four runs, one checksum each", "all the same", "determinism", COUNTED),
    ("memcheck, racecheck, initcheck", "all the same", "sanitizer", COUNTED),
    ("EF14 + hard_threshold, about 1%, 1,000 clients x 1M parameters", f"0.8 {FLOOR}", "operators", ["hard_threshold, about 1%"]),
    ("EF14 + random_k 0.1%, likewise", f"0.8 {FLOOR}", "operators", ["random_k 0.1%"]),
    ("EF14 + qsgd in buckets of 512", f"0.8 {FLOOR}", "operators", ["qsgd 127, buckets of 512"]),
    ("EF14 + top_k 1% in segments of 100,000", f"0.7 {FLOOR}", "operators", ["top_k 1%, segments of 100,000"]),
    ("EF14 + top_k 1% of whole vectors", f"0.5 {FLOOR}", "operators", ["top_k 1%, whole vectors"]),
    ("EF14 + ef_sign of whole vectors", "0.7 of 20 bytes per parameter", "operators", ["ef_sign, whole vectors"]),
    ("natural; stc 1%", f"- ({FLOOR[3:]})", "operators", ["natural, stochastic", "stc 1%"]),
    ("drive; dgc_sampled 1%", "- (55.2 and 12 bytes per parameter and the message)", "operators", ["drive", "dgc_sampled 1%"]),
    ("three_lc", "- (20 bytes per parameter)", "operators", ["three_lc"]),
    ("sums of messages, 1,000 clients x 1M parameters, all values", "0.8 of 4 bytes for each at the speed of the copy", "aggregation", ["all values"]),
    ("sums of lists of 1%: random_k, top_k", "-", "aggregation", ["random_k 1%", "top_k 1%, segments of 100,000"]),
    ("sums of bytes in buckets of 512", "-", "aggregation", ["qsgd 127, buckets of 512"]),
    ("perceptron 784-200-10, per client and step, 256 clients, batch 32", "1.2 us", "training", [PERCEPTRON]),
    ("softmax regression 784-10, likewise", "0.1 us", "training", [SOFTMAX]),
    ("CNN of McMahan, 1.66M parameters, likewise", "25 us in TF32, then 15", "training", [CNN]),
    ("perceptron and CNN in TF32; in BF16", "-", "training", [f"{model}, {kind}" for kind in ("tf32", "bf16") for model in (PERCEPTRON, CNN)]),
    *((f"{words}: perceptron, softmax regression, CNN", goal, "baselines", [f"{baseline}: {model}" for model in (PERCEPTRON, SOFTMAX, CNN)])
      for baseline, words, goal in (("loop", "PyTorch, one client after another", "50 times (perceptron), 15 times (CNN) slower"),
                                 ("vmap", "torch.func.vmap", "1.5 times slower"), ("compile", "torch.compile of it", "-"), ("jax", "jax.vmap", "1.5 times slower"),
                                 ("drjax", "map and mean in the form of DrJAX", "-"))),
    *((f"torch.bmm, 256 clients, batch 50, {words}: float32, TF32, BF16", "-", "baselines", [f"bmm: {shape}, {kind}" for kind in ("float32", "TF32", "BF16")])
      for words, shape in (("784 x 200 forward", "dense 784-200, forward"), ("784 x 200 by weights", "dense 784-200, by weights"),
                           ("second convolution of the CNN forward", "convolution 5x5 of 32 to 64, forward"),
                           ("second convolution by weights", "convolution 5x5 of 32 to 64, by weights"))),
    ("PyTorch, sums of 1,000 x 1M values: a product, two kernels, torch.compile", "-", "baselines",
     [f"fused: {way}" for way in ("sum of all values, a matrix product", "scale and sum of all values, two kernels",
                                  "scale and sum of all values, torch.compile")]),
    ("PyTorch, sums of bytes in buckets of 500: several kernels, torch.compile", "-", "baselines",
     [f"fused: bytes in buckets of 500, {way}" for way in ("several kernels", "torch.compile")]),
    ("CIFAR-10, 50 users in a round, 5 steps of 10 images, 1,500 rounds; in TF32", "20 s", "rounds",
     ["1,500 rounds, products full", "1,500 rounds, products tf32"]),
    ("buffers of a message; a round of 10 clients of a perceptron 20-8-2", "-", "latency", ["buffers of a message", "a round of 10 clients"]),
)
IN_BENCHMARKS = ("operators", "aggregation", "training", "rounds", "latency")


def counted(rows):
    """Returns how many rows have each verdict, the good ones first."""
    verdicts = [row["verdict"] for row in rows]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts), key=lambda verdict: (verdict != "same", verdict)))


def shown(row):
    """Returns the value of a row, and its share of the floor."""
    if row is None:
        return "not run"
    if row.get("value") is None:
        return row["verdict"]
    return f"{row['value']:.4g} {row['unit']}" + (f" (share {row['share']:.2f})" if "share" in row else "")


def measured(table, stage, names):
    """Returns the last cell of a row of the page."""
    if stage in IN_BENCHMARKS:  # rows name their part: two parts have a row of one name
        rows = [row for row in table["rows"] if row["stage"] == "benchmarks" and row.get("part") == stage]
    else:
        rows = [row for row in table["rows"] if row["stage"] == stage]
    if names is COUNTED:
        return counted(rows) or "not run"
    by_name = {row["name"]: row for row in rows}
    told = [shown(by_name.get(name)) for name in names]
    return "not run" if set(told) == {"not run"} else "; ".join(told)


def text_of(table):
    lines = [f"Measured on {table['device'] or 'a GPU that nvidia-smi did not name'}, {table['date']}"
             + (f", benchmarks at {table['scale']:g} of their size" if table.get("scale", 1) != 1 else "") + ".", ""] if table["rows"] else []
    lines += ["| row | goal on an H200 | measured |", "|---|---|---|"]
    lines += [f"| {label} | {goal} | {measured(table, stage, names)} |" for label, goal, stage, names in ROWS]
    for row in table["rows"]:
        if row["stage"] == "counters" and "value" in row:
            lines.append(f"| kernel {row['name']}, one launch | - | {shown(row)}, {row.get('note', '')} |")
    return "\n".join(lines) + "\n"


def joined(tables):
    """Returns one table with the rows of several."""
    by_name = {}
    for table in tables:
        for row in (row for row in table["rows"] if not row["name"].endswith(", CUDA_LAUNCH_BLOCKING=1")):
            by_name[row["stage"], row.get("part"), row["name"]] = row
    last = tables[-1] if tables else {}
    device = next((table["device"] for table in reversed(tables) if table.get("device")), "")
    return {**last, "device": device, "rows": list(by_name.values())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    table = joined([json.loads(file.read_text()) for file in arguments.files])
    text = text_of(table)
    if not arguments.write:
        print(text, end="")
        return
    page = arguments.write.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{arguments.write}: has no place for the table: two lines, {BEGIN} and {END}")
    arguments.write.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


main()
