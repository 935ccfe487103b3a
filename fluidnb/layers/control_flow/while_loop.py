"""While: a block that runs again and again."""

from __future__ import annotations

from fluidnb.arguments import checked
from fluidnb.errors import OpTypeError, typed
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.control_flow.body import BodyGuard, Condition, operand, reads_and_writes, step_scopes
from fluidnb.program import Block
from fluidnb.utils.source_location import warn
from fluidnb.values.dtypes import dtype_name


@checked
class While:
    """A loop that runs a block as long as a condition holds.

    Args:
        cond: bool variable of shape [1], computed before the loop and again inside the block.
        is_test: whether the loop is never differentiated, so that it need not keep the values of its iterations.
        name: name of the layer.

    Example:
        >>> i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 10)
        >>> cond = fluid.layers.less_than(i, n)
        >>> with fluid.layers.While(cond).block():
        ...     i = fluid.layers.increment(i)
        ...     cond = fluid.layers.less_than(i, n, cond=cond)
        >>> op = fluid.default_main_program().global_block().ops[-1]
        >>> op.type, len(op.input("X")), len(op.output("Out"))
        ('while', 2, 2)

    Source: developer guide, section on control flow.
    """

    def __init__(self, cond: Condition, is_test: bool = False, name: str | None = None) -> None:
        if dtype_name(cond.dtype) != "bool":
            raise OpTypeError(
                "condition should be a bool variable", slots=[operand("cond", cond)], expected="bool[1]",
                received=dtype_name(cond.dtype), hint="layers.less_than() and its like make one.",
            )  # fmt: skip
        if any(size != 1 for size in cond.shape):
            raise OpTypeError("condition should be a bool scalar", slots=[operand("cond", cond)], expected="bool[1]",
                              received=f"shape {list(cond.shape)}",
                              hint="a loop has one condition; a choice for each row is made by IfElse.")  # fmt: skip
        self.helper = LayerHelper("while", name=name)
        self.cond_var = cond
        self.is_test = is_test

    def block(self) -> WhileGuard:
        """The block to fill: ``with loop.block(): …``; at its end the while operator is appended."""
        return WhileGuard(self)

    def complete(self, body: Block) -> None:
        """Append the while operator to the block around the filled block."""
        cond = self.cond_var.name
        reads, writes = reads_and_writes(body, [cond])
        if cond not in writes:
            warn(
                f"Nothing in the block of while writes its condition {cond}: once entered, the loop does not end. "
                "Write it at the end of the block, for example by less_than(i, n, cond=cond)."
            )
        outer = body.program.block(body.parent_idx)
        outer.append_op(
            type="while", inputs={"X": reads, "Condition": [self.cond_var]},
            outputs={"Out": writes, "StepScopes": [step_scopes(outer)]},
            attrs={"sub_block": body, "is_test": self.is_test},
        )  # fmt: skip


class WhileGuard(BodyGuard):
    """The context manager of ``loop.block()``, under Fluid's name."""

    def __init__(self, while_op: While) -> None:
        if not isinstance(while_op, While):
            raise OpTypeError(
                "WhileGuard takes a while op", expected="a While", hint="or write: with loop.block(): …",
                received=typed(while_op),
            )  # fmt: skip
        super().__init__(while_op.helper, while_op.complete)
