"""while, conditional_block and their gradients: a block that runs while, or if, a condition holds."""

from collections.abc import Collection

from fluidnb.op import GRAD, Attr, Binder, Context, OpDef, OpDesc, grad_desc, grad_names, grad_op, op
from fluidnb.op.control import Backward, Branch, Control, Loop, sums_of
from fluidnb.op.grad import GradMaker
from fluidnb.values.copies import on_host


def require_bool(c: Context, slot: str, hint: str) -> None:
    """Require that a condition is a bool of one element, as far as it is known."""
    x = c[slot]
    if x.dtype != bool or x.size not in (1, -1):
        c.fail(
            f"The condition of {c.definition.type} must be a bool of one element.",
            expected="bool[1]", received=f"{x.dtype}{list(x.shape)}", hint=hint,
        )  # fmt: skip


def block_grad(*reads: str) -> GradMaker:
    """Maker of the gradient operator of an operator that runs a block; backward gives it the gradient block."""

    def maker(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
        ins = {slot: list(names) for slot, names in (*desc.ins.items(), *desc.outs.items()) if names}
        ins.pop("Condition", None)
        ins["Out" + GRAD] = [n + GRAD for n in desc.outs.get("Out", [])]
        outs = {slot + GRAD: grad_names(desc, slot, no_grad) for slot in reads if desc.ins.get(slot)}
        return [grad_desc(definition.type + "_grad", desc, ins, outs)]

    return maker


@grad_op(
    "while_grad", infer=None, unset=("X", "Out", "Out@GRAD", "StepScopes"), inplace=True, control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)  # fmt: skip
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
    host_only="runs blocks, whose operators choose their own kernels",
)  # fmt: skip
def conditional_block_grad(b: Binder) -> Control:
    """Run the gradient block if the block has run; else the gradients of what it reads are zero.

    Source: Fluid's conditional_block_grad.
    """
    return Backward(b, b["Scope"], sums_of(b, ["Input", "Cond"]))


def _while_loop_infer(c: Context) -> None:
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
    infer=_while_loop_infer,
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


def _conditional_block_infer(c: Context) -> None:
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
    infer=_conditional_block_infer,
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
