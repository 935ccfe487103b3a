"""The part of a program to which an operator belongs."""

from __future__ import annotations

from fluidnb.proto.desc import OpDesc


def role_of(op: OpDesc) -> str:
    """The part of the program to which an operator belongs.

    Args:
        op: its description.

    Returns:
        ``forward``, ``backward`` or ``optimizer``.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> role_of(OpDesc("sgd", attrs={"op_role": 2})), role_of(OpDesc("mul_grad")), role_of(OpDesc("mul"))
        ('optimizer', 'backward', 'forward')
    """
    role = int(op.attrs.get("op_role", 0))
    if role & 0b10010:
        return "optimizer"
    if role & 1 or op.optype.endswith("_grad"):
        return "backward"
    return "forward"
