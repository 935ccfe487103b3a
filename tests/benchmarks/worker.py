"""The measured side, in each peer's own interpreter, with nothing but the standard library and the peer itself.

``python worker.py loop PEER WORK`` prepares the work, then reads step counts from stdin and answers each with [wall,
CPU] seconds for that many steps; 0 ends it, with the peak memory in MB as the answer. ``python worker.py fresh PEER
WORK`` does the work once and answers with what its function returned. All answers are lines of JSON.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO


def load(peer: str, work: str) -> Callable[..., Any]:
    """The function of a peer for a work, from peers/<peer>_peer.py, without touching the module search path.

    ``WORK=SIZE`` is the work at a size.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", f"{peer}_peer.py")
    spec = importlib.util.spec_from_file_location(f"{peer}_peer", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    name, _, size = work.partition("=")
    function: Callable[..., Any] = getattr(module, name)
    return functools.partial(function, int(size)) if size else function


def loop(function: Callable[..., Any], out: TextIO) -> None:
    """Prepare once, then measure as often as asked."""
    step = function()
    step(3)
    say(out, "ready")
    for line in sys.stdin:
        n = int(line)
        if n == 0:
            break
        cpu, wall = time.process_time(), time.perf_counter()
        step(n)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        say(out, [wall, cpu])
    say(out, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def say(out: TextIO, what: object) -> None:
    """One line of JSON to whoever measures."""
    print(json.dumps(what), file=out, flush=True)


def main(mode: str, peer: str, work: str) -> None:
    """Do what the command line says."""
    sys.path.pop(0)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a framework prints must not get between the answers
    function = load(peer, work)
    if mode == "loop":
        loop(function, out)
    else:
        say(out, function())


if __name__ == "__main__":
    main(*sys.argv[1:])
