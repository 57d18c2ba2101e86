#!/usr/bin/env python3
"""Everything that needs a GPU, in one table: do both devices give the same, is a run the same every time, how fast is it. bench/gpu_check.sh starts
it; docs/gpu.md explains its stages. Each stage has a time limit, prints its rows as they come, and outlives crashes and hangs of the others.
Needs Python 3.8 and nothing else.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

import gpu_process
from gpu_process import Program, list_tests, output_of, run_tests

HERE = pathlib.Path(__file__).resolve().parent
WRONG = ("DIFFERS", "CRASHED", "HUNG", "FAILED")
COMPARING = ("kernels", "runs", "determinism", "sanitizer")  # what goes wrong in the other stages is said and is no failure

# Suites by how much they tell; those that are not named come behind them.
FIRST_KERNELS = ("GpuRows", "GpuTopK", "GpuParity", "GpuAggregation", "GpuTally", "GpuMessages", "GpuProducts", "GpuLayers", "GpuRepeatedWork")
RUNS = ("GpuTraining", "GpuRun", "GpuSteps", "GpuEvaluation", "GpuRoundedProducts", "GpuState", "GpuOwnMemoryGrid", "GpuOwnMemory", "GpuRuns", "GpuSweep",
        "GpuTrainingOverManyRounds", "GpuTrainingFaults")
# For compute-sanitizer: one test of each way of writing a kernel. It makes them many times slower.
SANITIZED = ("GpuRepeatedWork.IsRecorded", "GpuParity.SameBytesOnNastyNumbers/(top_k|qsgd|ef_sign|drive)$", "GpuTopK.IsTheCpusWhere",
             "GpuAggregationOrder.GroupsOf", "GpuLayers.NanStaysNan")

SYNTHETIC = """name = 'repeated'
rounds = 20
[data]
kind = 'synthetic'
clients = 10
features = 40
classes = 5
"""
SGD = "[local]\nkind = 'sgd'\nbatch = 8\nsteps = 3\nlearning_rate = 0.05\n"
MEASURED = "[evaluate]\nevery = 20\ngradient = 'never'\noptimum = false\n"
REPEATED = {
    "softmax regression, top_k": SYNTHETIC + "[model]\nkind = 'logistic_regression'\n" + SGD + MEASURED +
    "[compressor.up]\nkind = 'top_k'\nratio = 0.1\n[feedback.up]\nkind = 'ef14'\n",
    "perceptron, qsgd": SYNTHETIC + "[model]\nkind = 'mlp'\nhidden = [16]\n" + SGD + MEASURED +
    "[compressor.up]\nkind = 'qsgd'\nlevels = 15\n",
    "CNN on Fashion-MNIST, all sent": "name = 'repeated'\nrounds = 3\n[data]\nname = 'fashion-mnist'\nrows = 400\ntest = 'none'\n[partition]\n"
    "kind = 'shuffled'\nclients = 4\n[model]\nkind = 'neural_network'\nlayers = ['conv2d(4, 3)', 'relu', 'max_pool(2)', 'dense(classes)']\n" + SGD + MEASURED,
}
REPEATS = 10


def suite_of(test):
    """Returns the class of a test: GpuRun of Methods/GpuRun.GivesTheBytesOfTheCpu/none."""
    return test.split(".")[0].split("/")[-1]


class Check:
    """The table, and what the stages share."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.build = pathlib.Path(arguments.build)
        self.rows, self.stages = [], {}
        self.stage, self.deadline, self.why_no_gpu = "", 0.0, ""
        self.env = dict(os.environ)
        data = HERE.parent / "data"
        if "FEDBITS_DATA" not in self.env and (data / "CUT.txt").exists():  # the bundle's own
            self.env["FEDBITS_DATA"] = str(data)

    def program(self, name):
        """Returns the path of a program of the build, or None."""
        for path in (self.build / name, self.build / "bench" / name):
            if os.access(path, os.X_OK):
                return str(path)
        return None

    def say(self, name, verdict, value=None, unit="", **more):
        """Adds a row and prints it. `more`: note, goal, share, floor_bytes, predicted_ms and others that the JSON file carries."""
        row = {"stage": self.stage, "name": name, "verdict": verdict}
        if value is not None:
            row.update(value=value, unit=unit)
        row.update({key: told for key, told in more.items() if told not in (None, "")})
        self.rows.append(row)
        shown = "" if value is None else f"{value:.4g} {unit}"
        extra = "".join(f"  {key} {row[key]:.3g}" for key in ("share", "goal", "predicted_ms", "predicted") if key in row)
        note = row.get("note", "")
        print(f"{self.stage:<12} {name:<62} {verdict:<9} {shown:<22}{extra}{'  ' + note if note else ''}".rstrip(), flush=True)

    def wants(self, name):
        return self.arguments.only in name

    def left(self):
        return max(0.0, self.deadline - time.monotonic())

    def run_stage(self, name, work, limit_s):
        """Runs a stage; what goes wrong in it is a row."""
        limit_s *= self.arguments.patience
        self.stage, start = name, time.monotonic()
        self.deadline = start + limit_s
        print(f"\n---- {name}, at most {limit_s:.0f} s", flush=True)
        try:
            if self.why_no_gpu and name not in ("device", "kernels"):
                self.say(name, "not run", note=self.why_no_gpu)
            else:
                work(self)
        except Exception as error:  # the stages behind it run in any case
            self.say(name, "FAILED", note=f"{type(error).__name__}: {error}")
        finally:
            gpu_process.end_all()
        self.stages[name] = {"seconds": round(time.monotonic() - start, 2), "limit_s": limit_s}
        self.write()

    def write(self):
        """Writes the JSON file, whole or not at all."""
        if not self.arguments.json:
            return
        table = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "device": self.device(), "scale": self.arguments.scale,
                 "stages": self.stages, "rows": self.rows}
        fresh = pathlib.Path(self.arguments.json + ".new")
        fresh.write_text(json.dumps(table, indent=1) + "\n")
        fresh.replace(self.arguments.json)

    def device(self):
        return next((row.get("note", "") for row in self.rows if row["name"] == "GPU"), "")

    def take_lines(self, command, limit_s, name):
        """Runs a program that prints rows as lines of JSON; returns how many came."""
        taken = 0
        process = Program(command, min(self.deadline, time.monotonic() + limit_s * self.arguments.patience), self.env)
        for line in process.lines():
            try:
                row = json.loads(line) if line.startswith("{") else None
            except ValueError:
                row = None
            if not isinstance(row, dict) or "name" not in row:
                continue
            taken += 1
            told = {key: value for key, value in row.items() if key not in ("stage", "name", "value", "unit", "why")}
            told["part"] = row.get("stage")  # of gpu_bench
            if not self.wants(row["name"]):
                continue
            if "value" in row:
                self.say(row["name"], "measured", row["value"], row.get("unit", ""), **told)
            else:
                why = row.get("why", "")
                self.say(row["name"], "skipped" if why.startswith("No module named") else "not run", note=why, **told)
        ended = process.how_it_ended()
        if ended or taken == 0:
            said = " | ".join(line for line in process.tail[-3:] if not line.startswith("{"))
            self.say(name, "HUNG" if process.is_out_of_time else "FAILED" if ended else "skipped", note=": ".join(filter(None, (ended, said[:400]))))
        return taken


