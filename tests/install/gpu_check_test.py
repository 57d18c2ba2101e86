"""bench/gpu_check.py against programs that pass, fail, crash, hang and leave the GPU broken: every stage is there, every test has its row, and
nothing is left running. Tests run in shards, those that measure free memory alone; wrong rows come last, with their first difference; outputs are
packed; plans keep their limits. Its scenarios are tried on the CPU.

    python3 tests/install/gpu_check_test.py BINARY SOURCE
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

BINARY, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "bench"))
import gpu_measures  # noqa: E402  (they lie in bench/)
import gpu_plans  # noqa: E402
import gpu_process  # noqa: E402

failed = []

# What each fake does is a file beside it: "tests" has lines NAME BEHAVIOUR, "mode" words.
PARITY = r"""#!/usr/bin/env python3
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path(__file__).resolve().parent
tests = [line.split() for line in (here / "tests").read_text().splitlines()]
if "--gtest_list_tests" in sys.argv:
    for name, _ in tests:
        suite, test = name.split(".")
        print(f"{suite}.\n  {test}  # GetParam() = 40-byte object")
    sys.exit(0)
asked = [word for word in sys.argv if word.startswith("--gtest_filter=")][0].split("=", 1)[1].split(":")
if (here / "mode").exists() and "dies" in (here / "mode").read_text():
    sys.exit("error while loading shared libraries")
broken, code = False, 0
marks = here / "running"
marks.mkdir(exist_ok=True)
mark = marks / str(os.getpid())
print("Note: Google Test filter\n[==========] Running tests.", flush=True)
for name, behaviour in tests:
    if name not in asked:
        continue
    print(f"[ RUN      ] {name}", flush=True)
    mark.write_text(name)
    if behaviour == "slow":
        time.sleep(0.5)
        with open(here / "overlaps", "a") as file:
            file.write(f"{name} {len(list(marks.iterdir()))}\n")
    if behaviour == "crashes":
        print("about to launch", "blocking" if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1" else "as ever", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "hangs":
        child = subprocess.Popen(["sleep", "600"])
        (here / "child").write_text(str(child.pid))
        time.sleep(600)
    if behaviour == "exits":
        os._exit(0)
    if behaviour == "breaks" or broken:
        print("unknown file: Failure\ncudaDeviceSynchronize(): an illegal memory access was encountered (cudaErrorIllegalAddress) at f.cu:1")
        broken = True
    if behaviour == "skips":
        print("f.cpp:1: Skipped\nGPU MISSING: no GPU is visible to the CUDA driver, so this has tested nothing")
    wrong = behaviour in ("differs", "breaks", "names") or broken
    if behaviour == "names":
        print("f.cpp:7: Failure\n" + "words " * 200)
        for i in range(9):
            print(f"FIRST DIFFERENCE: operator {name[-9:]}(ratio = 0.1), pattern ties, K 3, P 1000, float32, state: [{i}] is 0x3f800000 (1) on the CPU "
                  "and 0x3f800001 (1.0000001) on the GPU; 5 of 3000 differ\nmore words")
    if behaviour == "differs":
        print("f.cpp:7: Failure\nExpected equality: 1 and 2")
    word = "  FAILED  " if wrong else "  SKIPPED " if behaviour == "skips" else "       OK "
    code |= wrong
    print(f"[{word}] {name}{', where GetParam() = 40-byte object' if wrong else ''} (3 ms)", flush=True)
    if behaviour == "ends_after":
        os.kill(os.getpid(), signal.SIGABRT)
print("[==========] ran")
if mark.exists():
    mark.unlink()
sys.exit(code)
"""
FEDBITS = r"""#!/bin/sh
here="$(dirname "$0")"
case "$1" in
  --version) echo "fedbits 9.9" ;;
  list) printf 'compressors\n  top_k [cpu,cuda]  the largest\n  odd [cpu]  another\n' ;;
  run) mkdir -p "$6"; case "$(cat "$2")" in *qsgd*) grep -q random "$here/mode" 2>/dev/null && echo "$6" | tr -c '0-9\n' x >"$6/sum" || echo 77 >"$6/sum" ;;
       *fashion*) echo 'fedbits: the data set "fashion-mnist" was not found' >&2; exit 2 ;; *) echo 5 >"$6/sum" ;; esac ;;
  sweep) mkdir -p "$6"; echo "$FEDBITS_CUDA_DELAY$(grep -q order "$here/mode" 2>/dev/null && echo .)" >>"$here/delays"
         if grep -q order "$here/mode" 2>/dev/null && [ -n "$FEDBITS_CUDA_DELAY" ]; then echo 9 >"$6/sum"; else echo 8 >"$6/sum"; fi ;;
  export) printf 'run,checksum\n0,%s\n' "$(cat "$2/sum")" >"$4" ;;
