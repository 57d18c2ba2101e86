#!/usr/bin/env python3
"""Measures ours beside NumPy, SciPy, Numba, PyTorch and JAX, and writes the tables of bench/results/.

    FEDBITS_DATA=DIR bench/write_page.py build/bench                    makes build/bench-venv with the packages of PyPI, measures, writes
    FEDBITS_DATA=DIR bench/write_page.py build/bench --python PYTHON    with an interpreter that has them
    bench/write_page.py --rows FILE                                     only writes, from the rows of an earlier measurement
    bench/write_page.py build-haswell/bench --level avx2                the same at the level of AVX2, with a build of FL_LEVEL=haswell

It takes about an hour, wants a quiet machine, and is part of no test: PyTorch brings 5 GB of packages along. --cores names two cores; rounds on two
threads use both, everything else the first one. --only runs one script.
The rows are one JSON object per line, in build/bench-rows.jsonl unless --rows says otherwise. Tables whose rows are missing stay as they are.
A level restricts the libraries to its instructions, each through the variable that it reads, and has tables of its own. A table is written between
two lines that name its place; the page of the folder that has them is found.
"""
import argparse
import functools
import json
import os
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = ("numpy", "scipy", "numba", "torch", "jax")
# Each script with its arguments behind the program and the number of turns. Rounds alone are timed on two threads, and get two cores.
SCRIPTS = (("baselines_operators.py", ()), ("baselines.py", ()), ("baselines_torch.py", ("steps",)), ("baselines_torch.py", ("rounds",)), ("baselines_jax.py", ()))
OPERATOR_GOALS = {"hard_threshold 1%": "0.85", "top_k 1%": "0.70", "random_k 1%": "0.85", "qsgd 127, buckets of 512": "0.45", "qsgd 127, whole": "0.45",
                  "ef_sign, whole": "0.60", "natural, stochastic": "0.55", "powersgd rank 4": "2 times"}
PEAK_GOALS = {"ResNet-18": "0.55", "CNN": "0.75", "LSTM": "0.65", "MLP": "0.70"}
STEP_GOALS = {("ResNet-18", "PyTorch"): "1.2", ("ResNet-18", "JAX"): "1.2", ("VGG-11", "PyTorch"): "1.2", ("VGG-11", "JAX"): "1.2", ("CNN", "PyTorch"): "1.8",
              ("CNN", "JAX"): "1.8", ("LSTM", "PyTorch"): "1.3", ("LSTM", "JAX"): "1.3", ("MLP", "PyTorch"): "4", ("MLP", "JAX"): "1.3", ("2NN", "JAX"): "1.6"}
AVX2_OPERATOR_GOALS = {"hard_threshold 1%": "0.75", "qsgd 127, buckets of 512": "0.28", "qsgd 127, whole": "0.28", "ef_sign, whole": "0.55",
                       "natural, stochastic": "1.3 times", "powersgd rank 4": "2 times"}
