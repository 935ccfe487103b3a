"""beam_search, beam_search_decode and gather_tree: the best sentences, word by word."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values import LoDTensorArray
from fluidnb.values.copies import on_host
from fluidnb.values.lod import to_absolute
from fluidnb_kernels.cuda import Source, block_of, ctype, each, of_dtype, typed
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.rules import checked, whole_numbers
from fluidnb_kernels.sequences import all_given, as_level


@dataclass(frozen=True, slots=True)
class Step:
    """Parameters of a step beside its tensors."""

    sources: tuple[int, ...]  # rows of each source: offsets
    beam_size: int  # how many candidates a source keeps at most
    end_id: int  # the word that ends a sentence
    is_accumulated: bool  # whether ``scores`` has the score of the sentence so far in it


def choose(
    step: Step, pre_ids: Array, pre_scores: Array | None, ids: Array | None, scores: Array
) -> tuple[Array, Array, Array]:
    """The best candidates of each source: rows, words and scores, by row, the best of a row first."""
    count, width = scores.shape
    row, numbers = np.repeat(np.arange(count), width), np.arange(len(step.sources) - 1)
    source, ended = np.repeat(numbers, np.diff(step.sources) * width), pre_ids.reshape(count) == step.end_id
    word, score = np.broadcast_to(np.arange(width), scores.shape) if ids is None else ids, scores
    candidates = np.arange(count * width)
    if pre_scores is not None:  # an ended sentence is one candidate, itself
        before = pre_scores.reshape(count, 1)
        score = np.where(ended[:, None], before, scores if step.is_accumulated else before + np.log(scores))
        word = np.where(ended[:, None], step.end_id, word)
        candidates = np.flatnonzero(~ended[row] | (candidates % max(width, 1) == 0))
    score, word = score.reshape(-1), word.reshape(-1)
    ties = row if pre_scores is None else -row
    order = candidates[np.lexsort((ties[candidates], -score[candidates], source[candidates]))]
    first = np.searchsorted(source[order], numbers)
    order = order[np.arange(len(order)) - first[source[order]] < step.beam_size]
    if pre_scores is None:  # versions 0.11 to 0.13 drop ended sentences after they competed, and order words by number
        order = order[~ended[row[order]]]
        order = order[np.lexsort((word[order], row[order]))]
        return row[order], word[order], score[order]
    going_on = np.zeros(len(numbers), bool)  # a source all of whose candidates had ended before keeps none
    going_on[source[order[~(ended[row[order]] & (word[order] == step.end_id))]]] = True
    order = order[going_on[source[order]]]
    order = order[np.argsort(row[order], kind="stable")]
    return row[order], word[order], score[order]


def search(step: Step, operands: tuple[Array, ...], ids: Array, scores: Array, parents: Array) -> None:
    """Write the best candidates (see `choose`) of each source; outputs without a consumer are None."""
    rows, word, score = choose(step, *operands)
    outs = [None if out is None else out.reshape(-1) for out in (ids, scores, parents)]
    store(outs, (word, score, rows))


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


def _counts(b: Binder) -> tuple[int, ...]:
    """The number of candidates kept of each row: the LoD of the result."""
    if not all_given(b, "pre_ids", *(["pre_scores"] if b.has("pre_scores") else []), "scores"):
        return ()
    _check(b)
    if b.memory.place_kind == "cuda" and b["scores"].dtype.name in FLOATS:  # the kernel for GPUs is taken
        return tuple(on_host(_select(b, _step(b), _Immediate(b))[-1]).tolist())
    rows, _, _ = choose(_step(b), *_operands(b))
    return tuple(np.bincount(rows, minlength=len(b["scores"])).tolist())


def _check(c: Context) -> None:
    c.check_inputs("scores", "ids")
    scores = c["scores"]
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
    cuda=FLOATS,
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
    if b.on_cuda:
        return _emit_on_cuda(b, step, counts)
    b(search, step, _operands(b), b["selected_ids"], b["selected_scores"], b["parent_idx"])


CUDA = Source(__file__, "beam.cu", typed(
    ("beam_select beam_write", FLOATS), ("gather_tree", ("int32", "int64")),
))  # fmt: skip


class _Immediate:
    """A binder for a guard: does what is emitted, in memory that is freed afterwards."""

    def __init__(self, b: Binder) -> None:
        self.table = b.table
        self.tmp = partial(b.memory.alloc_on, "cuda")

    def __call__(self, function: Any, *args: Any) -> None:
        function(*args)


def _select(b: Binder, step: Step, emit: Any) -> tuple[tuple[Any, ...], Array, tuple[Any, ...], Array]:
    """Emit the selection: operands, picks of each source, settings, and the number of candidates kept of each row."""
    scores, before, last = b["scores"], b["pre_scores"], of_dtype(emit, b["pre_ids"], np.dtype(np.int64))
    operands = last, None if before is None else of_dtype(emit, before, scores.dtype), scores
    (rows, width), count = scores.shape, len(step.sources) - 1
    settings = np.int64(width), np.int64(step.end_id), np.int32(step.is_accumulated), np.int64(step.beam_size)
    picks, counts = emit.tmp((count, step.beam_size), np.int64), emit.tmp((rows,), np.int64)
    if count:
        most = max(1, int(np.diff(step.sources).max()) * width)
        arrays = *operands, emit.table(np.array(step.sources, np.int64)), picks, counts
        emit(CUDA[f"beam_select<{ctype(scores.dtype)}>"], (count,), block_of(most), 0, *arrays, *settings)
    return operands, picks, settings, counts


def _emit_on_cuda(b: Binder, step: Step, counts: Sequence[int]) -> None:
    """Emit the selection again, and the outputs."""
    operands, picks, settings, _ = _select(b, step, b)
    words = None if b["ids"] is None else of_dtype(b, b["ids"], np.dtype(np.int64))
    starts = np.array(as_level(counts))[list(step.sources[:-1])]
    if sum(counts):
        outs = b["selected_ids"], b["selected_scores"], b["parent_idx"]
        arrays = *operands, words, picks, b.table(starts.astype(np.int64)), *outs
        kernel = CUDA[f"beam_write<{ctype(b['scores'].dtype)}>"]
        b(kernel, (len(step.sources) - 1,), block_of(step.beam_size), 0, *arrays, *settings)


#: A sentence: its words and the score after each.
Sentence = tuple[list[int], list[float]]


def sentences(ids: LoDTensorArray, scores: LoDTensorArray, end_id: int) -> list[list[Sentence]]:
    """The sentences of each source, best first: each followed back by the LoD, without repeated end words."""
    result: list[list[Sentence]] = []
    steps = [(np.asarray(i).reshape(-1), np.asarray(s).reshape(-1), i.lod_) for i, s in zip(ids, scores, strict=True)]
    for source in range(len(steps[0][2][0]) - 1):
        mine: list[Sentence] = []
        rows: list[int] = []  # the word that each sentence continues from, in the step before
        for words, numbers, (sources, counts) in reversed(steps):
            if not rows:
                last = range(counts[sources[source]], counts[sources[source + 1]])
                rows, mine = list(last), [([], []) for _ in last]
            for row, (text, score) in zip(rows, mine, strict=True):
                if words[row] != end_id or not text:
                    text.append(words[row].item())
                    score.append(numbers[row].item())
            rows = (np.searchsorted(counts, rows, side="right") - 1).tolist()
        result.append([(t[::-1], s[::-1]) for t, s in sorted(mine, key=lambda x: -x[1][0])])
    return result


def decode(ids: LoDTensorArray, scores: LoDTensorArray, end_id: int, words: Array, numbers: Array) -> None:
    """Write all sentences one after the other; outputs without a consumer are None."""
    result = [s for source in sentences(ids, scores, end_id) for s in source]
    store((words, numbers), ([w for s in result for w in s[column]] for column in (0, 1)))


def _lod(b: Binder) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The LoD of the result: sentences of each source, words of each sentence."""
    ids, scores = b["Ids"], b["Scores"]
    if not all_given(b, "Ids", "Scores"):
        return (), ()
    for slot in ("Ids", "Scores"):
        b.require(
            isinstance(b[slot], LoDTensorArray), f"Input({slot}) of beam_search_decode must be an array.",
            expected="a LoDTensorArray", received=type(b[slot]).__name__,
        )  # fmt: skip
    b.require(
        len(ids), "beam search steps should be larger than 0.", expected="an array with a step in it",
        received="an empty array", hint="write the initial ids and scores at index 0 before the loop.",
    )  # fmt: skip
    b.require(
        len(ids) == len(scores), "Ids and Scores of beam_search_decode must have as many steps.",
        expected=len(ids), received=len(scores),
    )  # fmt: skip
    for array in (ids, scores):
        for i, step in enumerate(array):
            b.require(
                len(step.lod_) == 2, "Level of LodTensor should be 2: sources, and the sentences of each.",
                expected="2 levels at every step", received=f"a LoD of {len(step.lod_)} levels at step {i}",
                hint="write selected_ids and selected_scores of layers.beam_search as they are.",
            )  # fmt: skip
    result = sentences(ids, scores, b.attr("end_id"))
    return as_level([len(s) for s in result]), as_level([len(words) for s in result for words, _ in s])


