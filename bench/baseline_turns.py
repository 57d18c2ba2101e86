"""Turns between one of our programs and forms of a baseline, for the scripts baselines*.py."""
import json
import os
import statistics
import subprocess
import sys
import time

# Steps per measurement and the batch of each network of neural_bench.
STEPS = {"MLP": (32, 200), "2NN": (10, 200), "LeNet": (32, 20), "CNN": (32, 3), "LSTM": (32, 1), "ResNet-18": (20, 1), "VGG-11": (20, 1)}
KEPT = 1.3  # forms slower than the best one by this factor in their first turns take no further part


def seconds_of(work, threads=1):
    clock = time.process_time if threads == 1 else time.perf_counter
    begin = clock()
    work()
    return clock() - begin


def record(table, **row):
    """Adds a row for the page to the file that FEDBITS_BENCH_ROWS names, one JSON object per line. See write_page.py."""
    if path := os.environ.get("FEDBITS_BENCH_ROWS"):
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps({"table": table} | row), file=file)


class Ours:
    """One of our programs, waiting for requests."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, name, threads=1):
        """Seconds, and the operations done in them where the program knows."""
        print(name, threads, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.process.args[0]} ended")
        wall, processor, operations = map(float, answer)
        return (processor if threads == 1 else wall), operations


def best_forms(forms, always=(), threads=1):
    """The forms worth a measurement: {name: (run, steps per call)} without those that fail or, unless they are named, are clearly slower."""
    first = {}
    for form, make in forms.items():
        try:
            run, steps = make()
            run()
            first[form] = (min(seconds_of(run, threads) for _ in range(2)) / steps, run, steps)
        except Exception as error:  # a form that this version of the baseline cannot compile is left out, and said to be
            print(f"       {form}: {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)
    least = min(seconds for seconds, _, _ in first.values())
    for form, (seconds, _, _) in first.items():
        print(f"       {form:32s} {1e3 * seconds:9.3f} ms", flush=True)
    return {form: (run, steps) for form, (seconds, run, steps) in first.items() if seconds <= KEPT * least or form in always}


def in_turn(own, forms, repeats, beside=None, threads=1):
    """Returns the medians of interleaved turns: our seconds, and by form its seconds and the ratio to ours; with `beside`, also the ratio of its
    seconds to ours."""
    ours, limit, ratio, theirs = [], [], {form: [] for form in forms}, {form: [] for form in forms}
    for _ in range(repeats):
        ours.append(own())
        if beside is not None:
            limit.append(beside() / ours[-1])
        for form, (run, steps) in forms.items():
            theirs[form].append(seconds_of(run, threads) / steps)
            ratio[form].append(theirs[form][-1] / ours[-1])
    medians = [{form: statistics.median(values) for form, values in both.items()} for both in (theirs, ratio)]
    return statistics.median(ours), *medians, statistics.median(limit) if limit else None


def steps_in_turn(ours, baseline, name, forms, repeats):
    """Prints a step of ours against the best of the baseline's forms, all in turn on one thread."""
    forms = best_forms(forms)
    ours.seconds(name)
    own, share, ratio, theirs = [], [], {form: [] for form in forms}, {form: [] for form in forms}
    for _ in range(repeats):
        seconds, operations = ours.seconds(name)
        peak_seconds, peak_operations = ours.seconds("peak")
        own.append(seconds)
        share.append(operations / seconds / (peak_operations / peak_seconds))
        for form, (run, steps) in forms.items():
            theirs[form].append(seconds_of(run) / steps)
            ratio[form].append(theirs[form][-1] / seconds)
    best = min(theirs, key=lambda form: statistics.median(theirs[form]))
    own, their = statistics.median(own), statistics.median(theirs[best])
    print(f"{name:9s} ours {1e3 * own:9.3f} ms   {statistics.median(share):.2f} of the peak   {baseline} {1e3 * their:9.3f} ms ({best})"
          f"   {statistics.median(ratio[best]):.2f} times", flush=True)
    record("steps", name=name, baseline=baseline, form=best, ms=1e3 * own, share=statistics.median(share), baseline_ms=1e3 * their,
           times=statistics.median(ratio[best]))