esac
"""
BENCH = r"""#!/bin/sh
here="$(dirname "$0")"
echo '{"stage": "copy", "name": "copy on the device", "value": 3000, "unit": "GB/s"}'
if [ -n "$FEDBITS_CUDA_TIMES" ] && [ "$1" != training ]; then
  printf 'kernel,blocks,threads,launches,ms,us_each\n"select, all",8,256,4,6,1500\npack,2,256,1,2,2000\n' >"$FEDBITS_CUDA_TIMES"
fi
if [ "$1" = copy ] || ! grep -q random "$here/mode" 2>/dev/null; then exit 0; fi
case "$1" in
  operators) echo '{"name": "top_k 1%", "value": 4.5, "unit": "ms", "share": 0.6, "floor_bytes": 12e9, "predicted_ms": 4.0}'; echo "{broken"; kill -SEGV $$ ;;
  latency) sleep 600 ;;
  training) echo '{"name": "perceptron", "why": "no data"}' ;;
  rounds) echo terminate called; exit 134 ;;
esac
"""
BASELINES = r"""#!/bin/sh
case "$2" in
  loop) echo '{"name": "loop: CNN", "value": 100, "unit": "us/client-step"}' ;;
  jax) echo '{"name": "jax", "why": "No module named jax"}' ;;
  *) echo "Traceback"; exit 1 ;;
esac
"""
SANITIZER = r"""#!/bin/sh
here="$(dirname "$0")"
echo "$2 $FEDBITS_CUDA_POOL" >>"$here/sanitized"
echo "========= COMPUTE-SANITIZER"
case "$*" in *GpuTopK.Second*)
  echo "========= Invalid __global__ write of size 4 bytes"; echo "=========     at select(int*)+0x70 in top_k.cuh:12"
  echo "=========     by thread (1,0,0) in block (2,0,0)"; echo "=========     Address 0x7f00 is out of bounds"
  echo "=========     Saved host backtrace up to driver entry point"; echo "========="; echo "========= ERROR SUMMARY: 1 error"; exit 9 ;;
