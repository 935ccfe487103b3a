"""Layers for sequences of labels that come somewhere in time: connectionist temporal classification, edit distance."""

from __future__ import annotations

from collections.abc import Sequence

from fluidnb.layers.one_op import one_op
from fluidnb.layers.several import several
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["ctc_greedy_decoder", "edit_distance", "warpctc"]


@naming.layer
@takes(input="warpctc.Logits", input_length="warpctc.LogitsLength")
def warpctc(
    input: Variable,
    label: Variable,
    blank: int = 0,
    norm_by_times: bool = False,
    use_cudnn: bool = False,
    input_length: Variable | None = None,
    label_length: Variable | None = None,
) -> Variable:
    """CTC loss: negative log-likelihood of label sequences over all alignments (Graves et al. 2006).

    Args:
        input: [rows, classes] with sequences, before the softmax; or [steps, batch, classes] with lengths.
        label: int32 or int64 [labels, 1] with sequences, without blanks; or [batch, most labels] with lengths.
        blank: the class that means no label.
        norm_by_times: whether gradients are divided by the number of time steps.
        use_cudnn: whether to use cuDNN on a GPU.
        input_length: int64 [batch]: how many time steps are a sequence's own, where there is no LoD.
        label_length: int64 [batch]: how many labels are.

    Returns:
        [sequences, 1]: the negative logarithm of the likelihood, a cost.

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: sizes that do not fit, or labels that are no integers.

    Example:
        >>> x = fluid.layers.data("x", [11], lod_level=1)
        >>> label = fluid.layers.data("label", [1], dtype="int32", lod_level=1)
        >>> fluid.layers.warpctc(x, label, blank=10, norm_by_times=True).shape
        (-1, 1)

    Source: Fluid's layers.warpctc; the lengths are those of its later versions.
    """
    inputs = {"Logits": input, "Label": label}
    given = (("LogitsLength", input_length), ("LabelLength", label_length))
    inputs |= {slot: v for slot, v in given if v is not None}
    attrs = {"blank": blank, "norm_by_times": bool(norm_by_times), "use_cudnn": bool(use_cudnn)}
    return several("warpctc", inputs, {"Loss": input.dtype, "WarpCTCGrad": input.dtype}, attrs)[0]


@naming.layer
@takes(input="float[rows, classes] lod")
def ctc_greedy_decoder(input: Variable, blank: int, name: str | None = None) -> Variable:
    """The labels of the likeliest class at each time step, with repeated ones merged and blanks left out.

    Args:
        input: [rows, classes] with sequences: probabilities or logits.
        blank: the class that means no label.
        name: name of the layer.

    Returns:
        int64 [labels, 1] with as many sequences; one -1 in no sequence where nothing is said.

    Raises:
        OpTypeError: the input is not a Variable.

    Example:
        >>> x = fluid.layers.data("x", [8], lod_level=1)
        >>> y = fluid.layers.ctc_greedy_decoder(x, blank=0)
        >>> y.shape, y.lod_level
        ((-1, 1), 1)

    Source: Fluid's layers.ctc_greedy_decoder.
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

    Raises:
        OpTypeError: an argument is not a Variable.
        OpValueError: words that are no integers.

    Example:
        >>> x, y = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in "xy")
        >>> distance, count = fluid.layers.edit_distance(x, y, ignored_tokens=[0])
        >>> distance.shape, count.shape
        ((-1, 1), (1,))

    Source: Fluid's layers.edit_distance.
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
