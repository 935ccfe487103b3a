"""Base class of initializers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fluidnb.arguments import Checked
from fluidnb.errors import OpTypeError, typed

if TYPE_CHECKING:
    from fluidnb.program import Block, Operator, Variable


class Initializer(Checked):
    """The base of initializers: called with a variable and a block, it appends one operator there.

    Example:
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     half = fluid.initializer.Constant(0.5)
        ...     w = fluid.layers.create_parameter([2, 3], "float32", default_initializer=half)
        >>> startup.global_block().ops[0].type
        'fill_constant'
    """

    #: What a message says where one is expected.
    argument_hint = "for example fluid.initializer.Constant(0.0)."

    def __call__(self, var: Variable, block: Block) -> Operator:
        """Append the operator that fills ``var``.

        Args:
            var: the variable to fill, with a known shape.
            block: where the operator goes, as a rule block 0 of the startup program.

        Returns:
            The operator.
        """
        shape, dtype = var.shape, var.dtype
        found: Any = self.operator(shape, dtype)
        if not (isinstance(found, tuple | list) and len(found) == 2 and isinstance(found[1], Mapping)):
            raise OpTypeError(
                f"operator() of {type(self).__name__} returned something else.", received=typed(found),
                expected="the type of an operator and a dict of its attributes",
            )  # fmt: skip
        op_type, attrs = found
        attrs = {"shape": list(shape), "dtype": int(dtype), **attrs}
        if attrs.get("seed") == 0:
            attrs["seed"] = _of_32_bits(block.program.random_seed)
        return block._appended(op_type, None, {"Out": [var]}, attrs)

    def operator(self, shape: tuple[int, ...], dtype: Any = "float32") -> tuple[str, dict[str, Any]]:
        """The operator's type and its attributes beside shape and dtype.

        Args:
            shape: the variable's shape.
            dtype: its dtype.
        """
        raise NotImplementedError(f"{type(self).__name__} must define operator(shape, dtype).")

    def __repr__(self) -> str:
        args = ", ".join(f"{k.lstrip('_')}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({args})"


def _of_32_bits(seed: int) -> int:
    """A program's seed as an attribute can hold it: 0 only for 0."""
    return seed if -(2**31) <= seed < 2**31 else seed % (2**31 - 1) or 1


def check_initializer(value: object) -> None:
    """Raise unless a value can serve as an initializer."""
    if not callable(value):
        raise OpTypeError(
            "An initializer is wanted here.", expected="an Initializer, for example Constant(0.0)",
            received=typed(value), hint="fluid.initializer has Xavier, Uniform, Normal and others.",
        )  # fmt: skip
