"""Losses that learn from a teacher, and encodings of places."""

from __future__ import annotations

from fluidnb.errors import OpValueError
from fluidnb.layers.activation import square
from fluidnb.layers.compare import equal
from fluidnb.layers.creation import cast
from fluidnb.layers.cross_entropy import softmax_with_cross_entropy
from fluidnb.layers.elementwise import elementwise_add, elementwise_div, elementwise_mul
from fluidnb.layers.math import matmul, scale
from fluidnb.layers.one_op import one_op
from fluidnb.layers.parts import expand
from fluidnb.layers.reduce import reduce_mean, reduce_sum
from fluidnb.layers.shape import reshape, transpose
from fluidnb.op import takes
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["add_position_encoding", "fsp_matrix", "npair_loss", "teacher_student_sigmoid_loss"]


@naming.layer
def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """``alpha * input + beta * encoding``, with sines and cosines of the place in the sequence.

    Args:
        input: float [N, T, D], or sequences [T, D]; D even.
        alpha: factor of the input.
        beta: factor of the encoding.
        name: name of the layer.

    Returns:
        Shape of ``input``.

    Raises:
        OpValueError: D is odd.

    Example:
        >>> words = fluid.layers.data("words", [12, 8])
        >>> fluid.layers.add_position_encoding(words, 1.0, 1.0).shape
        (-1, 12, 8)

    Source: Fluid's layers.add_position_encoding.
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

    Raises:
        OpValueError: batch, height or width differ.

    Example:
        >>> x, y = fluid.layers.data("x", [2, 8, 8]), fluid.layers.data("y", [3, 8, 8])
        >>> fluid.layers.fsp_matrix(x, y).shape
        (-1, 2, 3)

    Source: Fluid's layers.fsp_matrix.
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

    Raises:
        OpValueError: the shapes differ.

    Example:
        >>> logit, label = fluid.layers.data("logit", [1]), fluid.layers.data("label", [1])
        >>> fluid.layers.teacher_student_sigmoid_loss(logit, label).shape
        (-1, 1)

    Source: Fluid's layers.teacher_student_sigmoid_loss.
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
        OpTypeError: an argument is not a Variable.
        OpValueError: N is not known.

    Example:
        >>> shapes = {"anchor": [18, 6], "positive": [18, 6], "labels": [18]}
        >>> given = [fluid.layers.data(n, s, append_batch_size=False) for n, s in shapes.items()]
        >>> fluid.layers.npair_loss(*given).shape
        (1,)

    Source: Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss Objective" (2016); Fluid's
    layers.npair_loss.
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
    found = softmax_with_cross_entropy(matmul(anchor, positive, transpose_y=True), wanted, soft_label=True)
    assert isinstance(found, Variable)  # a pair only where the softmax is requested
    loss = reduce_mean(reduce_sum(elementwise_mul(wanted, found, axis=0), 0))
    return elementwise_add(scale(elementwise_add(first, second), 0.25 * l2_reg), loss)
