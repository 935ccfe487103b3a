"""truncated_gaussian_random: normal numbers that are not far from their mean."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Stream, op
from fluidnb_kernels.random.launch import host_numbers
from fluidnb_kernels.tensor.fill import fixed_shape

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
        "dtype": Attr("dtype", "float32", "dtype of Out"),
        "mean": Attr("float", 0.0, "their mean"),
        "std": Attr("float", 1.0, "the standard deviation before the far ones are left out"),
        "seed": Attr("int", 0, "0 for other numbers in every run; else the same in every run"),
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
    host_numbers(b, truncated_normal, b["Out"], b.attr("mean"), b.attr("std"))
