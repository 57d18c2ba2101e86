#!/usr/bin/env python3
"""What a sweep costs beside its runs, and how two workers compare with one and with two processes that know nothing of each other.

Usage: python3 bench/sweep_bench.py [build/fedbits] [SEEDS]
Runs the quickstart with SEEDS seeds (84 give 1,008 runs) and prints, for each number of workers: seconds, runs' own seconds, overhead
= workers * seconds / runs' own seconds - 1, and the speed against one worker. The floor: the same runs as two `fedbits run` at once, each
with half of the seeds, against one of them after the other.
"""
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

BINARY = sys.argv[1] if len(sys.argv) > 1 else "build/fedbits"
SEEDS = int(sys.argv[2]) if len(sys.argv) > 2 else 84
STUDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenarios", "library", "quickstart.toml")


def start(command, out, seeds, first_seed, *more):
    return subprocess.Popen([BINARY, command, STUDY, "--out", out, "--quiet", "--set", f"sweep.seeds={seeds}", "--set", f"seed={first_seed}", *more])


def seconds_of(*starts):
    """Wall seconds of processes that are started together."""
    begin = time.monotonic()
    processes = [one() for one in starts]
    if any(process.wait() != 0 for process in processes):
        sys.exit("a run failed")
    return time.monotonic() - begin


def own_seconds(out):
    with sqlite3.connect(os.path.join(out, "results.sqlite")) as store:
        return store.execute("SELECT count(*), sum(seconds) FROM runs").fetchone()


def main():
    with tempfile.TemporaryDirectory() as folder:
        half = SEEDS // 2
        one_run = lambda name, first: lambda: start("run", f"{folder}/{name}", half, first, "--threads", "1")
        together = seconds_of(one_run("a", 1), one_run("b", 1 + half))
        apart = seconds_of(one_run("c", 1)) + seconds_of(one_run("d", 1 + half))
        print(f"floor: two processes {together:.2f} s, one after the other {apart:.2f} s: {apart / together:.2f} times")
        single = None
        for workers in (1, 2):
            out = f"{folder}/sweep{workers}"
            wall = seconds_of(lambda: start("sweep", out, 2 * half, 1, "--jobs", str(workers)))
            runs, own = own_seconds(out)
            single = single or wall
            size = os.path.getsize(out + "/results.sqlite") / 1e6
            print(f"{workers} workers: {runs} runs in {wall:.2f} s, their own time {own:.2f} s, overhead {100 * (workers * wall / own - 1):.1f}%, "
                  f"{single / wall:.2f} times one worker ({single / wall / (apart / together):.2f} of the floor), store {size:.1f} MB")


if __name__ == "__main__":
    main()
