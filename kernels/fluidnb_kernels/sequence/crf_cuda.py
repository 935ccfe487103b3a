"""linear_chain_crf as launches: a block goes along each sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb_kernels.cuda import Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import THREADS, each
from fluidnb_kernels.cuda.lines import each_line
from fluidnb_kernels.cuda.wide import wide_dtype, writing_as, written_as
from fluidnb_kernels.rnn.on_cuda import over_rows
from fluidnb_kernels.sequence.tagged import Tagged
from fluidnb_kernels.tensor.moves import fill
from fluidnb_kernels.tensor.picks import numbers

Array = Any


def _kernels() -> Iterator[str]:
    for t in ("float", "double"):
        yield from (f"{name}<{t}>" for name in ("crf_exps", "exps_of", "ends_back", "pairs_back"))
        for index in ("int", "long long"):
            yield from (f"crf_forward<{t}, {index}>", f"crf_back<{t}, {index}>")


CUDA = Source(__file__, "crf.cu", _kernels)


def emit(b: Binder) -> None:
    """Emit the costs of sequences, and what their gradient reads."""
    tagged, dtype, tags = Tagged(b), wide_dtype(b["Emission"].dtype), b["Transition"].shape[1]
    x, transition = of_dtype(b, b["Emission"], dtype), of_dtype(b, b["Transition"], dtype)
    likes = {"Alpha": x, "EmissionExps": x, "TransitionExps": transition, "LogLikelihood": b["LogLikelihood"]}
    outs = {s: writing_as(b, b[s], dtype) if b.wants(s) else b.tmp(like.shape, dtype) for s, like in likes.items()}
    alpha, exps, weights, cost = outs.values()
    rows, name = x.size // max(tags, 1), ctype(dtype)
    top = b.tmp((rows,), dtype)
    each_line(b, CUDA, f"crf_exps<{name}>", rows, tags, 1, x, exps, top)
    each(b, CUDA, f"exps_of<{name}>", weights.size, transition, weights)
    label, where = numbers(b, b["Label"]), _where(b, tagged)
    arrays = x, exps, top, transition, weights, label, *where, alpha, cost
    _along(b, f"crf_forward<{name}, {ctype(label.dtype)}>", tagged.count, tags, *arrays)
    for slot, given in outs.items():
        if b.wants(slot):
            written_as(b, b[slot], given)


def emit_back(b: Binder) -> None:
    """Emit the gradients of emissions and transitions."""
    tagged, dtype, tags = Tagged(b), wide_dtype(b["Alpha"].dtype), b["TransitionExps"].shape[1]
    alpha, exps, weights = (of_dtype(b, b[s], dtype) for s in ("Alpha", "EmissionExps", "TransitionExps"))
    shape = (alpha.size // max(tags, 1), tags)
    dx = writing_as(b, b["Emission@GRAD"], dtype) if b.wants("Emission@GRAD") else b.tmp(shape, dtype)
    beta, came, ahead = (b.tmp(shape, dtype) for _ in range(3))
    said, label, where = b.tmp((tags, tags), dtype), numbers(b, b["Label"]), _where(b, tagged)
    fill(b, said)
    g, name = of_dtype(b, b["LogLikelihood@GRAD"], dtype), ctype(dtype)
    arrays = alpha, exps, weights, label, g, *where, beta, dx, came, ahead, said
    _along(b, f"crf_back<{name}, {ctype(label.dtype)}>", tagged.count, tags, *arrays)
    if b.wants("Emission@GRAD"):
        written_as(b, b["Emission@GRAD"], dx)
    if b.wants("Transition@GRAD"):
        out, expected = writing_as(b, b["Transition@GRAD"], dtype), b.tmp((tags, tags), dtype)
        each(b, CUDA, f"ends_back<{name}>", tags, dx, *where, out, np.int64(tagged.count))
        over_rows(b, came, ahead, expected)
        each(b, CUDA, f"pairs_back<{name}>", expected.size, expected, weights[2:], said, out[2:])
        written_as(b, b["Transition@GRAD"], out)


def _where(b: Binder, tagged: Tagged) -> tuple[Array, Array]:
    """Where the positions of each sequence start, with where the last ones end, and how many are its own."""
    return b.table(np.ascontiguousarray(tagged.starts)), b.table(np.ascontiguousarray(tagged.lengths))


def _along(b: Binder, kernel: str, count: int, tags: int, *arrays: Array) -> None:
    """Emit a launch of a block for each sequence, with a thread for each tag as far as they go."""
    if count:
        threads = min(THREADS, -(-max(tags, 1) // 32) * 32)
        b(CUDA[kernel], (count,), (threads,), 0, *arrays, np.int64(tags))
