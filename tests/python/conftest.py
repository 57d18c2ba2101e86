"""A store that tests read and do not change, and interrupts that arrive."""
import signal

import pytest

import fedbits
from studies import STUDY

# A shell's job in the background ignores interrupts, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return fedbits.run(STUDY, out=tmp_path_factory.mktemp("store"), rounds=40, progress=False, evaluate={"every": 1, "clients_every": 1})
