"""Python wrappers of a program's messages: program, blocks, operations and variables.

The messages are the leaves: one per operation, one per variable. What contains them is Python's own lists and dicts, so
an operation keeps its identity while it is moved, removed and restored; bytes are serialized on demand.

Example:
    >>> program = ProgramDesc()
    >>> block = program.block(0)
    >>> x = block.var("x"); x.set_dtype(5); x.set_shape([-1, 13])
    >>> op = block.append_op(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}))
    >>> ProgramDesc.parse_from_string(program.serialize_to_string()).block(0).op(0)
    OpDesc(relu: X=[x] -> Out=[y])
"""

from fluidnb.proto.attr_values import AttrValue, guess_type
from fluidnb.proto.block_desc import BlockDesc
from fluidnb.proto.op_desc import OpDesc
from fluidnb.proto.program_desc import ProgramDesc
from fluidnb.proto.var_desc import VarDesc

__all__ = ["AttrValue", "BlockDesc", "OpDesc", "ProgramDesc", "VarDesc", "guess_type"]
