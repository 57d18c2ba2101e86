"""NVIDIA's tools for gpu_check.py: compute-sanitizer on a part of the GPU tests, and ncu's counters of the dearest kernels. Also the times of all
kernels, which the engine measures itself."""
import csv
import pathlib
import re
import tempfile

from gpu_process import dealt, found_program, output_of, run_side_by_side
from gpu_sanitizer import sanitized, sanitizer_program
from gpu_suites import tests_of

# For compute-sanitizer: tests of each way of writing a kernel. It makes them many times slower.
SANITIZED = ("GpuRepeatedWork.IsRecorded", "GpuParity.SameBytesOnNastyNumbers/(top_k|qsgd|ef_sign|drive|natural|random_k|stc|powersgd)$", "GpuTopK.IsTheCpusWhere",
             "GpuAggregationOrder.GroupsOf", "GpuLayers.NanStaysNan", "GpuProducts", "GpuRows", "GpuTallyOfPositions")
KINDS = ("memcheck", "racecheck", "initcheck")
OWN_BLOCKS = {"FEDBITS_CUDA_POOL": "off"}  # each block of memory is an allocation of its own, and scratch memory is not zeroed


def sanitizer(check):
    """memcheck, racecheck and initcheck side by side, each in some processes, with every block of memory as an allocation of its own."""
    tool = sanitizer_program()
    if not tool:
        check.say("compute-sanitizer", "skipped", note="it is not here")
        return
    names = tests_of(check, lambda name: any(re.search(pattern, name) for pattern in SANITIZED))
    program, env = check.program("fedbits_gpu_parity"), {**check.env, **OWN_BLOCKS}

    def work_for(kind, i, some):
        log, deadline = check.logs.log(f"{kind} {i}"), check.deadline
        return lambda stop: iter([(kind, *sanitized(tool, kind, program, some, deadline, env, log))])

    shards = dealt(names, max(1, check.arguments.shards // len(KINDS)))
    found = {kind: [] for kind in KINDS}
    works = [work_for(kind, i, some) for i, some in enumerate(shards) if some for kind in KINDS]
    for one in run_side_by_side(works, max(check.arguments.shards, 1)):
        if isinstance(one, Exception):
            check.say("compute-sanitizer", "FAILED", note=f"{type(one).__name__}: {one}")
            continue
        kind, *outcome = one
        found[kind].append(outcome)
        if len(found[kind]) == len(shards):
            worst = min(found[kind], key=lambda outcome: ("DIFFERS", "CRASHED", "not run", "same").index(outcome[0]))
            check.say(f"{kind}, {len(names)} tests", worst[0], sum(done for _, done, _ in found[kind]), "tests", note=worst[2][:600])


TIMED_PARTS = ("operators", "training", "aggregation")  # of gpu_bench


def times(check):
    """The ten kernels of each part of gpu_bench that take the most time, as the engine measures them (FEDBITS_CUDA_TIMES)."""
    bench = check.program("gpu_bench")
    if not bench:
        check.say("times of kernels", "skipped", note="gpu_bench is not in the build (-DFL_BENCH=ON)")
        return
    for part in TIMED_PARTS:
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "times.csv"
            command, env = [bench, part, str(check.arguments.scale), "--json"], {**check.env, "FEDBITS_CUDA_TIMES": str(table)}
            lines, ended = output_of(command, check.left(), env, check.logs.log(f"times {part}"))
            if not table.exists():
                check.say(f"times of kernels, {part}", "not run", note=" | ".join([ended, *lines[-1:]])[:400] or "it wrote no table")
                continue
            with table.open(newline="") as file:
                rows = list(csv.DictReader(file))
        whole = sum(float(row["ms"]) for row in rows) or 1.0
        for row in rows[:DEAREST]:
            note = f"{row['launches']} launches, {float(row['ms']) / whole:.1%} of the time of the kernels of {part}"
            check.say(f"{row['kernel']}, {row['blocks']} blocks", "measured", float(row["us_each"]), "us", note=note)


COUNTERS = ("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")
DEAREST = 10
COUNTED_PARTS = (("operators", 0.45), ("training", 0.65), ("aggregation", 1.0))  # of gpu_bench, and the part of the remaining time


def ncu_command(tool, bench, part, scale, seconds):
    """Returns the command line. With --filter-mode per-launch-config the filters count for every kernel with its block, grid and shared memory
    separately, so that one launch of each is measured, the second one. --clock-control none leaves the clocks as they are for other programs.
    timeout ends the benchmark, and not ncu, which then prints what it has."""
    return [tool, "--csv", "--print-units", "base", "--metrics", ",".join(COUNTERS), "--clock-control", "none", "--target-processes", "all",
            "--filter-mode", "per-launch-config", "--launch-skip", "1", "--launch-count", "1", "timeout", "-k", "2", f"{seconds:.0f}", bench, part,
            str(scale), "--json"]


def launches(lines):
    """Returns {(kernel, launch): {metric: value}} of a table in CSV, or None if there is none."""
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return None
    found = {}
    for row in csv.DictReader(line for line in lines[begin:] if line.startswith('"')):
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except (KeyError, ValueError, AttributeError):
            continue
        found.setdefault((re.sub(r"[<(].*", "", row["Kernel Name"]), row["ID"]), {})[row["Metric Name"]] = value
    return found


def counters(check):
    """ncu's counters of one launch of each kernel at full size; rows are the kernels whose launches take the most time."""
    tool, bench = found_program("ncu"), check.program("gpu_bench")
    if not tool or not bench:
        check.say("ncu", "skipped", note="it is not here" if not tool else "gpu_bench is not in the build (-DFL_BENCH=ON)")
        return
    dearest = {}
    for part, share in COUNTED_PARTS:
        limit_s = check.left() * share
        if limit_s < 2:
            check.say(f"ncu, {part}", "not run", note="the time of the stage was up")
            continue
        command = ncu_command(tool, bench, part, check.arguments.scale, max(1, limit_s - 4))
        lines, ended = output_of(command, limit_s, check.env, check.logs.log(f"ncu {part}"))
        table = launches(lines)
        if table is None:
            said = next((line for line in lines if "ERR_" in line or "==ERROR==" in line), "")
            check.say(f"ncu, {part}", "not run", note=" | ".join(filter(None, (said, ended))) or "it printed no table")
        for (name, _), seen in (table or {}).items():
            if seen.get(COUNTERS[0], 0) > dearest.get(name, (0,))[0]:
                dearest[name] = (seen[COUNTERS[0]], part, seen)
    for name in sorted(dearest, key=lambda name: dearest[name][0], reverse=True)[:DEAREST]:
        ns, part, seen = dearest[name]
        shown = [f"{label} {seen[key]:.0f}%" for label, key in (("SM", COUNTERS[3]), ("memory", COUNTERS[4])) if key in seen]
        check.say(name, "measured", ns / 1e6, "ms", launches=1, dram_bytes=sum(seen.get(key, 0) for key in COUNTERS[1:3]), note=", ".join([part, *shown]))
