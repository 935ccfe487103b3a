"""Tensors of random numbers: uniform, normal, truncated normal and whole ones, and a random class for each row."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, no_slope, op, uniform, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import dtypes
from fluidnb_kernels.cuda import BLOCKS, ctype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.random.launch import (
    CUDA,
    SLICE,
    all_rows,
    host_numbers,
    launch,
    normal_numbers,
    stream_in_c,
    uniform_numbers,
)
from fluidnb_kernels.rows.values import values_of_output
from fluidnb_kernels.rules import SHAPE_SLOTS, checked
from fluidnb_kernels.tensor.fill import LIKE, LIKE_INPUT, batch_size_like, fixed_shape, fixed_shape_or_rows
from fluidnb_kernels.tensor.strided_copy import layout_of, move

_SEED = Attr("int", 0, "0 for other numbers in every run; else the same in every run")
_DTYPE = Attr("dtype", "float32", "dtype of Out")
_ATTRS = {"shape": Attr("longs", [], "sizes"), "dtype": _DTYPE, "seed": _SEED, **SLICE}
_LIKE_ATTRS = {**LIKE, "seed": _SEED}
_BOUNDS = {"min": Attr("float", -1.0, "lower bound"), "max": Attr("float", 1.0, "upper bound")}
_NORMAL = {"mean": Attr("float", 0.0, "their mean"), "std": Attr("float", 1.0, "their standard deviation")}


def set_diagonal(out: Any, number: int, step: int, value: float) -> None:
    """Set every step-th column's element of the first rows, as some initialisers of filters want it."""
    columns = out.shape[1]
    out.reshape(-1)[[i * columns + i + i * step for i in range(number)]] = value


def diagonal_of(b: Binder) -> tuple[int, int]:
    """The length of the diagonal that gets a fixed value, and the distance of its columns beyond the diagonal."""
    out, number, step = values_of_output(b), b.attr("diag_num"), b.attr("diag_step")
    b.require(
        not number or out.ndim == 2 and number <= out.shape[0] and (number - 1) * (step + 1) < out.shape[1],
        "The diagonal of uniform_random must be inside Out.",
        expected="diag_num and diag_step that fit", received=f"{number} and {step} in {list(out.shape)}",
    )  # fmt: skip
    return number, step


@op(
    "uniform_random",
    inputs=SHAPE_SLOTS,
    outputs={"Out": "numbers from [min, max)"},
    attrs={
        **_ATTRS,
        **_BOUNDS,
        "diag_num": Attr("int", 0, "how many elements of the diagonal get a fixed value", ge=0),
        "diag_step": Attr("int", 0, "how far apart their columns are beyond the diagonal", ge=0),
        "diag_val": Attr("float", 1.0, "their value"),
    },
    check=lambda a: "uniform_random's min must be less than max." if a["max"] <= a["min"] else None,
    cost="Out",
    infer=fixed_shape_or_rows,
    guard=values_of("ShapeTensor", "ShapeTensorList"),
    random=True,
    cuda=True,
)
def uniform_random(b: Binder) -> None:
    """Out = numbers from [min, max), each as likely as any other; SelectedRows get the values of all their rows.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = run_op("uniform_random", attrs={"shape": [100], "min": 2.0, "max": 3.0})["Out"]
        >>> bool((x >= 2).all() and (x <= 3).all())
        True

    Source: Fluid's uniform_random_op.
    """
    out, (number, step) = values_of_output(b), diagonal_of(b)
    with all_rows(b, out) as drawn:
        uniform_numbers(b, drawn, b.attr("min"), b.attr("max"))
    if not number:
        return
    if b.on_cuda:
        value = b.table(np.array([b.attr("diag_val")]).astype(out.dtype))
        move(b, out, value, layout_of(out, (out.size,))[:: out.shape[1] + 1 + step][:number])
    else:
        b(set_diagonal, out, number, step, b.attr("diag_val"))


@op(
    "gaussian_random",
    inputs=SHAPE_SLOTS,
    outputs={"Out": "normal numbers"},
    attrs={**_ATTRS, **_NORMAL},
    cost="Out",
    infer=fixed_shape,
    guard=values_of("ShapeTensor", "ShapeTensorList"),
    random=True,
    cuda=True,
)
def gaussian_random(b: Binder) -> None:
    """Out = normal numbers of a mean and a standard deviation.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = run_op("gaussian_random", attrs={"shape": [1000], "mean": 5.0})["Out"]
        >>> bool(4.5 < x.mean() < 5.5)
        True

    Source: Fluid's gaussian_random_op.
    """
    with all_rows(b, b["Out"]) as drawn:
        normal_numbers(b, drawn, b.attr("mean"), b.attr("std"))


