#!/usr/bin/env python3
"""The headers of the plug-in interface are those of the version in cmake/plugin_interface.txt. In copies of them a changed comment is no change, and
changed code is one until the version is raised. Needs nothing but Python.

    plugin_interface_test.py SOURCE"""
import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "scripts"))
import plugin_interface

HEADER = "fl_core/config/registry.hpp"
MOST_HEADERS = 30  # that fedbits/plugin.hpp leads to
faults = []


def expect(holds, text):
    if not holds:
        faults.append(text)


@contextlib.contextmanager
def tree():
    """Yields a copy of everything that the script reads."""
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for file in (*plugin_interface.headers_in(SOURCE), plugin_interface.RECORD, "cmake/FedbitsInterface.cmake"):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / file, root / file)
        yield root


def run(root, *options):
    """Returns the exit code and the output of the script in a tree."""
    words = [sys.executable, "-B", str(SOURCE / "scripts" / "plugin_interface.py"), "--root", str(root), *options]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    return done.returncode, done.stdout


def test_comments():
    text = 'int a;  // one\n\n/* two\n */\nauto b = "// three";   \n\tchar c = \'"\';  // four\nint d = 1\'000;/* five */\n'
    code = 'int a;\nauto b = "// three";\n\tchar c = \'"\';\nint d = 1\'000;\n'
    expect(plugin_interface.without_comments(text) == code, f"comments are taken out as {plugin_interface.without_comments(text)!r}")


def test_size():
    reached = plugin_interface.headers_of(SOURCE, ["include/fedbits/plugin.hpp"])
    expect(len(reached) - 1 <= MOST_HEADERS, f"fedbits/plugin.hpp leads to {len(reached) - 1} headers, more than {MOST_HEADERS}: {', '.join(reached)}")
    expect("compressors/compressor.hpp" in reached, "fedbits/plugin.hpp does not lead to the interface of compressors")


def test_changes():
    with tree() as root:
        code, said = run(root)
        expect(code == 0, f"this tree: {said.strip()}")
        if code != 0:
            return
        number, recorded = plugin_interface.recorded_in(root)
        text = (root / HEADER).read_text()
        (root / HEADER).write_text("// A comment more.\n\n" + text)
        expect(run(root)[0] == 0, "a comment more counts as a change")
        (root / HEADER).write_text(text + "struct OneMore {};\n")
        code, said = run(root)
        expect(code == 1 and f"version {number}:" in said and "--raise" in said, f"changed code is answered with {code}: {said}")
        expect(run(root, "--raise")[0] == 0 and run(root)[0] == 0, "the version cannot be raised")
        raised, now = plugin_interface.recorded_in(root)
        expect(raised == number + 1 and now != recorded, f"version {number} is raised to {raised}")


test_comments()
test_size()
test_changes()
for fault in faults:
    print(f"FAILED: {fault}", file=sys.stderr)
print(f"{len(plugin_interface.headers_in(SOURCE))} headers of the plug-in interface were read")
sys.exit(1 if faults else 0)
