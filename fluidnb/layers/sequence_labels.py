"""Layers that label sequences: conditional random fields, CTC, beam search, and measures of the labels."""

from collections.abc import Sequence

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.fc import operands
from fluidnb.layers.one_op import one_op, several
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "beam_search", "beam_search_decode", "chunk_eval", "crf_decoding", "ctc_greedy_decoder", "edit_distance",
    "linear_chain_crf", "warpctc",
]  # fmt: skip


@naming.layer
@takes(input="linear_chain_crf.Emission")
def linear_chain_crf(
    input: Variable, label: Variable, param_attr: ParamAttrLike = None, length: Variable | None = None
) -> Variable:
    """Negative log-likelihood of tags under a linear-chain conditional random field (Lafferty et al. 2001).

    Args:
        input: [rows, tags] with one level of LoD: how well each tag fits each word; or [batch, steps, tags].
        label: int64 [rows, 1], or [batch, steps, 1]: the right tags.
        param_attr: description of the transition [tags + 2, tags]: start weights, end weights, then the weights from
            tag to tag. `crf_decoding` takes the same one, so it wants a name.
        length: int64 [batch, 1]: how many steps are a sequence's own, where there is no LoD.

    Returns:
        [sequences, 1]: the negative logarithm of the likelihood, a cost.

    Example:
        >>> score = fluid.layers.data("score", [9], lod_level=1)
        >>> tag = fluid.layers.data("tag", [1], dtype="int64", lod_level=1)
        >>> cost = fluid.layers.linear_chain_crf(score, tag, param_attr=fluid.ParamAttr(name="crf"))
        >>> cost.shape, cost.param.shape
        ((-1, 1), (11, 9))
    """
    tags = int(input.shape[-1]) if input.shape else 0
    if tags < 1:
        raise OpValueError(
            "linear_chain_crf needs to know the number of tags.", slots=operands([input]), expected="[rows, tags]",
            received=list(input.shape), hint="layers.fc(x, size=tags) in front gives each tag a number.",
        )  # fmt: skip
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr)
    transition = helper.create_parameter(helper.param_attr or False, [tags + 2, tags], input.dtype)
    inputs = {"Emission": input, "Transition": transition, "Label": label, "Length": length}
    outputs = dict.fromkeys(("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"), input.dtype)
    return several("linear_chain_crf", inputs, outputs, helper=helper)[-1]


@naming.layer
@takes(input="crf_decoding.Emission")
def crf_decoding(
    input: Variable, param_attr: ParamAttrLike, label: Variable | None = None, length: Variable | None = None
) -> Variable:
    """The likeliest tags of each sequence, by the transition that `linear_chain_crf` learns.

    Args:
        input: as for `linear_chain_crf`.
        param_attr: the name of the transition, or a ParamAttr with it.
        label: int64 [rows, 1], or [batch, steps, 1]: the right tags, to compare.
        length: int64 [batch, 1]: how many steps are a sequence's own, where there is no LoD.

    Returns:
        int64 [rows, 1], or [batch, steps]: the tags; with ``label`` 1 where a tag is right and 0 elsewhere.

    Raises:
        OpValueError: there is no such parameter.

    Example:
        >>> score = fluid.layers.data("score", [9], lod_level=1)
        >>> tag = fluid.layers.data("tag", [1], dtype="int64", lod_level=1)
        >>> cost = fluid.layers.linear_chain_crf(score, tag, param_attr=fluid.ParamAttr(name="crf"))
        >>> path = fluid.layers.crf_decoding(score, param_attr=fluid.ParamAttr(name="crf"))
        >>> path.shape, path.lod_level
        ((-1, 1), 1)
    """
    attr = ParamAttr.to_attr(param_attr)
    if attr is None or attr.name is None:
        raise OpTypeError(
            "param_attr of crf_decoding must name the transition.", expected='a name, or ParamAttr(name="...")',
            received=repr(param_attr), hint="give linear_chain_crf a ParamAttr with a name and pass it here too.",
        )  # fmt: skip
    transition = LayerHelper("crf_decoding").get_parameter(attr.name)
    inputs = {"Emission": input, "Transition": transition, "Label": label, "Length": length}
    return several("crf_decoding", inputs, {"ViterbiPath": "int64"}, constant=("ViterbiPath",))[0]


