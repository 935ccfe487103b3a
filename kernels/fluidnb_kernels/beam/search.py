"""beam_search: one step, which selects the best continuations for each source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Attr, Binder, Context, kernel, op
from fluidnb.values.copies import on_host
from fluidnb.values.lod import to_absolute
from fluidnb_kernels.cuda import CTYPES, Source, ctype
from fluidnb_kernels.cuda.cast import of_dtype
from fluidnb_kernels.cuda.grid import THREADS
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.rules import agree, whole_numbers
from fluidnb_kernels.sequences import all_given, as_level

Array = Any


@dataclass(frozen=True, slots=True)
class Step:
    """Parameters of a step beside its tensors.

    Args:
        sources: rows of each source: offsets.
        beam_size: how many candidates a source keeps at most.
        end_id: the word that ends a sentence.
        is_accumulated: whether ``scores`` has the score of the sentence so far in it.

    Example:
        >>> Step((0, 2), 2, 0, True).sources
        (0, 2)
    """

    sources: tuple[int, ...]
    beam_size: int
    end_id: int
    is_accumulated: bool


def choose(
    step: Step, pre_ids: Array, pre_scores: Array | None, ids: Array | None, scores: Array
) -> tuple[Array, Array, Array]:
    """The best candidates of each source.

    A sentence that has ended is one candidate, itself. Of equal scores that of the later row wins, then the one named
    first. A source all of whose candidates had ended before keeps none: it is done.

    Args:
        pre_ids: int64 [rows, 1], the last word of each sentence so far.
        pre_scores: [rows, 1], its score; None where ended sentences compete with what follows them, and then go.
        ids: int64 [rows, width], words it may continue with; None for 0, 1, ….
        scores: [rows, width], their scores or probabilities.

    Returns:
        Rows, words and scores of the candidates kept: by row, the best of a row first.

    Example:
        >>> rows, words, scores = choose(
        ...     Step((0, 2), 2, 0, True), np.array([[1], [2]]), np.zeros((2, 1)), None,
        ...     np.array([[0.1, 0.5], [0.9, 0.2]]))
        >>> rows, words, scores
        (array([0, 1]), array([1, 0]), array([0.5, 0.9]))
    """
    if pre_scores is None:
        return _choose_without(step, pre_ids, ids, scores)
    count, width = scores.shape
    before, ended = pre_scores.reshape(count, 1), pre_ids.reshape(count) == step.end_id
    score = scores if step.is_accumulated else before + np.log(scores)
    word = np.broadcast_to(np.arange(width), score.shape) if ids is None else ids
    score = np.where(ended[:, None], before, score).reshape(-1)
    word = np.where(ended[:, None], step.end_id, word).reshape(-1)
    row = np.repeat(np.arange(count), width)
    source = np.repeat(np.arange(len(step.sources) - 1), np.diff(step.sources) * width)
    candidates = np.flatnonzero(~ended[row] | (np.arange(count * width) % max(width, 1) == 0))
    order = candidates[np.lexsort((-row[candidates], -score[candidates], source[candidates]))]
    first = np.searchsorted(source[order], np.arange(len(step.sources) - 1))
    order = order[np.arange(len(order)) - first[source[order]] < step.beam_size]
    going_on = np.zeros(len(step.sources) - 1, bool)
    going_on[source[order[~(ended[row[order]] & (word[order] == step.end_id))]]] = True
    order = order[going_on[source[order]]]
    order = order[np.argsort(row[order], kind="stable")]
    return row[order], word[order], score[order]


def _choose_without(step: Step, pre_ids: Array, ids: Array | None, scores: Array) -> tuple[Array, Array, Array]:
    """As `choose` in versions 0.11 to 0.13, which did not know the scores so far: the words of a row by number."""
    count, width = scores.shape
    score, row = scores.reshape(-1), np.repeat(np.arange(count), width)
    word = np.broadcast_to(np.arange(width), scores.shape).reshape(-1) if ids is None else ids.reshape(-1)
    source = np.repeat(np.arange(len(step.sources) - 1), np.diff(step.sources) * width)
    order = np.lexsort((-score, source))
    first = np.searchsorted(source[order], np.arange(len(step.sources) - 1))
    order = order[np.arange(len(order)) - first[source[order]] < step.beam_size]
    order = order[pre_ids.reshape(-1)[row[order]] != step.end_id]
    order = order[np.lexsort((word[order], row[order]))]
    return row[order], word[order], score[order]


def search(step: Step, operands: tuple[Array, ...], ids: Array, scores: Array, parents: Array) -> None:
    """Write the best candidates of each source.

    Args:
        step: see `choose`.
        operands: pre_ids, pre_scores, ids or None, scores; see `choose`.
        ids: int64 [n, 1], written where wanted.
        scores: [n, 1], written where wanted.
        parents: int32 [n], written where wanted.

    Example:
        >>> words = np.zeros((1, 1), int)
        >>> operands = np.array([[1]]), np.zeros((1, 1)), None, np.array([[0.1, 0.9]])
        >>> search(Step((0, 1), 1, 0, True), operands, words, None, None); words
        array([[1]])
    """
    rows, word, score = choose(step, *operands)
    for out, value in ((ids, word), (scores, score), (parents, rows)):
        if out is not None:
            out.reshape(-1)[...] = value


def _operands(b: Binder) -> tuple[Array, ...]:
    return b["pre_ids"], b["pre_scores"], b["ids"], b["scores"]


def _step(c: Context) -> Step:
    lod, level = c.lod("scores"), c.attr("level")
    c.require(
        len(lod) == 2, "Level of LodTensor should be 2: sources, and the sentences of each.",
        expected="Input(scores) with a LoD of 2 levels", received=f"a LoD of {len(lod)} level{'s' * (len(lod) != 1)}",
        hint="start from ids and scores fed with two levels, for example recursive_seq_lens [[1, 1], [1, 1]].",
    )  # fmt: skip
    c.require(
        0 <= level < 2 and lod[1][-1] == c["scores"].shape[0],
        "Attr(level) and Input(scores) of beam_search do not fit.",
        expected="level 0 or 1, and a row of scores for each sentence of the LoD",
        received=f"level {level}, {c['scores'].shape[0]} rows, LoD {[list(x) for x in lod]}",
    )  # fmt: skip
    sources = tuple(to_absolute(lod)[level])
    return Step(sources, c.attr("beam_size"), c.attr("end_id"), bool(c.attr("is_accumulated", True)))


def _on_device(b: Binder) -> bool:
    """Whether the kernel for GPUs is taken."""
    return b.memory.place_kind == "cuda" and b["scores"].dtype.name in FLOATS


def _search(b: Binder, at_once: bool = False) -> Search:
    step = _step(b)
    return Search(b, step.sources, step.beam_size, step.end_id, step.is_accumulated, at_once)


def _counts(b: Binder) -> tuple[int, ...]:
    """How many candidates each row keeps: the LoD of the result."""
    if not all_given(b, "pre_ids", *(["pre_scores"] if b.has("pre_scores") else []), "scores"):
        return ()
    _check(b)
    if _on_device(b):
        return _search(b, at_once=True).kept()
    rows, _, _ = choose(_step(b), *_operands(b))
    return tuple(np.bincount(rows, minlength=len(b["scores"])).tolist())


def _check(c: Context) -> None:
    scores = c["scores"]
    c.require(
        scores.ndim == 2, "Input(scores) of beam_search must have a row of candidates for each sentence.",
        expected="[sentences, candidates]", received=list(scores.shape),
    )  # fmt: skip
    if c.has("ids") and c["ids"] is not None:
        whole_numbers(c, "ids")
        c.require(
            agree(c["ids"].shape, scores.shape), "Input(ids) of beam_search must name a word for each score.",
            expected=list(scores.shape), received=list(c["ids"].shape),
        )  # fmt: skip
    whole_numbers(c, "pre_ids")
    c.require(
        c.has("pre_scores") or c.attr("is_accumulated", True),
        "Input(pre_scores) of beam_search is needed where scores are not of whole sentences.",
        expected="pre_scores, or is_accumulated=True", received="neither",
    )  # fmt: skip
    for slot in ("pre_ids", "pre_scores") if c.has("pre_scores") else ("pre_ids",):
        c.require(
            c[slot].size in (-1, scores.shape[0]) or scores.shape[0] == -1,
            f"Input({slot}) of beam_search must have one number for each sentence.",
            expected=f"[{scores.shape[0]}, 1]", received=list(c[slot].shape),
        )  # fmt: skip


def _infer(c: Context) -> None:
    _check(c)
    if not c.runtime:
        _set(c, -1, (None, None))


def _set(c: Context, count: int, lod: Any) -> None:
    c.set("selected_ids", (count, 1), np.int64, lod)
    c.set("selected_scores", (count, 1), c["scores"].dtype, lod)
    c.set("parent_idx", (count,), np.int32)


@op(
    "beam_search",
    inputs={
        "pre_ids: int64[sentences, 1]": "their last words",
        "pre_scores?: float[sentences, 1]": "their scores so far; left out, sentences that have ended are not kept",
        "ids?: int64[sentences, candidates]": "words that each may continue with; left out: 0, 1, …",
        "scores: float[sentences, candidates] lod 2": "the sentences of each source",
    },
    outputs={
        "selected_ids": "int64 [n, 1]: the words kept; LoD: rows of each source, words kept from each row",
        "selected_scores": "[n, 1]: the scores of the sentences with them",
        "parent_idx?": "int32 [n]: the row that each comes from",
    },
    attrs={
        "level": Attr("int", doc="the level of the LoD that holds the sources", ge=0),
        "beam_size": Attr("int", doc="how many sentences a source keeps", gt=0),
        "end_id": Attr("int", doc="the word that ends a sentence"),
        "is_accumulated": Attr("bool", True, "whether scores are of whole sentences; else probabilities of words"),
    },
    infer=_infer,
    guard=_counts,
    data_shape=True,
    dtype_slot="scores",
)
def beam_search(b: Binder) -> None:
    """The ``beam_size`` best of all candidates of a source, by score; ended sentences stay as they are.

    A candidate's score = scores, or pre_scores + log(scores) unless ``is_accumulated``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> out = run_op("beam_search", {
        ...     "pre_ids": [[1]], "pre_scores": [[0.0]], "ids": [[4, 2, 5]], "scores": ([[0.5, 0.3, 0.2]], [[1], [1]]),
        ... }, {"level": 0, "beam_size": 2, "end_id": 0})
        >>> out["selected_ids"].array.ravel(), out["selected_ids"].recursive_sequence_lengths()
        (array([4, 2]), [[1], [2]])

    Source: design guide, section on dynamic decoding; Fluid's beam_search_op.
    """
    step, counts = _step(b), _counts(b)
    _set(b, sum(counts), (step.sources, as_level(counts)))
    b(search, step, _operands(b), b["selected_ids"], b["selected_scores"], b["parent_idx"])


@kernel("beam_search", place="cuda", dtypes=FLOATS)
def _beam_search_on_cuda(b: Binder) -> None:
    counts = _counts(b)
    _set(b, sum(counts), (_step(b).sources, as_level(counts)))
    _search(b).write(counts)


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
