"""The GPU tests of gpu_check.py: every kernel, training steps and whole runs against the CPU, in processes side by side."""
import json
import time

from gpu_process import ENDED_BEFORE, OUT_OF_TIME, dealt, list_tests, run_side_by_side, run_tests
from gpu_sanitizer import sanitized, sanitizer_program

# Suites of training steps and whole runs; all others are of kernels. Rows have the stage "runs" or "kernels".
RUNS = ("GpuTraining", "GpuRun", "GpuSteps", "GpuEvaluation", "GpuRoundedProducts", "GpuState", "GpuOwnMemoryGrid", "GpuOwnMemory", "GpuRuns", "GpuSweep",
        "GpuTrainingOverManyRounds", "GpuTrainingFaults")
ALONE = ("GpuState", "GpuSweep", "GpuRuns", "GpuOwnMemory")  # beginnings of suites that measure free memory: no other process may run beside them
SHARDS_END, ALONE_ENDS = 0.7, 0.9  # parts of a stage's time; the rest is for running again what crashed
MOST_AGAIN = 8
BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}
WRONG = ("DIFFERS", "CRASHED", "HUNG", "FAILED")


def suite_of(test):
    """Returns the class of a test: GpuRun of Methods/GpuRun.GivesTheBytesOfTheCpu/none."""
    return test.split(".")[0].split("/")[-1]


def stage_of(test):
    return "runs" if suite_of(test) in RUNS else "kernels"


def tests_of(check, is_asked=lambda name: True):
    """Returns the tests that are asked for, or says why there are none."""
    names, why = list_tests(check.program("fedbits_gpu_parity"))
    if why:
        check.say("list of tests", "CRASHED", note=why)
    return [name for name in names if is_asked(name) and check.wants(name)]


def compare(check, names, env=None, label="{}"):
    """Runs tests: most of them in shards side by side, then those that need the GPU for themselves, then again what crashed."""
    alone = [name for name in names if suite_of(name).startswith(ALONE)]
    shards = dealt([name for name in names if name not in set(alone)], check.arguments.shards, check.known_ms)
    program, env, begin, left = check.program("fedbits_gpu_parity"), env or check.env, time.monotonic(), check.left()
    broken = []

    def tests(some, title, until):
        log = check.logs.log(title)

        def work(stop):
            for outcome in run_tests(program, some, until, check.arguments.test_limit, env, log, stop):
                if outcome.name not in some:
                    outcome.name += f", {title}"
                yield outcome
        return work

    def say_all(works):
        for outcome in run_side_by_side(works):
            if isinstance(outcome, Exception):
                check.say("a shard", "FAILED", note=f"{type(outcome).__name__}: {outcome}")
                continue
            row = check.say(label.format(outcome.name), outcome.verdict, outcome.ms, "ms", note=outcome.note, stage=stage_of(outcome.name))
            if outcome.has_ended_the_process and outcome.verdict in ("CRASHED", "DIFFERS"):
                broken.append((outcome.name, row))

    say_all([tests(some, f"shard {i}", begin + left * (SHARDS_END if alone else ALONE_ENDS)) for i, some in enumerate(shards) if some])
    if alone:
        say_all([tests(alone, "alone", begin + left * ALONE_ENDS)])
    look_again(check, broken)


def look_again(check, broken):
    """Runs tests that crashed, or that left the GPU in an error that stays, again: with CUDA_LAUNCH_BLOCKING=1, which gives the error to the launch that
    made it, and under memcheck. What is said then joins the notes of their rows. The first of each suite come first."""
    seen = {}
    for name, _ in broken:
        seen.setdefault(suite_of(name), []).append(name)
    row_of = dict(broken)
    order = sorted(row_of, key=lambda name: seen[suite_of(name)].index(name))
    program, limit_s = check.program("fedbits_gpu_parity"), min(check.arguments.test_limit, 10 * check.arguments.patience)
    tool = sanitizer_program()

    def work_for(name):
        log = check.logs.log(f"again {order.index(name)}")

        def work(stop):
            until = min(check.deadline, time.monotonic() + limit_s)
            again = next(run_tests(program, [name], until, limit_s, {**check.env, **BLOCKING}, log, stop), None)
            if again:
                yield name, f"with CUDA_LAUNCH_BLOCKING=1: {again.verdict}{' ' + again.note[:300] if again.note else ''}"
            if tool and not stop.is_set() and check.left() > 1:
                until = min(check.deadline, time.monotonic() + 2 * limit_s)
                verdict, _, note = sanitized(tool, "memcheck", program, [name], until, check.env, log)
                yield name, f"memcheck: {verdict if not note else note[:300]}"
        return work

    for found in run_side_by_side([work_for(name) for name in order[:MOST_AGAIN]], check.arguments.shards):
        if isinstance(found, Exception):
            check.say("running again what crashed", "FAILED", note=f"{type(found).__name__}: {found}")
            continue
        name, note = found
        row = row_of[name]
        row["note"] = " | ".join(filter(None, (row.get("note", ""), note)))
        print(f"{row['stage']:<12} {name:<62} again     {note}", flush=True)
    for name in order[MOST_AGAIN:]:
        row_of[name]["note"] = f"{row_of[name].get('note', '')} | not run again: {MOST_AGAIN} others were"


def kernels(check):
    """Every kernel against its reference on the CPU; without a GPU, the operators and their devices."""
    if check.why_no_gpu:
        check.list_operators()
    else:
        compare(check, tests_of(check, lambda name: stage_of(name) == "kernels"))


def runs(check):
    """Training steps and whole runs of every method against the CPU."""
    compare(check, tests_of(check, lambda name: stage_of(name) == "runs"))


def suites(check):
    """Kernels and runs together."""
    if check.why_no_gpu:
        check.list_operators()
    else:
        compare(check, tests_of(check))


def settled(rows):
    """Returns the names of the tests that a table calls the same, or that skip themselves."""
    unfinished = (OUT_OF_TIME, ENDED_BEFORE)
    return {row["name"] for row in rows if row["stage"] in ("kernels", "runs")
            and (row["verdict"] == "same" or (row["verdict"] == "not run" and row.get("note") not in unfinished))}


def suites_again(check):
    """The tests that an earlier table (--after) does not call the same: first with CUDA_LAUNCH_BLOCKING=1, then as they are. Without a table, all."""
    if not check.arguments.after:
        suites(check)
        return
    with open(check.arguments.after) as file:
        rows = json.load(file)["rows"]
    names = tests_of(check)
    left = [name for name in names if name not in settled(rows)]
    if not left:
        check.say("tests of the earlier table", "same", len(names), "tests", note="none is left to run again", stage="kernels")
        return
    whole = check.deadline
    check.deadline = time.monotonic() + 0.45 * check.left()
    compare(check, left, {**check.env, **BLOCKING}, "{}, CUDA_LAUNCH_BLOCKING=1")
    check.deadline = whole
    compare(check, left)
