"""Names of layers' results from the user's line: ``h = layers.fc(x, 10)`` names the variable ``h``.

The line is not read as text: the instruction after the frame's call stores the result. That is the same for cells,
functions, ``%time`` and several lines, and needs no source.
"""

import dis
from bisect import bisect_left, bisect_right
from functools import lru_cache
from types import CodeType, FrameType

from fluidnb.program.hooks import Hint

_STORES = {"STORE_NAME", "STORE_FAST", "STORE_GLOBAL", "STORE_DEREF"}
_LOADS = {"LOAD_NAME", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_GLOBAL", "LOAD_DEREF"}
#: Instructions that move nothing: between a call and the store of its result.
_NOTHING = {"EXTENDED_ARG", "NOP", "CACHE", "RESUME", "NOT_TAKEN", "PRECALL"}
_INTERNAL = ("fluidnb", "fluidnb_kernels", "fluidnb_magics", "IPython", "contextlib", "functools")


class NameHints:
    """The hook for the time while one cell runs.

    Example:
        >>> import sys
        >>> names = {"__name__": "user", "hints": NameHints("net"), "sys": sys}
        >>> exec("h = hints(sys._getframe()); g = [hints(sys._getframe())]", names)
        >>> names["h"], names["g"][0]
        (Hint(prefix='h', targets=('h',)), Hint(prefix='net', targets=()))
    """

    def __init__(self, cell: str) -> None:
        self.cell = cell  # the cell's name; layers whose result is not assigned are named after it

    def __call__(self, frame: FrameType) -> Hint:
        """The assigned names when the user's own line calls the layer, else the cell's name."""
        if not _is_internal(frame):
            names = targets(frame.f_code, frame.f_lasti)
            if names:
                return Hint(names[0], names)
        return Hint(self.cell)


def targets(code: CodeType, offset: int) -> tuple[str, ...]:
    """The plain names to which a call's result is assigned: one for ``h = f()``, two for ``a, b = f()``, or none."""
    order, offsets = _instructions(code)
    index = bisect_right(offsets, offset)  # the offset may be that of a cache entry behind the call
    for _ in range(16):  # a jump or a copy or two; never a loop
        if index >= len(order):
            return ()
        step = order[index]
        if step.opname in _NOTHING or (step.opname == "COPY" and step.arg == 1):  # COPY: a = b = f(), (h := f())
            index += 1
        elif step.opname.startswith("JUMP_FORWARD"):
            index = bisect_left(offsets, step.argval)
        elif step.opname in _STORES:
            return (step.argval,)
        elif step.opname.startswith("STORE_FAST_"):  # two instructions in one, the first of them the store
            return (step.argval[0],)
        elif step.opname == "UNPACK_SEQUENCE":
            return _unpacked(order, index + 1, step.arg or 0)
        elif step.opname in _LOADS and order[index + 1].opname == "STORE_ATTR":  # self.h = f()
            return (order[index + 1].argval,)
        else:
            return ()
    return ()


def _unpacked(order: tuple[dis.Instruction, ...], index: int, count: int) -> tuple[str, ...]:
    names: list[str] = []
    while len(names) < count and index < len(order):
        step = order[index]
        if step.opname in _STORES:
            names.append(step.argval)
        elif step.opname.startswith("STORE_FAST_"):
            names += step.argval if step.opname == "STORE_FAST_STORE_FAST" else step.argval[:1]
        elif step.opname not in _NOTHING:
            return ()
        index += 1
    return tuple(names)


@lru_cache(maxsize=256)
def _instructions(code: CodeType) -> tuple[tuple[dis.Instruction, ...], list[int]]:
    order = tuple(dis.get_instructions(code))
    return order, [step.offset for step in order]


def _is_internal(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INTERNAL
