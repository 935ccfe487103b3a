"""uniform_random and gaussian_random: tensors of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, op, values_of
from fluidnb_kernels.random.launch import normal_numbers, uniform_numbers
from fluidnb_kernels.rows.values import values_of_output
from fluidnb_kernels.rules import SHAPE_SLOTS
from fluidnb_kernels.tensor.fill import fixed_shape, fixed_shape_or_rows
from fluidnb_kernels.tensor.strided_copy import lay, move

_ATTRS = {
    "shape": Attr("longs", [], "sizes"),
    "dtype": Attr("dtype", "float32", "dtype of Out"),
    "seed": Attr("int", 0, "0 for other numbers in every run; else the same in every run"),
}


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
        "min": Attr("float", -1.0, "lower bound"),
        "max": Attr("float", 1.0, "upper bound"),
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
    uniform_numbers(b, out, b.attr("min"), b.attr("max"))
    if not number:
        return
    if b.on_cuda:
        value = b.table(np.array([b.attr("diag_val")]).astype(out.dtype))
        move(b, out, value, lay(out, (out.size,))[:: out.shape[1] + 1 + step][:number])
    else:
        b(set_diagonal, out, number, step, b.attr("diag_val"))


@op(
    "gaussian_random",
    inputs=SHAPE_SLOTS,
    outputs={"Out": "normal numbers"},
    attrs={**_ATTRS, "mean": Attr("float", 0.0, "their mean"), "std": Attr("float", 1.0, "their standard deviation")},
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
    normal_numbers(b, b["Out"], b.attr("mean"), b.attr("std"))
