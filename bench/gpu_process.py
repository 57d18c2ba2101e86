"""Programs that may crash or hang, for gpu_check.py: each runs in a process group of its own until it ends or its time is up, and its lines are
seen as they come. A test program is started again behind a test that ended it, so that the following tests still run."""
from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import selectors
import signal
import subprocess
import time

groups = set()  # of processes that run


def end_all():
    """Kills what still runs, with everything that it started."""
    for group in list(groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


class Program:
    """A program under way. `deadline` (time.monotonic()) may be moved while its lines are read."""

    def __init__(self, command, deadline, env=None):
        self.deadline = deadline
        self.is_out_of_time = False
        self.code = None  # exit code, -N after signal N; None where a killed process did not go away
        self.tail = []  # its last lines
        self._is_stopped = False
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                         env=env, start_new_session=True)
        groups.add(self._process.pid)

    def lines(self):
        """Yields the lines of both outputs; after the last one `code` and `is_out_of_time` are set."""
        out, rest = self._process.stdout, b""
        os.set_blocking(out.fileno(), False)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(out, selectors.EVENT_READ)
                while True:
                    left = self.deadline - time.monotonic()
                    if left <= 0:
                        self.is_out_of_time = True
                        break
                    if not selector.select(left):
                        continue
                    piece = os.read(out.fileno(), 65536)
                    if not piece:
                        break
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        yield self._seen(line)
            if rest:
                yield self._seen(rest)
        finally:
            self.end()

    def _seen(self, line):
        text = line.decode(errors="replace").rstrip("\r")
        self.tail = [*self.tail, text][-30:] if text.strip() else self.tail
        return text

    def stop(self):
        """Kills the program, whatever it is doing."""
        self._is_stopped = True
        self.end()

    def end(self):
        """Waits for a program that has closed its output, and kills one whose time is up, or that goes on without an output."""
        if self.code is not None:
            return
        if not self.is_out_of_time and not self._is_stopped:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=max(0.1, min(5, self.deadline - time.monotonic())))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its children, too
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process inside of a hung driver call does not die
            self.code = self._process.wait(timeout=5)
        groups.discard(self._process.pid)
        self._process.stdout.close()

    def how_it_ended(self):
        """Returns "" for exit code 0, else what happened."""
        if self.is_out_of_time:
            return "its time was up"
        if self.code is None:
            return "it closed its output and did not end"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        return f"ended with {self.code}" if self.code else ""


def output_of(command, limit_s, env=None):
    """Returns (lines, how it ended) of a program; how it ended is "" where all is well."""
    try:
        program = Program(command, time.monotonic() + limit_s, env)
    except OSError as error:
        return [], str(error)
    lines = list(program.lines())
    return lines, program.how_it_ended()


@dataclasses.dataclass
class Outcome:
    """What became of one test: "same", "DIFFERS", "CRASHED", "HUNG" or "not run"."""
    name: str
    verdict: str
    ms: float | None = None
    note: str = ""


START = re.compile(r"^\[ RUN {6}\] (\S+)")
END = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?)(?:, where .*)? \((\d+) ms\)$")
VERDICT = {"OK": "same", "FAILED": "DIFFERS", "SKIPPED": "not run"}
# After these every later call on the GPU fails in the same process, whatever it does.
STICKY = re.compile(r"cudaError(?!MemoryAllocation)|illegal memory access|unspecified launch failure")


def list_tests(program):
    """Returns (names in the program's order, why there are none)."""
    lines, ended = output_of([program, "--gtest_list_tests"], 60)
    names, suite = [], ""
    for line in lines:
        text = line.split("#")[0].rstrip()
        if text.startswith("  "):
            names.append(suite + text.strip())
        elif text.endswith("."):
            suite = text.strip()
    return names, ended or ("" if names else "it lists no test")


def first_failure(lines):
    """Returns the first lines of a failed test that say what differs."""
    told = [line.strip() for line in lines if line.strip() and not line.startswith("[")]
    return " | ".join(told[:6])[:600]


def run_tests(program, names, deadline, test_s, env=None):
    """Yields an Outcome for every name. A test that crashes, hangs for more than test_s seconds or leaves the GPU in an error that stays ends its
    process; the names behind it go to a new one."""
    left = list(names)
    while left and time.monotonic() < deadline:
        count = len(left)
        process = Program([program, "--gtest_color=no", "--gtest_filter=" + ":".join(left)], min(deadline, time.monotonic() + test_s), env)
        running, text, is_sticky = "", [], False
        for line in process.lines():
            start, end = START.match(line), END.match(line)
            if start:
                running, text = start.group(1), []
            elif end and end.group(2) == running:
                verdict = VERDICT[end.group(1)]
                yield Outcome(running, verdict, float(end.group(3)), "" if verdict == "same" else first_failure(text))
                left.remove(running)
                is_sticky = verdict == "DIFFERS" and any(STICKY.search(told) for told in text)
                running = ""
                if is_sticky:
                    process.stop()
                    break
            else:
                text.append(line)
                continue
            process.deadline = min(deadline, time.monotonic() + test_s)
        if is_sticky:
            continue
        ended = process.how_it_ended() if process.code != 1 else ""  # 1: a test has failed, which was said
        if process.is_out_of_time and time.monotonic() >= deadline:
            break
        if running:
            said = first_failure(text[-6:])
            note = ended or "the program ended in the middle of the test"
            yield Outcome(running, "HUNG" if process.is_out_of_time else "CRASHED", None, f"{note}: {said}" if said else note)
            left.remove(running)
        elif ended or left:
            said = first_failure(process.tail[-3:])
            yield Outcome("between tests" if len(left) < count else "the start of the tests", "HUNG" if process.is_out_of_time else "CRASHED", None,
                          ": ".join(filter(None, (ended or "some of the tests were not run", said))))
        if len(left) == count:
            break  # it does not get anywhere
    over = time.monotonic() >= deadline
    for name in left:
        yield Outcome(name, "not run", None, "the time of the stage was up" if over else "the program ended before it")
