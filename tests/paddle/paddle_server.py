"""Runs inside the environment of real PaddlePaddle 2.6.2: does jobs in children, so that Paddle is imported once.

Each line of stdin is a job, ["module beside this file", "folder", more arguments]: a child calls the module's `main` in
the folder; what it prints goes to the folder's said.txt and errors.txt. Answered is the child's exit status, a line.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
import zlib  # noqa: F401  (paddle breaks zlib when it is imported first)
from pathlib import Path
from typing import Any

import numpy.random  # noqa: F401  (for the same reason)
import paddle  # noqa: F401  (the children have it)

#: Seconds after which a job is killed.
LIMIT = 240


def child(module: str, folder: str, *rest: Any) -> int:
    """Do a job; what the process should exit with."""
    os.chdir(folder)
    for number, name in ((1, "said.txt"), (2, "errors.txt")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    try:
        importlib.import_module(module).main(Path(folder), *rest)
    except BaseException:  # noqa: BLE001  whatever it is, the test shows it
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Do jobs until there are no more."""
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
            status = child(*json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