esac
echo "[       OK ] GpuTopK.IsTheCpusWhereItIs (3 ms)"
if [ "$2" = racecheck ]; then echo "========= Error: Race reported"; echo "========= RACECHECK SUMMARY: 1 hazard displayed"; exit 9; fi
echo "========= ERROR SUMMARY: 0 errors"
"""
NCU = r"""#!/bin/sh
case "$*" in *"--clock-control none"*"--filter-mode per-launch-config --launch-skip 1 --launch-count 1 timeout"*) ;; *) exit 1 ;; esac
echo "==PROF== Connected to process 1"
echo '{"name": "copy on the device", "value": 3000, "unit": "GB/s"}'
echo '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","1","select<float>(int)","gpu__time_duration.sum","ns","2,000,000"'
echo '"0","1","select<float>(int)","dram__bytes_read.sum","byte","1,000"'
echo '"0","1","select<float>(int)","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","40.5"'
echo '"1","1","select<float>(int)","gpu__time_duration.sum","ns","3,000,000"'
for i in 2 3 4 5 6 7 8 9 10 11 12 13; do echo "\"$i\",\"1\",\"pack$i(int)\",\"gpu__time_duration.sum\",\"ns\",\"${i}000\""; done
"""


def expect(condition, text):
    if not condition:
        failed.append(text)


class Build:
    """A folder with fake programs, and tools on a PATH of its own."""

    def __init__(self, folder, tests, mode="", tools=True):
        self.folder = pathlib.Path(folder)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        files = {"fedbits": FEDBITS, "fedbits_gpu_parity": PARITY, "gpu_bench": BENCH, "baselines": BASELINES}
        if tools:
            files.update({"tools/compute-sanitizer": SANITIZER, "tools/ncu": NCU, "tools/nvidia-smi": "#!/bin/sh\necho 'Fake GPU, 9.0, 1.0, 80 GiB'\n"})
        for name, text in files.items():
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        (self.folder / "tests").write_text("".join(f"{name} {behaviour}\n" for name, behaviour in tests))
        (self.folder / "mode").write_text(mode)

    def start(self, *options):
        command = ["bash", str(SOURCE / "bench" / "gpu_check.sh"), str(self.folder), "--json", str(self.folder / "table.json"), "--python",
                   str(self.folder / "baselines"), "--test-limit", "6", "--shards", "3", *options]
        environment = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "FEDBITS_PYTHON": sys.executable}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def check(self, *options):
        """Returns (exit code, what was printed, the rows of the JSON file by stage and name)."""
        process = self.start(*options)
        text, _ = process.communicate(timeout=600)
        file = self.folder / "table.json"
        table = json.loads(file.read_text()) if file.exists() else {"rows": []}
        return process.returncode, text, {(row["stage"], row["name"]): row for row in table["rows"]}

    def logs(self):
        """Returns what the packed outputs hold, by file."""
        with tarfile.open(self.folder / "table.logs.tar.xz") as archive:
            return {pathlib.Path(one.name).name: archive.extractfile(one).read().decode() for one in archive if one.isfile()}

    def child_is_gone(self):
        """True when the process that the hanging test had started has ended."""
        child = pathlib.Path("/proc") / (self.folder / "child").read_text()
        for _ in range(100):
            if not child.exists() or "\nState:\tZ" in (child / "status").read_text():
                return True
            time.sleep(0.1)
        return False


def is_as_expected(title, rows, expected):
    for (stage, name), verdict in expected.items():
        found = rows.get((stage, name), {}).get("verdict", "no row")
        expect(found == verdict, f"{title}: {stage} {name}: {found}, not {verdict}")


PROBE = ("GpuRows.AreAddedUpAsOnTheCpu", "passes")


def broken_programs():
    tests = [PROBE, ("GpuTopK.IsTheCpusWhereItIs", "passes"), ("GpuTopK.Second", "crashes"), ("GpuTopK.Third", "passes"), ("Operators/GpuParity.Odd/top_k", "breaks"),
             ("Operators/GpuParity.Odd/qsgd", "passes"), ("Operators/GpuParity.Odd/sign", "hangs"), ("Operators/GpuParity.Odd/stc", "differs"),
             ("GpuTally.A", "exits"), ("GpuTally.B", "passes"), ("GpuNew.A", "ends_after"), ("GpuNew.B", "skips"), ("Methods/GpuRun.Bytes/none", "passes"),
             ("GpuSweep.Share", "crashes")]
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, tests, "random")
        code, text, rows = build.check()
        expect(code == 1, f"broken programs: exit code {code}\n{text}")
        is_as_expected("broken programs", rows, {
            ("device", "GPU"): "found", ("device", "a kernel"): "same", ("device", "copy on the device"): "measured",
            ("device", "matrix products of PyTorch"): "FAILED",
            ("kernels", "GpuTopK.IsTheCpusWhereItIs"): "same", ("kernels", "GpuTopK.Second"): "CRASHED", ("kernels", "GpuTopK.Third"): "same",
            ("kernels", "Operators/GpuParity.Odd/top_k"): "DIFFERS", ("kernels", "Operators/GpuParity.Odd/qsgd"): "same",
            ("kernels", "Operators/GpuParity.Odd/sign"): "HUNG", ("kernels", "Operators/GpuParity.Odd/stc"): "DIFFERS",
            ("kernels", "GpuTally.A"): "CRASHED", ("kernels", "GpuTally.B"): "same",
            ("kernels", "GpuNew.A"): "same", ("kernels", "between tests, shard 1"): "CRASHED", ("kernels", "GpuNew.B"): "not run",
            ("runs", "Methods/GpuRun.Bytes/none"): "same", ("runs", "GpuSweep.Share"): "CRASHED",
            ("determinism", "softmax regression, top_k"): "same", ("determinism", "perceptron, qsgd"): "DIFFERS",
            ("determinism", "CNN on Fashion-MNIST, all sent"): "not run",
            ("benchmarks", "top_k 1%"): "measured", ("benchmarks", "operators"): "FAILED", ("benchmarks", "latency"): "HUNG",
            ("benchmarks", "perceptron"): "not run", ("benchmarks", "rounds"): "FAILED",
            ("baselines", "loop: CNN"): "measured", ("baselines", "vmap"): "FAILED", ("baselines", "jax"): "skipped",
            ("sanitizer", "memcheck, 2 tests"): "same", ("sanitizer", "racecheck, 2 tests"): "DIFFERS",
            ("times", "select, all, 8 blocks"): "measured", ("times", "times of kernels, training"): "not run",
            ("counters", "select"): "measured", ("counters", "pack13"): "measured", ("counters", "pack5"): "measured"})
        expect(rows["counters", "select"].get("value") == 3 and ("counters", "pack4") not in rows, "broken programs: not the ten dearest launches")
        row = rows.get(("times", "select, all, 8 blocks"), {})
        expect(row.get("value") == 1500 and row.get("unit") == "us" and "75.0%" in row.get("note", ""), f"the time of a kernel: {row}")
        expect(build.child_is_gone(), "broken programs: what the hanging test had started still runs")
        expect("SIGSEGV" in rows.get(("kernels", "GpuTopK.Second"), {}).get("note", ""), "broken programs: the crash does not name its signal")
        note = rows.get(("kernels", "GpuTopK.Second"), {}).get("note", "")
        expect("with CUDA_LAUNCH_BLOCKING=1: CRASHED" in note and "about to launch blocking" in note, f"a crash is not run again: {note}")
        expect("memcheck: Invalid __global__ write of size 4 bytes, at select(int*)+0x70" in note, f"a crash is not run under memcheck: {note}")
        note = rows.get(("kernels", "Operators/GpuParity.Odd/top_k"), {}).get("note", "")
        expect("with CUDA_LAUNCH_BLOCKING=1: DIFFERS" in note, f"a test that leaves the GPU broken is not run again: {note}")
        repeated = text[text.index(" wrong rows:"):]
        for name in ("GpuTopK.Second", "GpuSweep.Share", "perceptron, qsgd", "latency"):
            expect(name in repeated, f"broken programs: {name} is not among the rows that are repeated:\n{repeated}")
        logs = build.logs()
        expect("about to launch as ever" in "".join(logs.get(f"shard-{i}.txt", "") for i in range(3)), f"the logs lack a shard: {sorted(logs)}")
        expect("broken" in "".join(logs.values()) and not (build.folder / "table.logs").exists(), f"the logs are not whole or not packed: {sorted(logs)}")
        expect("Expected equality" in rows.get(("kernels", "Operators/GpuParity.Odd/stc"), {}).get("note", ""), "broken programs: no word on what differs")
        told = rows.get(("benchmarks", "top_k 1%"), {})
        expect(told.get("floor_bytes") == 12e9 and told.get("predicted_ms") == 4.0, "broken programs: floor_bytes and predicted_ms are not handed on")
        for (stage, name), row in rows.items():
            expect(any(line.startswith(stage) and name in line and row["verdict"] in line for line in text.splitlines()), f"{stage} {name} is not printed")
        drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gpu_table.py"), str(build.folder / "table.json")], capture_output=True, text=True)
        expect(drawn.returncode == 0 and "Fake GPU" in drawn.stdout and "3000 GB/s" in drawn.stdout, f"gpu_table.py: {drawn.stdout}{drawn.stderr}")


def first_differences():
    """A row's note begins with its first differences; at the end stand the wrong rows, within the characters that come back."""
    tests = [PROBE] + [(f"Operators/GpuParity.{'Odd' * 30}/case_{i:04}", "names") for i in range(150)] + [("GpuTally.A", "differs"), ("GpuRuns.A", "crashes")]
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, tests, tools=False)
        code, text, rows = build.check("--stage", "kernels", "--stage", "runs", "--test-limit", "20")
        expect(code == 1, f"first differences: exit code {code}")
        note = rows.get(("kernels", tests[1][0]), {}).get("note", "")
        expect(note.startswith("FIRST DIFFERENCE: operator case_0000(ratio = 0.1), pattern ties") and "1.0000001) on the GPU; 5 of 3000 differ | FIRST" in note
               and "5 more differences" in note and len(note) < 2000, f"the note does not begin with whole first differences: {note}")
        last = text[-12000:]
        expect("153 wrong rows:" in last, f"the rows that are repeated are longer than what comes back: {last[:300]} ... {last[-300:]}")
        expect("runs GpuRuns.A CRASHED" in last and "kernels GpuTally.A DIFFERS" in last, "a suite's first wrong row is behind those of another suite")
        repeated = last[last.index(" wrong rows:"):].splitlines()[1:]
        expect(len(repeated) <= 41 and repeated[-1].startswith("and ") and "more" in repeated[-1], f"{len(repeated)} rows are repeated, the last: {repeated[-1]}")
        whole = [line for line in repeated if "FIRST DIFFERENCE" in line]
        expect(len(whole) > 15 and all("5 of 3000 differ" in line and len(line) <= 400 for line in whole), f"a first difference is cut: {whole[:1]}")


