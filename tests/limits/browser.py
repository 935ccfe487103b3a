"""The limits of Python in a browser (Pyodide), laid on this process: no threads, processes, sockets or signals.

`tests/limits/test_pyodide.py` compares them with the real Pyodide.
"""

from __future__ import annotations

import _signal
import _thread
import importlib
import os
import signal
import socket
import subprocess
import sys
from typing import Any, NoReturn

#: Modules that are not there.
MODULES = ("_multiprocessing", "_posixshmem", "curses", "grp", "pwd", "readline", "resource", "syslog")
#: Names that are not there, by module.
NAMES = {
    "os": (
        "copy_file_range", "forkpty", "getegid", "geteuid", "getgroups", "link", "memfd_create", "mkfifo", "nice",
        "openpty", "posix_spawn", "sched_getaffinity", "sched_setaffinity", "sendfile", "setpriority",
    ),
    "signal": ("alarm", "pthread_kill", "setitimer"),
    "threading": ("get_native_id",),
    "time": ("thread_time", "thread_time_ns"),
    "_thread": ("get_native_id",),
}  # fmt: skip
#: What ``threading.Thread(...).start()`` says.
NO_THREAD = "can't start new thread"


def apply() -> None:
    """Lay the limits on this process, once and for all."""
    sys.modules.update(dict.fromkeys(MODULES))  # None: importing it fails
    for module, names in NAMES.items():
        for name in names:
            delattr(importlib.import_module(module), name)
    import threading

    for owner, name in ((_thread, "start_new_thread"), (_thread, "start_joinable_thread"),
                        (threading, "_start_new_thread"), (threading, "_start_joinable_thread")):  # fmt: skip
        if hasattr(owner, name):  # which of them there are depends on the version of Python
            setattr(owner, name, _refuse_thread)
    for owner, name in ((subprocess.Popen, "__init__"), (os, "fork"), (os, "system"), (socket.socket, "__init__"),
                        (signal, "signal"), (_signal, "signal")):  # fmt: skip
        setattr(owner, name, _refuse)


def _refuse_thread(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(NO_THREAD)


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise OSError(138, "the limits of a browser")
