"""range and linspace: evenly spaced numbers. How many there are depends on values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, op
from fluidnb.values import dtypes

Array = Any


def _one_each(c: Context, *slots: str) -> None:
    for slot in slots:
        c.require(
            c[slot].size in (1, -1), f"Input({slot}) of {c.definition.type} must have one element.",
            expected="shape [1]", received=list(c[slot].shape),
        )  # fmt: skip


def _range_numbers(c: Context) -> tuple[Any, ...]:
    """Start, end and step: what the binding depends on."""
    return tuple(c[slot].item() for slot in ("Start", "End", "Step"))


def _range_infer(c: Context) -> None:
    _one_each(c, "Start", "End", "Step")
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
    inputs={"Start": "the first number", "End": "the bound, not reached", "Step": "the distance"},
    outputs={"Out": "[n]: the numbers"},
    infer=_range_infer,
    guard=_range_numbers,
    data_shape=True,
    dtype_slot="Start",
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
    b(np.copyto, out, (start + np.arange(out.size) * step).astype(out.dtype))


def _count(c: Context) -> tuple[Any, ...]:
    """Start, stop and how many."""
    return tuple(c[slot].item() for slot in ("Start", "Stop", "Num"))


def _linspace_infer(c: Context) -> None:
    _one_each(c, "Start", "Stop", "Num")
    n = -1
    if c.runtime:
        n = int(c["Num"].item())
        c.require(n > 0, "The num of linspace should be larger than 0.", expected="> 0", received=n)
    number = c.attr("dtype", -1)
    c.set("Out", (n,), c["Start"].dtype if number < 0 else dtypes.np_dtype(number))


@op(
    "linspace",
    inputs={"Start": "the first number", "Stop": "the last number", "Num": "int32: how many"},
    outputs={"Out": "[Num]: the numbers"},
    attrs={"dtype": Attr("int", -1, "the VarType of Out; -1 for that of Start")},
    infer=_linspace_infer,
    guard=_count,
    data_shape=True,
    dtype_slot="Start",
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
    b(np.copyto, b["Out"], np.linspace(start, stop, int(n)).astype(b["Out"].dtype))
