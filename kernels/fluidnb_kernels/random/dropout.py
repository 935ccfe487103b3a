"""dropout: elements left out at random."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, unit

DOWNGRADE, UPSCALE = "downgrade_in_infer", "upscale_in_train"


def _infer(c: Context) -> None:
    x = c["X"]
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    c.set("Mask", x.shape, np.uint8, c.lod("X"))


def _check_implementation(value: str) -> str | None:
    if value not in (DOWNGRADE, UPSCALE):
        return f"dropout_implementation can only be {DOWNGRADE} or {UPSCALE}, but received {value}."
    return None


def _check_rate(value: float) -> str | None:
    return None if 0 <= value <= 1 else f"'dropout_prob' must be between 0.0 and 1.0, but received {value}."


@op(
    "dropout",
    inputs={"X": "any shape"},
    outputs={"Out": "X with elements left out", "Mask~": "uint8: 1 where an element stays"},
    attrs={
        "dropout_prob": Attr("float", 0.5, "how likely an element is left out", check=_check_rate),
        "is_test": Attr("bool", False, "leave nothing out"),
        "fix_seed": Attr("bool", False, "use the seed: the same elements in every run"),
        "seed": Attr("int", 0, "the seed"),
        "dropout_implementation": Attr(
            "string", DOWNGRADE, "whether the test scales down or training scales up", check=_check_implementation
        ),
    },
    infer=_infer,
    grad=default_grad("Mask", "Out@GRAD"),
    random=True,
    dtype_slot="X",
)
def dropout(b: Binder) -> None:
    """Out = X · Mask while training and X · (1 - p) in the test; or X · Mask / (1 - p) and X with upscale_in_train.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("dropout", {"X": [4.0]}, {"dropout_prob": 0.25, "is_test": True})["Out"]
        array([3.])

    Source: Fluid's dropout_op.
    """
    x, out, mask, rate = b["X"], b["Out"], b["Mask"], b.attr("dropout_prob")
    upscale = b.attr("dropout_implementation") == UPSCALE
    stays = b.const(1 - rate, x.dtype)
    if b.attr("is_test"):
        if mask is not None:
            b(np.copyto, mask, b.const(1, np.uint8))
        return b(np.copyto, out, x) if upscale else b(np.multiply, x, stays, out=out)
    if mask is None:
        mask = b.like(x, np.uint8)
    stream = b.rng
    if not b.attr("fix_seed"):
        stream.seed = 0
    chance = b.like(x, np.float64 if x.dtype == np.float64 else np.float32)
    b(unit, stream, chance)
    b(np.greater_equal, chance, b.const(rate, chance.dtype), out=mask.view(bool))
    b(np.multiply, x, mask.view(bool), out=out)
    if upscale and rate < 1:
        b(np.divide, out, stays, out=out)
    return None


@grad_op("dropout_grad", dtype_slot="Out@GRAD")
def dropout_grad(b: Binder) -> None:
    """dX = dOut times what the element of X was multiplied with."""
    g, dx, rate = b["Out@GRAD"], b["X@GRAD"], b.attr("dropout_prob", 0.5)
    upscale = b.attr("dropout_implementation", DOWNGRADE) == UPSCALE
    stays = b.const(1 - rate, g.dtype)
    if b.attr("is_test", False):
        return b(np.copyto, dx, g) if upscale else b(np.multiply, g, stays, out=dx)
    b(np.multiply, g, b["Mask"].view(bool), out=dx)
    if upscale and rate < 1:
        b(np.divide, dx, stays, out=dx)
    return None
