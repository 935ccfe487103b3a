"""Results without axes: from Paddle 2.5 on a program declares them, where Fluid has one element along one axis."""

from fluidnb.proto.desc import OpDesc
from fluidnb.values import VarType

#: The first version of Paddle with tensors without axes, as programs have it.
_FIRST = 2005000


def declared_scalar(desc: OpDesc, name: str) -> bool:
    """Whether an operator's program has tensors without axes, and declares this variable as one.

    Example:
        >>> from fluidnb.proto.desc import ProgramDesc
        >>> program = ProgramDesc(); op = program.blocks[0].append_op(OpDesc("mean", outs={"Out": ["y"]}))
        >>> program.blocks[0].var("y").set_shape([]); declared_scalar(op, "y")
        False
        >>> program.pb.version.version = 2006002; declared_scalar(op, "y")
        True
    """
    block = desc.block
    if block is None or block.program is None or block.program.pb.version.version < _FIRST:
        return False
    var = block.find_var_recursive(name)
    return var is not None and var.type() == VarType.LOD_TENSOR and not var.shape()
