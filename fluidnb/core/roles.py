"""The attributes that say which part of a program an operator belongs to, under the core's names."""

from __future__ import annotations

from fluidnb.program import OpRole as _OpRole


class op_proto_and_checker_maker:  # noqa: N801 - Fluid's name
    """A namespace: roles of operators, and the names of the attributes that say them.

    Example:
        >>> int(op_proto_and_checker_maker.OpRole.Optimize), op_proto_and_checker_maker.kOpRoleAttrName()
        (2, 'op_role')
    """

    OpRole = _OpRole

    @staticmethod
    def kOpRoleAttrName() -> str:  # noqa: N802 - Fluid's name
        """The attribute that holds the role."""
        return "op_role"

    @staticmethod
    def kOpRoleVarAttrName() -> str:  # noqa: N802 - Fluid's name
        """The attribute that holds the parameter and gradient with which an operator deals."""
        return "op_role_var"

    @staticmethod
    def kOpNameScopeAttrName() -> str:  # noqa: N802 - Fluid's name
        """The attribute that holds the name scope."""
        return "op_namescope"

    @staticmethod
    def kOpCreationCallstackAttrName() -> str:  # noqa: N802 - Fluid's name
        """The attribute in which real Paddle writes the lines that made an operator; here it is only read."""
        return "op_callstack"
