"""lod_reset: the same rows, cut into other sequences."""

from typing import Any

from fluidnb.op import Attr, Binder, Context, ValuesOf, default_grad, grad_op, op
from fluidnb.values import lod as lods
from fluidnb.values.copies import on_host


class _Offsets(ValuesOf):
    """The guard: the values of a Y that has no LoD are the offsets."""

    def __call__(self, b: Any) -> tuple[Any, ...]:
        return () if b.lod("Y") else super().__call__(b)


def _infer(c: Context) -> None:
    x, y, target = c["X"], c.lod("Y"), c.attr("target_lod")
    c.require(
        c.has("Y") or target, "If Input(Y) not provided, the target lod should be specified.",
        expected="Y or Attr(target_lod)", received="neither", hint="layers.lod_reset(x, target_lod=[0, 4, 6])",
    )  # fmt: skip
    if not c.runtime:
        levels = y if y else (*(c.lod("X") if c.attr("append") else ()), None)
        c.set("Out", x.shape, x.dtype, levels)


def _target(b: Binder) -> Any:
    """The new LoD."""
    if b.has("Y") and b.lod("Y"):
        return b.lod("Y")
    if b.has("Y"):
        y = b["Y"]
        b.require(
            y.dtype.kind == "i", "Input(Y) of lod_reset has neither LoD nor offsets.",
            expected="a tensor with LoD, or int32 offsets", received=f"{y.dtype} of shape {list(y.shape)}",
        )  # fmt: skip
        level = tuple(on_host(y).reshape(-1).tolist())
    else:
        level = tuple(b.attr("target_lod"))
    above = b.lod("X") if b.attr("append") else ()
    return (*above, level)


@op(
    "lod_reset",
    inputs={"X": "rows", "Y?": "a tensor whose LoD is taken; without LoD, its values are the offsets"},
    outputs={"Out": "the same rows with another LoD"},
    attrs={
        "target_lod": Attr("ints", [], "the offsets, where there is no Y"),
        "append": Attr("bool", False, "whether the offsets become one more level below those of X"),
    },
    infer=_infer,
    grad=default_grad("X", "Out@GRAD", wrt=["X"]),
    guard=_Offsets("Y"),
    dtype_slot="X",
    cuda=True,  # a view is one on any place
)
def lod_reset(b: Binder) -> None:
    """Out = X with the LoD of Y, or with one level of offsets.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("lod_reset", {"X": np.zeros((6, 1))}, {"target_lod": [0, 4, 6]})["Out"].lod()
        LoD([[0, 4, 6]])

    Source: Fluid's lod_reset_op.
    """
    x, target = b["X"], _target(b)
    wrong = lods.problem(target, len(x))
    b.require(
        wrong is None, f"The target LoD does not fit {b.name('X')}: {wrong}.",
        expected=f"ascending offsets from 0 to {len(x)}, the number of rows",
        received=str([list(level) for level in target])[:200],
        hint="target_lod takes offsets, not lengths: sequences of 4 and 2 rows are [0, 4, 6].",
    )  # fmt: skip
    b.alias("Out", x, target)


@grad_op("lod_reset_grad", infer=None, dtype_slot="X", cuda=True)
def lod_reset_grad(b: Binder) -> None:
    """dX = dOut with the LoD of X."""
    b.alias("X@GRAD", b["Out@GRAD"], b.lod("X"))
