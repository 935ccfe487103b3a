"""Losses of probabilities, logits, distances, rankings, a teacher's values, and of many classes."""

from typing import Any

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.activation import square
from fluidnb.layers.compare import equal
from fluidnb.layers.creation import assign, cast
from fluidnb.layers.fc import operands
from fluidnb.layers.math import (
    elementwise_add,
    elementwise_div,
    elementwise_mul,
    matmul,
    reduce_mean,
    reduce_sum,
    scale,
)
from fluidnb.layers.one_op import one_op, several
from fluidnb.layers.sequence import row_width
from fluidnb.layers.shape import expand, one_hot, reshape, transpose
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = [
    "add_position_encoding", "bpr_loss", "cross_entropy", "dice_loss", "fsp_matrix", "hsigmoid", "huber_loss",
    "kldiv_loss", "label_smooth", "log_loss", "margin_rank_loss", "nce", "npair_loss", "rank_loss",
    "sampled_softmax_with_cross_entropy", "sigmoid_cross_entropy_with_logits", "smooth_l1",
    "softmax_with_cross_entropy", "square_error_cost", "teacher_student_sigmoid_loss",
]  # fmt: skip


@naming.layer
def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """Cross entropy of given probabilities: ``-log(input[label])``, or ``-sum(label · log(input))``.

    Args:
        input: probabilities [N, classes], for example from `softmax`.
        label: int64 [N, 1], the class of each row; with ``soft_label`` a distribution [N, classes].

    Returns:
        The loss of each row, [N, 1].

    Example:
        >>> p, label = fluid.layers.data("p", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.cross_entropy(p, label).shape
        (-1, 1)
    """
    attrs = {"soft_label": soft_label, "ignore_index": ignore_index}
    return one_op("cross_entropy", {"X": input, "Label": label}, attrs, slot="Y")


@naming.layer
@takes(input="float", label="float")
def square_error_cost(input: Variable, label: Variable) -> Variable:
    """Squared difference of prediction and target, element by element: ``(input - label)²``.

    Args:
        input: any shape, float.
        label: shape of ``input``.

    Returns:
        Shape of ``input``.

    Example:
        >>> y, t = fluid.layers.data("y", [1]), fluid.layers.data("t", [1])
        >>> fluid.layers.square_error_cost(input=y, label=t).op.type
        'square'
    """
    difference = one_op("elementwise_sub", {"X": input, "Y": label})
    return one_op("square", {"X": difference})


@naming.layer
def softmax_with_cross_entropy(
    logits: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100,
    numeric_stable_mode: bool = True, return_softmax: bool = False, axis: int = -1,
) -> Variable | tuple[Variable, Variable]:  # fmt: skip
    """Cross entropy of the softmax of logits: ``-log(softmax(logits)[label])``.

    Args:
        logits: any shape, float.
        label: int64 class numbers, size 1 along the axis; with ``soft_label`` distributions like the logits.
        numeric_stable_mode: kept for old scripts; it always is stable.
        return_softmax: whether to give the probabilities too.
        axis: the axis of the classes, from the end when negative.

    Returns:
        The loss of each row, size 1 along the axis; with ``return_softmax`` (loss, probabilities).

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.softmax_with_cross_entropy(x, label).shape
        (-1, 1)
    """
    attrs: dict[str, Any] = {
        "soft_label": soft_label, "ignore_index": ignore_index, "numeric_stable_mode": numeric_stable_mode, "axis": axis
    }
    outputs = {"Softmax": logits.dtype, "Loss": logits.dtype}
    softmax, loss = several("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, outputs, attrs)
    return (loss, softmax) if return_softmax else loss


@naming.layer
def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Cross entropy of the sigmoid of logits, element by element.

    Args:
        x: logits, any shape.
        label: probabilities of the shape of ``x``.
        ignore_index: elements with this label have loss 0 and no gradient.
        normalize: whether to divide by the number of elements that are not ignored.

    Returns:
        Shape of ``x``.

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [10])
        >>> fluid.layers.sigmoid_cross_entropy_with_logits(x, label).shape
        (-1, 10)
    """
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return one_op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label}, attrs, name=name)


@naming.layer
@takes(label="huber_loss.Y")
def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the squared difference where it is small, a line where it is large.

    Args:
        input: predictions [N, 1].
        label: targets [N, 1].
        delta: the difference at which the parabola becomes a line.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> y, t = fluid.layers.data("y", [1]), fluid.layers.data("t", [1])
        >>> fluid.layers.huber_loss(y, t, delta=1.0).shape
        (-1, 1)
    """
    outputs = {"Out": input.dtype, "Residual": input.dtype}
    return several("huber_loss", {"X": input, "Y": label}, outputs, {"delta": float(delta)})[0]


