"""Switch: of several blocks the first one whose condition holds."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from fluidnb.arguments import checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.compare import logical_and, logical_not
from fluidnb.layers.control_flow.body import Condition, operand
from fluidnb.layers.control_flow.conditional import ConditionalBlock
from fluidnb.program import Block, Variable
from fluidnb.values.dtypes import dtype_name


@checked
class Switch:
    """Cases in order, of which the first one whose condition holds runs, or else the default.

    ``with Switch() as switch:`` and ``switch = Switch()`` with ``with switch.block():`` mean the same. When the body of
    either raises, nothing of the switch stays in the program. The ``with`` has cases first and one default last.

    Args:
        name: name of the layer.

    Example:
        >>> a, b = fluid.layers.ones([1], "float32"), fluid.layers.zeros([1], "float32")
        >>> with fluid.layers.Switch() as switch:
        ...     with switch.case(fluid.layers.less_than(b, a)):
        ...         o = fluid.layers.assign(a, output=b)
        ...     with switch.default():
        ...         o = fluid.layers.assign(b, output=a)
        >>> [op.type for op in fluid.default_main_program().global_block().ops][2:]
        ['less_than', 'logical_not', 'conditional_block', 'conditional_block']

    Source: developer guide, section on branches.
    """

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("switch", name=name)
        #: bool [1]: none of the cases so far held; None before the first case
        self._none_held: Variable | None = None
        self._guard: AbstractContextManager[None] | None = None
        self._has_default = False
        #: what held when the ``with`` began, to go back to when its body raises
        self._before: tuple[Variable | None, bool] = (None, False)

    def block(self) -> Self:
        """The switch itself, for ``with switch.block():``."""
        return self

    def __enter__(self) -> Self:
        self._guard = all_or_nothing(self.helper.main_program, self.helper.startup_program)
        self._guard.__enter__()
        self._before = (self._none_held, self._has_default)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        guard, self._guard = self._guard, None
        if kind is not None:
            self._none_held, self._has_default = self._before
        if guard is not None:
            guard.__exit__(kind, error, trace)

    def case(self, condition: Condition) -> AbstractContextManager[Block]:
        """The block of one case, to fill in a ``with``.

        Args:
            condition: bool variable of shape [1], computed before.
        """
        self._check_place("case")
        hint = "layers.less_than() and its like make one."
        if dtype_name(condition.dtype) != "bool":
            raise OpTypeError(
                "The condition of a case should be a bool variable.", slots=[operand("condition", condition)],
                expected="bool[1]", received=f"{dtype_name(condition.dtype)}{list(condition.shape)}", hint=hint,
            )  # fmt: skip
        taken, otherwise = condition, logical_not(condition)
        before = self._none_held
        if before is not None:
            otherwise = logical_and(before, otherwise)
            taken = logical_and(before, condition)
        self._none_held = otherwise
        return self._branch(taken, "case")

    def default(self) -> AbstractContextManager[Block]:
        """The block that runs when no case held, to fill in a ``with``; it comes last."""
        self._check_place("default")
        if self._none_held is None:
            raise OpValueError(
                "there should be at least one condition", expected="a case before default()", received="no case",
                hint="what is to happen in any case needs no switch.",
            )  # fmt: skip
        self._has_default = True
        return self._branch(self._none_held, "default")

    def _branch(self, condition: Variable, role: str) -> AbstractContextManager[Block]:
        branch = ConditionalBlock([condition], is_scalar_condition=True).block()
        branch.opener, branch.role = self, role
        return branch

    def _check_place(self, what: str) -> None:
        if self._guard is None:
            raise OpValueError(
                f"{what} should be called inside with", expected="with switch.block(): …", received="outside of it",
                hint="or write: with layers.Switch() as switch: …",
            )  # fmt: skip
        if self._has_default:
            raise OpValueError(
                f"{what} comes after default.", expected="cases first, one default last",
                received=f"a {what} after the default", hint="move it in front of the default.",
            )  # fmt: skip
