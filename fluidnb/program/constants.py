"""Names and numbers that a program's description shares with Paddle: suffixes, roles, attribute names."""

from enum import IntEnum

from fluidnb.arguments import checked
from fluidnb.proto.desc import OpDesc

#: The argument name of a slot that wants no variable.
EMPTY_VAR_NAME = "@EMPTY@"
#: The name of a temporary in old programs.
TEMP_VAR_NAME = "@TEMP@"
#: What follows a variable's name in the name of its gradient.
GRAD_VAR_SUFFIX = "@GRAD"
#: What follows a variable's name in the name of a zero of its shape.
ZERO_VAR_SUFFIX = "@ZERO"
#: What follows a variable's name in the names of copies that backward makes of values that a block overwrites.
SAVED = "@SAVED"
#: What precedes the name of a variable that only orders operators.
CONTROL_DEP_VAR_PREFIX = "@DEPENDENCY"
#: Gradient operators that look only at the shapes of forward values.
SHAPES_ONLY = frozenset(
    {
        "concat_grad",
        "elementwise_add_grad",
        "elementwise_sub_grad",
        "mean_grad",
        "reduce_mean_grad",
        "reduce_sum_grad",
        "reshape_grad",
        "transpose_grad",
    }
)


class OpRole(IntEnum):
    """The part of a program to which an operator belongs; ``Loss`` is a flag beside one of the others."""

    Forward = 0
    Backward = 1
    Optimize = 2
    RPC = 4
    Dist = 8
    LRSched = 16
    Loss = 256


@checked
def grad_var_name(name: str) -> str:
    """The name of a variable's gradient: ``fc_0.w_0@GRAD`` of ``fc_0.w_0``."""
    return name + GRAD_VAR_SUFFIX


def role_of(op: OpDesc) -> str:
    """The part of a program to which an operator belongs: forward, backward or optimizer.

    Operators that send gradients and receive parameters belong to the optimizer: a trainer has them in its place.
    """
    role = int(op.attrs.get("op_role", 0))
    if role & (OpRole.Optimize | OpRole.LRSched | OpRole.RPC | OpRole.Dist):
        return "optimizer"
    if role & 1 or op.optype.endswith("_grad"):
        return "backward"
    return "forward"
