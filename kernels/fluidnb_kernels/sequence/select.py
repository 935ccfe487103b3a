"""sequence_slice, sequence_erase and sequence_enumerate: parts of sequences."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product, values_of
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.emit import reading
from fluidnb_kernels.rules import whole_numbers
from fluidnb_kernels.sequence import token_ids
from fluidnb_kernels.sequences import all_given, as_level, emit_put, emit_rows, offsets_of, ranges, require_lod


def _parts(c: Context) -> tuple[Array, Array]:
    """First row and length of the part of each sequence."""
    offsets = offsets_of(c)
    first, length = (on_host(c[slot]).reshape(-1) for slot in ("Offset", "Length"))
    c.require(
        len(first) == len(length) == len(offsets) - 1,
        "The size of input-sequence and of offset-array and length-array should be the same.",
        expected=f"{len(offsets) - 1} of each", received=f"{len(first)} offsets, {len(length)} lengths",
    )  # fmt: skip
    inside = (first >= 0) & (length >= 0) & (first + length <= np.diff(offsets))
    wrong = int(np.argmin(inside)) if len(inside) else 0
    c.require(
        inside.all(), "The target tensor's length overflow: a slice must be within its sequence.",
        expected=f"0 <= offset and offset + length <= {np.diff(offsets)[wrong]}, the length of sequence {wrong}",
        received=f"offset {first[wrong]}, length {length[wrong]}",
    )  # fmt: skip
    return offsets[:-1] + first, length


def _slice_infer(c: Context) -> None:
    x = c["X"]
    for slot in ("Offset", "Length"):
        whole_numbers(c, slot)
    require_lod(c, levels=1)
    if not c.runtime:
        return c.set("Out", (-1, *x.shape[1:]), x.dtype, c.lod("X"))
    lod = as_level(_parts(c)[1])
    return c.set("Out", (lod[-1], *x.shape[1:]), x.dtype, (lod,))


_BY_VALUE = values_of("Offset", "Length")


@op(
    "sequence_slice",
    inputs={
        "X: any[n, …] lod": "",
        "Offset: int64[sequences, 1]": "first row of each part, counted within its sequence",
        "Length: int64[sequences, 1]": "rows of each part",
    },
    outputs={"Out": "the parts"},
    infer=_slice_infer,
    grad=default_grad("X", "Offset", "Length", "Out@GRAD", wrt=["X"]),
    guard=_BY_VALUE,
    data_shape=True,
    dtype_slot="X",
    cuda=True,
)
def sequence_slice(b: Binder) -> None:
    """Out = rows Offset[i] to Offset[i] + Length[i] of each sequence i.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": ([[1.0], [2.0], [3.0]], [[2, 1]]), "Offset": [[1], [0]], "Length": [[1], [1]]}
        >>> run_op("sequence_slice", inputs)["Out"].array.ravel()
        array([2., 3.])

    Source: Fluid's sequence_slice_op.
    """
    verbs.gather(b, b["X"], ranges(*_parts(b)), b["Out"])


@grad_op("sequence_slice_grad", guard=_BY_VALUE, dtype_slot="Out@GRAD", cuda=True)
def sequence_slice_grad(b: Binder) -> None:
    """dX = dOut in the rows of the parts, 0 elsewhere."""
    verbs.scatter(b, b["Out@GRAD"], ranges(*_parts(b)), b["X@GRAD"], clear=True)


def _words(c: Context) -> None:
    x = c["X"]
    whole_numbers(c, "X")
    c.require(
        x.ndim > 0 and product(x.shape[1:]) in (1, -1),
        f"Input(X) of {c.definition.type} should be a 2-D LoDTensor with the 2nd dimension 1.",
        expected="[n, 1]", received=list(x.shape),
    )  # fmt: skip
    require_lod(c)


def erase(x: Array, tokens: list[int], out: Array) -> None:
    """Write the words that are not among ``tokens``."""
    out[...] = x[~np.isin(x, tokens)].reshape(out.shape)


def _kept(c: Context) -> tuple[int, ...]:
    """The number of words kept of each sequence."""
    if not all_given(c, "X"):
        return ()
    _words(c)
    stays = ~np.isin(on_host(c["X"]).reshape(-1), c.attr("tokens"))
    counts = np.concatenate([[0], np.cumsum(stays)])
    return tuple(np.diff(counts[offsets_of(c)]).tolist())


def _erase_infer(c: Context) -> None:
    _words(c)
    x, lod, rows = c["X"], c.lod("X"), -1
    if c.runtime:
        level = as_level(_kept(c))
        rows, lod = level[-1], (*lod[:-1], level)
    c.set("Out", (rows, *x.shape[1:]), x.dtype, lod)


@op(
    "sequence_erase",
    inputs={"X: int[n, 1] lod": ""},
    outputs={"Out": "the words that stay"},
    attrs={"tokens": Attr("ints", doc="the words that go")},
    infer=_erase_infer,
    guard=_kept,
    data_shape=True,
    cuda=token_ids.INDEXES,
)
def sequence_erase(b: Binder) -> None:
    """Out = X without the words of ``tokens``; sequences become shorter.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_erase", {"X": ([[2], [5], [2]], [[2, 1]])}, {"tokens": [2]})["Out"]
        LoDTensor(shape=[1, 1], dtype=int64, lod=[[0, 1, 1]], place=CPUPlace)

    Source: Fluid's sequence_erase_op.
    """
    if b.on_cuda:
        token_ids.erase(b, b["X"], b.attr("tokens"), offsets_of(b), as_level(_kept(b)), b["Out"])
    else:
        b(erase, b["X"], b.attr("tokens"), b["Out"])


def _enumerate_infer(c: Context) -> None:
    _words(c)
    c.set("Out", (c["X"].shape[0], c.attr("win_size")), c["X"].dtype, c.lod("X"))


@op(
    "sequence_enumerate",
    inputs={"X: int[n, 1] lod": ""},
    outputs={"Out": "[n, win_size]"},
    attrs={
        "win_size": Attr("int", doc="how many words each row has", gt=0),
        "pad_value": Attr("int", 0, "the value beyond the end of a sequence"),
        "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Attr("bool", True, "accepted, without effect"),
    },
    infer=_enumerate_infer,
    cuda=True,
)
def sequence_enumerate(b: Binder) -> None:
    """Out[t] = X[t], X[t + 1], …, ``win_size`` words of the sequence.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("sequence_enumerate", {"X": ([[1], [2], [3]], [[2, 1]])}, {"win_size": 2})["Out"].array
        array([[1, 2],
               [2, 0],
               [3, 0]])

    Source: Fluid's sequence_enumerate_op.
    """
    out, offsets = b["Out"], offsets_of(b)
    ends = np.repeat(offsets[1:], np.diff(offsets))
    if b.on_cuda:
        return token_ids.windows(b, b["X"], ends, out, b.attr("pad_value"))
    wanted = np.arange(offsets[-1])[:, None] + np.arange(out.shape[1])
    beyond = np.flatnonzero(wanted >= ends[:, None])
    flat = out.reshape(-1)
    emit_rows(b, reading(b, b["X"], (len(b["X"]),)), np.minimum(wanted, offsets[-1] - 1).reshape(-1), flat)
    return emit_put(b, b.const(b.attr("pad_value"), out.dtype), beyond, flat)
