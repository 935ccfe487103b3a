"""add_position_encoding: sines and cosines of the place in a sequence."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.sequence.row_maps import NO_ARRAY, on_device

CUDA = Source(__file__, "add_position_encoding.cu", typed(("encoded", FLOATS)))


def _infer(c: Context) -> None:
    x = c["X"]
    rank = 2 if any(c.lods("X")) else 3
    c.require(
        x.ndim in (2, 3) if not c.runtime else x.ndim == rank,
        "Input(X) of add_position_encoding must be [N, T, D], or [T, D] with sequences.",
        expected="[N, T, D]" if rank == 3 else "[T, D]", received=list(x.shape),
    )  # fmt: skip
    c.require(
        x.shape[-1] % 2 == 0 or x.shape[-1] < 0, "The last size of Input(X) of add_position_encoding must be even.",
        expected="an even size", received=x.shape[-1],
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def waves(places: Array, width: int) -> Array:
    """The encoding [T, width] of positions: sines in the first half, cosines in the second."""
    half = width // 2
    powers = np.arange(half) / (half - 1) if half > 1 else np.ones(1)
    angles = places[:, None] / 10000.0**powers
    return np.concatenate([np.sin(angles), np.cos(angles)], 1)


def _places(b: Binder) -> Array:
    """The place of each row in its sequence; without sequences those of one."""
    x, lod = b["X"], b.lod("X")
    if not lod:
        return np.arange(x.shape[1])
    ends = np.asarray(lod[-1])
    return np.arange(x.shape[0]) - np.repeat(ends[:-1], np.diff(ends))


@op(
    "add_position_encoding",
    inputs={"X: float[N, T, D] | float[T, D] lod": "D even"},
    outputs={"Out": "shape of X"},
    attrs={"alpha": Attr("float", 1.0, "factor of X"), "beta": Attr("float", 1.0, "factor of the encoding")},
    cost="2 * X",
    infer=_infer,
    grad=default_grad("Out@GRAD"),
    dtypes=FLOATS,
    cuda=FLOATS,
)
def add_position_encoding(b: Binder) -> None:
    """Out[t, k] = alpha · X[t, k] + beta · sin(t / 10000^(k / (D/2 - 1))), and the cosine for k from D/2 on.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("add_position_encoding", {"X": np.zeros((1, 2, 2))})["Out"].round(4).tolist()
        [[[0.0, 1.0], [0.0001, 1.0]]]

    Source: Vaswani and others, "Attention Is All You Need" (2017), section 3.5; Fluid's add_position_encoding_op.
    """
    x, places = b["X"], _places(b)
    if b.on_cuda:
        if x.size:
            table = waves(np.arange(places.max() + 1), x.shape[-1]) * b.attr("beta")
            at = on_device(b, np.tile(places, 1 if b.lod("X") else x.shape[0]))
            _encoded(b, x, b["Out"], b.table(table.astype(wide_dtype(x.dtype))), at)
        return
    encoding = b.keep((len(places), x.shape[-1]), x.dtype)
    encoding[...] = waves(places, x.shape[-1]) * b.attr("beta")
    b(np.add, apply(b, np.multiply, x, b.const(b.attr("alpha"), x.dtype)), encoding, out=b["Out"])


@grad_op("add_position_encoding_grad", cuda=FLOATS)
def add_position_encoding_grad(b: Binder) -> None:
    """dX = alpha · dOut."""
    if b.on_cuda:
        return _encoded(b, b["Out@GRAD"], b["X@GRAD"], NO_ARRAY, NO_ARRAY)
    g = b["Out@GRAD"]
    b(np.multiply, g, b.const(b.attr("alpha"), g.dtype), out=b["X@GRAD"])


def _encoded(b: Binder, x: Array, out: Array, waves: Array, places: Array) -> None:
    """Emit ``out = alpha · x + waves[places]``."""
    width = x.shape[-1]
    rows, args = x.size // max(width, 1), (x, waves, places, out, np.float64(b.attr("alpha")), np.int64(width))
    by_rows(b, CUDA, f"encoded<{ctype(x.dtype)}>", rows, width, *args)
