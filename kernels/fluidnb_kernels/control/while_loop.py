"""while: runs a block as long as a condition holds."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Context, Control, Loop, op
from fluidnb_kernels.control.while_grad import block_grad, require_bool


def _infer(c: Context) -> None:
    if not c.runtime:
        require_bool(c, "Condition", "compare two variables of shape [1], for example with less_than.")


@op(
    "while",
    inputs={
        "X*?": "outer variables that the block reads",
        "Condition: bool[1]": "the condition, which the block updates",
    },
    outputs={"Out*?": "outer variables that the block writes", "StepScopes": "the scope of each iteration"},
    attrs={
        "sub_block": Attr("block", doc="the block to run"),
        "is_test": Attr("bool", False, "whether no backward will follow, so that no step need be kept"),
    },
    infer=_infer,
    grad=block_grad("X"),
    unset=("X",),
    side_effect=True,
    control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)
def while_loop(b: Binder) -> Control:
    """Runs the block while Condition is true; each iteration has a new scope inside the operator's.

    Source: developer guide, section on while_op; Fluid's while_op.
    """
    condition = b["Condition"]
    b.require(
        condition.size == 1,
        "The condition of while must have one element.",
        expected="shape [1]", received=f"shape {list(condition.shape)}",
    )  # fmt: skip
    return Loop(b, b.put("StepScopes", []), b.scope.cell(b.inputs["Condition"][0])[0])
