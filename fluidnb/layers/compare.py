"""Comparisons, logic and tests of tensors: bool variables, for masks and for the conditions of loops and branches."""

from fluidnb.layers.one_op import family, one_op
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "equal", "greater_equal", "greater_than", "has_inf", "has_nan", "is_empty", "isfinite", "less_equal", "less_than",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal",
]  # fmt: skip


@naming.layer
def less_than(x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None) -> Variable:
    """Whether ``x < y``, element by element.

    Args:
        y: shape of ``x``.
        force_cpu: whether the result stays on the CPU, where loops and branches read it.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 3)
        >>> fluid.layers.less_than(i, n).shape
        (1,)
    """
    return one_op(
        "less_than", {"X": x, "Y": y}, {"force_cpu": bool(force_cpu)}, dtype="bool", out=cond, stop_gradient=True
    )


@family
def _comparison(op_type: str, x: Variable, y: Variable, cond: Variable | None = None) -> Variable:
    """Whether ``{summary}``, element by element.

    Args:
        y: shape of ``x``.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = fluid.layers.ones([1], "int64"), fluid.layers.ones([1], "int64")
        >>> fluid.layers.{name}(a, b).shape
        (1,)
    """
    return one_op(op_type, {"X": x, "Y": y}, dtype="bool", out=cond, stop_gradient=True)


less_equal = _comparison("less_equal", "x <= y")
greater_than = _comparison("greater_than", "x > y")
greater_equal = _comparison("greater_equal", "x >= y")
equal = _comparison("equal", "x == y")
not_equal = _comparison("not_equal", "x != y")


@family
def _logic(op_type: str, x: Variable, y: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether {summary}, element by element.

    Args:
        x: bool, any shape.
        y: bool, shape of ``x``.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> a, b = (fluid.layers.data(n, [1], dtype="bool") for n in "ab")
        >>> fluid.layers.{name}(a, b).shape
        (-1, 1)
    """
    return one_op(op_type, {"X": x, "Y": y}, dtype="bool", out=out, name=name, stop_gradient=True)


logical_and = _logic("logical_and", "both hold")
logical_or = _logic("logical_or", "one of them holds, or both")
logical_xor = _logic("logical_xor", "one of them holds, but not both")


@naming.layer
def logical_not(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """Whether it does not hold, element by element.

    Args:
        x: bool, any shape.

    Returns:
        Bool, shape of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.logical_not(fluid.layers.data("a", [1], dtype="bool")).shape
        (-1, 1)
    """
    return one_op("logical_not", {"X": x}, dtype="bool", out=out, name=name, stop_gradient=True)


@naming.layer
def is_empty(x: Variable, cond: Variable | None = None) -> Variable:
    """Whether a tensor has no elements.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.is_empty(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("is_empty", {"X": x}, dtype="bool", out=cond, stop_gradient=True)


@family
def _test(op_type: str, x: Variable) -> Variable:
    """Whether {summary}.

    Returns:
        Bool [1].

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op(op_type, {"X": x}, dtype="bool", stop_gradient=True)


has_inf = _test("isinf", "an element is infinite", name="has_inf")
has_nan = _test("isnan", "an element is not a number", name="has_nan")
isfinite = _test("isfinite", "every element is a finite number")