#: How many standard deviations a number may be from the mean.
REACH = 2.0


def truncated_normal(stream: Stream, out: Array, mean: float, std: float) -> None:
    """Fill an array with normal numbers; those further than REACH deviations from the mean are drawn again."""
    generator = stream.rewind()
    x = generator.standard_normal(out.size)
    far = np.flatnonzero(np.abs(x) > REACH)
    while far.size:
        x[far] = generator.standard_normal(far.size)
        far = far[np.abs(x[far]) > REACH]
    np.copyto(out, (mean + std * x).reshape(out.shape), casting="unsafe")


@op(
    "truncated_gaussian_random",
    outputs={"Out": "normal numbers"},
    attrs={
        "shape": Attr("ints", doc="sizes"),
        "dtype": _DTYPE,
        "mean": _NORMAL["mean"],
        "std": Attr("float", 1.0, "the standard deviation before the far ones are left out"),
        "seed": _SEED,
        **SLICE,
    },
    cost="Out",
    infer=fixed_shape,
    random=True,
    cuda=True,
)
def truncated_gaussian_random(b: Binder) -> None:
    """Out = normal numbers, those more than two deviations from the mean drawn again.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = run_op("truncated_gaussian_random", attrs={"shape": [100]})["Out"]
        >>> bool(abs(x).max() <= 2)
        True

    Source: Fluid's truncated_gaussian_random_op.
    """
    with all_rows(b, b["Out"]) as drawn:
        host_numbers(b, truncated_normal, drawn, b.attr("mean"), b.attr("std"))


def whole(stream: Stream, out: Array, low: int, high: int) -> None:
    """Fill an array with whole numbers from [low, high), each as likely as any other."""
    out[...] = stream.rewind().integers(low, high, out.shape)


@op(
    "randint",
    inputs=SHAPE_SLOTS,
    outputs={"Out": "whole numbers from [low, high)"},
    attrs={
        "shape": Attr("longs", [], "sizes"),
        "low": Attr("int", doc="the smallest"),
        "high": Attr("int", doc="one more than the largest"),
        "dtype": Attr("dtype", "int64", "dtype of Out"),
        "seed": _SEED,
    },
    check=lambda a: "randint's low must be less than high." if a["high"] <= a["low"] else None,
    cost="Out",
    infer=fixed_shape,
    guard=values_of("ShapeTensor", "ShapeTensorList"),
    random=True,
    cuda=True,
)
def randint(b: Binder) -> None:
    """Out = whole numbers from [low, high), each as likely as any other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = run_op("randint", attrs={"shape": [100], "low": 2, "high": 4})["Out"]
        >>> sorted(set(x.tolist()))
        [2, 3]

    Source: Paddle's randint_op.
    """
    host_numbers(b, whole, b["Out"], b.attr("low"), b.attr("high"))


def order(stream: Stream, out: Array) -> None:
    """Fill an array with 0 … n - 1 in random order."""
    out[...] = stream.rewind().permutation(out.size)


@op(
    "randperm",
    outputs={"Out": "[n]: 0 … n - 1 in random order"},
    attrs={"n": Attr("int", doc="how many", gt=0), "dtype": Attr("dtype", "int64", "dtype of Out"), "seed": _SEED},
    cost="Out",
    infer=lambda c: c.set("Out", (c.attr("n"),), dtypes.np_dtype(c.attr("dtype"))),
    random=True,
    cuda=True,
)
def randperm(b: Binder) -> None:
    """Out = 0 … n - 1 in random order, each order as likely as any other.

    Example:
        >>> from fluidnb.testing import run_op
        >>> sorted(run_op("randperm", attrs={"n": 3})["Out"].tolist())
        [0, 1, 2]

    Source: Paddle's randperm_op.
    """
    host_numbers(b, order, b["Out"])


#: Rows, and threads above each other, of a block that chooses classes.
_SIDE, _ABOVE = 32, 8


