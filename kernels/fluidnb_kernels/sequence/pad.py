"""sequence_pad, sequence_unpad and sequence_mask: between sequences and rectangles of steps."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, like_forward, op, values_of
from fluidnb.values import dtypes
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import reading, writing, written
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequence.token_ids import mask
from fluidnb_kernels.sequences import all_given, as_level, emit_put, offsets_of, one_dtype, ranges, require_lod, within


def _cells(lengths: Array, height: int) -> Array:
    """The indices of the rows of each sequence among those of a rectangle of ``height`` steps each."""
    return ranges(np.arange(len(lengths)) * height, lengths)


def _flat(b: Binder, x: Array, of: Any = reading) -> Array:
    """A rectangle of steps [n, height, …] as rows [n · height, …]."""
    return of(b, x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _step(x: Array) -> tuple[int, ...]:
    """The sizes of a step without padding: [1] where the steps of the rectangle are numbers."""
    return tuple(x.shape[2:]) or (1,)


def _pad_infer(c: Context) -> None:
    one_dtype(c, "X", "PadValue")
    x, fill, height = c["X"], c["PadValue"], c.attr("padded_length")
    c.require(
        fill.size in (1, -1) or tuple(fill.shape) == tuple(x.shape[1:]),
        "Input(PadValue) of sequence_pad must be one number, or have the shape of a step.",
        expected=f"[1] or {list(x.shape[1:])}", received=list(fill.shape),
    )  # fmt: skip
    require_lod(c, levels=1)
    count = -1
    if c.runtime:
        lengths = np.diff(offsets_of(c))
        longest, count = int(lengths.max()), len(lengths)
        c.require(
            height < 0 or height >= longest, "The padded sequence length should not be less than its original length.",
            expected=f"padded_length -1, or at least {longest}", received=height,
        )  # fmt: skip
        height = longest if height < 0 else height
    c.set("Out", (count, height, *x.shape[1:]), x.dtype)
    c.set("Length", (count,), np.int64)


@op(
    "sequence_pad",
    inputs={
        "X: any[n, …] lod": "",
        "PadValue: float[1] | float": "what follows the end: one number, or the shape of a row",
    },
    outputs={"Out": "[sequences, steps, …]", "Length": "int64 [sequences]: the lengths"},
    attrs={"padded_length": Attr("int", -1, "steps; -1 takes the longest sequence's", ge=-1)},
    infer=_pad_infer,
    grad=default_grad("X", "Out@GRAD", wrt=["X"]),
    cuda=True,
)
def sequence_pad(b: Binder) -> None:
    """Out[i] = sequence i, and PadValue up to ``padded_length``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_pad", {"X": ([[1.0], [2.0], [3.0]], [[2, 1]]), "PadValue": [0.0]})["Out"][..., 0]
        array([[1., 2.],
               [3., 0.]])

    Source: Fluid's sequence_pad_op.
    """
    out, fill, lengths = b["Out"], b["PadValue"], np.diff(offsets_of(b))
    cells = _cells(lengths, out.shape[1])
    flat = _flat(b, out, writing)
    if b.on_cuda:
        row_maps.gather(b, b["X"], row_maps.inverse(cells, len(flat)), flat, fill)
    else:
        emit_put(b, b["X"], cells, flat)
        emit_put(b, fill.reshape(()) if fill.size == 1 else fill, np.setdiff1d(np.arange(len(flat)), cells), flat)
        written(b, out, flat)
    if b.wants("Length"):
        verbs.write(b, b["Length"], lengths)


def _pad_grad_infer(c: Context) -> None:
    x, g = c["X"], c["Out@GRAD"]
    if c.runtime:
        lengths = np.diff(offsets_of(c))
        wanted = (len(lengths), max(g.shape[1] if g.ndim > 1 else 0, int(lengths.max(initial=0))), *x.shape[1:])
        c.require(
            tuple(g.shape) == wanted, "Input(Out@GRAD) of sequence_pad_grad must have a row for each step of Input(X).",
            expected=f"shape {list(wanted)}", received=f"shape {list(g.shape)}",
        )  # fmt: skip
    like_forward(c)


@grad_op("sequence_pad_grad", infer=_pad_grad_infer, dtype_slot="Out@GRAD", cuda=True)
def sequence_pad_grad(b: Binder) -> None:
    """dX = the rows of dOut at which those of X are."""
    g = b["Out@GRAD"]
    verbs.gather(b, _flat(b, g), _cells(np.diff(offsets_of(b)), g.shape[1]), b["X@GRAD"])


def _unpad_infer(c: Context) -> None:
    x, length = c["X"], c["Length"]
    c.require(
        x.ndim >= 2, "The rank of Input(X) of sequence_unpad can't be less than 2.", expected="[sequences, steps, …]",
        received=list(x.shape),
    )  # fmt: skip
    c.require(
        length.size in (-1, x.shape[0]) or x.shape[0] < 0,
        "Input(Length) of sequence_unpad must have one length for each sequence.",
        expected=f"[{x.shape[0]}]", received=list(length.shape),
    )  # fmt: skip
    whole_numbers(c, "Length")
    if not c.runtime:
        return c.set("Out", (-1, *_step(x)), x.dtype, (None,))
    lod = as_level(within(c, "Length", x.shape[1], "the steps of Input(X)"))
    return c.set("Out", (lod[-1], *_step(x)), x.dtype, (lod,))


@op(
    "sequence_unpad",
    inputs={"X: any[sequences, steps, …]": "", "Length: int64[sequences]": "how many steps of each are its own"},
    outputs={"Out": "[sum of lengths, …] with sequences; [sum of lengths, 1] for a matrix X"},
    infer=_unpad_infer,
    grad=default_grad("X", "Out@GRAD", wrt=["X"]),
    guard=values_of("Length"),
    data_shape=True,
    dtype_slot="X",
    cuda=True,
)
def sequence_unpad(b: Binder) -> None:
    """Out = the first ``Length[i]`` steps of each row of X, as sequences.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_unpad", {"X": [[1.0, 2.0], [3.0, 0.0]], "Length": [2, 1]})["Out"]
        LoDTensor(shape=[3, 1], dtype=float64, lod=[[0, 2, 3]], place=CPUPlace)

    Source: Fluid's sequence_unpad_op.
    """
    x = b["X"]
    rows = reading(b, x, (x.shape[0] * x.shape[1], *_step(x)))
    verbs.gather(b, rows, _cells(on_host(b["Length"]).reshape(-1), x.shape[1]), b["Out"])


def _unpad_grad_infer(c: Context) -> None:
    x, g = c["X"], c["Out@GRAD"]
    fitting = x.ndim >= 2 and agree(g.shape[1:], _step(x))
    if fitting and c.runtime:
        lengths = np.diff(offsets_of(c, "Out@GRAD"))
        fitting = len(lengths) == x.shape[0] and lengths.max(initial=0) <= x.shape[1]
    c.require(
        fitting, "Input(Out@GRAD) of sequence_unpad_grad must have a sequence for each row of Input(X).",
        expected=f"steps of Input(X) {list(x.shape)}", received=f"shape {list(g.shape)}",
    )  # fmt: skip
    like_forward(c)


@grad_op("sequence_unpad_grad", infer=_unpad_grad_infer, dtype_slot="Out@GRAD", cuda=True)
def sequence_unpad_grad(b: Binder) -> None:
    """dX = dOut where a step is a sequence's own, 0 elsewhere."""
    dx = b["X@GRAD"]
    flat = writing(b, dx, (dx.shape[0] * dx.shape[1], *_step(dx)))
    cells = _cells(np.diff(offsets_of(b, "Out@GRAD")), dx.shape[1])
    verbs.scatter(b, b["Out@GRAD"], cells, flat, clear=True)
    written(b, dx, flat)


