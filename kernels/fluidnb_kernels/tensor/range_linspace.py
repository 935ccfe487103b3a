"""range and linspace: evenly spaced numbers. How many there are depends on values."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values import dtypes
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import Source, ctype, each, typed, written_as
from fluidnb_kernels.emit import FLOATS

#: The dtypes of the CUDA kernels.
_WHOLE = ("int32", "int64")
NUMBERS = (*FLOATS, *_WHOLE)


def _range_numbers(c: Context) -> tuple[Any, ...]:
    """Start, end and step: what the binding depends on."""
    return tuple(on_host(c[slot]).item() for slot in ("Start", "End", "Step"))


def _range_infer(c: Context) -> None:
    c.check_inputs()
    n = -1
    if c.runtime:
        start, end, step = _range_numbers(c)
        c.require(step != 0, "The step of range must not be 0.", expected="a number other than 0", received=step)
        c.require(
            start == end or (start < end) == (step > 0), "The step of range leads away from its end.",
            expected=f"a {'positive' if start < end else 'negative'} step from {start} to {end}", received=step,
        )  # fmt: skip
        n = max(0, int(np.ceil((end - start) / step)))
    c.set("Out", (n,), c["Start"].dtype)


@op(
    "range",
    inputs={"Start: any[1]": "the first number", "End: any[1]": "bound, not reached", "Step: any[1]": "distance"},
    outputs={"Out": "[n]: the numbers"},
    infer=_range_infer,
    guard=_range_numbers,
    data_shape=True,
    dtype_slot="Start",
    cuda=NUMBERS,
)
def range(b: Binder) -> None:
    """Out = Start, Start + Step, … before End.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("range", {"Start": [1.0], "End": [2.0], "Step": [0.5]})["Out"]
        array([1. , 1.5])

    Source: Fluid's range_op.
    """
    start, _, step = _range_numbers(b)
    out = b["Out"]
    if b.on_cuda:
        return _spaced(b, out, start, step)
    return b(np.copyto, out, (start + np.arange(out.size) * step).astype(out.dtype))


def _count(c: Context) -> tuple[Any, ...]:
    """Start, stop and how many."""
    return tuple(on_host(c[slot]).item() for slot in ("Start", "Stop", "Num"))


def _linspace_infer(c: Context) -> None:
    c.check_inputs()
    n = -1
    if c.runtime:
        n = int(on_host(c["Num"]).item())
        c.require(n > 0, "The num of linspace should be larger than 0.", expected="> 0", received=n)
    number = c.attr("dtype", -1)
    c.set("Out", (n,), c["Start"].dtype if number < 0 else dtypes.np_dtype(number))


@op(
    "linspace",
    inputs={"Start: any[1]": "the first number", "Stop: any[1]": "the last number", "Num: any[1]": "how many"},
    outputs={"Out": "[Num]: the numbers"},
    attrs={"dtype": Attr("int", -1, "the VarType of Out; -1 for that of Start")},
    infer=_linspace_infer,
    guard=_count,
    data_shape=True,
    dtype_slot="Start",
    cuda=True,
)
def linspace(b: Binder) -> None:
    """Out = Num numbers from Start to Stop, evenly spaced.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("linspace", {"Start": [0.0], "Stop": [1.0], "Num": np.array([3], "int32")})["Out"]
        array([0. , 0.5, 1. ])

    Source: Fluid's linspace_op.
    """
    start, stop, n = _count(b)
    out = b["Out"]
    if not b.on_cuda:
        return b(np.copyto, out, np.linspace(start, stop, int(n)).astype(out.dtype))
    start, stop, n = float(start), float(stop), float(n)
    numbers = out if out.dtype.name in NUMBERS else b.tmp(out.shape, np.float64)
    _spaced(b, numbers, start, (stop - start) / (n - 1) if n > 1 else 0.0, stop if n > 1 else None)
    return written_as(b, out, numbers)


CUDA = Source(
    __file__, "range_linspace.cu", typed(("spaced", NUMBERS, ("double",)), ("spaced", _WHOLE, ("long long",)))
)


def _spaced(b: Binder, out: Array, start: Any, step: Any, last: Any = None) -> None:
    """Emit ``out = start + i * step``, and ``last`` at the end where it is given."""
    whole = out.dtype.name in _WHOLE and isinstance(start, int) and isinstance(step, int)
    number, c = (np.int64, "long long") if whole else (np.float64, "double")
    ends = last is not None
    numbers = number(start), number(step), number(last if ends else 0), np.int32(ends)
    each(b, CUDA, f"spaced<{ctype(out.dtype)}, {c}>", out.size, out, *numbers)
