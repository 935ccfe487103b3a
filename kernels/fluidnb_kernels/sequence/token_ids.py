"""Whole numbers in sequences on a GPU: masks, windows, words that stay, numbers that name columns."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.cuda import BLOCKS, Source, by_rows, ctype, each, typed
from fluidnb_kernels.cuda.dtypes import cast, of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.line_grid import TEAM
from fluidnb_kernels.sequence.row_maps import NO_ARRAY, on_device
from fluidnb_kernels.tensor.row_indexing import SUMMED, numbers, word
from fluidnb_kernels.tensor.strided_copy import WORDS, fill, move

#: Dtypes of words.
INDEXES = ("int32", "int64")


_WORDS = [name for size, name in WORDS.items() if size <= 8]
CUDA = Source(__file__, "token_ids.cu", typed(
    ("mask", _WORDS, INDEXES), ("windows picked", _WORDS), ("erased aligned aligned_steps", INDEXES),
    ("scattered", SUMMED),
))  # fmt: skip


def _bits(value: Any, dtype: Any) -> np.uint64:
    """An element as a word."""
    return np.frombuffer(np.asarray(value).astype(dtype).tobytes().ljust(8, b"\0"), np.uint64)[0]


def _by_sequences(b: Binder, kernel: str, count: int, *args: Any) -> None:
    """Emit a launch in which a warp takes a sequence; their number comes as the last argument."""
    if count:
        b(CUDA[kernel], (min(BLOCKS, -(-count // TEAM)),), (32, TEAM), 0, *args, np.int64(count))


def mask(b: Binder, lengths: Array, out: Array) -> None:
    """Emit 1 in the first columns of each row, 0 in the others."""
    lengths, width = numbers(b, lengths), out.shape[-1]
    name = f"mask<{word(out)}, {ctype(lengths.dtype)}>"
    by_rows(b, CUDA, name, lengths.size, width, lengths, out, _bits(1, out.dtype), np.int64(width))


def windows(b: Binder, x: Array, ends: Array, out: Array, pad: int) -> None:
    """Emit ``out[r, j] = x[r + j]`` up to the end of each sequence."""
    width = out.shape[1]
    by_rows(
        b, CUDA, f"windows<{word(out)}>", len(out), width, x, on_device(b, ends), out, _bits(pad, out.dtype),
        np.int64(width),
    )  # fmt: skip


def erase(b: Binder, x: Array, tokens: Any, offsets: Array, level: Any, out: Array) -> None:
    """Emit the words that are not among some."""
    gone = on_device(b, np.array(tokens, np.int64)) if len(tokens) else NO_ARRAY
    args = x, on_device(b, offsets), on_device(b, level), gone, np.int32(len(tokens)), out
    _by_sequences(b, f"erased<{ctype(x.dtype)}>", len(offsets) - 1, *args)


def align(b: Binder, x: Array, offsets: Array, level: Any, blank: int, merge: bool, out: Array) -> None:
    """Emit the labels that are kept of sequences; one -1 where none is."""
    if not level[-1]:
        return fill(b, out, -1)
    args = x, on_device(b, offsets), on_device(b, level), np.int64(blank), np.int32(merge), out
    return _by_sequences(b, f"aligned<{ctype(x.dtype)}>", len(offsets) - 1, *args)


def align_steps(
    b: Binder, x: Array, lengths: Array, blank: int, merge: bool, padding: int, out: Array | None, counts: Array | None
) -> None:
    """Emit the labels that are kept of the rows of a rectangle, and their numbers; None without a consumer."""
    kept = None if counts is None else writing_as(b, counts, np.dtype(np.int64))
    outs = [NO_ARRAY if a is None else a for a in (out, kept)]
    settings = np.int64(blank), np.int32(merge), np.int64(padding)
    args = x, of_dtype(b, lengths, np.dtype(np.int64)), *settings, *outs, np.int64(x.shape[1])
    _by_sequences(b, f"aligned_steps<{ctype(x.dtype)}>", x.shape[0], *args)
    if counts is not None:
        written_as(b, counts, kept)


def scatter(b: Binder, x: Array, ids: Array, updates: Array, offsets: Array, out: Array) -> None:
    """Emit a matrix with sequences of updates added to elements of its rows, in their order."""
    total = writing_as(b, out, wide_dtype(out.dtype))
    (move if total is out else cast)(*((b, out, x) if total is out else (b, x, total)))
    args = updates, of_dtype(b, ids, np.dtype(np.int64)), on_device(b, offsets), total, np.int64(out.shape[1])
    _by_sequences(b, f"scattered<{ctype(updates.dtype)}>", out.shape[0] if updates.size else 0, *args)
    written_as(b, out, total)


def pick(b: Binder, x: Array, ids: Array, owners: Array, out: Array) -> None:
    """Emit ``out[k] = x[owners[k], ids[k]]``."""
    x, ids = of_dtype(b, x, out.dtype), of_dtype(b, ids, np.dtype(np.int64))
    args = x, ids, on_device(b, owners), out, np.int64(x.shape[1])
    each(b, CUDA, f"picked<{word(out)}>", out.size, *args)
