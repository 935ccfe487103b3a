"""Trial launches in a separate process, where a wrong index ends that process and not the notebook."""

import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.errors import NotFound
from fluidnb_kernels.cuda import Function
from fluidnb_kernels.emulator.compiler import sanitized
from fluidnb_kernels.lab.compile import KernelRefused

#: Seconds after which a process is ended whose kernels do not end.
PATIENCE = 120.0
#: (the file's text, its name, kernel, grid, block, shared bytes, arguments)
Launch = tuple[str, str, str, tuple[int, ...], tuple[int, ...], int, tuple[Any, ...]]

_MAIN = "import sys; from fluidnb_kernels.lab.watched import main; main(sys.argv[1])"
_ACCESS = re.compile(r"(READ|WRITE) of size (\d+)")
_PLACE = re.compile(r"is located (\d+) bytes (to the right of|to the left of|after|before|inside of) (\d+)-byte region")


def launches_in(calls: Sequence[Any]) -> list[Launch]:
    """The launches among what a kernel emitted."""
    return [
        (f.source.text, f.source.path.name, f.name, args[0], args[1], args[2], tuple(args[3:]))
        for f, args, _ in calls
        if isinstance(f, Function)
    ]


def watch(op: str, launches: Sequence[Launch]) -> str:
    """Make launches in another process, with the address sanitizer where g++ has it; gives what watched."""
    try:
        env, by = sanitized(), "the address sanitizer"
    except NotFound:
        env, by = None, "a separate process"
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job"
        job.write_bytes(pickle.dumps((list(launches), env is not None, list(sys.path))))
        command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_MAIN}", str(job)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise KernelRefused(
                f"The kernel of {op} has not ended after {PATIENCE:.0f} seconds.", expected="loops that end",
                hint="the kernels of this session stay as they were.",
            ) from None  # fmt: skip
        at = (Path(folder) / "job.at").read_text("utf-8") if (Path(folder) / "job.at").exists() else ""
    if done.returncode:
        raise _astray(op, done.stderr, at, launches)
    return by


def main(path: str) -> None:
    """Runs in the other process: makes the launches."""
    from fluidnb_kernels import emulator

    job = Path(path)
    launches, sanitize, sys.path[:] = pickle.loads(job.read_bytes())
    modules: dict[tuple[str, str], Any] = {}
    copies: dict[int, Any] = {}
    with emulator.running(sanitize=sanitize):
        for number, (text, file, name, grid, block, shared, args) in enumerate(launches):
            if (text, name) not in modules:
                from fluidnb_kernels.emulator.translate import kernels_in

                names = () if name in kernels_in(text) else (name,)
                modules[text, name] = emulator.RawModule(text, name_expressions=names, name=file).get_function(name)
            job.with_name("job.at").write_text(str(number), "utf-8")
            own = [copies.setdefault(id(a), np.array(a, order="C")) if isinstance(a, np.ndarray) else a for a in args]
            try:
                modules[text, name](grid, block, own, shared_mem=shared)
            except emulator.EmulatorError as error:
                print(f"EMULATOR {error.summary}", file=sys.stderr)
                sys.exit(3)


def _astray(op: str, said: str, at: str, launches: Sequence[Launch]) -> KernelRefused:
    """The error about a process that ended early."""
    launch = launches[int(at)] if at else launches[0]
    file, kernel = launch[1], launch[2]
    shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in launch[6] if isinstance(a, np.ndarray))
    slots = f"{kernel}, grid {launch[3]}, block {launch[4]}, arrays {shapes}"
    kept = "the kernels of this session stay as they were."
    mistake = re.search(r"EMULATOR (.*)", said)
    if mistake:
        return KernelRefused(mistake[1], received=slots, hint=kept)
    line = re.search(rf"{re.escape(file)}:(\d+)", said)
    where = f"line {line[1]} of the cell" if line else "it"
    access, place = _ACCESS.search(said), _PLACE.search(said)
    if access is None:
        last = next((text for text in reversed(said.splitlines()) if text.strip()), "it said nothing")
        return KernelRefused(f"The kernel of {op} ended its process.", received=f"{slots}; {last[:200]}", hint=kept)
    verb = "reads" if access[1] == "READ" else "writes"
    what = f"{where} {verb} {access[2]} bytes"
    if place is not None:
        side = "behind" if place[2] in ("to the right of", "after") else "before"
        what += f" that begin {place[1]} bytes {side} an array of {place[3]} bytes"
    else:
        what += " that belong to no array"
    return KernelRefused(
        f"The kernel of {op} goes astray: {what}.", expected="indices inside the arrays", received=slots,
        hint=f"compare the index with the size before it is used; {kept}",
    )  # fmt: skip
