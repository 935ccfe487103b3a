"""Losses over many classes: sampled softmax, noise-contrastive estimation, hierarchical sigmoid."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.creation import assign, cast
from fluidnb.layers.cross_entropy import softmax_with_cross_entropy
from fluidnb.layers.math import scale
from fluidnb.layers.reduce import reduce_sum
from fluidnb.layers.search import one_hot
from fluidnb.layers.sequence_filters import row_width
from fluidnb.layers.several import several
from fluidnb.layers.shape import reshape
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["hsigmoid", "nce", "sampled_softmax_with_cross_entropy"]

_SAMPLERS = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}


@naming.layer
@takes(sampler=("uniform", "log_uniform", "custom_dist"))
def nce(
    input: Variable,
    label: Variable,
    num_total_classes: int,
    sample_weight: Variable | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Any = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Variable:
    """Noise-contrastive estimation: discriminates the true class from sampled negatives.

    Args:
        input: float [N, D].
        label: int64 [N, T], true classes.
        num_total_classes: how many classes there are.
        sample_weight: [N, 1], what a row counts.
        param_attr: the weight, [num_total_classes, D].
        bias_attr: the bias, [num_total_classes, 1]; False for none.
        num_neg_samples: classes drawn for each row; 10 when left out.
        name: name of the layer.
        sampler: "uniform", "log_uniform" or "custom_dist".
        custom_dist: for the last, the probability of each class.
        seed: of the drawing; 0 for the program's.
        is_sparse: whether the gradient of the weight is SelectedRows, with the classes of the batch alone.

    Returns:
        The cost, float [N, 1].

    Raises:
        OpTypeError: ``input`` or ``label`` is no Variable.
        OpValueError: an unknown sampler, or "custom_dist" without as many probabilities as classes.

    Example:
        >>> word, target = fluid.layers.data("word", [8]), fluid.layers.data("target", [1], dtype="int64")
        >>> fluid.layers.nce(word, target, num_total_classes=100).shape
        (-1, 1)

    Source: Fluid's layers.nce.
    """
    if sampler not in _SAMPLERS:
        raise OpValueError(f"Unsupported sampler type {sampler!r}.", expected=", ".join(_SAMPLERS), received=sampler)
    helper = LayerHelper("nce", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs: dict[str, Any] = {"Input": [input], "Label": [label]}
    shape = [num_total_classes, row_width(input, "nce")]
    inputs["Weight"] = [helper.create_parameter(helper.param_attr, shape, input.dtype)]
    if helper.bias_attr:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, [num_total_classes, 1], input.dtype, is_bias=True)]
    if sample_weight is not None:
        inputs["SampleWeight"] = [sample_weight]
    if sampler == "custom_dist":
        chances = np.asarray([] if custom_dist is None else custom_dist, "float32")
        if chances.shape != (num_total_classes,):
            raise OpValueError(
                "custom_dist of nce has a probability for each class.", expected=[num_total_classes],
                received=list(chances.shape),
            )  # fmt: skip
        inputs["CustomDistProbs"] = [assign(chances)]
    cost = helper.create_tmp_variable(input.dtype)
    logits = helper.create_tmp_variable(input.dtype)
    labels = helper.create_tmp_variable(label.dtype)
    attrs = {
        "num_total_classes": num_total_classes, "num_neg_samples": 10 if num_neg_samples is None else num_neg_samples,
        "seed": seed, "sampler": _SAMPLERS[sampler], "is_sparse": is_sparse,
    }  # fmt: skip
    outputs = {"Cost": [cost], "SampleLogits": [logits], "SampleLabels": [labels]}
    helper.append_op(type="nce", inputs=inputs, outputs=outputs, attrs=attrs)
    return cost


@naming.layer
@takes(
    input="hierarchical_sigmoid.X",
    label="hierarchical_sigmoid.Label",
    path_table="hierarchical_sigmoid.PathTable",
    path_code="hierarchical_sigmoid.PathCode",
)
def hsigmoid(
    input: Variable,
    label: Variable,
    num_classes: int | None,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
    path_table: Variable | None = None,
    path_code: Variable | None = None,
    is_custom: bool = False,
    is_sparse: bool = False,
) -> Variable:
    """Hierarchical sigmoid: a class is a way through a binary tree, and costs as much as its turns.

    Args:
        input: float [N, D].
        label: int64 [N, 1] or [N], classes.
        num_classes: how many classes; with a custom tree how many inner nodes.
        param_attr: a vector for each inner node, [num_classes - 1, D], or [num_classes, D] with a custom tree.
        bias_attr: a number for each inner node; False for none.
        name: name of the layer.
        path_table: int64 [N, L], the nodes on the way to each row's class, -1 after its end; for a custom tree.
        path_code: int64 [N, L], the turn at each of them, 0 or 1.
        is_custom: whether the tree is your own.
        is_sparse: whether the gradient of the vectors is SelectedRows, with the nodes of the batch alone.

    Returns:
        The cost, float [N, 1].

    Raises:
        OpTypeError: ``input`` or ``label`` is no Variable.
        OpValueError: fewer than 2 classes, or a custom tree without both tables.

    Example:
        >>> word, target = fluid.layers.data("word", [8]), fluid.layers.data("target", [1], dtype="int64")
        >>> fluid.layers.hsigmoid(word, target, num_classes=100).shape
        (-1, 1)

    Source: Fluid's layers.hsigmoid.
    """
    if num_classes is None:
        raise OpTypeError("num_classes of hsigmoid is an int.", expected="int", received=repr(num_classes))
    if not is_custom and num_classes < 2:
        raise OpValueError(
            "num_classes must not be less than 2 with default tree", expected="2 or more", received=num_classes
        )
    inputs: dict[str, Any] = {"X": [input], "Label": [label]}
    if is_custom:
        if path_table is None or path_code is None:
            raise OpValueError(
                "A custom tree needs path_table and path_code.", expected="two int64 variables [N, L]",
                received="path_table" if path_code is None and path_table is not None else "path_code"
                if path_table is None and path_code is not None else "none",
            )  # fmt: skip
        inputs |= {"PathTable": [path_table], "PathCode": [path_code]}
    helper = LayerHelper("hierarchical_sigmoid", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    nodes = num_classes if is_custom else num_classes - 1
    inputs["W"] = [helper.create_parameter(helper.param_attr, [nodes, row_width(input, "hsigmoid")], input.dtype)]
    if helper.bias_attr:
        inputs["Bias"] = [helper.create_parameter(helper.bias_attr, [nodes, 1], input.dtype, is_bias=True)]
    out, pre = helper.create_tmp_variable(input.dtype), helper.create_tmp_variable(input.dtype)
    attrs = {"num_classes": max(num_classes, 2), "is_sparse": is_sparse}
    outputs = {"Out": [out], "PreOut": [pre]}
    helper.append_op(type="hierarchical_sigmoid", inputs=inputs, outputs=outputs, attrs=attrs)
    return out


@naming.layer
@takes(
    logits="sample_logits.Logits",
    label="sample_logits.Labels",
    customized_samples="sample_logits.CustomizedSamples",
    customized_probabilities="sample_logits.CustomizedProbabilities",
)
def sampled_softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    num_samples: int,
    num_true: int = 1,
    remove_accidental_hits: bool = True,
    use_customized_samples: bool = False,
    customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None,
    seed: int = 0,
) -> Variable:
    """The softmax loss over the true classes and a few that are drawn, instead of all: for training.

    Small classes are drawn most often, by a log-uniform law, so classes should be numbered by falling frequency.

    Args:
        logits: float [N, classes], before the softmax.
        label: int64 [N, num_true], true classes, each of which counts 1 / num_true.
        num_samples: how many classes are drawn, the same for all rows.
        num_true: true classes of a row.
        remove_accidental_hits: whether a sample that is a true class of its row is left out there.
        use_customized_samples: whether the samples are given, not drawn.
        customized_samples: int64 [N, num_true + num_samples], true classes and then samples.
        customized_probabilities: float of that shape, how often each is expected among the samples.
        seed: of the drawing; 0 for the program's.

    Returns:
        The loss, float [N, 1], divided by ``num_true`` as in Fluid.

    Raises:
        OpTypeError: ``logits`` or ``label`` is no Variable.
        OpValueError: custom samples are requested but not given.
        RuleError: the shapes do not fit, or there are fewer classes than samples.

    Example:
        >>> scores, word = fluid.layers.data("scores", [1000]), fluid.layers.data("word", [1], dtype="int64")
        >>> fluid.layers.sampled_softmax_with_cross_entropy(scores, word, num_samples=20).shape
        (-1, 1)

    Source: Fluid's layers.sampled_softmax_with_cross_entropy.
    """
    inputs = {"Logits": logits, "Labels": label}
    if use_customized_samples:
        if customized_samples is None or customized_probabilities is None:
            raise OpValueError(
                "Custom samples need customized_samples and customized_probabilities.",
                expected="two variables [N, num_true + num_samples]",
                received="none" if customized_samples is customized_probabilities else "one of them",
            )  # fmt: skip
        inputs |= {"CustomizedSamples": customized_samples, "CustomizedProbabilities": customized_probabilities}
    outputs = {"Samples": "int64", "Probabilities": logits.dtype, "LogitsDim": logits.dtype, "LabelsDim": label.dtype,
               "SampledLogits": logits.dtype, "SampledLabels": "int64"}  # fmt: skip
    attrs = {"num_samples": num_samples, "remove_accidental_hits": remove_accidental_hits, "uniq": True,
             "use_customized_samples": use_customized_samples, "seed": seed}  # fmt: skip
    *_, found, places = several("sample_logits", inputs, outputs, attrs)
    width = num_samples + num_true
    marks = cast(one_hot(reshape(places, [-1, 1]), width), logits.dtype)
    if num_true > 1:
        marks = scale(reduce_sum(reshape(marks, [-1, num_true, width]), 1), 1.0 / num_true)
    loss = softmax_with_cross_entropy(found, marks, soft_label=True)
    assert isinstance(loss, Variable)
    return scale(loss, 1.0 / num_true)
