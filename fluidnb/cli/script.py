"""A user's script, run as Python runs it, with Paddle's names as ours; what it raises, without frames of ours."""

import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from fluidnb import compat
from fluidnb.errors import FluidError
from fluidnb.runtime.reproducibility import seed

#: Packages whose frames say nothing about a user's program.
_INTERNAL = ("fluidnb", "fluidnb_kernels", "fluidnb_magics", "importlib", "runpy")


def check(path: Path) -> None:
    """Refuse what is no script."""
    if not path.exists():
        others = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise FluidError(f"There is no {path}.", hint=f"scripts there: {', '.join(others[:6])}" if others else None)
    if path.is_dir():
        raise FluidError(f"{path} is a folder without a model.", expected="a Python script or a saved model")
    if path.suffix == ".ipynb":
        raise FluidError(f"{path} is a notebook.", expected="a Python script", hint=f"fluidnb lab {path}")


@contextmanager
def as_program(
    path: Path, arguments: Sequence[str] = (), force: bool = False, random_seed: int | None = None
) -> Iterator[None]:
    """Inside, the interpreter has the state of a new script, and ``import paddle`` is aliased to this package."""
    check(path)
    argv, places = sys.argv, list(sys.path)
    mine = not compat.is_installed()
    if mine:
        try:
            compat.install(force=force)
        except FluidError as error:
            error.hint = "with --force, fluidnb takes its place for this script."
            raise
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        if random_seed is not None:
            seed(random_seed)
        yield
    finally:
        sys.argv, sys.path[:] = argv, places
        if mine:
            compat.uninstall()


def run(path: Path, name: str = "__main__") -> dict[str, Any]:
    """Run a script, with its ``__name__``; its names afterwards."""
    return runpy.run_path(str(path), run_name=name)


def print_error(error: BaseException, path: Path) -> None:
    """Print what a script raised on stderr, as Python does, with the frames of the user's own alone."""
    chain: list[BaseException] = [error]
    for link in chain:  # which grows meanwhile
        link.__traceback__ = user_frames(link.__traceback__, str(path))
        before = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if before is not None and all(before is not known for known in chain):
            chain.append(before)
    if isinstance(error, FluidError) and error.__traceback__ is None:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return
    lines = traceback.TracebackException.from_exception(error).format()
    print("".join(lines).replace(f"{type(error).__module__}.{type(error).__qualname__}: ", f"{type(error).__name__}: "),
          end="", file=sys.stderr)  # fmt: skip


def user_frames(trace: TracebackType | None, script: str) -> TracebackType | None:
    """The user's part of a traceback, from the script on; None when no frame is the user's.

    What Python's own library runs for this project (``inspect``, ``re``) is no more the user's than the project itself.
    """
    entries: list[TracebackType] = []
    internal = True
    while trace is not None:
        of = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        begins = trace.tb_frame.f_code.co_filename == script
        internal = not begins and (of in _INTERNAL or (internal and of in sys.stdlib_module_names))
        if entries or begins:
            entries += [] if internal else [trace]
        trace = trace.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