# ---- stages ---------------------------------------------------------------------------------------------------------------------


def device(check):
    """The GPU, and what it can do at the most."""
    query = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version,memory.total", "--format=csv,noheader"]
    lines, ended = output_of(query, 10) if shutil.which(query[0]) else ([], "nvidia-smi is not here")
    check.say("GPU", "found" if lines and not ended else "skipped", note="; ".join(lines) if not ended else ended)
    lines, ended = output_of([check.program("fedbits"), "--version"], 10)
    check.say("fedbits", "found" if lines and not ended else "FAILED", note=" ".join(lines[:1]) or ended)
    probe = next(run_tests(check.program("fedbits_gpu_parity"), ["GpuRows.AreAddedUpAsOnTheCpu"], check.deadline, 20, check.env), None)
    bench = check.program("gpu_bench")
    if probe and "no GPU is visible" in probe.note:
        check.why_no_gpu = "no GPU is visible to the CUDA driver"
        lines, _ = output_of([bench, "copy"], 20, check.env) if bench else ([], "")
        if lines:  # the driver's own words: it may be older than the CUDA that this is built for
            check.why_no_gpu += f" ({lines[-1]})"
        check.say("a kernel", "not run", note=check.why_no_gpu)
        return
    check.say("a kernel", probe.verdict, probe.ms, "ms", note=probe.note)
    if bench:
        check.take_lines([bench, "copy", str(check.arguments.scale), "--json"], 15, "copy")
    else:
        check.say("copy on the device", "skipped", note="gpu_bench is not in the build (-DFL_BENCH=ON)")
    if check.wants("matrix product"):
        check.take_lines([check.arguments.python, str(HERE / "baselines_gpu.py"), "ceilings", "--json"], 20, "matrix products of PyTorch")


def tests_of(check, is_asked):
    """Returns the tests of the suites that are asked for, or says why there are none."""
    names, why = list_tests(check.program("fedbits_gpu_parity"))
    if why:
        check.say("list of tests", "CRASHED", note=why)
    return [name for name in names if is_asked(suite_of(name)) and check.wants(name)]


