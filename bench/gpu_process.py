"""Programs that may crash or hang, for gpu_check.py: each runs in a process group of its own until it ends or its time is up, and its lines are
seen as they come. A test program is started again behind a test that ended it, so that the following tests still run. Lists of tests can run side
by side (run_side_by_side)."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import queue
import re
import selectors
import shutil
import signal
import subprocess
import threading
import time

groups = set()  # of processes that run


def end_all():
    """Kills what still runs, with everything that it started."""
    for group in list(groups):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


class Program:
    """A program under way. `deadline` (time.monotonic()) may be moved while its lines are read. `log` (gpu_logs.Log) gets all that it prints."""

    def __init__(self, command, deadline, env=None, log=None):
        self.deadline = deadline
        self.is_out_of_time = False
        self.code = None  # exit code, -N after signal N; None where a killed process did not go away
        self.tail = []  # its last lines
        self._is_stopped = False
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                         env=env, start_new_session=True)
        groups.add(self._process.pid)
        self._log = log
        if log:
            log.write(f"\n$ {' '.join(map(str, command))[:2000]}\n".encode())

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
                    if self._log:
                        self._log.write(piece)
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
        if self._log and self.how_it_ended():
            self._log.write(f"[{self.how_it_ended()}]\n".encode())

    def how_it_ended(self):
        """Returns "" for exit code 0, else what happened."""
        if self.is_out_of_time:
            return "its time was up"
        if self.code is None:
            return "it closed its output and did not end"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        return f"ended with {self.code}" if self.code else ""


def found_program(name):
    """Returns the path of one of NVIDIA's programs, or None."""
    return shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")


def output_of(command, limit_s, env=None, log=None):
    """Returns (lines, how it ended) of a program; how it ended is "" where all is well."""
    try:
        program = Program(command, time.monotonic() + limit_s, env, log)
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
    has_ended_the_process: bool = False  # it crashed, hung or left the GPU in an error that stays


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


FIRST = "FIRST DIFFERENCE: "  # begins the line in which a failing comparison names its case, the place and both values
MOST_FIRST, MOST_OTHERS, OTHER_CHARACTERS = 4, 6, 600


class Said:
    """What a test has printed: the lines that name a difference, and the first and the last of the others."""

    def __init__(self, lines=()):
        self.first, self.num_first = [], 0
        self.others, self.last = [], collections.deque(maxlen=MOST_OTHERS)
        self.is_sticky = False
        for line in lines:
            self.add(line)

    def add(self, line):
        told = line.strip()
        if not told or told.startswith("["):
            return
        self.is_sticky = self.is_sticky or bool(STICKY.search(told))
        if FIRST in told:
            self.num_first += 1
            if len(self.first) < MOST_FIRST:
                self.first.append(told[told.index(FIRST):])
            return
        if len(self.others) < MOST_OTHERS:
            self.others.append(told)
        self.last.append(told)

    def note(self, has_last=False):
        """Returns a line: differences first, whole; then some of the rest, cut."""
        more = self.num_first - len(self.first)
        others = " | ".join(self.last if has_last else self.others)[:OTHER_CHARACTERS]
        return " | ".join(filter(None, [*self.first, f"{more} more differences" if more else "", others]))


def run_tests(program, names, deadline, test_s, env=None, log=None, stop=None):
    """Yields an Outcome for every name. A test that crashes, hangs for more than test_s seconds or leaves the GPU in an error that stays ends its
    process; the names behind it go to a new one. `stop` (threading.Event) ends it before the next process."""
    left = list(names)
    while left and time.monotonic() < deadline and not (stop and stop.is_set()):
        count = len(left)
        command = [program, "--gtest_color=no", "--gtest_filter=" + ":".join(left)]
        process = Program(command, min(deadline, time.monotonic() + test_s), env, log)
        running, said, is_sticky = "", Said(), False
        for line in process.lines():
            start, end = START.match(line), END.match(line)
            if start:
                running, said = start.group(1), Said()
            elif end and end.group(2) == running:
                verdict = VERDICT[end.group(1)]
                is_sticky = verdict == "DIFFERS" and said.is_sticky
                yield Outcome(running, verdict, float(end.group(3)), "" if verdict == "same" else said.note(), is_sticky)
                left = [name for name in left if name != running]
                running = ""
                if is_sticky:
                    process.stop()
                    break
            else:
                said.add(line)
                continue
            process.deadline = min(deadline, time.monotonic() + test_s)
        if is_sticky:
            continue
        ended = process.how_it_ended() if process.code != 1 else ""  # 1: a test has failed, which was said
        if process.is_out_of_time and time.monotonic() >= deadline:
            break
        if running:
            ended = ended or "the program ended in the middle of the test"
            note = " | ".join(filter(None, [*said.first, ended, Said(said.last).note()]))
            yield Outcome(running, "HUNG" if process.is_out_of_time else "CRASHED", None, note, True)
            left = [name for name in left if name != running]
        elif ended or left:
            note = ": ".join(filter(None, (ended or "some of the tests were not run", Said(process.tail[-3:]).note())))
            yield Outcome("between tests" if len(left) < count else "the start of the tests", "HUNG" if process.is_out_of_time else "CRASHED", None, note)
        if len(left) == count:
            break  # it does not get anywhere
    note = OUT_OF_TIME if time.monotonic() >= deadline else ENDED_BEFORE
    for name in left:
        yield Outcome(name, "not run", None, note)


OUT_OF_TIME, ENDED_BEFORE = "the time of the stage was up", "the program ended before it"


def run_side_by_side(works, most=0):
    """Yields what each of `works` yields, as it comes; each is called with an Event that asks it to end, in a thread of its own, at most `most` at
    a time (0: all). An exception in one is yielded. Processes of all of them have ended when this ends, also where its caller does not go on."""
    found, waiting, stop = queue.Queue(), collections.deque(works), threading.Event()

    def follow():
        try:
            while not stop.is_set():
                try:
                    work = waiting.popleft()
                except IndexError:
                    return
                try:
                    for one in work(stop):
                        found.put(one)
                except Exception as error:  # the others go on
                    found.put(error)
        finally:
            found.put(follow)

    threads = [threading.Thread(target=follow, daemon=True) for _ in range(min(most or len(waiting), len(waiting)))]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            one = found.get()
            if one is follow:
                running -= 1
            else:
                yield one
    finally:
        stop.set()
        while any(thread.is_alive() for thread in threads):
            end_all()
            for thread in threads:
                thread.join(0.05)


def dealt(names, num_shards, ms=None):
    """Returns the names in lists: one after the other to the next list or, if it is known how long each takes (ms by name), the longest first to the
    list with the least. Every list keeps the order of the names."""
    shards = [[] for _ in range(max(1, min(num_shards, len(names))))]
    known = sorted(ms[name] for name in names if name in (ms or {}))
    if not known:
        for i, name in enumerate(names):
            shards[i % len(shards)].append(name)
        return shards
    length = {name: ms.get(name, known[len(known) // 2]) for name in names}
    taken = [0.0] * len(shards)
    for name in sorted(names, key=length.get, reverse=True):
        least = taken.index(min(taken))
        shards[least].append(name)
        taken[least] += length[name]
    place = {name: i for i, name in enumerate(names)}
    return [sorted(shard, key=place.get) for shard in shards]
