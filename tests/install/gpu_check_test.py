"""bench/gpu_check.py against programs that pass, fail, crash, hang and leave the GPU broken: every stage is there, every test has its row, and
nothing is left running. Its scenarios are tried on the CPU.

    python3 tests/install/gpu_check_test.py BINARY SOURCE
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

BINARY, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "bench"))
import gpu_check  # noqa: E402  (it lies in bench/)

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
print("Note: Google Test filter\n[==========] Running tests.", flush=True)
for name, behaviour in tests:
    if name not in asked:
        continue
    print(f"[ RUN      ] {name}", flush=True)
    if behaviour == "crashes":
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
    wrong = behaviour in ("differs", "breaks") or broken
    if behaviour == "differs":
        print("f.cpp:7: Failure\nExpected equality: 1 and 2")
    word = "  FAILED  " if wrong else "  SKIPPED " if behaviour == "skips" else "       OK "
    code |= wrong
    print(f"[{word}] {name}{', where GetParam() = 40-byte object' if wrong else ''} (3 ms)", flush=True)
    if behaviour == "ends_after":
        os.kill(os.getpid(), signal.SIGABRT)
print("[==========] ran")
sys.exit(code)
"""
FEDBITS = r"""#!/bin/sh
here="$(dirname "$0")"
case "$1" in
  --version) echo "fedbits 9.9" ;;
  list) printf 'compressors\n  top_k [cpu,cuda]  the largest\n  odd [cpu]  another\n' ;;
  run) mkdir -p "$6"; case "$(cat "$2")" in *qsgd*) grep -q random "$here/mode" 2>/dev/null && echo "$6" | tr -c '0-9\n' x >"$6/sum" || echo 77 >"$6/sum" ;;
       *fashion*) echo 'fedbits: the data set "fashion-mnist" was not found' >&2; exit 2 ;; *) echo 5 >"$6/sum" ;; esac ;;
  export) printf 'run,checksum\n0,%s\n' "$(cat "$2/sum")" >"$4" ;;
esac
"""
BENCH = r"""#!/bin/sh
here="$(dirname "$0")"
echo '{"stage": "copy", "name": "copy on the device", "value": 3000, "unit": "GB/s"}'
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
echo "========= COMPUTE-SANITIZER"
echo "[       OK ] GpuTopK.IsTheCpusWhereItIs (3 ms)"
if [ "$2" = racecheck ]; then echo "========= Error: Race reported"; echo "========= RACECHECK SUMMARY: 1 hazard displayed"; exit 9; fi
echo "========= ERROR SUMMARY: 0 errors"
"""
NCU = r"""#!/bin/sh
echo "==PROF== Connected to process 1"
echo '{"name": "copy on the device", "value": 3000, "unit": "GB/s"}'
echo '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","1","select<float>(int)","gpu__time_duration.sum","ns","2,000,000"'
echo '"0","1","select<float>(int)","dram__bytes_read.sum","byte","1,000"'
echo '"0","1","select<float>(int)","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","40.5"'
echo '"1","1","pack(int)","gpu__time_duration.sum","ns","1000"'
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
                   str(self.folder / "baselines"), "--test-limit", "6", *options]
        environment = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "FEDBITS_PYTHON": sys.executable}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)

    def check(self, *options):
        """Returns (exit code, what was printed, the rows of the JSON file by stage and name)."""
        process = self.start(*options)
        text, _ = process.communicate(timeout=600)
        file = self.folder / "table.json"
        table = json.loads(file.read_text()) if file.exists() else {"rows": []}
        return process.returncode, text, {(row["stage"], row["name"]): row for row in table["rows"]}

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
            ("kernels", "GpuNew.A"): "same", ("kernels", "between tests"): "CRASHED", ("kernels", "GpuNew.B"): "not run",
            ("runs", "Methods/GpuRun.Bytes/none"): "same", ("runs", "GpuSweep.Share"): "CRASHED",
            ("determinism", "softmax regression, top_k"): "same", ("determinism", "perceptron, qsgd"): "DIFFERS",
            ("determinism", "CNN on Fashion-MNIST, all sent"): "not run",
            ("benchmarks", "top_k 1%"): "measured", ("benchmarks", "operators"): "FAILED", ("benchmarks", "latency"): "HUNG",
            ("benchmarks", "perceptron"): "not run", ("benchmarks", "rounds"): "FAILED",
            ("baselines", "loop: CNN"): "measured", ("baselines", "vmap"): "FAILED", ("baselines", "jax"): "skipped",
            ("sanitizer", "memcheck, 1 tests"): "same", ("sanitizer", "racecheck, 1 tests"): "DIFFERS",
            ("counters", "select"): "measured", ("counters", "pack"): "measured"})
        expect(build.child_is_gone(), "broken programs: what the hanging test had started still runs")
        expect("SIGSEGV" in rows.get(("kernels", "GpuTopK.Second"), {}).get("note", ""), "broken programs: the crash does not name its signal")
        expect("Expected equality" in rows.get(("kernels", "Operators/GpuParity.Odd/stc"), {}).get("note", ""), "broken programs: no word on what differs")
        told = rows.get(("benchmarks", "top_k 1%"), {})
        expect(told.get("floor_bytes") == 12e9 and told.get("predicted_ms") == 4.0, "broken programs: floor_bytes and predicted_ms are not handed on")
        for (stage, name), row in rows.items():
            expect(any(line.startswith(stage) and name in line and row["verdict"] in line for line in text.splitlines()), f"{stage} {name} is not printed")
        drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gpu_table.py"), str(build.folder / "table.json")], capture_output=True, text=True)
        expect(drawn.returncode == 0 and "Fake GPU" in drawn.stdout and "3000 GB/s" in drawn.stdout, f"gpu_table.py: {drawn.stdout}{drawn.stderr}")


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
        is_as_expected("a program that does not start", rows, {("kernels", "the start of the tests"): "CRASHED", ("kernels", "GpuTopK.A"): "not run"})
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
        process = build.start("--stage", "kernels", "--test-limit", "500")
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
        for name, text in gpu_check.REPEATED.items():
            scenario = pathlib.Path(folder) / "repeated.toml"
            scenario.write_text(text)
            out = str(pathlib.Path(folder) / "out")
            done = subprocess.run([str(BINARY), "run", str(scenario), "--out", out, "-q"], capture_output=True, text=True)
            expect(done.returncode == 0 or "was not found" in done.stderr, f"the repeated run \"{name}\" ends with {done.returncode}: {done.stderr}")
            if done.returncode == 0:
                columns = subprocess.run([str(BINARY), "export", out, "--runs", "/dev/stdout"], capture_output=True, text=True).stdout.split("\n")[0]
                expect("checksum" in columns.split(","), f"fedbits export --runs has no column with the checksum: {columns}")


def limits():
    """All stages together take less than nine minutes, and the page names their limits."""
    expect(sum(limit_s for _, limit_s in gpu_check.STAGES.values()) < 540, "the limits of the stages add up to nine minutes or more")
    page = (SOURCE / "docs" / "gpu.md").read_text()
    for name, (_, limit_s) in gpu_check.STAGES.items():
        expect(f"\n| {name} | {limit_s} |" in page, f"docs/gpu.md lacks the stage {name} with its {limit_s} s")


def table_of_the_page():
    page = (SOURCE / "docs" / "benchmarks.md").read_text()
    drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts" / "gpu_table.py")], capture_output=True, text=True, check=True).stdout
    there = {tuple(line.split("|")[1:3]) for line in page.splitlines()}
    for line in drawn.splitlines():
        if line.startswith("|"):
            expect(tuple(line.split("|")[1:3]) in there, f"docs/benchmarks.md lacks the row {line!r} of scripts/gpu_table.py")


for test in (broken_programs, whole_programs, no_gpu, interrupted, scenarios, limits, table_of_the_page):
    test()
for line in failed:
    print(f"FAILED: {line}")
print(f"{len(failed)} failed")
sys.exit(1 if failed else 0)
