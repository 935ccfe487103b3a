"""Layers of beam search."""

from __future__ import annotations

from fluidnb.layers.several import several
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["beam_search", "beam_search_decode"]


@naming.layer
def beam_search(
    pre_ids: Variable,
    pre_scores: Variable,
    ids: Variable | None,
    scores: Variable,
    beam_size: int,
    end_id: int,
    level: int = 0,
    is_accumulated: bool = True,
    name: str | None = None,
    return_parent_idx: bool = False,
) -> tuple[Variable, ...]:
    """One step of a beam search: selects the best continuations of each source's sentences.

    Sentences that have ended stay candidates as they are; a source all of whose sentences have ended keeps none.

    Args:
        pre_ids: int64 [sentences, 1]: the words chosen in the step before.
        pre_scores: float32 [sentences, 1]: the scores of the sentences so far.
        ids: int64 [sentences, candidates]: candidate next words of each sentence; None for 0, 1, ….
        scores: float32 [sentences, candidates], with two levels of LoD, as ``pre_ids`` has them.
        beam_size: how many sentences a source keeps.
        end_id: the word that ends a sentence.
        level: the level of the LoD that holds the sources.
        is_accumulated: whether ``scores`` are of whole sentences; otherwise they are probabilities of words, and
            ``pre_scores + log(scores)`` counts.
        name: name of the layer.
        return_parent_idx: whether to give the row that each sentence comes from, too.

    Returns:
        ``selected_ids`` int64 [n, 1] and ``selected_scores`` [n, 1], with the LoD of the new sentences; with
        ``return_parent_idx`` also int32 [n].

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: sizes that do not fit.

    Example:
        >>> pre = fluid.layers.data("pre", [1], dtype="int64", lod_level=2)
        >>> score = fluid.layers.data("score", [1], lod_level=2)
        >>> top, word = fluid.layers.topk(fluid.layers.data("prob", [9], lod_level=2), k=3)
        >>> ids, scores = fluid.layers.beam_search(pre, score, word, top, beam_size=3, end_id=1)
        >>> ids.shape, ids.lod_level
        ((-1, 1), 2)

    Source: design guide, section on dynamic decoding; Fluid's layers.beam_search.
    """
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "scores": scores}
    if ids is not None:
        inputs["ids"] = ids
    attrs = {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": bool(is_accumulated)}
    outputs = {"selected_ids": "int64", "selected_scores": scores.dtype, "parent_idx": "int32"}
    made = several("beam_search", inputs, outputs, attrs, name=name, constant=tuple(outputs))
    return tuple(made if return_parent_idx else made[:2])


@naming.layer
def beam_search_decode(
    ids: Variable, scores: Variable, beam_size: int, end_id: int, name: str | None = None
) -> tuple[Variable, Variable]:
    """Whole sentences from the steps of a beam search, the best of each source first.

    Args:
        ids: array with the ``selected_ids`` of each step.
        scores: array with the ``selected_scores`` of each step.
        beam_size: the ``beam_size`` of the search.
        end_id: the word that ends a sentence.
        name: name of the layer.

    Returns:
        The sentences int64 [words] and the scores [words] after each word; LoD: sentences of each source, words of
        each sentence.

    Raises:
        OpTypeError: an argument is not a Variable.

    Example:
        >>> ids, scores = fluid.layers.create_array("int64"), fluid.layers.create_array("float32")
        >>> sentences, ranks = fluid.layers.beam_search_decode(ids, scores, beam_size=3, end_id=1)
        >>> sentences.dtype == fluid.core.VarDesc.VarType.INT64, sentences.lod_level
        (True, 2)

    Source: design guide, section on dynamic decoding; Fluid's layers.beam_search_decode.
    """
    outputs = {"SentenceIds": "int64", "SentenceScores": scores.dtype}
    attrs = {"beam_size": beam_size, "end_id": end_id}
    words, ranks = several(
        "beam_search_decode", {"Ids": ids, "Scores": scores}, outputs, attrs, name=name, constant=tuple(outputs)
    )
    return words, ranks
