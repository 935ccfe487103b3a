"""warpctc as launches: a block goes along each sequence, and one writes the gradient of each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import THREADS
from fluidnb_kernels.cuda.lines import each_line
from fluidnb_kernels.cuda.rows import by_rows
from fluidnb_kernels.cuda.wide import wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import owners
from fluidnb_kernels.tensor.picks import numbers

Array = Any


def _kernels() -> Iterator[str]:
    for t in ("float", "double"):
        yield f"ctc_tops<{t}>"
        yield from (f"{name}<{t}, {i}>" for name in ("ctc_paths", "ctc_shares") for i in ("int", "long long"))
    yield from (f"ctc_scaled<{CTYPES[dtype]}>" for dtype in FLOATS)


CUDA = Source(__file__, "ctc.cu", _kernels)


def emit(b: Binder, steps: Array, counts: Array) -> None:
    """Emit the costs of sequences, and the gradients for a gradient of 1 where they are wanted.

    Args:
        steps: int64 [sequences]: time steps of each.
        counts: int64 [sequences]: labels of each.
    """
    padded, classes, dtype = b.has("LogitsLength"), b["Logits"].shape[-1], wide_dtype(b["Logits"].dtype)
    x, label, count = of_dtype(b, b["Logits"], dtype), numbers(b, b["Label"]), len(steps)
    firsts = np.arange(count) if padded else np.cumsum(steps) - steps
    labels = np.arange(count) * label.shape[1] if padded else np.cumsum(counts) - counts
    states = 2 * counts + 1
    ways, places = np.cumsum(steps * states), np.cumsum(states)
    rows, total = x.size // classes, int(places[-1]) if count else 0
    sequences = b.table(np.stack([firsts, steps, labels, counts, ways - steps * states, places - states], 1))
    top, size = b.tmp((rows,), dtype), b.tmp((rows,), dtype)
    alpha, beta = b.tmp((int(ways[-1]) if count else 0,), dtype), b.tmp((2, total), dtype)
    order, back = b.tmp((total,), np.int64), b.wants("WarpCTCGrad")
    loss = writing_as(b, b["Loss"], dtype) if b.wants("Loss") else b.tmp((count, 1), dtype)
    types, stride = f"<{ctype(dtype)}, {ctype(label.dtype)}>", np.int64(count if padded else 1)
    settings = stride, np.int64(classes), np.int64(b.attr("blank", 0))
    each_line(b, CUDA, f"ctc_tops<{ctype(dtype)}>", rows, classes, 1, x, top, size)
    if count:
        threads = min(THREADS, -(-int(states.max()) // 32) * 32)
        arrays = x, top, size, label, sequences, alpha, beta, order, loss
        b(CUDA["ctc_paths" + types], (count,), (threads,), 0, *arrays, *settings, np.int64(total), np.int32(back))
    if back:
        out = writing_as(b, b["WarpCTCGrad"], dtype)
        if rows:
            owner = np.full(rows, -1)
            within = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
            owner[np.repeat(firsts, steps) + within * int(stride)] = owners(steps)
            threads = min(THREADS, -(-max(classes, int(counts.max()) + 1) // 32) * 32)
            arrays = x, top, size, label, sequences, b.table(owner), alpha, order, out
            b(CUDA["ctc_shares" + types], (rows,), (threads,), 0, *arrays, *settings)
        written_as(b, b["WarpCTCGrad"], out)
    if b.wants("Loss"):
        written_as(b, b["Loss"], loss)


def emit_back(b: Binder, steps: Array) -> None:
    """Emit the gradient of the logits.

    Args:
        steps: int64 [sequences]: time steps of each.
    """
    kept, g, dx = b["WarpCTCGrad"], b["Loss@GRAD"], b["Logits@GRAD"]
    scale = np.maximum(steps, 1) if b.attr("norm_by_times", False) else np.ones(len(steps))
    width = dx.shape[-1]
    rows = dx.size // width
    owner = np.arange(rows) % len(steps) if b.has("LogitsLength") and rows else owners(steps)
    tables = b.table(scale.astype(wide_dtype(g.dtype))), b.table(owner)
    by_rows(b, CUDA, f"ctc_scaled<{ctype(dx.dtype)}>", rows, width, kept, g, *tables, dx, np.int64(width))
