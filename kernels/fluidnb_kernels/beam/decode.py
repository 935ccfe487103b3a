"""beam_search_decode and gather_tree: whole sentences from the steps of a beam search."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.values import LoDTensorArray
from fluidnb_kernels.beam.search import CUDA
from fluidnb_kernels.cuda import ctype, each, of_dtype
from fluidnb_kernels.emit import store
from fluidnb_kernels.rules import checked
from fluidnb_kernels.sequences import all_given, as_level

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
