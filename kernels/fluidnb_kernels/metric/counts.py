"""Launches of metrics that count."""

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import THREADS, Source, ctype, of_dtype, typed
from fluidnb_kernels.math.same_shape import added
from fluidnb_kernels.tensor.strided_copy import fill

#: The dtypes in which classes are read.
CLASSES = ("int32", "int64")
#: Blocks at most, each of which leaves its counts; classes at most that a block counts for itself.
_BLOCKS, _BESIDE = 1024, 4096

CUDA = Source(__file__, "counts.cu", typed(
    ("right_rows share_of_rows mean_of_classes",), ("class_counts", CLASSES),
))  # fmt: skip


def _blocks(count: int) -> int:
    return min(_BLOCKS, -(-count // THREADS))


def count_right(
    b: Binder, indices: Array, labels: Array, share: Array | None, right: Array | None, total: Array | None
) -> None:
    """Emit the share of rows with their label among their indices, their number, and that of all rows; or None."""
    rows, k = indices.shape
    blocks, whole = _blocks(rows), np.dtype(np.int64)
    partial = b.tmp((max(blocks, 1),), np.int32)
    if rows:
        operands = of_dtype(b, indices, whole), of_dtype(b, labels, whole), partial
        b(CUDA["right_rows"], (blocks,), (THREADS,), 0, *operands, np.int64(k), np.int64(rows))
    outs = share, right, total
    b(CUDA["share_of_rows"], (1,), (THREADS,), 0, partial, *outs, np.int32(blocks), np.int64(rows))


def count_classes(
    b: Binder, guesses: Array, labels: Array, classes: int, before: Sequence[Sequence[Array]],
    mean: Array | None, wrong: Array | None, right: Array | None,
) -> None:  # fmt: skip
    """Emit what `fluidnb_kernels.metric.mean_iou.measure` computes."""
    means, *counts = before
    off, hits = (b.tmp((classes,), np.int32) if out is None else out for out in (wrong, right))
    for out, terms in zip((off, hits), counts, strict=True):
        if terms:
            added(b, terms, out)
        else:
            fill(b, out)
    strange = b.tmp((1,), np.int32)
    fill(b, strange)
    if guesses.size:
        dtype = np.result_type(guesses.dtype, labels.dtype)
        beside = classes <= _BESIDE
        operands = of_dtype(b, guesses, dtype), of_dtype(b, labels, dtype), hits, off, strange
        grid, shared = (_blocks(guesses.size),), 8 * classes if beside else 0
        numbers = np.int32(classes), np.int32(beside), np.int64(guesses.size)
        b(CUDA[f"class_counts<{ctype(dtype)}>"], grid, (THREADS,), shared, *operands, *numbers)
    if mean is not None:
        b(CUDA["mean_of_classes"], (1,), (THREADS,), 0, hits, off, strange, mean, np.int32(classes))
        if means:
            added(b, [mean, *means], mean)
