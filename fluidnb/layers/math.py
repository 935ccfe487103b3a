"""Products, sums, reductions, lengths, and operations on two variables element by element."""

from collections.abc import Sequence
from typing import Any

from fluidnb.layers.one_op import family, one_op, several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "clip", "clip_by_norm", "cos_sim", "cumsum", "elementwise_add", "elementwise_div", "elementwise_floordiv",
    "elementwise_max", "elementwise_min", "elementwise_mod", "elementwise_mul", "elementwise_pow", "elementwise_sub",
    "increment", "l2_normalize", "matmul", "mean", "mul", "reduce_all", "reduce_any", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_prod", "reduce_sum", "scale", "sum", "sums",
]  # fmt: skip


@naming.layer
def mul(
    x: Variable, y: Variable, x_num_col_dims: int = 1, y_num_col_dims: int = 1, name: str | None = None
) -> Variable:
    """Matrix product of ``x`` and ``y``, each flattened to two axes.

    Args:
        x: at least two axes; the first ``x_num_col_dims`` are its rows.
        y: at least two axes; the first ``y_num_col_dims`` are its rows, as many as ``x`` has columns.
        x_num_col_dims: leading axes of ``x`` that stay.
        y_num_col_dims: leading axes of ``y`` that are summed over.
        name: name of the result.

    Returns:
        The leading axes of ``x`` followed by the trailing axes of ``y``, with the LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [4, 3]), fluid.layers.data("y", [12, 5], append_batch_size=False)
        >>> fluid.layers.mul(x, y).shape
        (-1, 5)
    """
    attrs = {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims}
    return one_op("mul", {"X": x, "Y": y}, attrs, out_name=name)


@naming.layer
def matmul(
    x: Variable, y: Variable, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Matrix product over the last two axes, with the axes before them broadcast.

    Args:
        x: one axis or more; a vector counts as one row.
        y: one axis or more; a vector counts as one column.
        transpose_x: swap the last two axes of ``x`` first; a vector becomes one column.
        transpose_y: swap the last two axes of ``y`` first; a vector becomes one row.
        alpha: factor on the result.

    Returns:
        ``alpha · x · y``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [4, 3])
        >>> fluid.layers.matmul(x, y, transpose_y=True).shape
        (-1, 2, 4)
    """
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)}
    return one_op("matmul", {"X": x, "Y": y}, attrs, name=name)


@naming.layer
def scale(
    x: Variable, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: Any = None,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Linear function of each element: ``scale · x + bias``, or ``scale · (x + bias)``.

    Args:
        scale: the factor.
        bias: the summand.
        bias_after_scale: whether the bias is added after scaling.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.scale(fluid.layers.data("x", [3]), scale=2.0, bias=1.0).shape
        (-1, 3)
    """
    attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": bias_after_scale}
    return one_op("scale", {"X": x}, attrs, out_name=name, act=act)


@naming.layer
def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Limit each element to [min, max]; the gradient passes where ``min < x < max``.

    Args:
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> fluid.layers.clip(fluid.layers.data("x", [3]), min=-1.0, max=1.0).shape
        (-1, 3)

    Source: developer guide, the operator that it uses as its example.
    """
    return one_op("clip", {"X": x}, {"min": float(min), "max": float(max)}, out_name=name)


@naming.layer
def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Add a number to a variable of one element; integers stay integers.

    The gradient of the result is that of ``x`` where ``x`` itself changes. With ``in_place=False`` no gradient reaches
    ``x``, as in Fluid: ``scale(x, 1.0, bias=value)`` adds a number and has a gradient.

    Args:
        x: shape [1].
        value: what is added.
        in_place: whether ``x`` itself changes, or a new variable holds the result.

    Returns:
        ``x``, or the new variable.

    Example:
        >>> i = fluid.layers.zeros([1], "int64")
        >>> fluid.layers.increment(i) is i
        True
    """
    return one_op("increment", {"X": x}, {"step": float(value)}, out=x if in_place else None)


@naming.layer
def sums(input: Variable | Sequence[Variable], out: Variable | None = None) -> Variable:
    """Sum of several variables, element by element.

    Args:
        input: variables of one shape and dtype.

    Returns:
        The sum, with the LoD of the first.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [3])
        >>> fluid.layers.sums([x, y]).shape
        (-1, 3)
    """
    return one_op("sum", {"X": [input] if isinstance(input, Variable) else list(input)}, out=out)


@naming.layer
def sum(x: Variable | Sequence[Variable]) -> Variable:
    """Sum of several variables, element by element; `sums` without ``out``.

    Args:
        x: variables of one shape and dtype.

    Returns:
        The sum, with the LoD of the first.

    Example:
        >>> x, y = fluid.layers.data("x", [3]), fluid.layers.data("y", [3])
        >>> fluid.layers.sum([x, y]).shape
        (-1, 3)
    """
    return sums(x)


@naming.layer
@takes(x="float")
def mean(x: Variable, name: str | None = None) -> Variable:
    """Mean of all elements.

    Args:
        x: any shape, float.
        name: name of the result.

    Returns:
        Shape [1].

    Example:
        >>> fluid.layers.mean(x=fluid.layers.data("x", [3])).shape
        (1,)
    """
    return one_op("mean", {"X": x}, out_name=name)