def shards():
    """Tests run side by side; those that measure free memory alone and last."""
    tests = [PROBE, ("GpuTopK.A", "slow"), ("GpuTopK.B", "slow"), ("GpuState.A", "slow"), ("Grid/GpuOwnMemoryGrid.A", "slow"), ("GpuSweep.A", "slow"), ("GpuTopK.C", "slow")]
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, tests, tools=False)
        code, text, rows = build.check("--plan", "A")
        expect(code == 0, f"shards: exit code {code}\n{text}")
        seen = [line.split() for line in (build.folder / "overlaps").read_text().splitlines()]
        expect({name for name, _ in seen[:3]} == {"GpuTopK.A", "GpuTopK.B", "GpuTopK.C"}, f"shards: tests that run alone are not the last: {seen}")
        expect(max(int(count) for _, count in seen[:3]) > 1, f"shards: no two tests ran side by side: {seen}")
        expect(all(count == "1" for _, count in seen[3:]), f"shards: a test ran beside one that measures free memory: {seen}")
        stages = {name: stage for stage, name in rows}
        expect(stages.get("GpuTopK.A") == "kernels" and stages.get("GpuSweep.A") == "runs", f"shards: stages of rows: {stages}")
    order = [f"t{i}" for i in range(7)]
    expect(gpu_process.dealt(order, 3) == [["t0", "t3", "t6"], ["t1", "t4"], ["t2", "t5"]], "tests are not dealt in turn")
    expect(gpu_process.dealt(order[:4], 2, {"t0": 1.0, "t1": 9.0, "t2": 3.0, "t3": 4.0}) == [["t1"], ["t0", "t2", "t3"]], "tests are not dealt by their lengths")