def compare(check, names, order):
    """Runs tests: a process for each suite that `order` names, then one for the others, since each of them has to start the GPU first."""
    slices = [[name for name in names if suite_of(name) == suite] for suite in order]
    slices.append([name for name in names if suite_of(name) not in order])
    program = check.program("fedbits_gpu_parity")
    for some in slices:
        for outcome in run_tests(program, some, check.deadline, check.arguments.test_limit, check.env):
            check.say(outcome.name, outcome.verdict, outcome.ms, "ms", note=outcome.note)


def kernels(check):
    """Every kernel against its reference on the CPU; without a GPU, the operators and their devices."""
    if not check.why_no_gpu:
        compare(check, tests_of(check, lambda suite: suite not in RUNS), FIRST_KERNELS)
        return
    lines, ended = output_of([check.program("fedbits"), "list", "compressors"], 20)
    for line in lines:
        operator = re.match(r"  ([a-z]\S*)\s+\[([^]]*)\]", line)
        if operator and check.wants(operator.group(1)):
            check.say(operator.group(1), "not run", note="on " + operator.group(2))
    if ended:
        check.say("list of operators", "FAILED", note=ended)


def runs(check):
    """Training steps and whole runs of every method against the CPU."""
    compare(check, tests_of(check, lambda suite: suite in RUNS), RUNS)


def checksum_of(check, scenario, folder):
    """Returns (the checksum of a run on the GPU, why there is none)."""
    fedbits = check.program("fedbits")
    lines, ended = output_of([fedbits, "run", str(scenario), "--device", "cuda", "--out", str(folder), "-q"], min(30, check.left()), check.env)
    if not ended:
        lines, ended = output_of([fedbits, "export", str(folder), "--runs", str(folder / "runs.csv")], min(30, check.left()), check.env)
    if ended:
        return "", " | ".join([ended, *lines[-2:]])
    with open(folder / "runs.csv", newline="") as file:
        return next(csv.DictReader(file))["checksum"], ""


def determinism(check):
    """The same run again and again, each in a process of its own: one checksum."""
    for name, text in REPEATED.items():
        if not check.wants(name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder) / "repeated.toml"
            scenario.write_text(text)
            found, why = {}, ""
            for i in range(REPEATS):
                checksum, why = checksum_of(check, scenario, pathlib.Path(folder) / str(i))
                if why:
                    break
                found[checksum] = found.get(checksum, 0) + 1
        times = sum(found.values())
        if why:
            missing = "was not found" in why and "data" in why
            verdict = "not run" if missing or check.left() <= 0 else "CRASHED"
            check.say(name, verdict, note=f"after {times} runs: {why}"[:400])
        elif len(found) == 1:
            check.say(name, "same", times, "runs", note=f"checksum {next(iter(found))}")
        else:
            check.say(name, "DIFFERS", times, "runs", note=", ".join(f"{checksum}: {count} times" for checksum, count in found.items()))


def benchmarks(check):
    """bench/gpu_bench, a process for each part."""
    bench = check.program("gpu_bench")
    if not bench:
        check.say("gpu_bench", "skipped", note="it is not in the build (-DFL_BENCH=ON)")
        return
    for part, limit_s in (("latency", 10), ("operators", 25), ("training", 20), ("aggregation", 15), ("rounds", 30)):
        if check.left() <= 0:
            check.say(part, "not run", note="the time of the stage was up")
        else:
            check.take_lines([bench, part, str(check.arguments.scale), "--json"], limit_s, part)


def baselines(check):
    """The same local steps by PyTorch and JAX on the same GPU."""
    for part, limit_s in (("loop", 15), ("vmap", 15), ("compile", 35), ("jax", 20)):
        if check.left() <= 0:
            check.say(part, "not run", note="the time of the stage was up")
        else:
            check.take_lines([check.arguments.python, str(HERE / "baselines_gpu.py"), part, *check.arguments.baselines, "--json"], limit_s, part)


def sanitizer(check):
    """compute-sanitizer's memcheck, racecheck and initcheck on a few tests."""
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if not tool:
        check.say("compute-sanitizer", "skipped", note="it is not here")
        return
    names = [name for name in tests_of(check, lambda suite: True) if any(re.search(pattern, name) for pattern in SANITIZED)]
    program, env = check.program("fedbits_gpu_parity"), check.env
    for i, kind in enumerate(("memcheck", "racecheck", "initcheck")):
        deadline = time.monotonic() + check.left() / (3 - i)
        process = Program([tool, "--tool", kind, "--error-exitcode", "9", program, "--gtest_color=no", "--gtest_filter=" + ":".join(names)], deadline, env)
        text = list(process.lines())
        summary = next((line.strip("= ") for line in text if "SUMMARY" in line), "")
        first = next((line.strip("= ") for line in text if line.startswith("=========") and not re.search("COMPUTE-SANITIZER|SUMMARY", line)), "")
        done = sum(1 for line in text if re.match(r"\[ +(OK|FAILED) +\].*ms\)$", line))
        has_found = bool(re.search(r"SUMMARY: [1-9]", summary)) or process.code == 9
        verdict = "DIFFERS" if has_found else "not run" if process.is_out_of_time else "same" if summary and done else "CRASHED"
        note = " | ".join(filter(None, (summary, first if verdict != "same" else "", process.how_it_ended() if verdict != "same" else "")))
        check.say(f"{kind}, {len(names)} tests", verdict, done, "tests", note=note[:400])


