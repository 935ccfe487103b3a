"""What a variable cannot do, though Python asks: it has no value while a program is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from fluidnb.errors import OpTypeError
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.program.variable import Variable

_RUN = "run the program: exe.run(program, feed=..., fetch_list=[variable])."


class NoValue:
    """Refuses ``if x``, ``for row in x``, ``np.array(x)`` and ``float(x)``, and says what to write.

    Example:
        >>> from fluidnb.program import Program
        >>> x = Program().global_block().create_var(name="x", shape=[2], dtype="float32")
        >>> float(x)
        Traceback (most recent call last):
        fluidnb.errors.OpTypeError: A number needs a value, and variable x has none while a program is built.
          ...
    """

    def _refuse(self, what: str, hint: str) -> NoReturn:
        variable = cast("Variable", self)
        raise OpTypeError(
            f"{what} needs a value, and variable {variable.name} has none while a program is built.",
            slots=[variable._operand()], where=capture(2), hint=hint,
            expected="a value that Python knows now", received="a variable, whose values come when its program runs",
        )  # fmt: skip

    def __bool__(self) -> NoReturn:
        hint = "branch inside the program: layers.IfElse, layers.Switch, layers.While."
        self._refuse("if, while, and, or, not", hint)

    def __iter__(self) -> NoReturn:
        self._refuse("A Python loop", "loop inside the program: layers.While, layers.StaticRNN, layers.DynamicRNN.")

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("An array", _RUN)

    def __float__(self) -> NoReturn:
        self._refuse("A number", _RUN)

    __int__ = __float__
    #: numpy scalars on the left leave the operator to the variable.
    __array_ufunc__ = None
