#!/usr/bin/env python3
"""What `plan` predicts against what `sweep` then takes.

Usage: FEDBITS_DATA=DIR python3 bench/plan_bench.py [build/fedbits] [JOBS] [STUDY...]
For each study it plans, sweeps with as many workers, and prints predicted / measured: the processor's time of the whole study with its
tuning, the mean clock time of a run (the lowest and the highest ratio over the combinations; what a seed costs that is new is part of it),
the peak memory of a worker, and the bits of both directions (likewise). Other programs on the machine make runs slower, so the load is
printed, too.
"""
import collections
import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading

BINARY = sys.argv[1] if len(sys.argv) > 1 else "build/fedbits"
JOBS = sys.argv[2] if len(sys.argv) > 2 else "1"
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenarios", "library")
QUICKSTART, A9A, FIG7 = (os.path.join(LIBRARY, name) for name in ("quickstart.toml", "a9a-heterogeneity.toml", "paper/fig7.toml"))
NO_AXES = ["sweep.axis=[]", "sweep.exclude=[]"]
STUDIES = {
    "quickstart": (QUICKSTART, []),
    "a9a, tuned": (A9A, ["rounds=100", "sweep.seeds=2"]),
    "fig7": (FIG7, []),
    "w8a, Top-k": (FIG7, NO_AXES + ['data.name="libsvm/w8a"', 'local.sample_file=""', "rounds=2000", "sweep.seeds=3"]),
    "lazy": (QUICKSTART, NO_AXES + ['feedback.up.kind="lag"', 'compressor.up.unit="gradient"', "sweep.seeds=4", "rounds=1000", "evaluate.every=20"]),
    "powersgd": (QUICKSTART, NO_AXES + ['data={kind="synthetic", clients=20, features=200, classes=10}', 'partition={kind="natural", clients=20}',
                                        'compressor.up={kind="powersgd", scope="tensor", unit="step"}', "evaluate={every=10, optimum=false}", "model.l2=0.01", "local.learning_rate=0.01",
                                        "sweep.seeds=3"]),
}


def command(subcommand, study, *more):
    file, settings = STUDIES[study]
    return [BINARY, subcommand, file, "--jobs", JOBS, *more] + [part for setting in settings for part in ("--set", setting)]


def watch_memory(parent, peak):
    """The largest peak of the resident memory of any child, in bytes."""
    while parent.poll() is None:
        try:
            with open(f"/proc/{parent.pid}/task/{parent.pid}/children") as children:
                for child in children.read().split():
                    with open(f"/proc/{child}/status") as status:
                        lines = [line.split() for line in status if line.startswith("VmHWM:")]
                        peak[0] = max([peak[0]] + [int(line[1]) * 1024 for line in lines])
        except OSError:
            pass  # it ended meanwhile
        threading.Event().wait(0.005)


def sweep(study, out):
    """Seconds of processor time, peak bytes of a worker, and [(labels, seconds, bits)] of the runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process, peak = subprocess.Popen(command("sweep", study, "--out", out, "--quiet")), [0]
    watch_memory(process, peak)
    if process.returncode != 0:
        sys.exit(f"{study}: the sweep failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    subprocess.run([BINARY, "export", out, "--runs", out + "/runs.csv"], check=True)
    with open(out + "/runs.csv", newline="") as file:
        return seconds, peak[0], list(csv.DictReader(file))


def ratios_of(plan, runs):
    """Predicted / measured of each combination: mean seconds of a run, what a seed costs that is new included, and mean bits."""
    measured = collections.defaultdict(list)
    axes = list(plan["combinations"][0]["axes"])
    for run in runs:
        measured[tuple(run[axis] for axis in axes)].append((float(run["seconds"]), int(run["bits_up"]) + int(run["bits_down"])))
    for one in plan["combinations"]:
        found = measured[tuple(one["axes"].values())]
        seconds, bits = (sum(column) / len(found) for column in zip(*found))
        yield one["all_s"] / one["runs"] / seconds, (one["bits_up"] + one["bits_down"]) / bits


def span(values):
    values = list(values)
    return f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else f"{values[0]:.2f}"


def main():
    studies = sys.argv[3:] or list(STUDIES)
    print(f"{'study':<12} {'runs':>5} {'measured':>9}  study  {'a run':<13} memory  bits            load")
    for study in studies:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(command("plan", study, "--json", folder + "/plan.json"), check=True, stdout=subprocess.DEVNULL)
            with open(folder + "/plan.json") as file:
                plan = json.load(file)
            seconds, peak, runs = sweep(study, folder + "/out")
            of_time, of_bits = zip(*ratios_of(plan, runs))
            print(f"{study:<12} {len(runs):>5} {seconds:>7.2f} s  {(plan['start_s'] + plan['computing_s'] + plan['tuning_s']) / seconds:>5.2f}  {span(of_time):<13} "
                  f"{plan['worker_bytes'] / peak:>6.2f}  {span(of_bits):<14}  {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
