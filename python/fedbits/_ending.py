"""The end of the interpreter: calls of threads that Python does not wait for are ended before it.

Python waits for threads that are no daemons. A call of another thread would come back to an interpreter that is gone, and abort the process: so studies
are stopped, as by Ctrl-C, and every call is waited for. This module is imported for that alone.
"""
from __future__ import annotations

import atexit
import os
import signal

from fedbits import _core


@atexit.register
def _end_calls() -> None:
    try:
        _core.end_calls()
    except KeyboardInterrupt:  # the user does not want to wait
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
