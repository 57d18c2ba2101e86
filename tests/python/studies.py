"""A small study for the tests, and the program whose results those of Python have to be."""
import os
import subprocess

import pytest

STUDY = """
name = "small"
rounds = 6
[data]
name = "mushrooms"
test_fraction = 0.2
[partition]
kind = "dirichlet_client"
alpha = 1.0
clients = 8
[model]
kind = "logistic_regression"
l2 = 0.01
[local]
kind = "gradient"
batch = 16
learning_rate = 0.5
[feedback.up]
kind = "ef14"
[sweep]
seeds = 3
[[sweep.axis]]
key = "partition.alpha"
values = [0.1, 100.0]
[[sweep.axis]]
key = "compressor.up"
values = [
  { label = "none", kind = "identity" },
  { label = "top-5%", kind = "top_k", ratio = 0.05 },
  { label = "qsgd", kind = "qsgd", levels = 4, scaled = true },
]
"""

TUNED = STUDY.replace("rounds = 6", "rounds = 25").replace("seeds = 3", "seeds = 1") + """
[evaluate]
every = 1
[sweep.tune]
key = "local.learning_rate"
values = [0.1, 0.5]
seeds = 1
"""


def command_line(*arguments, status=0):
    """Runs the program that FEDBITS names, and skips the test where there is none."""
    program = os.environ.get("FEDBITS")
    if not program:
        pytest.skip("TOOL MISSING: FEDBITS names no program, with whose results those of Python are compared")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done
