"""Beam search as launches: a block looks through the candidates of each source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.op import Binder
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import THREADS, each
from fluidnb_kernels.emit import FLOATS

Array = Any


def _kernels() -> Iterator[str]:
    yield from (f"{name}<{CTYPES[dtype]}>" for name in ("beam_select", "beam_write") for dtype in FLOATS)
    yield from ("gather_tree<int>", "gather_tree<long long>")


CUDA = Source(__file__, "beam.cu", _kernels)


class _AtOnce:
    """Does at once what a binder would emit, in memory that is gone afterwards: for guards."""

    def __init__(self, b: Binder) -> None:
        self._b = b

    def tmp(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self._b.memory.alloc_on("cuda", shape, dtype)

    def table(self, numbers: Array) -> Array:
        return self._b.table(numbers)

    def __call__(self, function: Any, *args: Any) -> None:
        function(*args)


class Search:
    """A step of a beam search.

    Args:
        b: the binder of a beam_search.
        sources: rows of each source: offsets.
        beam_size: how many candidates a source keeps at most.
        end_id: the word that ends a sentence.
        is_accumulated: whether ``scores`` has the score of the sentence so far in it.
        at_once: whether it is done now and not when the operator runs.

    Example:
        >>> from fluidnb.testing import run_op
        >>> out = run_op("beam_search", {
        ...     "pre_ids": [[1]], "pre_scores": [[0.0]], "ids": [[4, 2, 5]], "scores": ([[0.5, 0.3, 0.2]], [[1], [1]]),
        ... }, {"level": 0, "beam_size": 2, "end_id": 0})
        >>> out["selected_ids"].array.ravel()
        array([4, 2])
    """

    def __init__(
        self, b: Binder, sources: Sequence[int], beam_size: int, end_id: int, is_accumulated: bool,
        at_once: bool = False,
    ) -> None:  # fmt: skip
        self._b, self._emit = b, _AtOnce(b) if at_once else b
        emit: Any = self._emit
        scores, before, last = b["scores"], b["pre_scores"], of_dtype(emit, b["pre_ids"], np.dtype(np.int64))
        self._operands = last, None if before is None else of_dtype(emit, before, scores.dtype), scores
        (rows, width), count = scores.shape, len(sources) - 1
        numbers = np.int64(width), np.int64(end_id), np.int32(is_accumulated), np.int64(beam_size)
        self._numbers, self._sources, self._picks = numbers, sources, emit.tmp((count, beam_size), np.int64)
        self.counts = emit.tmp((rows,), np.int64)
        if count:
            most = max(1, int(np.diff(sources).max()) * width)
            kernel = CUDA[f"beam_select<{ctype(scores.dtype)}>"]
            arrays = *self._operands, emit.table(np.array(sources, np.int64)), self._picks, self.counts
            emit(kernel, (count,), (min(THREADS, -(-most // 32) * 32),), 0, *arrays, *numbers)

    def kept(self) -> tuple[int, ...]:
        """How many candidates each row keeps, of a step that is done at once."""
        return tuple(on_host(self.counts).tolist())

    def write(self, counts: Sequence[int]) -> None:
        """Emit the outputs.

        Args:
            counts: how many candidates each row keeps.
        """
        b, count = self._b, len(self._sources) - 1
        words = None if b["ids"] is None else of_dtype(b, b["ids"], np.dtype(np.int64))
        starts = np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))])[list(self._sources[:-1])]
        if sum(counts):
            kernel, threads = CUDA[f"beam_write<{ctype(b['scores'].dtype)}>"], int(self._numbers[-1])
            outs = b["selected_ids"], b["selected_scores"], b["parent_idx"]
            arrays = *self._operands, words, self._picks, b.table(starts.astype(np.int64)), *outs
            b(kernel, (count,), (min(THREADS, -(-threads // 32) * 32),), 0, *arrays, *self._numbers)


def gather_tree(b: Binder) -> None:
    """Emit whole sentences."""
    ids, (steps, batch, beams) = b["Ids"], b["Ids"].shape
    sizes = np.int64(steps), np.int64(beams)
    parents = of_dtype(b, b["Parents"], ids.dtype)
    each(b, CUDA, f"gather_tree<{ctype(ids.dtype)}>", batch * beams if steps else 0, ids, parents, b["Out"], *sizes)
