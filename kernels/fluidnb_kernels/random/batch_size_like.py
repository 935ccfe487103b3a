"""uniform_random_batch_size_like, gaussian_random_batch_size_like and sampling_id: random numbers for each row."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, kernel, no_slope, op, uniform
from fluidnb_kernels.cuda import BLOCKS, ctype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.random.launch import CUDA, launch, normal_numbers, uniform_numbers
from fluidnb_kernels.tensor.fill import batch_size_like

#: Rows, and threads above each other, of a block that chooses classes.
_SIDE, _ABOVE = 32, 8

_ATTRS = {
    "shape": Attr("ints", doc="sizes; the one that is copied may be -1"),
    "input_dim_idx": Attr("int", 0, "dimension of Input whose size is copied"),
    "output_dim_idx": Attr("int", 0, "dimension of Out that gets it"),
    "dtype": Attr("dtype", "float32", "dtype of Out"),
    "seed": Attr("int", 0, "0 for other numbers in every run; else the same in every run"),
}
_INPUT = {"Input": "what has the batch size; with a LoD, its number of sequences counts"}


@op(
    "uniform_random_batch_size_like",
    inputs=_INPUT,
    outputs={"Out": "numbers from [min, max)"},
    attrs={
        **_ATTRS,
        "min": Attr("float", -1.0, "lower bound"),
        "max": Attr("float", 1.0, "upper bound"),
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
    inputs=_INPUT,
    outputs={"Out": "normal numbers"},
    attrs={**_ATTRS, "mean": Attr("float", 0.0, "their mean"), "std": Attr("float", 1.0, "their standard deviation")},
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


def _sampling_infer(c: Context) -> None:
    x = c["X"]
    c.check_inputs()
    c.set("Out", (x.shape[0],), np.int64, c.lod("X"))


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
    infer=_sampling_infer,
    random=True,
)
def sampling_id(b: Binder) -> None:
    """Out = a class for each row, drawn with the row's own probabilities.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sampling_id", {"X": [[0.0, 1.0, 0.0]]})["Out"]
        array([1])

    Source: Fluid's sampling_id_op.
    """
    b(draw, b.rng, b["X"], b.attr("min"), b.attr("max"), b["Out"])


@kernel("sampling_id", place="cuda", dtypes=FLOATS)
def sampling_id_on_cuda(b: Binder) -> None:
    """Draws a class for each row, with the numbers of the host."""
    x, low, high = b["X"], b.attr("min"), b.attr("max")
    rows, count = x.shape
    if rows:
        blocks, numbers = min(BLOCKS, -(-rows // _SIDE)), (np.float64(high - low), np.float64(low))
        function = CUDA[f"classes<{ctype(x.dtype)}>"]
        b(launch, function, b.rng, blocks, (_SIDE, _ABOVE), x, b["Out"], *numbers, np.int64(count), np.int64(rows))