@naming.layer
@takes(input="chunk_eval.Inference")
def chunk_eval(
    input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None, seq_length: Variable | None = None,
) -> tuple[Variable, ...]:  # fmt: skip
    """Precision, recall and F1 of chunks of tagged sequences, with their counts.

    A tag's number is ``chunk type · tags of the scheme + tag``; with IOB, 2 · type begins a chunk and 2 · type + 1 goes
    on with it. ``num_chunk_types · tags of the scheme`` is a word in no chunk.

    Args:
        input: int64 [rows, 1] with sequences: the tags found; or [batch, steps, 1].
        label: alike: the right tags.
        chunk_scheme: ``"IOB"``, ``"IOE"``, ``"IOBES"`` or ``"plain"``.
        num_chunk_types: how many chunk types there are.
        excluded_chunk_types: chunk types that do not count.
        seq_length: int64 [batch, 1]: how many steps are a sequence's own, where there is no LoD.

    Returns:
        Precision, recall and F1 score, float32 [1] each; the numbers of chunks found, of chunks there are, and of
        chunks found that are right, int64 [1] each.

    Example:
        >>> found, right = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
        >>> precision, recall, f1, _, _, correct = fluid.layers.chunk_eval(found, right, "IOB", num_chunk_types=3)
        >>> f1.shape, correct.shape
        ((1,), (1,))
    """
    outputs = dict.fromkeys(("Precision", "Recall", "F1-Score"), "float32")
    outputs |= dict.fromkeys(("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"), "int64")
    attrs = {
        "num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme,
        "excluded_chunk_types": list(excluded_chunk_types or ()),
    }  # fmt: skip
    inputs = {"Inference": input, "Label": label, "SeqLength": seq_length}
    return tuple(several("chunk_eval", inputs, outputs, attrs, constant=tuple(outputs)))


@naming.layer
@takes(input="warpctc.Logits", input_length="warpctc.LogitsLength")
def warpctc(
    input: Variable, label: Variable, blank: int = 0, norm_by_times: bool = False, use_cudnn: bool = False,
    input_length: Variable | None = None, label_length: Variable | None = None,
) -> Variable:  # fmt: skip
    """CTC loss: negative log-likelihood of label sequences over all alignments (Graves et al. 2006).

    Args:
        input: [rows, classes] with sequences, before the softmax; or [steps, batch, classes] with lengths.
        label: int32 or int64 [labels, 1] with sequences, without blanks; or [batch, most labels] with lengths.
        blank: the class that means no label.
        norm_by_times: whether gradients are divided by the number of time steps.
        input_length: int64 [batch]: how many time steps are a sequence's own, where there is no LoD.
        label_length: int64 [batch]: how many labels are.

    Returns:
        [sequences, 1]: the negative logarithm of the likelihood, a cost.

    Example:
        >>> x = fluid.layers.data("x", [11], lod_level=1)
        >>> label = fluid.layers.data("label", [1], dtype="int32", lod_level=1)
        >>> fluid.layers.warpctc(x, label, blank=10, norm_by_times=True).shape
        (-1, 1)
    """
    inputs = {"Logits": input, "Label": label, "LogitsLength": input_length, "LabelLength": label_length}
    attrs = {"blank": blank, "norm_by_times": bool(norm_by_times), "use_cudnn": bool(use_cudnn)}
    return several("warpctc", inputs, {"Loss": input.dtype, "WarpCTCGrad": input.dtype}, attrs)[0]


@naming.layer
@takes(input="float[rows, classes] lod")
def ctc_greedy_decoder(input: Variable, blank: int, name: str | None = None) -> Variable:
    """The labels of the likeliest class at each time step, with repeated ones merged and blanks left out.

    Args:
        input: [rows, classes] with sequences: probabilities or logits.
        blank: the class that means no label.

    Returns:
        int64 [labels, 1] with as many sequences; one -1 in no sequence where nothing is said.

    Example:
        >>> x = fluid.layers.data("x", [8], lod_level=1)
        >>> y = fluid.layers.ctc_greedy_decoder(x, blank=0)
        >>> y.shape, y.lod_level
        ((-1, 1), 1)
    """
    values = several("top_k", {"X": input}, {"Out": input.dtype, "Indices": "int64"}, {"k": 1}, constant=("Indices",))
    attrs = {"merge_repeated": True, "blank": blank}
    return one_op("ctc_align", {"Input": values[1]}, attrs, slot="Output", name=name, stop_gradient=True)