@op(
    "uniform_random_batch_size_like",
    inputs=LIKE_INPUT,
    outputs={"Out": "numbers from [min, max)"},
    attrs={
        **_LIKE_ATTRS,
        **_BOUNDS,
        "diag_num": Attr("int", 0, "not used here", enum=[0]),
        "diag_step": Attr("int", 0, "not used here"),
        "diag_val": Attr("float", 1.0, "not used here"),
    },
    check=lambda a: "max must not be less than min." if a["max"] < a["min"] else None,
    cost="Out",
    infer=batch_size_like,
    grad=no_slope,
    random=True,
    cuda=True,
)
def uniform_random_batch_size_like(b: Binder) -> None:
    """Out = numbers from [min, max), with as many rows as Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("uniform_random_batch_size_like", {"Input": [[1.0], [2.0]]}, {"shape": [-1, 3]})["Out"].shape
        (2, 3)

    Source: Fluid's uniform_random_batch_size_like_op.
    """
    uniform_numbers(b, b["Out"], b.attr("min"), b.attr("max"))


@op(
    "gaussian_random_batch_size_like",
    inputs=LIKE_INPUT,
    outputs={"Out": "normal numbers"},
    attrs={**_LIKE_ATTRS, **_NORMAL},
    cost="Out",
    infer=batch_size_like,
    grad=no_slope,
    random=True,
    cuda=True,
)
def gaussian_random_batch_size_like(b: Binder) -> None:
    """Out = normal numbers of a mean and a standard deviation, with as many rows as Input.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("gaussian_random_batch_size_like", {"Input": [[1.0], [2.0]]}, {"shape": [-1, 3]})["Out"].shape
        (2, 3)

    Source: Fluid's gaussian_random_batch_size_like_op.
    """
    normal_numbers(b, b["Out"], b.attr("mean"), b.attr("std"))


def draw(stream: Stream, x: Array, low: float, high: float, out: Array) -> None:
    """Draw a column for each row, with the row's own probabilities."""
    prob = np.empty((len(x), 1))
    uniform(stream, prob, low, high)
    out[...] = np.minimum((x.cumsum(1) <= prob).sum(1), x.shape[1] - 1)


@op(
    "sampling_id",
    inputs={"X: float[N, classes]": "probabilities"},
    outputs={"Out": "int64 [N]: a class for each row"},
    attrs={
        "min": Attr("float", 0.0, "lower bound of the numbers that choose"),
        "max": Attr("float", 1.0, "their upper bound"),
        "seed": Attr("int", 0, "0 for other classes in every run; else the same in every run"),
    },
    check=lambda a: "max must be greater than min." if a["max"] <= a["min"] else None,
    cost="X",
    infer=checked(lambda c: c.set("Out", c["X"].shape[:1], np.int64, c.lod("X"))),
    random=True,
    cuda=FLOATS,
)
def sampling_id(b: Binder) -> None:
    """Out = a class for each row, drawn with the row's own probabilities.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sampling_id", {"X": [[0.0, 1.0, 0.0]]})["Out"]
        array([1])

    Source: Fluid's sampling_id_op.
    """
    if b.on_cuda:  # draws a class for each row, with the numbers of the host
        x, low, high = b["X"], b.attr("min"), b.attr("max")
        rows, count = x.shape
        if rows:
            blocks, numbers = min(BLOCKS, -(-rows // _SIDE)), (np.float64(high - low), np.float64(low))
            function = CUDA[f"classes<{ctype(x.dtype)}>"]
            b(launch, function, b.rng, blocks, (_SIDE, _ABOVE), x, b["Out"], *numbers, np.int64(count), np.int64(rows))
        return
    b(draw, b.rng, b["X"], b.attr("min"), b.attr("max"), b["Out"])


@c_code("uniform_random", "uniform_random_batch_size_like", function="uniform_random")
@c_code("gaussian_random", "gaussian_random_batch_size_like", function="gaussian_random")
def _numbers_in_c(c: Context) -> dict[str, Constant]:
    out, low, high = c["Out"], c.attr("min", 0.0), c.attr("max", 0.0)
    uniform = {"LOW": low, "SPAN": high - low}
    normal = {"CENTRE": c.attr("mean", 0.0), "SPREAD": c.attr("std", 0.0)}
    diagonal = {"DIAGONAL": c.attr("diag_num", 0), "STEP": c.attr("diag_step", 0) + 1, "VALUE": c.attr("diag_val", 0.0)}
    sizes = {"COUNT": out.size, "WIDTH": out.shape[1] if len(out.shape) > 1 else 1}
    return {**stream_in_c(c, c.attr("seed", 0)), **uniform, **normal, **diagonal, **sizes}
