"""reverse and flip: dimensions the other way round."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from fluidnb.op import GRAD, Attr, Binder, Context, OpDef, OpDesc, grad_desc, grad_names, op, same
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import one_axis


def _infer(c: Context) -> None:
    for a in c.attr("axis"):
        one_axis(c, a, c["X"].ndim)
    same()(c)


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    g = [desc.outs["Out"][0] + GRAD]
    return [grad_desc(desc.optype, desc, {"X": g}, {"Out": grad_names(desc, "X", no_grad)})]


def _reversed(b: Binder, x: np.ndarray) -> np.ndarray:
    """A tensor with dimensions the other way round, a view."""
    axes = {a % x.ndim for a in b.attr("axis")}
    return x[tuple(slice(None, None, -1 if i in axes else 1) for i in range(x.ndim))]


def _define(type: str, source: str) -> None:
    @op(
        type,
        inputs={"X": "at least one dimension"},
        outputs={"Out": "of its shape"},
        attrs={"axis": Attr("ints", doc="the dimensions that are turned round; from the end when negative")},
        infer=_infer,
        grad=_grad,
        cuda=True,
        doc=f"""Out = X with the elements along each of ``axis`` in reverse order. The gradient turns them back.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": [1.0, 2.0, 3.0]}}, {{"axis": [0]}})["Out"]
        array([3., 2., 1.])

    Source: {source}'s {type}_op.
    """,
    )
    def turn(b: Binder) -> None:
        verbs.copy(b, b["Out"], b["X"], of=partial(_reversed, b))


_define("reverse", "Fluid")
_define("flip", "Paddle")