@naming.layer
@takes(input="edit_distance.Hyps", label="edit_distance.Refs")
def edit_distance(
    input: Variable, label: Variable, normalized: bool = True, ignored_tokens: Sequence[int] | None = None
) -> tuple[Variable, Variable]:
    """Edit distance: the number of insertions, deletions and substitutions between two sequences.

    Args:
        input: int64 [rows, 1] with sequences: words found.
        label: int64 [rows, 1] with as many sequences: the right words.
        normalized: whether to divide by the number of right words.
        ignored_tokens: words that are left out first.

    Returns:
        float32 [sequences, 1]: the distances; int64 [1]: how many sequences there are.

    Example:
        >>> x, y = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in "xy")
        >>> distance, count = fluid.layers.edit_distance(x, y, ignored_tokens=[0])
        >>> distance.shape, count.shape
        ((-1, 1), (1,))
    """
    if ignored_tokens:
        attrs = {"tokens": list(ignored_tokens)}
        input, label = (one_op("sequence_erase", {"X": x}, attrs, stop_gradient=True) for x in (input, label))
    outputs = {"Out": "float32", "SequenceNum": "int64"}
    distance, count = several(
        "edit_distance", {"Hyps": input, "Refs": label}, outputs, {"normalized": bool(normalized)},
        constant=tuple(outputs),
    )  # fmt: skip
    return distance, count


@naming.layer
def beam_search(
    pre_ids: Variable, pre_scores: Variable, ids: Variable | None, scores: Variable, beam_size: int, end_id: int,
    level: int = 0, is_accumulated: bool = True, name: str | None = None, return_parent_idx: bool = False,
) -> tuple[Variable, ...]:  # fmt: skip
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
        return_parent_idx: whether to give the row that each sentence comes from, too.

    Returns:
        ``selected_ids`` int64 [n, 1] and ``selected_scores`` [n, 1], with the LoD of the new sentences; with
        ``return_parent_idx`` also int32 [n].

    Example:
        >>> pre = fluid.layers.data("pre", [1], dtype="int64", lod_level=2)
        >>> score = fluid.layers.data("score", [1], lod_level=2)
        >>> top, word = fluid.layers.topk(fluid.layers.data("prob", [9], lod_level=2), k=3)
        >>> ids, scores = fluid.layers.beam_search(pre, score, word, top, beam_size=3, end_id=1)
        >>> ids.shape, ids.lod_level
        ((-1, 1), 2)

    Source: design guide, section on dynamic decoding.
    """
    inputs = {"pre_ids": pre_ids, "pre_scores": pre_scores, "scores": scores, "ids": ids}
    attrs = {"level": level, "beam_size": beam_size, "end_id": end_id, "is_accumulated": bool(is_accumulated)}
    outputs = {"selected_ids": "int64", "selected_scores": scores.dtype, "parent_idx": "int32"}
    selected = several("beam_search", inputs, outputs, attrs, name=name, constant=tuple(outputs))
    return tuple(selected if return_parent_idx else selected[:2])


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

    Returns:
        The sentences int64 [words] and the scores [words] after each word; LoD: sentences of each source, words of
        each sentence.

    Example:
        >>> ids, scores = fluid.layers.create_array("int64"), fluid.layers.create_array("float32")
        >>> sentences, ranks = fluid.layers.beam_search_decode(ids, scores, beam_size=3, end_id=1)
        >>> sentences.dtype == fluid.core.VarDesc.VarType.INT64, sentences.lod_level
        (True, 2)

    Source: design guide, section on dynamic decoding.
    """
    outputs = {"SentenceIds": "int64", "SentenceScores": scores.dtype}
    attrs = {"beam_size": beam_size, "end_id": end_id}
    words, ranks = several(
        "beam_search_decode", {"Ids": ids, "Scores": scores}, outputs, attrs, name=name, constant=tuple(outputs)
    )
    return words, ranks
