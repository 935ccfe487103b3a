"""Layers that tag sequences: a conditional random field, its decoding, and chunks found."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.fc import operands
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["chunk_eval", "crf_decoding", "linear_chain_crf"]


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

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: the number of tags is not known, or sizes do not fit.

    Example:
        >>> score = fluid.layers.data("score", [9], lod_level=1)
        >>> tag = fluid.layers.data("tag", [1], dtype="int64", lod_level=1)
        >>> cost = fluid.layers.linear_chain_crf(score, tag, param_attr=fluid.ParamAttr(name="crf"))
        >>> cost.shape, cost.param.shape
        ((-1, 1), (11, 9))

    Source: Fluid's layers.linear_chain_crf; length is that of its later versions.
    """
    tags = int(input.shape[-1])
    if tags < 1:
        raise OpValueError(
            "linear_chain_crf needs to know the number of tags.", slots=operands([input]), expected="[rows, tags]",
            received=list(input.shape), hint="layers.fc(x, size=tags) in front gives each tag a number.",
        )  # fmt: skip
    helper = LayerHelper("linear_chain_crf", param_attr=param_attr)
    transition = helper.create_parameter(helper.param_attr or False, [tags + 2, tags], input.dtype)
    inputs = {"Emission": [input], "Transition": [transition], "Label": [label]}
    if length is not None:
        inputs["Length"] = [length]
    slots = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    outs = {slot: [helper.create_tmp_variable(input.dtype)] for slot in slots}
    helper.append_op(type="linear_chain_crf", inputs=inputs, outputs=outs)
    return outs["LogLikelihood"][0]


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
        OpTypeError: an argument is not a Variable, or ``param_attr`` names nothing.
        OpValueError: there is no such parameter.

    Example:
        >>> score = fluid.layers.data("score", [9], lod_level=1)
        >>> tag = fluid.layers.data("tag", [1], dtype="int64", lod_level=1)
        >>> cost = fluid.layers.linear_chain_crf(score, tag, param_attr=fluid.ParamAttr(name="crf"))
        >>> path = fluid.layers.crf_decoding(score, param_attr=fluid.ParamAttr(name="crf"))
        >>> path.shape, path.lod_level
        ((-1, 1), 1)

    Source: Fluid's layers.crf_decoding; length is that of its later versions.
    """
    attr = ParamAttr.to_attr(param_attr)
    if attr is None or attr.name is None:
        raise OpTypeError(
            "param_attr of crf_decoding must name the transition.", expected='a name, or ParamAttr(name="...")',
            received=repr(param_attr), hint="give linear_chain_crf a ParamAttr with a name and pass it here too.",
        )  # fmt: skip
    transition = LayerHelper("crf_decoding").get_parameter(attr.name)
    inputs = {"Emission": input, "Transition": transition}
    inputs |= {slot: v for slot, v in (("Label", label), ("Length", length)) if v is not None}
    return several("crf_decoding", inputs, {"ViterbiPath": "int64"}, constant=("ViterbiPath",))[0]


@naming.layer
@takes(input="chunk_eval.Inference")
def chunk_eval(
    input: Variable,
    label: Variable,
    chunk_scheme: str,
    num_chunk_types: int,
    excluded_chunk_types: Sequence[int] | None = None,
    seq_length: Variable | None = None,
) -> tuple[Variable, ...]:
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

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: shapes that differ, no integers, or another scheme.

    Example:
        >>> found, right = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
        >>> precision, recall, f1, _, _, correct = fluid.layers.chunk_eval(found, right, "IOB", num_chunk_types=3)
        >>> f1.shape, correct.shape
        ((1,), (1,))

    Source: Fluid's layers.chunk_eval; seq_length is that of its later versions.
    """
    outputs = dict.fromkeys(("Precision", "Recall", "F1-Score"), "float32")
    outputs |= dict.fromkeys(("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"), "int64")
    attrs = {
        "num_chunk_types": num_chunk_types, "chunk_scheme": chunk_scheme,
        "excluded_chunk_types": list(excluded_chunk_types or ()),
    }  # fmt: skip
    inputs = {"Inference": input, "Label": label}
    if seq_length is not None:
        inputs["SeqLength"] = seq_length
    return tuple(several("chunk_eval", inputs, outputs, attrs, constant=tuple(outputs)))
