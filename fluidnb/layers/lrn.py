"""The layer of local response normalisation."""

from __future__ import annotations

from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.windows import check_image
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming

__all__ = ["lrn"]


@naming.layer
def lrn(
    input: Variable, n: int = 5, k: float = 1.0, alpha: float = 0.0001, beta: float = 0.75, name: str | None = None
) -> Variable:
    """Each element of an image over a power of the squares of the channels around it.

    ``out = input / (k + alpha · sum of the squares of the n channels around)^beta``

    Args:
        input: images [batch, channels, height, width].
        n: how many channels count.
        k: what is added to the squares.
        alpha: factor of the squares.
        beta: the power.
        name: name of the layer.

    Returns:
        A variable of the input's shape.

    Raises:
        OpTypeError: the input is not a Variable.
        OpValueError: it is not a batch of images, or an attribute is not positive.

    Example:
        >>> with fluid.program_guard(fluid.Program()):
        ...     y = fluid.layers.lrn(fluid.layers.data("x", [8, 6, 6]), n=5)
        >>> y.shape
        (-1, 8, 6, 6)

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012); Fluid's
    layers.lrn.
    """
    check_image(input, 2, "lrn")
    helper = LayerHelper("lrn", name=name)
    out = helper.create_tmp_variable(input.dtype)
    middle = helper.create_tmp_variable(input.dtype, stop_gradient=True)
    helper.append_op(
        type="lrn", inputs={"X": [input]}, outputs={"Out": [out], "MidOut": [middle]},
        attrs={"n": n, "k": k, "alpha": alpha, "beta": beta},
    )  # fmt: skip
    return out