def plans():
    """Plans print what they do, keep their limits, and B runs again what A did not call the same."""
    for name, plan in gpu_plans.PLANS.items():
        total = gpu_plans.START_S + sum(stage.limit_s for stage in plan.stages)
        expect(total <= plan.limit_s, f"the stages of plan {name} may take {total} s, more than its {plan.limit_s}")
        for option in ("--dry-run", "--print"):
            told = subprocess.run(["bash", str(SOURCE / "bench" / "gpu_check.sh"), "--plan", name, option], capture_output=True, text=True,
                                  env={**os.environ, "FEDBITS_PYTHON": sys.executable})
            expect(told.returncode == 0 and f"at most {plan.limit_s} s" in told.stdout and all(stage.what in told.stdout for stage in plan.stages),
                   f"plan {name} {option}: {told.stdout}{told.stderr}")
    expect({name: plan.limit_s for name, plan in gpu_plans.PLANS.items()} == {"A": 180, "B": 150, "C": 120}, "plans have other limits")
    tests = [PROBE, ("GpuTopK.A", "passes"), ("GpuTopK.B", "differs"), ("GpuTopK.C", "skips"), ("GpuRuns.A", "crashes")]
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, tests, "random")
        code, text, rows = build.check("--plan", "A", "--patience", "0.2")
        is_as_expected("plan A", rows, {("device", "a kernel"): "same", ("kernels", "GpuTopK.A"): "same", ("runs", "GpuRuns.A"): "CRASHED",
                                        ("benchmarks", "top_k 1%"): "measured", ("device", "matrix products of PyTorch"): "FAILED"})
        (build.folder / "table.json").rename(build.folder / "a.json")
        (build.folder / "tests").write_text("".join(f"{name} {'passes' if name == 'GpuTopK.B' else behaviour}\n" for name, behaviour in tests))
        code, text, rows = build.check("--plan", "B", "--after", str(build.folder / "a.json"), "--patience", "0.2")
        is_as_expected("plan B", rows, {("kernels", "GpuTopK.B"): "same", ("kernels", "GpuTopK.B, CUDA_LAUNCH_BLOCKING=1"): "same",
                                        ("runs", "GpuRuns.A"): "CRASHED", ("runs", "GpuRuns.A, CUDA_LAUNCH_BLOCKING=1"): "CRASHED", ("baselines", "loop: CNN"): "measured"})
        expect(("kernels", "GpuTopK.A") not in rows and ("kernels", "GpuTopK.C") not in rows, "plan B runs again what was the same or skips itself")
        drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gpu_table.py"), str(build.folder / "a.json"), str(build.folder / "table.json")],
                               capture_output=True, text=True)
        expect("| kernels against the CPU | all the same | 3 same, 1 not run |" in drawn.stdout, f"gpu_table.py of two plans: {drawn.stdout}{drawn.stderr}")
        (build.folder / "mode").write_text("random order")
        code, text, rows = build.check("--plan", "C")
        is_as_expected("plan C", rows, {("determinism", "softmax regression, top_k"): "same", ("determinism", "eight methods in one process"): "DIFFERS",
                                        ("sanitizer", "memcheck, 1 tests"): "same", ("sanitizer", "racecheck, 1 tests"): "DIFFERS", ("counters", "select"): "measured"})
        delays = (build.folder / "delays").read_text().split()
        expect(sorted(delays) == ["."] + ["1."] * 9, f"plan C: delays of the repeated sweep: {delays}")
        expect("racecheck off" in (build.tools / "sanitized").read_text(), "plan C: the pool of memory is not off under compute-sanitizer")
        expect(len(list(build.folder.glob("table.*"))) == 2, f"more than two files come back: {list(build.folder.glob('table.*'))}")