def _decode_infer(c: Context) -> None:
    if not c.runtime:
        c.set("SentenceIds", (-1,), np.int64, (None, None))
        c.set("SentenceScores", (-1,), c["Scores"].dtype, (None, None))


@op(
    "beam_search_decode",
    inputs={
        "Ids: array": "the selected_ids of each step of a beam search",
        "Scores: array": "the selected_scores of each step",
    },
    outputs={
        "SentenceIds": "int64 [words], with two levels of LoD: sentences of each source, words of each sentence",
        "SentenceScores": "[words], alike: the score after each word",
    },
    attrs={
        "beam_size": Attr("int", doc="the beam_size of the search"),
        "end_id": Attr("int", doc="the word that ends a sentence"),
    },
    infer=_decode_infer,
    guard=_lod,
    data_shape=True,
    host_only="searches step by step: each step depends on the one before",
)
def beam_search_decode(b: Binder) -> None:
    """The sentences that a beam search has found, the best of each source first.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.testing.values import value_of
        >>> from fluidnb.values import LoDTensorArray
        >>> ids = LoDTensorArray([value_of((np.array([[n]]), [[1], [1]])) for n in (1, 5)])
        >>> scores = LoDTensorArray([value_of((np.array([[n]]), [[1], [1]])) for n in (0.5, 0.25)])
        >>> run_op("beam_search_decode", {"Ids": ids, "Scores": scores}, {"beam_size": 1, "end_id": 0})["SentenceIds"]
        LoDTensor(shape=[2], dtype=int64, lod=[[0, 1], [0, 2]], place=CPUPlace)

    Source: design guide, section on dynamic decoding; Fluid's beam_search_decode_op.
    """
    lod = _lod(b)
    steps = b["Scores"]
    b.set("SentenceIds", (lod[1][-1],), np.int64, lod)
    b.set("SentenceScores", (lod[1][-1],), np.asarray(steps[0]).dtype, lod)
    b(decode, b["Ids"], steps, b.attr("end_id"), b["SentenceIds"], b["SentenceScores"])


