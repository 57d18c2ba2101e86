"""The notebooks of examples/ run from the first to the last cell, in a folder of their own, and are stored without outputs. The stop button of a
notebook ends a study."""
import importlib.util
import pathlib
import shutil

import pytest

import fedbits
from studies import STUDY

nbformat = pytest.importorskip("nbformat", reason="TOOL MISSING: no nbformat and nbclient here; the notebooks are not run")
nbclient = pytest.importorskip("nbclient", reason="TOOL MISSING: no nbformat and nbclient here; the notebooks are not run")

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
NEEDED = {"quickstart": ["pandas", "matplotlib"], "heterogeneity": ["pandas", "matplotlib"], "ddp": ["torch", "matplotlib"],
          "torch_model": ["torch", "matplotlib"]}


def read(path):
    return nbformat.read(path, as_version=4)


def test_every_notebook_is_known():
    assert sorted(NEEDED) == [path.stem for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    assert all(not cell.outputs and cell.execution_count is None for cell in read(path).cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    for package in NEEDED[path.stem]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{path.name} needs {package}, which another environment of run_tests.sh has")
    shutil.copy(path, tmp_path)
    book = read(path)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    figures = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs if "image/png" in output.get("data", {})]
    assert figures


LONG = """
import fedbits
store = fedbits.run(STUDY, out="out", rounds=100_000, evaluate={"every": 1000}, progress=lambda at: print(at.event, flush=True))
"""


def test_the_stop_button_ends_a_study(tmp_path):
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        client.execute(f"STUDY = {STUDY!r}" + LONG)
        while True:  # until rounds are played
            message = client.get_iopub_msg(timeout=60)
            if message["msg_type"] == "stream" and "round" in message["content"]["text"]:
                break
        manager.interrupt_kernel()
        reply = client.get_shell_msg(timeout=60)
        while reply["msg_type"] != "execute_reply":  # a slow kernel answers questions from its start first
            reply = client.get_shell_msg(timeout=60)
        assert reply["content"]["ename"] == "KeyboardInterrupt"
        assert "interrupted" in fedbits.Store(tmp_path / "out").columns("runs")["status"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
