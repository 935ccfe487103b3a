"""Layers of normalisation."""

from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant, Normal
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.conv import check_image
from fluidnb.layers.one_op import one_op, several
from fluidnb.op import product, takes
from fluidnb.param_attr import ParamAttr, ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values import dtypes

__all__ = ["batch_norm", "group_norm", "layer_norm", "lrn", "spectral_norm"]


@naming.layer
@takes(data_layout=("NCHW", "NHWC"))
def batch_norm(
    input: Variable, act: Any = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, data_layout: str = "NCHW",
    in_place: bool = False, name: str | None = None, moving_mean_name: str | None = None,
    moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = False,
    fuse_with_relu: bool = False, use_global_stats: bool = False,
) -> Variable:  # fmt: skip
    """Each channel normalised over the batch: ``act((input - mean) / sqrt(variance + epsilon) · scale + bias)``.

    Running means and variances, persistable and not trained, move in training with
    ``running = momentum · running + (1 - momentum) · batch``; a test uses them.

    Args:
        input: [batch, channels], [batch, channels, …] or, with ``data_layout="NHWC"``, [batch, …, channels].
        is_test: normalise with the running moments and leave them alone; ``clone(for_test=True)`` sets it.
        momentum: momentum of the running mean and variance.
        epsilon: keeps the divisor from zero, at most 0.001.
        param_attr: description of the scale [channels]; 1 at first unless it says otherwise.
        bias_attr: description of the bias [channels]; 0 at first.
        in_place: whether the output takes the place of the input's variable.
        name: name of the layer; scale, bias, running mean and variance are ``name.w_0``, ``.b_0``, ``.w_1``, ``.w_2``.
        moving_mean_name: name of the running mean.
        moving_variance_name: name of the running variance.
        do_model_average_for_mean_and_var: whether model averaging takes the running moments in.
        fuse_with_relu: kept for old scripts; must be False.
        use_global_stats: use the running moments in training too.

    Returns:
        A variable of the input's shape.

    Raises:
        OpValueError: the channels are not known, or a parameter is described as False.

    Example:
        >>> with fluid.unique_name.guard(), fluid.program_guard(fluid.Program(), fluid.Program()):
        ...     y = fluid.layers.batch_norm(fluid.layers.data("x", [3, 8, 8]), act="relu")
        >>> y.shape, [p.name for p in y.block.all_parameters() if p.trainable]
        ((-1, 3, 8, 8), ['batch_norm_0.w_0', 'batch_norm_0.b_0'])
    """
    helper = LayerHelper("batch_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    channels = _channels(input, data_layout, "batch_norm")
    # moments and parameters of half-precision images are kept in single precision
    own = "float32" if dtypes.dtype_name(dtype) in ("float16", "bfloat16") else dtype
    scale = helper.create_parameter(helper.param_attr or False, [channels], own, default_initializer=Constant(1.0))
    bias = helper.create_parameter(helper.bias_attr or False, [channels], own, is_bias=True)
    running = []
    for called, value in ((moving_mean_name, 0.0), (moving_variance_name, 1.0)):
        attr = ParamAttr(
            name=called, initializer=Constant(value), trainable=False,
            do_model_average=do_model_average_for_mean_and_var,
        )  # fmt: skip
        moment = helper.create_parameter(attr, [channels], own)
        moment.stop_gradient = True
        running.append(moment)
    saved = [helper.create_tmp_variable(own, stop_gradient=True) for _ in range(2)]
    reserve = helper.create_tmp_variable(dtype, stop_gradient=True)  # empty here, but Paddle refuses to do without
    out = input if in_place else helper.create_tmp_variable(dtype)
    helper.append_op(
        type="batch_norm",
        inputs={"X": [input], "Scale": [scale], "Bias": [bias], "Mean": [running[0]], "Variance": [running[1]]},
        outputs={"Y": [out], "MeanOut": [running[0]], "VarianceOut": [running[1]], "SavedMean": [saved[0]],
                 "SavedVariance": [saved[1]], "ReserveSpace": [reserve]},
        attrs={"momentum": momentum, "epsilon": epsilon, "is_test": is_test, "data_layout": data_layout,
               "fuse_with_relu": fuse_with_relu, "use_global_stats": use_global_stats},
    )  # fmt: skip
    return helper.append_activation(out)


def _channels(input: Variable, layout: str, layer: str) -> int:
    if layout not in ("NCHW", "NHWC"):
        raise OpValueError(
            f"unsupported data layout: {layout}", expected="'NCHW' or 'NHWC'", received=f"data_layout={layout!r}"
        )
    channels = input.shape[-1 if layout == "NHWC" else 1] if len(input.shape) > 1 else -1
    if channels < 0:
        raise OpValueError(
            f"{layer} needs to know the number of channels of its input.",
            slots=[("input", input.name, dtypes.dtype_name(input.dtype), input.shape)],
            expected="[batch, channels, …]" if layout == "NCHW" else "[batch, …, channels]", received=list(input.shape),
        )  # fmt: skip
    return channels


@naming.layer
def layer_norm(
    input: Variable, scale: bool = True, shift: bool = True, begin_norm_axis: int = 1, epsilon: float = 1e-05,
    param_attr: ParamAttrLike = None, bias_attr: ParamAttrLike = None, act: Any = None, name: str | None = None,
) -> Variable:  # fmt: skip
    """Each row normalised by itself: ``act((input - mean) / sqrt(variance + epsilon) · gain + bias)``.

    Args:
        input: any shape with more than ``begin_norm_axis`` dimensions.
        scale: whether there is a gain.
        shift: whether there is a bias.
        begin_norm_axis: the dimensions before this one make rows, the others are normalised.
        epsilon: keeps the divisor from zero, at most 0.001.
        param_attr: description of the gain [length of a row]; 1 at first unless it says otherwise.
        bias_attr: description of the bias [length of a row]; 0 at first.

    Returns:
        A variable of the input's shape.

    Example:
        >>> y = fluid.layers.layer_norm(fluid.layers.data("x", [4, 6]), begin_norm_axis=2)
        >>> y.shape, [p.shape for p in y.block.all_parameters()]
        ((-1, 4, 6), [(6,), (6,)])
    """
    helper = LayerHelper("layer_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    length = product(input.shape[begin_norm_axis:])
    if length < 0 and (scale or shift):
        raise OpValueError(
            "layer_norm needs to know the length of a row for its parameters.",
            slots=[("input", input.name, dtypes.dtype_name(dtype), input.shape)],
            expected=f"known sizes from axis {begin_norm_axis} on", received=list(input.shape),
        )  # fmt: skip
    return _normalised(
        helper, "layer_norm", input, dtype, length, scale, shift,
        {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis},
    )  # fmt: skip


@naming.layer
@takes(data_layout=("NCHW", "NHWC"))
def group_norm(
    input: Variable, groups: int, epsilon: float = 1e-05, param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None, act: Any = None, data_layout: str = "NCHW", name: str | None = None,
) -> Variable:  # fmt: skip
    """Groups of an image's channels normalised: ``act((input - mean) / sqrt(variance + epsilon) · gain + bias)``.

    Args:
        input: [batch, channels, …] or, with ``data_layout="NHWC"``, [batch, …, channels].
        groups: how many groups the channels fall into.
        epsilon: keeps the divisor from zero.
        param_attr: description of the gain [channels], 1 at first; False leaves it out.
        bias_attr: description of the bias [channels], 0 at first; False leaves it out.

    Returns:
        A variable of the input's shape.

    Example:
        >>> fluid.layers.group_norm(fluid.layers.data("x", [8, 6, 6]), groups=4).shape
        (-1, 8, 6, 6)
    """
    helper = LayerHelper("group_norm", input=input, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    channels = _channels(input, data_layout, "group_norm")
    return _normalised(
        helper, "group_norm", input, dtype, channels, helper.param_attr is not None, helper.bias_attr is not None,
        {"epsilon": epsilon, "groups": groups, "data_layout": data_layout},
    )  # fmt: skip


@naming.layer
def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """A weight over its largest singular value, which power iteration estimates from two random vectors.

    Args:
        weight: 2 to 5 dimensions of known sizes.
        dim: the dimension that makes the rows of the matrix.
        power_iters: steps of power iteration.
        eps: keeps divisors from zero.

    Returns:
        A variable of the weight's shape. The vectors are parameters that are not trained.

    Raises:
        OpValueError: a size is not known.

    Example:
        >>> weight = fluid.layers.create_parameter([4, 3, 2], "float32")
        >>> fluid.layers.spectral_norm(weight, power_iters=2).shape
        (4, 3, 2)

    Source: Miyato et al., "Spectral Normalization for GANs" (2018).
    """
    shape = weight.shape
    if not -len(shape) <= dim < len(shape) or min(shape, default=0) <= 0:
        raise OpValueError(
            "spectral_norm needs a weight of known sizes, and one of its dimensions.",
            expected=f"dim from 0 to {len(shape) - 1}, and sizes above 0", received=f"dim {dim} of {list(shape)}",
        )  # fmt: skip
    helper = LayerHelper("spectral_norm", name=name)
    sides = []
    for size in (shape[dim], product(shape) // shape[dim]):
        sides.append(helper.create_parameter(ParamAttr(trainable=False), [size], weight.dtype,
                                             default_initializer=Normal(0.0, 1.0)))  # fmt: skip
        sides[-1].stop_gradient = True
    attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}
    return one_op("spectral_norm", {"Weight": weight, "U": sides[0], "V": sides[1]}, attrs, name=name)


def _normalised(
    helper: LayerHelper, op_type: str, input: Variable, dtype: Any, length: int, scale: bool, shift: bool,
    attrs: dict[str, Any],
) -> Variable:  # fmt: skip
    """Append an operator with a gain and a bias, and variables for its moments."""
    inputs = {"X": [input]}
    if scale:
        inputs["Scale"] = [helper.create_parameter(None, [length], dtype, default_initializer=Constant(1.0))]
    if shift:
        inputs["Bias"] = [helper.create_parameter(None, [length], dtype, is_bias=True)]
    moments = [helper.create_tmp_variable(dtype, stop_gradient=True) for _ in range(2)]
    out = helper.create_tmp_variable(dtype)
    helper.append_op(
        type=op_type, inputs=inputs, outputs={"Y": [out], "Mean": [moments[0]], "Variance": [moments[1]]}, attrs=attrs
    )
    return helper.append_activation(out)


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

    Returns:
        A variable of the input's shape.

    Example:
        >>> fluid.layers.lrn(fluid.layers.data("x", [8, 6, 6]), n=5).shape
        (-1, 8, 6, 6)

    Source: Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks" (2012).
    """
    check_image(input, 2, "lrn")
    outputs, attrs = {"Out": input.dtype, "MidOut": input.dtype}, {"n": n, "k": k, "alpha": alpha, "beta": beta}
    return several("lrn", {"X": input}, outputs, attrs, name=name, constant=("MidOut",))[0]