# Without NUMBA_CPU_FEATURES Numba takes those of this machine, whatever the processor is called. NumPy multiplies matrices with OpenBLAS.
RESTRICTED = {"avx2": {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR", "OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2",
                       "DNNL_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "NUMBA_CPU_NAME": "haswell",
                       "NUMBA_CPU_FEATURES": "+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe",
                       "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}}


def milliseconds(ms):
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def with_goal(text, goal):
    return text if goal is None else f"{text} (goal {goal})"


def operators(rows, goals=OPERATOR_GOALS):
    published = any(row["published_ms"] == row["published_ms"] for row in rows)  # NaN without PyTorch
    yield ["operator", "time", "the add / it", "fastest other form", "times faster"] + ["PyTorch as published", "times faster"] * published
    for row in rows:
        goal = goals.get(row["name"])
        is_share = goal is not None and "times" not in goal
        yield [row["name"], milliseconds(row["ms"]), with_goal(f"{row['share']:.2f}", goal if is_share else None),
               f"{row['baseline']}: {milliseconds(row['baseline_ms'])}", with_goal(f"{row['times']:.1f}", None if is_share else goal),
               *([milliseconds(row["published_ms"]), f"{row['published_times']:.0f}"] * published)]


def operators_at_avx2(rows):
    return operators(rows, AVX2_OPERATOR_GOALS)


def steps(rows, peak_goals=PEAK_GOALS, step_goals=STEP_GOALS):
    yield ["network", "step", "share of the peak", "PyTorch, best form", "times faster", "JAX, best form", "times faster"]
    by_name = {}
    for row in rows:
        by_name.setdefault(row["name"], {})[row["baseline"]] = row
    for name, both in by_name.items():
        first = next(iter(both.values()))
        line = [name, milliseconds(first["ms"]), with_goal(f"{first['share']:.2f}", peak_goals.get(name))]
        for baseline in ("PyTorch", "JAX"):
            row = both.get(baseline)
            line += [f"{milliseconds(row['baseline_ms'])} ({row['form']})", with_goal(f"{row['times']:.2f}", step_goals.get((name, baseline)))] if row else ["", ""]
        yield line


def rounds(rows, has_goals=True):
    yield ["round of ten clients", "threads", "ours", "best form of another", "times faster"]
    for row in rows:
        yield [row["name"], row["threads"], milliseconds(row["ms"]), f"{row['baseline']}, {row['form']}: {milliseconds(row['baseline_ms'])}",
               with_goal(f"{row['times']:.2f}", "1.6" if has_goals and (row["name"], row["baseline"]) == ("2NN", "JAX") else None)]


def sparse(rows, has_goals=True):
    yield ["iteration, 20 clients, float64, one thread", "ours", "reading a CSR matrix once / it", "best form of NumPy and SciPy", "times faster"]
    for row in rows:
        is_full = "full gradient" in row["name"]
        yield [row["name"].removesuffix(", 20 clients"), f"{row['us']:.4g} us", with_goal(f"{row['share']:.2f}", "0.7" if has_goals else None) if row["share"] else "",
               f"{row['baseline']}: {row['baseline_us']:.4g} us", with_goal(f"{row['times']:.2f}", "2" if has_goals and is_full else None)]


def softmax(rows):
    yield ["100 rounds with ten evaluations, one thread", "the whole process", "JAX, a compiled call for each round", "times faster"]
    for row in rows:
        yield [milliseconds(1000 * row["seconds"]), with_goal(milliseconds(1000 * row["whole"]), "200 ms"), milliseconds(1000 * row["baseline_s"]),
               with_goal(f"{row['times']:.2f}", "4")]


TABLES = {"operators": operators, "steps": steps, "rounds": rounds, "sparse": sparse, "softmax": softmax}
# A level has places for these alone, and goals for operators.
LEVEL_TABLES = {"avx2": {"operators": operators_at_avx2, "steps": functools.partial(steps, peak_goals={}, step_goals={}),
                         "rounds": functools.partial(rounds, has_goals=False), "sparse": functools.partial(sparse, has_goals=False)}}


def table_text(lines):
    head, *body = lines
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in [head, ["---"] * len(head), *body])


def page_of(place, folder):
    """Returns the page of a folder that has the lines around a table, and its text before, between and after them."""
    begin, end = f"<!-- measured: {place} -->", "<!-- end -->"
    for page in sorted(folder.glob("*.md")):
        before, mark, rest = page.read_text().partition(begin)
        _, closing, after = rest.partition(end)
        if mark and closing:
            return page, before + begin, end + after
    sys.exit(f"{folder}: has no place for the table '{place}': two lines, {begin} and {end}")


def write(folder, rows, level):
    about = next((row["text"] for row in reversed(rows) if row["table"] == "about"), "")
    for name, make in (LEVEL_TABLES[level] if level else TABLES).items():
        own = [row for row in rows if row["table"] == name]
        if not own:
            continue
        page, before, after = page_of(f"{name} {level}" if level else name, folder)
        page.write_text(f"{before}\n{about}\n\n{table_text(list(make(own)))}\n{after}")


def environment(arguments):
    """Returns the interpreter with the packages, which it installs if none is named."""
    if arguments.python:
        return arguments.python
    folder = arguments.bench.parent / "bench-venv"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return str(python)


def about(python, level):
    """Returns a sentence about the machine and the packages."""
    code = ("import importlib.metadata as m, sys; there = {d.name for d in m.distributions()}; "
            "print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:] if p in there))")
    versions = subprocess.run([python, "-c", code, *PACKAGES], check=True, capture_output=True, text=True).stdout.strip()
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return f"{model}, {os.cpu_count()} cores{', restricted to ' + level.upper() if level else ''}; {versions}."


def measure(arguments):
    python = environment(arguments)
    arguments.rows.parent.mkdir(parents=True, exist_ok=True)
    with open(arguments.rows, "a" if arguments.only else "w", encoding="utf-8") as file:
        print(json.dumps({"table": "about", "text": about(python, arguments.level)}), file=file)
    single = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} | RESTRICTED.get(arguments.level, {})
    for script, kind in SCRIPTS:
        if arguments.only and arguments.only != " ".join([script, *kind]):
            continue
        target = arguments.bench / "round_bench" if script == "baselines.py" else arguments.bench
        cores = arguments.cores if "rounds" in kind else arguments.cores.split(",")[0]
        print(f"==== {script}", flush=True)
        subprocess.run(["taskset", "-c", cores, python, HERE / script, target, str(arguments.repeats), *kind],
                       check=True, env=os.environ | single | {"FEDBITS_BENCH_ROWS": str(arguments.rows)})


def newest(rows):
    """Returns the rows without those that were measured again later, in the order of their first measurement."""
    return list({tuple(row.get(key) for key in ("table", "name", "threads", "baseline")): row for row in rows}.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", nargs="?", type=pathlib.Path, help="the folder of our benchmarks")
    parser.add_argument("--python", help="an interpreter with " + ", ".join(PACKAGES))
    parser.add_argument("--rows", type=pathlib.Path, help="the file of rows")
    parser.add_argument("--pages", type=pathlib.Path, default=HERE / "results", help="the folder of the pages with the tables")
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--only", choices=[" ".join([script, *kind]) for script, kind in SCRIPTS], help="a script; the rows of the others stay")
    parser.add_argument("--level", choices=RESTRICTED, help="the instruction set of the build, to which the libraries are restricted")
    parser.add_argument("--repeats", type=int, default=9, help="turns of each comparison")
    arguments = parser.parse_args()
    if not arguments.bench and not arguments.rows:
        parser.error("needs the folder of the benchmarks, or --rows")
    if arguments.bench:
        arguments.rows = (arguments.rows or arguments.bench.parent / "bench-rows.jsonl").resolve()
        measure(arguments)
    write(arguments.pages, newest([json.loads(line) for line in arguments.rows.read_text().splitlines()]), arguments.level)


main()