@naming.layer
@takes(
    x="smooth_l1_loss.X", y="smooth_l1_loss.Y", inside_weight="smooth_l1_loss.InsideWeight",
    outside_weight="smooth_l1_loss.OutsideWeight",
)  # fmt: skip
def smooth_l1(
    x: Variable, y: Variable, inside_weight: Variable | None = None, outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:  # fmt: skip
    """The sum over a row of squared differences where they are small, of absolute ones where they are large.

    Args:
        x: predictions [N, …].
        y: targets, shape of ``x``.
        inside_weight: factors of the differences, shape of ``x``.
        outside_weight: factors of the losses, shape of ``x``.
        sigma: the difference at which the parabola becomes a line is ``1 / sigma²``; 1 by default.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> x, y = fluid.layers.data("x", [4]), fluid.layers.data("y", [4])
        >>> fluid.layers.smooth_l1(x, y).shape
        (-1, 1)
    """
    inputs = {"X": x, "Y": y, "InsideWeight": inside_weight, "OutsideWeight": outside_weight}
    outputs = {"Out": x.dtype, "Diff": x.dtype}
    return several("smooth_l1_loss", inputs, outputs, {"sigma": 1.0 if sigma is None else float(sigma)})[0]


@naming.layer
@takes(input="log_loss.Predicted", label="log_loss.Labels")
def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """Negative logarithm of the probability of what was the case.

    Args:
        input: probabilities of yes [N, 1].
        label: 1 for yes, 0 for no, [N, 1].
        epsilon: keeps logarithms finite.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> p, label = fluid.layers.data("p", [1]), fluid.layers.data("label", [1])
        >>> fluid.layers.log_loss(p, label).shape
        (-1, 1)
    """
    inputs = {"Predicted": input, "Labels": label}
    return one_op("log_loss", inputs, {"epsilon": float(epsilon)}, slot="Loss", name=name)


@naming.layer
def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """Kullback-Leibler divergence: ``target · (log(target) - x)``.

    Args:
        x: logarithms of probabilities, any shape.
        target: probabilities, shape of ``x``.
        reduction: ``"none"``, ``"sum"``, ``"mean"`` over elements, or ``"batchmean"`` over rows.

    Returns:
        Shape of ``x``, or [1].

    Example:
        >>> x, target = fluid.layers.data("x", [4]), fluid.layers.data("target", [4])
        >>> fluid.layers.kldiv_loss(x, target, reduction="batchmean").shape
        (1,)
    """
    return one_op("kldiv_loss", {"X": x, "Target": target}, {"reduction": reduction}, slot="Loss", name=name)


@naming.layer
def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """Cross entropy of which of two should come first: ``log(1 + exp(left - right)) - label · (left - right)``.

    Args:
        label: 1 where left should, 0 where right, [N, 1].
        left: scores [N, 1].
        right: scores [N, 1].

    Returns:
        The loss of each pair [N, 1].

    Example:
        >>> label, left, right = (fluid.layers.data(n, [1]) for n in ("label", "left", "right"))
        >>> fluid.layers.rank_loss(label, left, right).shape
        (-1, 1)
    """
    inputs = {"Label": label, "Left": left, "Right": right}
    return one_op("rank_loss", inputs, dtype=left.dtype, name=name)


@naming.layer
@takes(left="margin_rank_loss.X1", right="margin_rank_loss.X2")
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """Margin ranking loss: ``max(0, margin - label · (left - right))``.

    Args:
        label: 1 where left should be larger, -1 where right, [N, 1].
        left: scores [N, 1].
        right: scores [N, 1].
        margin: the margin.

    Returns:
        The loss of each pair [N, 1].

    Example:
        >>> label, left, right = (fluid.layers.data(n, [1]) for n in ("label", "left", "right"))
        >>> fluid.layers.margin_rank_loss(label, left, right).shape
        (-1, 1)
    """
    inputs = {"Label": label, "X1": left, "X2": right}
    outputs = {"Out": left.dtype, "Activated": left.dtype}
    return several("margin_rank_loss", inputs, outputs, {"margin": float(margin)}, name=name)[0]


@naming.layer
def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """The mean over all other classes of how likely they are to come before the right one.

    Args:
        input: scores [N, classes].
        label: int64 [N, 1]: the class that should come first.

    Returns:
        The loss of each row [N, 1].

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.bpr_loss(x, label).shape
        (-1, 1)
    """
    return one_op("bpr_loss", {"X": input, "Label": label}, slot="Y", name=name)


@naming.layer
@takes(input="float[N, …, classes]", label="int64[N, …, 1]")
def dice_loss(input: Variable, label: Variable, epsilon: float = 0.00001) -> Variable:
    """Dice loss: 1 minus twice the intersection over the sum of both sets.

    Args:
        input: probabilities of classes [N, …, classes].
        label: int64 class numbers [N, …, 1].
        epsilon: keeps the divisor from zero.

    Returns:
        The mean over the batch, shape [1].

    Example:
        >>> x, label = fluid.layers.data("x", [10]), fluid.layers.data("label", [1], dtype="int64")
        >>> fluid.layers.dice_loss(x, label).shape
        (1,)
    """
    if not input.shape:
        raise OpValueError(
            "dice_loss takes a probability for each class.", slots=operands([input]), expected="[N, ..., classes]",
            received=[],
        )  # fmt: skip
    marks = one_hot(label, input.shape[-1])
    axes = list(range(1, len(input.shape)))
    shared = reduce_sum(input * marks, dim=axes)
    total = reduce_sum(input, dim=axes) + reduce_sum(marks, dim=axes)
    return reduce_mean(scale(shared / (total + epsilon), -2.0, 1.0))


@naming.layer
@takes(label="label_smooth.X")
def label_smooth(
    label: Variable, prior_dist: Variable | None = None, epsilon: float = 0.1, dtype: Any = "float32",
    name: str | None = None,
) -> Variable:  # fmt: skip
    """Labels mixed with a distribution that says less.

    Args:
        label: a distribution over classes in each row [N, classes], for example from `one_hot`.
        prior_dist: [1, classes]; by default all classes are as likely.
        epsilon: its share, from 0 to 1.
        dtype: dtype of the result.

    Returns:
        The mixtures [N, classes].

    Example:
        >>> label = fluid.layers.one_hot(fluid.layers.data("label", [1], dtype="int64"), depth=10)
        >>> fluid.layers.label_smooth(label, epsilon=0.1).shape
        (-1, 10)
    """
    if not 0 <= epsilon <= 1:
        raise OpValueError("The value of epsilon must be between 0 and 1.", expected="0 to 1", received=epsilon)
    inputs = {"X": label, "PriorDist": prior_dist}
    out = one_op("label_smooth", inputs, {"epsilon": float(epsilon)}, dtype=dtype, name=name)
    label.stop_gradient = True
    return out


@naming.layer
def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """``alpha * input + beta * encoding``, with sines and cosines of the place in the sequence.

    Args:
        input: float [N, T, D], or sequences [T, D]; D even.
        alpha: factor of the input.
        beta: factor of the encoding.

    Returns:
        Shape of ``input``.

    Example:
        >>> words = fluid.layers.data("words", [12, 8])
        >>> fluid.layers.add_position_encoding(words, 1.0, 1.0).shape
        (-1, 12, 8)
    """
    return one_op("add_position_encoding", {"X": input}, {"alpha": alpha, "beta": beta}, name=name)


@naming.layer
@takes(x="fsp.X", y="fsp.Y")
def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """Flow matrix of two feature maps (FSP): the mean over the pixels of their channels' products.

    Args:
        x: float [N, C1, H, W].
        y: float [N, C2, H, W].

    Returns:
        [N, C1, C2].

    Example:
        >>> x, y = fluid.layers.data("x", [2, 8, 8]), fluid.layers.data("y", [3, 8, 8])
        >>> fluid.layers.fsp_matrix(x, y).shape
        (-1, 2, 3)
    """
    return one_op("fsp", {"X": x, "Y": y})


@naming.layer
def teacher_student_sigmoid_loss(
    input: Variable, label: Variable, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Variable:
    """Cross entropy of the sigmoid with a click, and with a teacher's value where there is one.

    Args:
        input: logits, float [N, 1].
        label: float [N, 1]: -2 no click, -1 a click; with a teacher its value in [0, 1), plus 1 for a click.
        soft_max_up_bound: from here on there is no gradient.
        soft_max_lower_bound: below there is no gradient.

    Returns:
        [N, 1].

    Example:
        >>> logit, label = fluid.layers.data("logit", [1]), fluid.layers.data("label", [1])
        >>> fluid.layers.teacher_student_sigmoid_loss(logit, label).shape
        (-1, 1)
    """
    attrs = {"soft_max_up_bound": soft_max_up_bound, "soft_max_lower_bound": soft_max_lower_bound}
    return one_op("teacher_student_sigmoid_loss", {"X": input, "Label": label}, attrs, slot="Y")


@naming.layer
@takes(anchor="float[N, D]", positive="float[N, D]", labels="any[N]")
def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """N-pair loss: cross entropy of the products of anchors and positives.

    Args:
        anchor: float [N, D], N known.
        positive: float [N, D].
        labels: the class of each pair [N].
        l2_reg: factor of the squared lengths.

    Returns:
        One number.

    Raises:
        OpValueError: N is not known.

    Example:
        >>> shapes = {"anchor": [18, 6], "positive": [18, 6], "labels": [18]}
        >>> given = [fluid.layers.data(n, s, append_batch_size=False) for n, s in shapes.items()]
        >>> fluid.layers.npair_loss(*given).shape
        (1,)

    Source: Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss Objective" (2016).
    """
    size = labels.shape[0] if labels.shape else -1
    if size < 0:
        raise OpValueError(
            "npair_loss needs a batch of a known size.", expected="labels [N]", received=str(list(labels.shape)),
            hint="layers.data(..., append_batch_size=False) declares the whole shape.",
        )  # fmt: skip
    square_of = expand(reshape(labels, [size, 1]), [1, size])
    same = cast(equal(square_of, transpose(square_of, [1, 0])), "float32")
    wanted = elementwise_div(same, reduce_sum(same, dim=1, keep_dim=True), axis=0)
    first, second = (reduce_mean(reduce_sum(square(v), 1)) for v in (anchor, positive))
    losses = softmax_with_cross_entropy(matmul(anchor, positive, transpose_y=True), wanted, soft_label=True)
    assert isinstance(losses, Variable)  # a pair only where the softmax is requested
    loss = reduce_mean(reduce_sum(elementwise_mul(wanted, losses, axis=0), 0))
    return elementwise_add(scale(elementwise_add(first, second), 0.25 * l2_reg), loss)


_SAMPLERS = {"uniform": 0, "log_uniform": 1, "custom_dist": 2}


@naming.layer
@takes(sampler=("uniform", "log_uniform", "custom_dist"))
def nce(
    input: Variable, label: Variable, num_total_classes: int, sample_weight: Variable | None = None,
    param_attr: Any = None, bias_attr: Any = None, num_neg_samples: int | None = None, name: str | None = None,
    sampler: str = "uniform", custom_dist: Any = None, seed: int = 0, is_sparse: bool = False,
) -> Variable:  # fmt: skip
    """Noise-contrastive estimation: discriminates the true class from sampled negatives.

    Args:
        input: float [N, D].
        label: int64 [N, T], true classes.
        num_total_classes: how many classes there are.
        sample_weight: [N, 1], what a row counts.
        param_attr: the weight, [num_total_classes, D].
        bias_attr: the bias, [num_total_classes, 1]; False for none.
        num_neg_samples: classes drawn for each row; 10 when left out.
        sampler: "uniform", "log_uniform" or "custom_dist".
        custom_dist: for the last, the probability of each class.
        seed: of the drawing; 0 for the program's.
        is_sparse: whether the gradient of the weight is SelectedRows, with the classes of the batch alone.

    Returns:
        The cost, float [N, 1].

    Raises:
        OpValueError: "custom_dist" without as many probabilities as classes.

    Example:
        >>> word, target = fluid.layers.data("word", [8]), fluid.layers.data("target", [1], dtype="int64")
        >>> fluid.layers.nce(word, target, num_total_classes=100).shape
        (-1, 1)
    """
    if sampler not in _SAMPLERS:
        raise OpValueError(f"Unsupported sampler type {sampler!r}.", expected=", ".join(_SAMPLERS), received=sampler)
    helper = LayerHelper("nce", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    inputs = _weighed(helper, {"Input": input, "Label": label}, "Weight", num_total_classes, "nce")
    inputs["SampleWeight"] = sample_weight
    if sampler == "custom_dist":
        try:
            chances = np.asarray([] if custom_dist is None else custom_dist, "float32")
        except (TypeError, ValueError, OverflowError):
            raise OpValueError(
                "custom_dist of nce is a list of numbers.", expected=f"{num_total_classes} numbers",
                received=repr(custom_dist)[:200],
            ) from None  # fmt: skip
        if chances.shape != (num_total_classes,):
            raise OpValueError(
                "custom_dist of nce has a probability for each class.", expected=[num_total_classes],
                received=list(chances.shape),
            )  # fmt: skip
        inputs["CustomDistProbs"] = assign(chances)
    attrs = {
        "num_total_classes": num_total_classes, "num_neg_samples": 10 if num_neg_samples is None else num_neg_samples,
        "seed": seed, "sampler": _SAMPLERS[sampler], "is_sparse": is_sparse,
    }  # fmt: skip
    outputs = {"Cost": input.dtype, "SampleLogits": input.dtype, "SampleLabels": label.dtype}
    return several("nce", inputs, outputs, attrs, helper=helper)[0]


def _weighed(
    helper: LayerHelper, inputs: dict[str, Variable | None], slot: str, rows: int, layer: str
) -> dict[str, Any]:
    """The inputs with a weight [rows, columns of the input], and a bias [rows, 1] unless the layer has none."""
    input = helper.input()
    weight = helper.create_parameter(helper.param_attr, [rows, row_width(input, layer)], input.dtype)
    bias = helper.bias_attr and helper.create_parameter(helper.bias_attr, [rows, 1], input.dtype, is_bias=True)
    return {**inputs, slot: weight, "Bias": bias}


@naming.layer
@takes(
    input="hierarchical_sigmoid.X", label="hierarchical_sigmoid.Label", path_table="hierarchical_sigmoid.PathTable",
    path_code="hierarchical_sigmoid.PathCode",
)  # fmt: skip
def hsigmoid(
    input: Variable, label: Variable, num_classes: int | None, param_attr: Any = None, bias_attr: Any = None,
    name: str | None = None, path_table: Variable | None = None, path_code: Variable | None = None,
    is_custom: bool = False, is_sparse: bool = False,
) -> Variable:  # fmt: skip
    """Hierarchical sigmoid: a class is a way through a binary tree, and costs as much as its turns.

    Args:
        input: float [N, D].
        label: int64 [N, 1] or [N], classes.
        num_classes: how many classes; with a custom tree how many inner nodes.
        param_attr: a vector for each inner node, [num_classes - 1, D], or [num_classes, D] with a custom tree.
        bias_attr: a number for each inner node; False for none.
        path_table: int64 [N, L], the nodes on the way to each row's class, -1 after its end; for a custom tree.
        path_code: int64 [N, L], the turn at each of them, 0 or 1.
        is_custom: whether the tree is your own.
        is_sparse: whether the gradient of the vectors is SelectedRows, with the nodes of the batch alone.

    Returns:
        The cost, float [N, 1].

    Example:
        >>> word, target = fluid.layers.data("word", [8]), fluid.layers.data("target", [1], dtype="int64")
        >>> fluid.layers.hsigmoid(word, target, num_classes=100).shape
        (-1, 1)
    """
    if num_classes is None:
        raise OpTypeError("num_classes of hsigmoid is an int.", expected="int", received=repr(num_classes))
    if not is_custom and num_classes < 2:
        raise OpValueError(
            "num_classes must not be less than 2 with default tree", expected="2 or more", received=num_classes
        )
    path = {"path_table": path_table, "path_code": path_code} if is_custom else {}
    if None in path.values():
        raise OpValueError(
            "A custom tree needs path_table and path_code.", expected="two int64 variables [N, L]",
            received=next((name for name, value in path.items() if value is not None), "none"),
        )  # fmt: skip
    helper = LayerHelper("hierarchical_sigmoid", input=input, param_attr=param_attr, bias_attr=bias_attr, name=name)
    tree = {"PathTable": path.get("path_table"), "PathCode": path.get("path_code")}
    nodes = num_classes if is_custom else num_classes - 1
    inputs = _weighed(helper, {"X": input, "Label": label, **tree}, "W", nodes, "hsigmoid")
    attrs = {"num_classes": max(num_classes, 2), "is_sparse": is_sparse}
    outputs = {"Out": input.dtype, "PreOut": input.dtype}
    return several("hierarchical_sigmoid", inputs, outputs, attrs, helper=helper)[0]


@naming.layer
@takes(
    logits="sample_logits.Logits", label="sample_logits.Labels", customized_samples="sample_logits.CustomizedSamples",
    customized_probabilities="sample_logits.CustomizedProbabilities",
)  # fmt: skip
def sampled_softmax_with_cross_entropy(
    logits: Variable, label: Variable, num_samples: int, num_true: int = 1, remove_accidental_hits: bool = True,
    use_customized_samples: bool = False, customized_samples: Variable | None = None,
    customized_probabilities: Variable | None = None, seed: int = 0,
) -> Variable:  # fmt: skip
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

    Example:
        >>> scores, word = fluid.layers.data("scores", [1000]), fluid.layers.data("word", [1], dtype="int64")
        >>> fluid.layers.sampled_softmax_with_cross_entropy(scores, word, num_samples=20).shape
        (-1, 1)
    """
    if num_true < 1:
        raise OpValueError("A row has at least one true class.", expected="num_true from 1 on", received=num_true)
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
    *_, sampled, places = several("sample_logits", inputs, outputs, attrs)
    width = num_samples + num_true
    marks = cast(one_hot(reshape(places, [-1, 1]), width), logits.dtype)
    if num_true > 1:
        marks = scale(reduce_sum(reshape(marks, [-1, num_true, width]), 1), 1.0 / num_true)
    loss = softmax_with_cross_entropy(sampled, marks, soft_label=True)
    assert isinstance(loss, Variable)
    return scale(loss, 1.0 / num_true)
