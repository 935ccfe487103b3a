"""Functions over descriptions: operator protos, gradients, pruning."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from fluidnb import op
from fluidnb.program import Program
from fluidnb.program.prune import prune as _prune
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc


def get_all_op_protos() -> list[bytes]:
    """The OpProto of every operator that has one, serialized; ``framework.get_all_op_protos`` gives the messages.

    Example:
        >>> from fluidnb.proto.framework_pb2 import OpProto
        >>> "mul" in [OpProto.FromString(data).type for data in get_all_op_protos()]
        True
    """
    return [proto.SerializeToString() for proto in op.get_all_op_protos()]


def get_grad_op_desc(
    op_desc: OpDesc, no_grad_set: Collection[str] = (), grad_sub_block_list: Sequence[BlockDesc] = ()
) -> tuple[list[OpDesc], dict[str, str]]:
    """The raw gradient operators of an operator, nothing renamed or summed yet.

    Args:
        op_desc: the forward operator.
        no_grad_set: names of variables or of gradients that are not needed.
        grad_sub_block_list: gradient blocks of an operator that runs a block; the first becomes its block.

    Returns:
        The gradient operators, and gradient name -> variable name.

    Raises:
        OpValueError: the operator has no gradient.

    Example:
        >>> ops, names = get_grad_op_desc(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}))
        >>> [o.type() for o in ops], names
        (['relu_grad'], {'x@GRAD': 'x'})
    """
    unwanted = {n.removesuffix(op.GRAD) for n in no_grad_set}
    grads = op.make_grad(op_desc, unwanted)
    if grad_sub_block_list:
        for grad in grads:
            if grad.has_attr("sub_block"):
                grad.set_block_attr("sub_block", grad_sub_block_list[0])
    written = [n for grad in grads for n in grad.output_arg_names() if n != op.EMPTY]
    return grads, {n: n.removesuffix(op.GRAD) for n in written if n.endswith(op.GRAD)}


def prune(program_desc: ProgramDesc, targets: Iterable[Any]) -> ProgramDesc:
    """The part of a program that some operators or variables need.

    Args:
        targets: names of variables, or (block, operator) indices as Fluid gives them; the block is 0.
    """
    program = program_desc.view if isinstance(program_desc.view, Program) else Program(program_desc)
    ops = program.global_block().ops
    return _prune(program, [t if isinstance(t, str) else ops[t[1]] for t in targets]).desc


def inference_optimize(program_desc: ProgramDesc) -> ProgramDesc:
    """A copy of a program in test mode."""
    program = program_desc.view if isinstance(program_desc.view, Program) else Program(program_desc)
    return program.inference_optimize().desc