def whole_programs():
    tests = [PROBE, ("GpuTopK.A", "passes"), ("Operators/GpuParity.Odd/top_k", "passes"), ("Methods/GpuRun.Bytes/none", "passes")]
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, tests, tools=False)
        code, text, rows = build.check("--stage", "kernels", "--stage", "runs", "--stage", "determinism")
        expect(code == 0, f"whole programs: exit code {code}\n{text}")
        is_as_expected("whole programs", rows, {("determinism", "perceptron, qsgd"): "same", ("runs", "Methods/GpuRun.Bytes/none"): "same"})
        expect(not any(stage in ("benchmarks", "sanitizer") for stage, _ in rows), "whole programs: a stage ran that was not asked for")
        code, text, rows = build.check("--stage", "kernels", "--only", "top_k")
        names = [name for stage, name in rows if stage == "kernels"]
        expect(code == 0 and names == ["Operators/GpuParity.Odd/top_k"], f"--only top_k: exit code {code}, {names}")
        (build.folder / "mode").write_text("dies")
        code, text, rows = build.check("--stage", "kernels")
        is_as_expected("a program that does not start", rows, {("device", "a kernel"): "CRASHED", ("kernels", "top_k"): "not run"})
        expect(code == 1, f"a program that does not start: exit code {code}")
        (build.folder / "fedbits_gpu_parity").unlink()
        expect(build.check()[0] == 2, "no test program: the exit code is not 2")


