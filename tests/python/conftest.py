"""A store that tests read and do not change."""
import pytest

import fedbits
from studies import STUDY


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    return fedbits.run(STUDY, out=tmp_path_factory.mktemp("store"), rounds=40, progress=False, evaluate={"every": 1, "clients_every": 1})
