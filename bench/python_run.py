#!/usr/bin/env python3
"""A run from Python beside the same run from the command line: wall-clock time of both, one after the other.

    taskset -c CORE PYTHON bench/python_run.py build/fedbits [REPEATS]

PYTHON has fedbits. The command line's time begins with its process; Python's begins when the package is imported, which is printed by itself.
"""
import statistics
import subprocess
import sys
import tempfile
import time

start = time.perf_counter()
import fedbits  # noqa: E402

IMPORT_S = time.perf_counter() - start
STUDY = """
name = "one"
rounds = {rounds}
data = {{ name = "mushrooms", test_fraction = 0.2 }}
partition = {{ kind = "dirichlet_client", alpha = 1.0, clients = 20 }}
model = {{ kind = "logistic_regression", l2 = 0.01 }}
local = {{ kind = "gradient", batch = 32, learning_rate = 0.5 }}
compressor.up = {{ kind = "top_k", ratio = 0.05 }}
feedback.up = {{ kind = "ef14" }}
"""


def seconds(play) -> float:
    start = time.perf_counter()
    play()
    return time.perf_counter() - start


def main(program: str, repeats: int) -> None:
    print(f"import fedbits: {1000 * IMPORT_S:.0f} ms")
    for rounds in (200, 5000):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/study.toml"
            with open(path, "w") as file:
                file.write(STUDY.format(rounds=rounds))
            theirs, ours, told = [], [], []
            for i in range(repeats):
                theirs.append(seconds(lambda: subprocess.run([program, "run", path, "--out", f"{folder}/a{i}", "--threads", "1", "-q"], check=True)))
                ours.append(seconds(lambda: fedbits.run(path, out=f"{folder}/b{i}", threads=1, progress=False)))
                told.append(seconds(lambda: fedbits.run(path, out=f"{folder}/c{i}", threads=1, progress=lambda at: None)))
        line, plain, callback = (1000 * statistics.median(one) for one in (theirs, ours, told))
        print(f"{rounds} rounds: command line {line:.0f} ms, Python {plain:.0f} ms ({plain - line:+.0f} ms), with a callback {callback - line:+.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9)
