"""Judges how a call ended: a result, a refusal with a sentence, or an exception of inner code that escaped."""

from __future__ import annotations

import dis
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from fluidnb.errors import FluidError
from fluidnb.utils.source_location import cell_names

ROOT = str(Path(__file__).parents[2])
OURS = tuple(f"{ROOT}/{part}/" for part in ("fluidnb", "kernels", "magics"))

#: Exceptions of the system that say themselves what is wrong, also when an operator raised them.
SYSTEM = (
    "MemoryError", "_ArrayMemoryError", "LinAlgError", "OSError", "FileNotFoundError", "FileExistsError",
    "IsADirectoryError", "NotADirectoryError", "PermissionError",
)  # fmt: skip

RESULT, REFUSED, PYTHON, BARE, SILENT = "result", "refused", "python", "bare", "silent"


class Hang(BaseException):
    """A case took longer than its limit."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Args:
        kind: ``result``, ``refused``, ``python`` (the call does not fit the signature, or code of the case itself
            raised), ``bare``, ``silent`` (an error without a sentence), ``hang``, ``crash``, ``memory``, ``left``
            (a refused call left something in the program).
        signature: what groups findings of one cause.
        text: the message, or the end of the traceback.
    """

    kind: str
    signature: str = ""
    text: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether it is a defect."""
        return self.kind not in (RESULT, REFUSED, PYTHON)


def judge(error: BaseException, own: tuple[str, ...] = ("<case>",)) -> Outcome:
    """The outcome that an exception stands for.

    Args:
        error: what was raised.
        own: file names of the case's own code.
    """
    text = f"{type(error).__name__}: {_text(error)}"
    frames = list(_frames(error.__traceback__))
    last = frames[-1] if frames else None
    ours = [f for f in frames if f.tb_frame.f_code.co_filename.startswith(OURS)]
    inner = ours[-1] if ours else last
    where = "" if inner is None else f"{_short(inner.tb_frame.f_code.co_filename)}:{inner.tb_frame.f_code.co_name}"
    signature = f"{type(error).__name__} {where}"
    if isinstance(error, Hang):
        return Outcome("hang", f"hang {where}", "".join(traceback.format_tb(error.__traceback__)[-6:]))
    if isinstance(error, FluidError):
        if is_clear(error):
            return Outcome(REFUSED, signature, text)
        return Outcome(SILENT, f"{signature} {error.summary.partition(' failed: ')[2].partition(':')[0]}", text)
    if last is None or last.tb_frame.f_code.co_filename in own or last.tb_frame.f_code.co_filename in cell_names:
        return Outcome(PYTHON, signature, text)
    if type(error).__name__ == "UsageError":  # IPython's own, for the words of a command
        return Outcome(REFUSED, signature, text)
    if not ours:  # the code of the case called Python's own, for example an iterator that it made
        return Outcome(PYTHON, signature, text)
    if _raises(last) and last is ours[-1] and " " in _text(error).strip():
        return Outcome(REFUSED, signature, text)
    tail = "".join(traceback.format_tb(error.__traceback__)[-4:])
    return Outcome(BARE, signature, f"{text}\n{tail}")


def is_clear(error: FluidError) -> bool:
    """Whether an error speaks of the user's program, not of what happened in a kernel."""
    _, failed, what = error.summary.partition(" failed: ")
    if not failed:
        return bool(error.summary.strip())
    return what.split(":")[0] in SYSTEM


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as e:  # an error whose text cannot be made is no sentence
        return f"<{type(e).__name__}>"


def _short(file: str) -> str:
    return file.removeprefix(ROOT + "/").rpartition("site-packages/")[2]


def _frames(tb: TracebackType | None):  # type: ignore[no-untyped-def]
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _raises(tb: TracebackType) -> bool:
    """Whether a frame is at a ``raise``."""
    code = tb.tb_frame.f_code.co_code
    return dis.opname[code[tb.tb_lasti]] == "RAISE_VARARGS"