@family
def _reduction(
    op_type: str, input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False,
    name: str | None = None,
) -> Variable:  # fmt: skip
    """{summary} over some axes.

    Args:
        input: {input}.
        dim: the axis or axes, from the end when negative; None for all.
        keep_dim: whether the axes stay, with size 1.

    Returns:
        The result, of shape [1] when all axes go.

    Example:
        >>> fluid.layers.{name}(fluid.layers.data("x", [2, 3], dtype="{dtype}"), dim=1).shape
        (-1, 3)
    """
    if dim is None:
        attrs = {"dim": [0], "keep_dim": keep_dim, "reduce_all": True}
    else:
        attrs = {"dim": [dim] if isinstance(dim, int) else list(dim), "keep_dim": keep_dim, "reduce_all": False}
    logical = op_type in ("reduce_all", "reduce_any")
    return one_op(op_type, {"X": input}, attrs, name=name, dtype="bool" if logical else None, stop_gradient=logical)


_NUMBERS = {"input": "any shape", "dtype": "float32"}
_BOOLS = {"input": "bool, any shape", "dtype": "bool"}
reduce_sum = _reduction("reduce_sum", "Sum", **_NUMBERS)
reduce_mean = _reduction("reduce_mean", "Mean", {"input": "float"}, input="any shape, float", dtype="float32")
reduce_max = _reduction("reduce_max", "Largest element", **_NUMBERS)
reduce_min = _reduction("reduce_min", "Smallest element", **_NUMBERS)
reduce_prod = _reduction("reduce_prod", "Product", **_NUMBERS)
reduce_all = _reduction("reduce_all", "Whether all elements hold", **_BOOLS)
reduce_any = _reduction("reduce_any", "Whether an element holds", **_BOOLS)


@family
def _binary(
    op_type: str, x: Variable, y: Variable, axis: int = -1, act: Any = None, name: str | None = None
) -> Variable:
    """{summary}.

    Args:
        y: shape of ``x``, or of consecutive axes of it.
        axis: axis of ``x`` at which ``y`` starts; -1 for the last ones.
        name: name of the result.

    Returns:
        Shape, dtype and LoD of ``x``.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 3]), fluid.layers.data("y", [2, 3])
        >>> fluid.layers.{name}(x, y).shape
        (-1, 2, 3)
    """
    return one_op(op_type, {"X": x, "Y": y}, {"axis": axis}, out_name=name, act=act)


elementwise_add = _binary("elementwise_add", "Sum ``x + y``")
elementwise_sub = _binary("elementwise_sub", "Difference ``x - y``")
elementwise_mul = _binary("elementwise_mul", "Product ``x · y``")
elementwise_div = _binary("elementwise_div", "Quotient ``x / y``; integers are divided towards zero")
elementwise_max = _binary(
    "elementwise_max", "Greater of ``x`` and ``y``; where they are equal the gradient goes to ``y``"
)
elementwise_min = _binary(
    "elementwise_min", "Smaller of ``x`` and ``y``; where they are equal the gradient goes to ``y``"
)
elementwise_pow = _binary("elementwise_pow", "Power ``x ** y``")
elementwise_mod = _binary(
    "elementwise_mod", "Elementwise remainder of ``x / y``, with the sign of ``y``; no gradient passes"
)
elementwise_floordiv = _binary("elementwise_floordiv", "Quotient ``x / y`` rounded down; no gradient passes")


@naming.layer
def cos_sim(X: Variable, Y: Variable) -> Variable:
    """The cosine of the angle between rows.

    Args:
        X: [N, width].
        Y: [N, width], or [1, width] for all rows.

    Returns:
        [N, 1], from -1 to 1.

    Example:
        >>> x, y = fluid.layers.data("x", [32]), fluid.layers.data("y", [32])
        >>> fluid.layers.cos_sim(x, y).shape
        (-1, 1)
    """
    return several("cos_sim", {"X": X, "Y": Y}, {"Out": X.dtype, "XNorm": X.dtype, "YNorm": X.dtype})[0]


@naming.layer
@takes(x="float")
def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """Vectors made to have length 1.

    Args:
        x: at least one axis.
        axis: the axis of the vectors, from the end when negative; None means 1.
        epsilon: added to the square of the length.

    Returns:
        Shape of ``x``.

    Example:
        >>> fluid.layers.l2_normalize(fluid.layers.data("x", [32]), axis=1).shape
        (-1, 32)
    """
    axis = 0 if len(x.shape) == 1 else 1 if axis is None else axis
    attrs = {"axis": axis, "epsilon": float(epsilon)}
    return several("norm", {"X": x}, {"Out": x.dtype, "Norm": x.dtype}, attrs, name=name)[0]


@naming.layer
def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """A tensor made shorter where it is longer than allowed: ``x · max_norm / max(max_norm, |x|)``.

    Args:
        x: any shape; its length is the square root of the sum of all squares.
        max_norm: the length allowed, positive.

    Returns:
        Shape of ``x``; no gradient passes.

    Example:
        >>> fluid.layers.clip_by_norm(fluid.layers.data("x", [3]), max_norm=1.0).shape
        (-1, 3)
    """
    return one_op("clip_by_norm", {"X": x}, {"max_norm": float(max_norm)}, name=name)


@naming.layer
def cumsum(
    x: Variable, axis: int | None = None, exclusive: bool | None = None, reverse: bool | None = None
) -> Variable:
    """Sums of all elements up to each.

    Args:
        x: at least one axis.
        axis: the axis along which is summed; the last one by default.
        exclusive: whether each element is excluded from its sum.
        reverse: whether to sum from the end.

    Returns:
        Shape of ``x``.

    Example:
        >>> fluid.layers.cumsum(fluid.layers.data("x", [3]), axis=1).shape
        (-1, 3)
    """
    return one_op("cumsum", {"X": x}, {"axis": axis, "exclusive": exclusive, "reverse": reverse})