def _longest(c: Context) -> int:
    """The number of columns of the mask."""
    if not all_given(c, "X") or c.has("MaxLenTensor") and not all_given(c, "MaxLenTensor"):
        return -1
    whole_numbers(c, "X")
    if c.has("MaxLenTensor"):
        whole_numbers(c, "MaxLenTensor")
        most = on_host(c["MaxLenTensor"]).reshape(-1)
        c.require(
            most.size == 1, "Input(MaxLenTensor) of sequence_mask must be one number.", expected="[1]",
            received=list(c["MaxLenTensor"].shape),
        )  # fmt: skip
        return int(most[0])
    limit, lengths = c.attr("maxlen"), c["X"]
    return limit if limit >= 0 else int(on_host(lengths).max()) if lengths.size else 0


def _mask_infer(c: Context) -> None:
    whole_numbers(c, "X")
    columns = _longest(c) if c.runtime else -1 if c.has("MaxLenTensor") else c.attr("maxlen")
    c.require(
        not c.runtime or columns >= 0, "maxlen of sequence_mask must not be negative.", expected=">= 0",
        received=columns,
    )  # fmt: skip
    c.set("Y", (*c["X"].shape, columns), dtypes.np_dtype(c.attr("out_dtype")))


@op(
    "sequence_mask",
    inputs={"X: int": "lengths, any shape", "MaxLenTensor?": "how many columns, instead of maxlen"},
    outputs={"Y": "[shape of X, maxlen]: 1 in the first X columns, 0 in the others"},
    attrs={
        "maxlen": Attr(
            "int", -1, "how many columns; -1 for the longest length",
            check=lambda n: "Attr(maxlen) must be less than 0 or larger than 1." if n == 0 else None,
        ),
        "out_dtype": Attr("dtype", "int64", "dtype of Y"),
    },
    infer=_mask_infer,
    guard=_longest,
    data_shape=True,
    dtype_slot="X", cuda=True,
)  # fmt: skip
def sequence_mask(b: Binder) -> None:
    """Y[…, j] = 1 where j < X[…], else 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_mask", {"X": [1, 3]})["Y"]
        array([[1, 0, 0],
               [1, 1, 1]])

    Source: Fluid's sequence_mask_op.
    """
    x, out = b["X"], b["Y"]
    if b.on_cuda:
        return mask(b, x, out)
    below = b.tmp(out.shape, bool)
    b(np.less, np.arange(out.shape[-1]), x[..., None], out=below)
    return b(np.copyto, out, below)