def no_gpu():
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, [("GpuRows.AreAddedUpAsOnTheCpu", "skips"), ("GpuTopK.A", "skips")])
        code, text, rows = build.check()
        expect(code == 3, f"no GPU: exit code {code}\n{text}")
        is_as_expected("no GPU", rows, {("kernels", "top_k"): "not run", ("runs", "runs"): "not run", ("benchmarks", "benchmarks"): "not run"})
        expect(rows.get(("kernels", "top_k"), {}).get("note") == "on cpu,cuda", "no GPU: operators are not listed with their devices")


def interrupted():
    with tempfile.TemporaryDirectory() as folder:
        build = Build(folder, [PROBE, ("GpuTopK.A", "passes"), ("GpuTopK.B", "hangs")])
        process = build.start("--stage", "kernels", "--test-limit", "500", "--shards", "1")
        for _ in range(600):
            if (build.folder / "child").exists() and (build.folder / "child").read_text():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate(timeout=60)
        expect(process.returncode == 143, f"interrupted: exit code {process.returncode}")
        expect("GpuTopK.A" in text, "interrupted: the rows before are not printed")
        expect(build.child_is_gone(), "interrupted: what the hanging test had started still runs")
        rows = json.loads((build.folder / "table.json").read_text())["rows"]
        expect(any(row["name"] == "GpuTopK.A" for row in rows), "interrupted: the rows before are not in the JSON file")


def scenarios():
    """The runs that are repeated are valid: data sets may be missing here."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in gpu_measures.REPEATED.items():
            scenario = pathlib.Path(folder) / "repeated.toml"
            scenario.write_text(text)
            out = str(pathlib.Path(folder) / "out")
            verb = "sweep" if "[sweep]" in text else "run"
            done = subprocess.run([str(BINARY), verb, str(scenario), "--out", out, "-q"], capture_output=True, text=True)
            expect(done.returncode == 0 or "was not found" in done.stderr, f"the repeated run \"{name}\" ends with {done.returncode}: {done.stderr}")
            if done.returncode == 0:
                columns = subprocess.run([str(BINARY), "export", out, "--runs", "/dev/stdout"], capture_output=True, text=True).stdout.split("\n")[0]
                expect("checksum" in columns.split(","), f"fedbits export --runs has no column with the checksum: {columns}")


def limits():
    """All stages together take less than ten minutes, and the page names their limits and those of the plans."""
    expect(sum(stage.limit_s for stage in gpu_plans.STAGES.values()) < 600, "the limits of the stages add up to ten minutes or more")
    page = (SOURCE / "docs" / "gpu.md").read_text()
    for name, stage in gpu_plans.STAGES.items():
        expect(f"\n| {name} | {stage.limit_s} |" in page, f"docs/gpu.md lacks the stage {name} with its {stage.limit_s} s")
    for name, plan in gpu_plans.PLANS.items():
        expect(f"\n| {name} | {plan.limit_s} |" in page, f"docs/gpu.md lacks plan {name} with its {plan.limit_s} s")


def table_of_the_page():
    page = (SOURCE / "bench" / "results" / "gpu.md").read_text()
    drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gpu_table.py")], capture_output=True, text=True, check=True).stdout
    there = {tuple(line.split("|")[1:3]) for line in page.splitlines()}
    for line in drawn.splitlines():
        if line.startswith("|"):
            expect(tuple(line.split("|")[1:3]) in there, f"bench/results/gpu.md lacks the row {line!r} of scripts/gpu_table.py")


for test in (broken_programs, first_differences, shards, plans, whole_programs, no_gpu, interrupted, scenarios, limits, table_of_the_page):
    test()
for line in failed:
    print(f"FAILED: {line}")
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