def follow(ids: Array, parents: Array, out: Array) -> None:
    """Write the words of each beam, followed back from its last step by the parents."""
    beams = np.broadcast_to(np.arange(ids.shape[2]), ids.shape[1:])
    for words, origin, row in zip(ids[::-1], parents[::-1], out[::-1], strict=True):
        row[...] = np.take_along_axis(words, beams, 1)
        beams = np.take_along_axis(origin, beams, 1)


@op(
    "gather_tree",
    inputs={
        "Ids: int[steps, batch, beams]": "the word of each beam at each step",
        "Parents: int[steps, batch, beams]": "the beam of the previous step that each beam continues",
    },
    outputs={"Out": "the same shape: the words of whole sentences"},
    infer=checked(lambda c: c.set("Out", c["Ids"].shape, c["Ids"].dtype)),
    cuda=("int32", "int64"),
)
def gather_tree(b: Binder) -> None:
    """Out[:, n, k] = the sentence that ends in Ids[-1, n, k].

    Example:
        >>> from fluidnb.testing import run_op
        >>> ids, parents = np.array([[[2, 3]], [[4, 5]]]), np.array([[[0, 0]], [[1, 0]]])
        >>> run_op("gather_tree", {"Ids": ids, "Parents": parents})["Out"].tolist()
        [[[3, 2]], [[4, 5]]]

    Source: Paddle's gather_tree_op.
    """
    if not b.on_cuda:
        return b(follow, b["Ids"], b["Parents"], b["Out"])
    ids, (steps, batch, beams) = b["Ids"], b["Ids"].shape
    sizes = np.int64(steps), np.int64(beams)
    parents = of_dtype(b, b["Parents"], ids.dtype)
    count = batch * beams if steps else 0
    return each(b, CUDA, f"gather_tree<{ctype(ids.dtype)}>", count, ids, parents, b["Out"], *sizes)
