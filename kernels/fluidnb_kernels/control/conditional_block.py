"""conditional_block: runs a block once, or not at all."""

from __future__ import annotations

from fluidnb.op import Attr, Binder, Branch, Context, Control, op
from fluidnb.values.copies import on_host
from fluidnb_kernels.control.while_loop import block_grad, require_bool


def _infer(c: Context) -> None:
    if not c.runtime and c.attr("is_scalar_condition"):
        require_bool(c, "Cond", "compare two variables of shape [1]; IfElse takes a bool for each row.")


class _Taken:
    """Whether the block is to be run, by what the variables hold when the operator begins."""

    def __init__(self, b: Binder) -> None:
        self._b = b
        self._scalar = bool(b.attr("is_scalar_condition"))
        self._cells = [b.scope.cell(n)[0] for n in b.inputs["Cond"]]

    def __call__(self) -> bool:
        arrays = [getattr(c.value, "array", None) for c in self._cells]
        self._b.require(
            any(a is not None for a in arrays),
            "conditional_block should have one initialized input as condition.",
        )
        if self._scalar:
            self._b.require(
                arrays[0] is not None and arrays[0].size == 1,
                "The condition of conditional_block must have one element.",
                expected="shape [1]",
            )
            return bool(on_host(arrays[0]).item())
        return all(a is not None and a.size > 0 for a in arrays)


@op(
    "conditional_block",
    inputs={
        "Cond*: bool[1] | any": "one element, or variables that must have data",
        "Input*?": "outer variables that the block reads",
    },
    outputs={"Out*?": "outer variables that the block writes", "Scope": "the scope of the run, if there was one"},
    attrs={
        "sub_block": Attr("block", doc="the block to run"),
        "is_scalar_condition": Attr("bool", False, "whether Cond is a bool; else the block runs if Cond has data"),
    },
    infer=_infer,
    grad=block_grad("Input", "Cond"),
    unset=("Cond", "Input"),
    side_effect=True,
    control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)
def conditional_block(b: Binder) -> Control:
    """Run the block if Cond holds (is_scalar_condition), or if every variable in Cond has data.

    Source: Fluid's conditional_block_op; design document on IfElse.
    """
    return Branch(b, b.put("Scope", []), _Taken(b))
