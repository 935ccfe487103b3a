"""expand: a tensor repeated along its dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.given import integers
from fluidnb_kernels.views import reading, writing, written

_VARIABLES = ("ExpandTimes", "expand_times_tensor")


def _times(c: Context) -> list[int]:
    times, x = integers(c, "expand_times", *_VARIABLES), c["X"]
    c.require(
        len(times) == x.ndim, "The number of elements of Attr(expand_times) of expand must be the rank of X.",
        expected=f"{x.ndim} numbers", received=times,
    )  # fmt: skip
    known = c.runtime or not any(map(c.has, _VARIABLES))
    c.require(
        not known or all(t > 0 for t in times), "Attr(expand_times) of expand must be positive.",
        expected="> 0", received=times,
    )  # fmt: skip
    return times


def _infer(c: Context) -> None:
    x = c["X"]
    times = _times(c)
    shape = [n * t if n >= 0 and t >= 0 else -1 for n, t in zip(x.shape, times, strict=True)]
    c.set("Out", shape, x.dtype, c.lod("X") if times and times[0] == 1 else ())


def _apart(b: Binder) -> tuple[list[int], list[int]]:
    """The shape of Out with each repetition as a dimension of its own, and that of X beside it."""
    x = b["X"].shape
    whole = [n for pair in zip(_times(b), x, strict=True) for n in pair]
    return whole, [n for size in x for n in (1, size)]


@op(
    "expand",
    inputs={
        "X": "any shape",
        "ExpandTimes?": "Paddle 2: the numbers as a variable",
        "expand_times_tensor*?": "the numbers as variables",
    },
    outputs={"Out": "X repeated"},
    attrs={"expand_times": Attr("ints", [], "how often it is repeated along each dimension")},
    infer=_infer,
    grad=default_grad("X", *_VARIABLES, "Out@GRAD", wrt=["X"]),
    guard=values_of(*_VARIABLES),
    dtype_slot="X",
)
def expand(b: Binder) -> None:
    """Out = X laid ``expand_times[d]`` times after one another along each dimension d.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("expand", {"X": [[1.0, 2.0]]}, {"expand_times": [2, 2]})["Out"]
        array([[1., 2., 1., 2.],
               [1., 2., 1., 2.]])

    Source: Fluid's expand_op.
    """
    whole, part = _apart(b)
    out: Any = writing(b, b["Out"], whole)
    b(np.copyto, out, reading(b, b["X"], part))
    written(b, b["Out"], out)


@grad_op("expand_grad", guard=values_of(*_VARIABLES), dtype_slot="X")
def expand_grad(b: Binder) -> None:
    """dX = the sum of dOut over all repetitions."""
    whole, part = _apart(b)
    dx = writing(b, b["X@GRAD"], part)
    b(np.add.reduce, reading(b, b["Out@GRAD"], whole), tuple(range(0, len(whole), 2)), None, dx, True)
    written(b, b["X@GRAD"], dx)
