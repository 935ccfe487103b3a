"""The part of a program to which an operator belongs, and those that are appended now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import OpDesc

if TYPE_CHECKING:
    from fluidnb.program.variable import Variable


class Roles:
    """What a `Program` knows of roles.

    Attributes:
        op_role: the role that operators get.
        op_role_var: the parameter and gradient with which they deal, or an empty list.
    """

    op_role: int
    op_role_var: list[str]

    @contextmanager
    def role_guard(self, role: int, role_var: Iterable[Variable | str] = ()) -> Iterator[None]:
        """Operators appended inside a ``with`` belong to a part of the program.

        Args:
            role: an `OpRole`.
            role_var: the parameter and its gradient, where they deal with one.

        Yields:
            Nothing.

        Example:
            >>> from fluidnb.program import Program
            >>> program = Program()
            >>> with program.role_guard(OpRole.Optimize):
            ...     program.op_role.name
            'Optimize'
        """
        before = self.op_role, self.op_role_var
        self.op_role, self.op_role_var = role, [v if isinstance(v, str) else v.name for v in role_var]
        try:
            yield
        finally:
            self.op_role, self.op_role_var = before

    def optimized_guard(self, param_and_grads: Iterable[Variable | str]) -> Any:
        """Operators appended inside a ``with`` optimize a parameter.

        Args:
            param_and_grads: the parameter and its gradient.

        Returns:
            A context manager.
        """
        return self.role_guard(OpRole.Optimize, param_and_grads)

    _optimized_guard = optimized_guard

    def lr_schedule_guard(self, is_with_opt: bool = False) -> Any:
        """Operators appended inside a ``with`` compute a learning rate.

        Args:
            is_with_opt: whether they belong to the optimizer as well.

        Returns:
            A context manager.

        Example:
            >>> from fluidnb.program import Program
            >>> program = Program()
            >>> with program.lr_schedule_guard():
            ...     program.op_role.name
            'LRSched'
        """
        return self.role_guard(OpRole.LRSched | OpRole.Optimize if is_with_opt else OpRole.LRSched)

    _lr_schedule_guard = lr_schedule_guard

    @property
    def _op_role(self) -> int:
        return self.op_role

    @_op_role.setter
    def _op_role(self, role: int) -> None:
        self.op_role = role

    @property
    def _op_role_var(self) -> list[str]:
        return self.op_role_var

    def set_op_role_var(self, role_var: Iterable[Variable | str]) -> None:
        """Say with which parameter and gradient operators appended from now on deal."""
        self.op_role_var = [v if isinstance(v, str) else v.name for v in role_var]


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
