"""Stages of gpu_check.py that measure and repeat: the device, repeated runs, benchmarks and baselines."""
import csv
import pathlib
import shutil
import tempfile
import zlib

from gpu_process import output_of, run_side_by_side, run_tests

HERE = pathlib.Path(__file__).resolve().parent

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
EIGHT = ("none", "ef14", "ef21", "ef21_normalised", "clip21", "power_ef", "cafe", "econtrol")  # feedbacks
REPEATED = {
    "eight methods in one process": SYNTHETIC + "[model]\nkind = 'logistic_regression'\n[local]\nkind = 'gradient'\nbatch = 8\n[server]\n"
    "learning_rate = 0.05\n" + MEASURED + "[compressor.up]\nkind = 'top_k'\nratio = 0.1\n[sweep]\nseeds = 1\n[[sweep.axis]]\nkey = 'feedback.up'\n"
    "values = [" + ", ".join(f"{{label = '{kind}', kind = '{kind}'}}" for kind in EIGHT) + "]\n",
    "softmax regression, top_k": SYNTHETIC + "[model]\nkind = 'logistic_regression'\n" + SGD + MEASURED +
    "[compressor.up]\nkind = 'top_k'\nratio = 0.1\n[feedback.up]\nkind = 'ef14'\n",
    "perceptron, qsgd": SYNTHETIC + "[model]\nkind = 'mlp'\nhidden = [16]\n" + SGD + MEASURED +
    "[compressor.up]\nkind = 'qsgd'\nlevels = 15\n",
    "CNN on Fashion-MNIST, all sent": "name = 'repeated'\nrounds = 3\n[data]\nname = 'fashion-mnist'\nrows = 400\ntest = 'none'\n[partition]\n"
    "kind = 'shuffled'\nclients = 4\n[model]\nkind = 'neural_network'\nlayers = ['conv2d(4, 3)', 'relu', 'max_pool(2)', 'dense(classes)']\n" + SGD + MEASURED,
}
REPEATS = 10
MOST_RUNS_AT_ONCE = 4
DELAYED = {"FEDBITS_CUDA_DELAY": "1"}  # a random wait before each launch


def gpu(check):
    """The GPU, whether a kernel runs on it, and the speed of a copy."""
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
    if probe.verdict in ("CRASHED", "HUNG"):  # every other test would end like this one, and the machine's time is short
        check.why_no_gpu = "one kernel does not run (see above)"
        return
    if bench:
        check.take_lines([bench, "copy", str(check.arguments.scale), "--json"], 15, "copy")
    else:
        check.say("copy on the device", "skipped", note="gpu_bench is not in the build (-DFL_BENCH=ON)")


def ceilings(check):
    """Matrix products by PyTorch, as the ceilings of ours."""
    if check.wants("matrix product"):
        check.take_lines([check.arguments.python, str(HERE / "baselines_gpu.py"), "ceilings", "--json"], 20, "matrix products of PyTorch")


def device(check):
    """The GPU, and what it can do at the most."""
    gpu(check)
    if not check.why_no_gpu:
        ceilings(check)


def checksum_of(check, scenario, folder, env, log):
    """Returns (the checksum of a run on the GPU or, joined, of all runs of a sweep; why there is none)."""
    fedbits = check.program("fedbits")
    verb = "sweep" if "[sweep]" in scenario.read_text() else "run"
    lines, ended = output_of([fedbits, verb, str(scenario), "--device", "cuda", "--out", str(folder), "-q"], min(30 * check.arguments.patience, check.left()), env, log)
    if not ended:
        lines, ended = output_of([fedbits, "export", str(folder), "--runs", str(folder / "runs.csv")], min(30 * check.arguments.patience, check.left()), env, log)
    if ended:
        return "", " | ".join([ended, *lines[-2:]])
    with open(folder / "runs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    found = sorted(f"{row.get('feedback.up', '')} {row['checksum']}".strip() for row in rows)
    return (found[0] if len(found) == 1 else f"{zlib.crc32(' '.join(found).encode()):08x} of {len(found)} runs"), ""


def repeated(check, name, text, folder, envs):
    """Plays a scenario once in each environment, some at a time, and says how many checksums there were."""
    scenario = pathlib.Path(folder) / "repeated.toml"
    scenario.write_text(text)
    log = check.logs.log(f"repeated {name}")
    works = [lambda stop, i=i, env=env: iter([checksum_of(check, scenario, pathlib.Path(folder) / str(i), env, log)]) for i, env in enumerate(envs)]
    found, why = {}, ""
    for one in run_side_by_side(works, min(MOST_RUNS_AT_ONCE, check.arguments.shards)):
        checksum, reason = ("", f"{type(one).__name__}: {one}") if isinstance(one, Exception) else one
        if reason:
            why = reason
            break
        found[checksum] = found.get(checksum, 0) + 1
    times = sum(found.values())
    if why:
        missing = "was not found" in why and "data" in why
        verdict = "DIFFERS" if len(found) > 1 else "not run" if missing or check.left() <= 0 else "CRASHED"
        check.say(name, verdict, note=f"after {times} runs: {why}"[:400])
    elif len(found) == 1:
        check.say(name, "same", times, "runs", note=f"checksum {next(iter(found))}")
    else:
        check.say(name, "DIFFERS", times, "runs", note=", ".join(f"{checksum}: {count} times" for checksum, count in found.items()))


def determinism(check, env=None):
    """The same run again and again, each in a process of its own: one checksum. With `env`, all but the first are played with it."""
    for name, text in REPEATED.items():
        if check.wants(name):
            with tempfile.TemporaryDirectory() as folder:
                repeated(check, name, text, folder, [check.env] + [{**check.env, **(env or {})}] * (REPEATS - 1))


def delayed(check):
    """Repeated runs with a random wait before each launch, and one without: what the order of streams decides differs."""
    determinism(check, DELAYED)


def benchmark(*parts):
    """Returns a stage: parts of bench/gpu_bench, a process for each."""
    def work(check):
        bench = check.program("gpu_bench")
        if not bench:
            check.say("gpu_bench", "skipped", note="it is not in the build (-DFL_BENCH=ON)")
            return
        for part, limit_s in parts:
            if check.left() <= 0:
                check.say(part, "not run", note="the time of the stage was up")
            else:
                check.take_lines([bench, part, str(check.arguments.scale), "--json"], limit_s, part)
    return work


def baseline(*parts):
    """Returns a stage: parts of bench/baselines_gpu.py, a process for each."""
    def work(check):
        for part, limit_s in parts:
            if check.left() <= 0:
                check.say(part, "not run", note="the time of the stage was up")
            else:
                check.take_lines([check.arguments.python, str(HERE / "baselines_gpu.py"), part, *check.arguments.baselines, "--json"], limit_s, part)
    return work
