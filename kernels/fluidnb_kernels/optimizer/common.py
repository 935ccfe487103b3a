"""What the rules of all optimizers share."""

from __future__ import annotations

from typing import Any

from fluidnb.op import Binder, Context
from fluidnb.op.rules import Rule
from fluidnb_kernels.rows.values import densify, shape_of
from fluidnb_kernels.rules import agree


def updates(pairs: dict[str, str]) -> Rule:
    """Rule: each output updates the input of its name; gradient and state have the parameter's shape.

    Args:
        pairs: output slot -> input slot, for example ``{"ParamOut": "Param"}``.

    Returns:
        The rule.
    """

    def infer(c: Context) -> None:
        param, grad, rate = c["Param"], shape_of(c["Grad"]), c["LearningRate"]
        c.require(
            agree(param.shape, grad),
            "Param and Grad must have the same shape.",
            expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {grad}",
        )  # fmt: skip
        if rate is not None:
            c.require(
                rate.size in (1, -1), "LearningRate must have one element.",
                expected="shape [1]", received=f"shape {list(rate.shape)}",
            )  # fmt: skip
        for out, source in pairs.items():
            state = c[source]
            if state is not None and "Pow" not in source:  # kernels of a device go through all of them by one number
                c.require(
                    agree(state.shape, param.shape), f"Param and {source} must have the same shape.",
                    expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {tuple(state.shape)}",
                )  # fmt: skip
            if c.wants(out):
                c.set(out, c[source].shape, c[source].dtype, c.lod(source))

    return infer


def scalar(b: Binder, slot: str) -> Any:
    """An input of one element as a 0-d view.

    Returns:
        The view; numpy is three times as fast with it as with shape [1].
    """
    return b[slot].reshape(())


def gradient(b: Binder) -> Any:
    """The gradient as a tensor of the parameter's shape; rows that SelectedRows does not hold are zero.

    Returns:
        Grad, or a workspace.
    """
    if not b.is_rows("Grad"):
        return b["Grad"]
    whole = b.like(b["Param"])
    b(densify, b["Grad"], whole)
    return whole
