"""On a processor that lacks something, the import is an error that says so."""
import os
import re
import shutil
import subprocess
import sys

import pytest

import fedbits
from fedbits import build


def test_build_info_says_level_and_compiler():
    info = fedbits.build_info()
    assert info["version"] == fedbits.__version__
    assert re.match(r"(gcc|clang) \d+", info["compiler"])
    said = subprocess.run([sys.executable, "-m", "fedbits", "--version"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[1] == f"built for {info['level']} with {info['compiler']}"


@pytest.mark.parametrize("is_portable", [True, False])
def test_what_is_missing_is_one_sentence_with_a_way_out(is_portable):
    with pytest.raises(ImportError) as raised:
        build._require_processor("was built for x86-64-v3, and this processor lacks AVX2 and FMA", is_portable)
    text = str(raised.value)
    assert text.startswith("fedbits was built for x86-64-v3, and this processor lacks AVX2 and FMA; ") and "FL_NATIVE=ON" in text
    assert ("makes the portable build" in text) != is_portable


def test_an_old_processor_is_an_import_error():
    emulator = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
    if os.uname().machine != "x86_64" or not emulator:
        pytest.skip("TOOL MISSING: qemu-user-static; other processors were NOT TESTED")
    done = subprocess.run([emulator, "-cpu", "Nehalem", sys.executable, "-c", "import fedbits"], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: fedbits was built for {fedbits.build_info()['level']}, and this processor lacks ") and " AVX, " in last
