#!/usr/bin/env python3
"""Two programs, such as those of two commits, on the same studies in interleaved turns: processor seconds of the newer one over the older one's.

usage: bench/two_programs.py OLDER NEWER [TURNS]     FEDBITS_DATA names a folder with fashion-mnist, without which the network is left out

    rounds    20,000 rounds of the quick start, of which each takes a fraction of a millisecond: what a round costs beside its mathematics
    network   rounds of LeNet-5 on Fashion-MNIST, which consist of training

Both programs have to be built alike. Each turn plays every study with both, on one thread; the least of the turns counts, because other programs of the
machine only ever add to it.
"""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

NETWORK = """name = "network"
rounds = 60
data = { name = "fashion-mnist", rows = 6000 }
partition = { kind = "shuffled", clients = 20 }
model = { kind = "lenet5" }
local = { kind = "sgd", steps = 5, batch = 32, learning_rate = 0.05 }
compressor.up = { kind = "top_k", ratio = 0.01 }
feedback.up = { kind = "ef14" }
evaluate = { every = 1000, train_loss = false, gradient = "never" }
"""


def processor_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def studies_in(folder: pathlib.Path) -> dict[str, list[str]]:
    """Returns the arguments of each study after `run`."""
    quickstart = str(ROOT / "scenarios/library/quickstart.toml")
    studies = {"rounds": [quickstart, "--set", "rounds=20000", "--set", "sweep.axis=[]", "--set", "evaluate.every=20000"]}
    if "FEDBITS_DATA" in os.environ:
        (folder / "network.toml").write_text(NETWORK)
        studies["network"] = [str(folder / "network.toml")]
    return studies


def measure(programs: list[str], turns: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for study, arguments in studies_in(folder).items():
            seconds = {program: [] for program in programs}
            for turn in range(turns):
                for program in programs:
                    out = folder / f"out-{study}-{turn}-{programs.index(program)}"
                    seconds[program].append(processor_seconds([program, "run", *arguments, "--out", str(out), "--threads", "1", "--quiet"]))
            older, newer = (min(seconds[program]) for program in programs)
            print(f"{study:8} {older:7.2f} s before, {newer:7.2f} s now: {newer / older:.3f} of it")


def main() -> None:
    if len(sys.argv) not in (3, 4) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    measure([os.path.abspath(program) for program in sys.argv[1:3]], int(sys.argv[3]) if len(sys.argv) == 4 else 5)


if __name__ == "__main__":
    main()
