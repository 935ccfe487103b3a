"""The forward operator of a gradient operator: its line is the user's own."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.op import GRAD
from fluidnb.program.op_roles import role_of
from fluidnb.proto.desc import OpDesc


def forward_of(op: OpDesc, ops: Iterable[OpDesc]) -> OpDesc | None:
    """The forward operator of a gradient operator.

    Args:
        op: an operator.
        ops: the operators of its program.

    Returns:
        The operator of the type without ``_grad`` that wrote what this one reads, or reads the gradient of; None if
        there is none, as for a forward operator.

    Example:
        >>> x = fluid.layers.data("x", shape=[2], stop_gradient=False)
        >>> pairs = fluid.append_backward(fluid.layers.mean(fluid.layers.relu(x)))
        >>> ops = fluid.default_main_program().desc.blocks[0].ops
        >>> [(op.optype, None if (f := forward_of(op, ops)) is None else f.optype) for op in ops]
        [('relu', None), ('mean', None), ('fill_constant', None), ('mean_grad', 'mean'), ('relu_grad', 'relu')]
    """
    if not op.optype.endswith("_grad"):
        return None
    about = {name.partition(GRAD)[0] for name in op.input_arg_names()}
    kind = op.optype.removesuffix("_grad")
    found = (o for o in ops if o.optype == kind and role_of(o) == "forward")
    return next((o for o in found if not about.isdisjoint(o.output_arg_names())), None)