COUNTERS = ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")


def counters(check):
    """Nsight Compute's counters of the five kernels that take the most time in the benchmarks of operators."""
    tool, bench = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu"), check.program("gpu_bench")
    if not tool or not bench:
        check.say("ncu", "skipped", note="it is not here" if not tool else "gpu_bench is not in the build (-DFL_BENCH=ON)")
        return
    command = [tool, "--csv", "--print-units", "base", "--metrics", ",".join(COUNTERS), "--launch-count", "200", bench, "operators",
               str(min(0.1, check.arguments.scale)), "--json"]
    lines, ended = output_of(command, check.left(), check.env)
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        said = next((line for line in lines if "ERR_" in line or "==ERROR==" in line), "")
        check.say("ncu", "not run", note=" | ".join(filter(None, (said, ended))) or "it printed no table")
        return
    kernels_seen = {}
    for row in csv.DictReader(line for line in lines[begin:] if line.startswith('"')):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except (KeyError, ValueError, AttributeError):
            continue
        name = re.sub(r"[<(].*", "", row["Kernel Name"])
        kernels_seen.setdefault(name, {}).setdefault(row["Metric Name"], []).append(value)
    time_of = {name: sum(seen.get(COUNTERS[0], [0])) for name, seen in kernels_seen.items()}  # ns
    for name in sorted(time_of, key=time_of.get, reverse=True)[:5]:
        seen = kernels_seen[name]
        mean = {key: sum(seen[key]) / len(seen[key]) for key in COUNTERS if seen.get(key)}
        check.say(name, "measured", time_of[name] / 1e6, "ms", launches=len(seen.get(COUNTERS[0], [])),
                  dram_bytes=sum(sum(seen.get(key, [])) for key in COUNTERS[1:3]),
                  note=", ".join(f"{label} {mean[key]:.0f}%" for label, key in (("SM", COUNTERS[3]), ("memory", COUNTERS[4])) if key in mean))


STAGES = {  # seconds at the most; 530 in all
    "device": (device, 40), "kernels": (kernels, 100), "runs": (runs, 90), "determinism": (determinism, 45), "benchmarks": (benchmarks, 100),
    "baselines": (baselines, 75), "sanitizer": (sanitizer, 60), "counters": (counters, 20),
}


def parsed():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__.split("\n\n")[0])
    parser.add_argument("build", help="folder with fedbits, fedbits_gpu_parity and gpu_bench")
    parser.add_argument("--stage", action="append", choices=list(STAGES), help="run this stage alone (repeatable); the device is always looked at")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows and tests whose name contains TEXT")
    parser.add_argument("--json", default="", metavar="FILE", help="write the table there, too, after every stage")
    parser.add_argument("--scale", type=float, default=1, help="size of the benchmarks (default 1; less on an emulator)")
    parser.add_argument("--patience", type=float, default=1, help="factor of all time limits")
    parser.add_argument("--test-limit", type=float, default=30, metavar="SECONDS", help="a test that takes longer hangs (default 30)")
    parser.add_argument("--baselines", nargs=2, default=[], metavar=("CLIENTS", "STEPS"), help="size of the baselines (default 256 5)")
    parser.add_argument("--python", default=sys.executable, help="Python with torch or jax, for the baselines")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    check = Check(parsed())
    missing = [name for name in ("fedbits", "fedbits_gpu_parity") if not check.program(name)]
    if missing:
        print(f"{check.build} holds no {' and no '.join(missing)}; build the preset cuda there", file=sys.stderr)
        return 2
    asked = check.arguments.stage or list(STAGES)
    try:
        for name, (work, limit_s) in STAGES.items():
            if name == "device" or name in asked:
                check.run_stage(name, work, limit_s)
    finally:
        gpu_process.end_all()
        check.write()
    print()
    for name in check.stages:
        verdicts = [row["verdict"] for row in check.rows if row["stage"] == name]
        counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
        print(f"{name:<12} {check.stages[name]['seconds']:6.1f} s  {counted}")
    is_wrong = any(row["verdict"] in WRONG for row in check.rows if row["stage"] in COMPARING or row["name"] == "a kernel")
    return 1 if is_wrong else 3 if check.why_no_gpu else 0


if __name__ == "__main__":
    sys.exit(main())
