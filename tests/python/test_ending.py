"""The end of the interpreter waits for calls in daemon threads, and a study whose results cannot be stored raises."""
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import fedbits
from studies import STUDY

# Begins USE in a daemon thread, and lets the program end when the thread computes.
ENDING = textwrap.dedent("""
    import os, sys, threading, time
    import numpy, fedbits
    from studies import STUDY
    has_begun = threading.Event()
    LONG = {"rounds": 10**6, "evaluate__every": 1000, "checkpoint_rounds": 1000}
    def progress(at):
        if at.event == "round":
            has_begun.set()
    def again_and_again(call):
        has_begun.set()
        while True:
            call()
    class Mean(fedbits.Model, kind="mean"):
        def shapes(self, data):
            return {"center": (data.num_features,)}
        def loss_and_gradient(self, x, rows):
            has_begun.set()
            difference = x - rows.features
            return 0.5 * float((difference**2).sum(axis=1).mean()), difference.mean(axis=0)
    vector = numpy.random.default_rng(1).standard_normal(3_000_000).astype("float32")
    feedback = fedbits.EF21(fedbits.TopK(ratio=0.1), num_clients=1, P=vector.size)
    def a_round():
        feedback.send(0, vector)
        feedback.receive()
    USES = {
        "run": lambda: fedbits.run(STUDY, out="out", progress=progress, **LONG),
        "run without progress": lambda: (has_begun.set(), fedbits.run(STUDY, out="out", progress=False, **LONG)),
        "sweep": lambda: fedbits.sweep(STUDY, out="out", progress=progress, jobs=2, **LONG),
        "model": lambda: fedbits.run(STUDY, out="out", progress=False, model={"kind": "mean"}, **LONG),
        "plan": lambda: (has_begun.set(), fedbits.plan(STUDY, seconds=3600, rounds=10**6)),
        "suggest": lambda: (has_begun.set(), fedbits.suggest(STUDY, k=5, measure=10**6, rounds=10**6)),
        "check": lambda: (has_begun.set(), fedbits.check(*[fedbits._core.names("compressor")[0]] * 1000)),
        "compress": lambda: again_and_again(lambda: bytes(fedbits.TopK(ratio=0.1).compress(vector))),
        "feedback": lambda: again_and_again(a_round),
        "a run after the other": lambda: again_and_again(lambda: fedbits.run(STUDY, out="out", progress=False, again=True)),
    }
    def use():
        try:
            USES[sys.argv[1]]()
        finally:
            os.write(1, b"returned\\n")
    def begin(daemon):
        thread = threading.Thread(target=use, daemon=daemon)
        thread.start()
        has_begun.wait(60)
        time.sleep(float(sys.argv[2]))
        os.write(1, b"end\\n")
        return thread
""")


def run_program(text, *arguments, timeout=100):
    """Returns what a program prints when it ends by itself, without an error: an interrupted study warns of that alone."""
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env=os.environ | {"PYTHONPATH": path})
    others = [line for line in done.stderr.splitlines() if "StudyWarning: interrupted" not in line]
    assert (done.returncode, others) == (0, [])
    return done.stdout.splitlines()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("use", ["run", "run without progress", "sweep", "model", "plan", "suggest", "check", "compress", "feedback",
                                 "a run after the other"])
def test_the_end_waits_for_a_daemon_thread(use):
    for wait_s in (0.05, 0.4):
        shutil.rmtree("out", ignore_errors=True)
        lines = run_program(ENDING + "begin(daemon=True)", use, wait_s)
        assert lines[0] == "end" and lines[1:] in ([], ["returned"])  # Python may end the thread when the call has come back


@pytest.mark.parametrize("play", [fedbits.run, fedbits.sweep])
def test_a_run_of_a_daemon_thread_goes_on_later(play):
    """It has stopped as by Ctrl-C, with a checkpoint."""
    run_program(ENDING + "begin(daemon=True)", play.__name__, 0.2)
    status = list(fedbits.Store("out").columns("runs")["status"])
    assert status and set(status) == {"interrupted"} and os.listdir("out/checkpoints")


