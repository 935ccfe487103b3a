"""The gradients of while and conditional_block: the gradient block over what the forward block left."""

from __future__ import annotations

from fluidnb.op import Backward, Binder, Control, grad_op, sums_of


@grad_op("while_grad", infer=None, unset=("X", "Out", "Out@GRAD", "StepScopes"), inplace=True, control=True)
def while_grad(b: Binder) -> Control:
    """Over the iterations in reverse, run the gradient block; sum the gradients of what every iteration reads.

    Source: developer guide, section on backward; Fluid's while_grad.
    """
    b.require(
        not b.attr("is_test", False),
        "GradOp is only callable when is_test is false",
        hint="build the loop with While(cond) when it is to be differentiated.",
    )
    return Backward(b, b["StepScopes"], sums_of(b, ["X"]))


@grad_op(
    "conditional_block_grad",
    infer=None, unset=("Cond", "Input", "Out", "Out@GRAD", "Scope"), inplace=True, control=True,
)  # fmt: skip
def conditional_block_grad(b: Binder) -> Control:
    """Run the gradient block if the block has run; else the gradients of what it reads are zero.

    Source: Fluid's conditional_block_grad.
    """
    return Backward(b, b["Scope"], sums_of(b, ["Input", "Cond"]))
