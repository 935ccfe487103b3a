"""ConditionalBlock: a block that runs once, or not at all."""

from collections.abc import Sequence

from fluidnb.arguments import checked
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.control_flow.body import BodyGuard, reads_and_writes, step_scopes
from fluidnb.program import Block, Operator, Variable


@checked
class ConditionalBlock:
    """A block that runs when a condition holds.

    Args:
        inputs: what decides: with ``is_scalar_condition`` one bool of shape [1]; else variables, none of them empty.
        is_scalar_condition: see above.
        name: name of the layer.

    Example:
        >>> out = fluid.layers.zeros([1], "float32")
        >>> yes = fluid.layers.less_than(out, fluid.layers.ones([1], "float32"))
        >>> with fluid.layers.ConditionalBlock([yes], is_scalar_condition=True).block():
        ...     o = fluid.layers.assign(fluid.layers.ones([1], "float32"), out)
        >>> op = fluid.default_main_program().global_block().ops[-1]
        >>> op.type, op.output("Out") == [out.name]
        ('conditional_block', True)
    """

    def __init__(self, inputs: Sequence[Variable], is_scalar_condition: bool = False, name: str | None = None) -> None:
        self.helper = LayerHelper("conditional_block", name=name)
        self.inputs = list(inputs)
        self.is_scalar_condition = is_scalar_condition

    def block(self) -> BodyGuard:
        """The block to fill: ``with branch.block(): …``; at its end the conditional_block operator is appended."""
        return BodyGuard(self.helper, self.complete)

    def complete(self, body: Block) -> None:
        """Append the conditional_block operator to the block around the filled block."""
        append_branch(body, self.inputs, self.is_scalar_condition)


def append_branch(body: Block, deciding: Sequence[Variable], scalar: bool) -> Operator:
    """Append the conditional_block operator that runs a filled block.

    A bool that decides is no input of the block's gradient; rows that decide are, where the block reads them.
    """
    reads, writes = reads_and_writes(body)
    names = [v.name for v in deciding]
    outer = body.program.block(body.parent_idx)
    return outer.append_op(
        type="conditional_block",
        inputs={"Cond": names, "Input": [n for n in reads if not scalar or n not in names]},
        outputs={"Out": writes, "Scope": [step_scopes(outer)]},
        attrs={"sub_block": body, "is_scalar_condition": scalar},
    )