def test_a_thread_that_is_no_daemon_finishes_its_run():
    text = ENDING + "USES['run'] = lambda: fedbits.run(STUDY, out='out', progress=progress, rounds=1500)\nbegin(daemon=False)"
    assert run_program(text, "run", 0) == ["end", "returned"]
    assert set(fedbits.Store("out").columns("runs")["status"]) == {"done"}


FORKED = ENDING + textwrap.dedent("""
    begin(daemon=True)
    child = os.fork()
    if child == 0:
        fedbits.TopK(k=2).compress(vector)
        sys.exit(0)  # ends the interpreter, in which the parent's run is counted but has no thread
    begun = time.monotonic()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > begun + 30:
            os.kill(child, 9)
            os.write(1, b"the child does not end\\n")
        time.sleep(0.01)
""")


def test_a_forked_child_does_not_wait_for_its_parents_runs():
    assert run_program(FORKED, "run", 0.1)[0:2] in (["end"], ["end", "returned"])


def test_an_interrupt_ends_the_wait():
    """A model of the user's that does not come back holds up the end, and Ctrl-C ends the process."""
    text = ENDING + "Mean.loss = lambda self, x, rows: (has_begun.set(), os.write(1, b'waits\\n'), time.sleep(1000))\nbegin(daemon=True)"
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen([sys.executable, "-c", text, "model", "0"], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})
    lines = [process.stdout.readline(), process.stdout.readline()]
    if "end\n" not in lines:
        lines.append(process.stdout.readline())
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT


# ---- results that cannot be stored

# argv: a folder that the program may mount on, and what becomes of the file system there.
FULL = textwrap.dedent("""
    import os, subprocess, sys
    import fedbits
    from studies import STUDY
    place, way, command = sys.argv[1:]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "none", place], check=True)
    def fill():
        with open(place + "/ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError:
                pass
    if way == "full":
        fill()
    if way == "read only":
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    def progress(at):
        if way == "full later" and at.event == "started":
            fill()
        if way == "read only later" and at.event == "started" and not os.statvfs(place).f_flag & os.ST_RDONLY:
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    options = {"save_model": place + "/models", "out": "elsewhere"} if way.endswith("models") else {"out": place + "/out"}
    if way == "full models":
        fill()
    try:
        found = getattr(fedbits, command)(STUDY, progress=progress, **options)
    except fedbits.StoreError as error:
        print("raised", error)
    else:
        print("returned", found)
""")


def can_mount() -> bool:
    mounted = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(mounted, capture_output=True).returncode == 0


@pytest.mark.parametrize("command, way", [("run", "full"), ("run", "read only"), ("run", "full later"), ("run", "read only later"), ("run", "full models"),
                                          ("sweep", "full"), ("sweep", "read only"), ("sweep", "full later")])
def test_results_that_cannot_be_stored_raise(tmp_path, way, command):
    if not can_mount():
        pytest.skip("TOOL MISSING: no file system can be mounted here; a full disk was NOT TESTED")
    place = tmp_path / "disk"
    place.mkdir()
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(["unshare", "-m", sys.executable, "-c", FULL, place, way, command], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": path})
    last = done.stdout.splitlines()[-1:]
    assert last and last[0].startswith("raised ") and str(place) in last[0], done.stdout + done.stderr
    reason = "read-only" if way.startswith("read only") else "full" if way == "full later" else "space"
    assert reason in last[0].lower() and "fedbits-out" not in os.listdir(".")


def test_a_disk_that_is_full_from_the_beginning_is_no_store():
    with pytest.raises(fedbits.StoreError, match="/dev/full"):
        fedbits.run(STUDY, out="/dev/full", progress=False)
    with pytest.raises(OSError, match="No space left"):
        fedbits.store.Report("page" * 10_000).save("/dev/full")
