"""Nets: groups of layers that are often used together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fluidnb import layers
from fluidnb.errors import Operand, OpValueError
from fluidnb.param_attr import ParamAttrLike
from fluidnb.program import Variable
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import dtype_name

__all__ = ["glu", "img_conv_group", "scaled_dot_product_attention", "sequence_conv_pool", "simple_img_conv_pool"]

Sizes = int | Sequence[int]


@naming.layer
def simple_img_conv_pool(
    input: Variable, num_filters: int, filter_size: Sizes, pool_size: Sizes, pool_stride: Sizes,
    pool_padding: Sizes = 0, pool_type: str = "max", global_pooling: bool = False, conv_stride: Sizes = 1,
    conv_padding: Sizes = 0, conv_dilation: Sizes = 1, conv_groups: int = 1, param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None, act: Any = None, use_cudnn: bool = True,
) -> Variable:  # fmt: skip
    """A convolution and a pooling.

    Args:
        input: images [batch, channels, height, width].
        num_filters: channels of the output.
        filter_size: height and width of a filter, or one number for both.
        pool_stride: from pooling window to window.
        pool_padding: how far pooling windows may reach over the edge.
        global_pooling: one pooling window that is the whole image.
        conv_stride: stride of the window of the convolution.
        conv_padding: zeros around the images.
        conv_dilation: from element to element of a filter.
        conv_groups: groups of channels that do not see each other.
        param_attr: description of the filters.
        bias_attr: description of the bias; False leaves it out.
        act: activation between the two.

    Returns:
        [batch, num_filters, height, width].

    Example:
        >>> image = fluid.layers.data("image", [1, 28, 28])
        >>> y = fluid.nets.simple_img_conv_pool(image, 20, filter_size=5, pool_size=2, pool_stride=2, act="relu")
        >>> y.shape
        (-1, 20, 12, 12)
    """
    conv = layers.conv2d(
        input, num_filters, filter_size, stride=conv_stride, padding=conv_padding, dilation=conv_dilation,
        groups=conv_groups, param_attr=param_attr, bias_attr=bias_attr, use_cudnn=use_cudnn, act=act,
    )  # fmt: skip
    return layers.pool2d(
        conv, pool_size, pool_type, pool_stride, pool_padding, global_pooling=global_pooling, use_cudnn=use_cudnn
    )


@naming.layer
def img_conv_group(
    input: Variable, conv_num_filter: Sequence[int], pool_size: Sizes, conv_padding: int | Sequence[int] = 1,
    conv_filter_size: int | Sequence[int] = 3, conv_act: Any = None,
    param_attr: ParamAttrLike | Sequence[ParamAttrLike] = None, conv_with_batchnorm: bool | Sequence[bool] = False,
    conv_batchnorm_drop_rate: float | Sequence[float] = 0.0, pool_stride: Sizes = 1, pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:  # fmt: skip
    """Several convolutions, each with batch normalisation and dropout if wanted, and a pooling after the last.

    Args:
        input: images [batch, channels, height, width].
        conv_num_filter: channels after each convolution.
        conv_padding: zeros around the images; one for all convolutions, or a list.
        conv_filter_size: size of the filters, alike.
        conv_act: activation, after the normalisation where there is one.
        param_attr: description of the filters, alike.
        conv_with_batchnorm: whether to normalise after a convolution, alike.
        conv_batchnorm_drop_rate: probability of dropout after a normalisation, alike.
        pool_stride: from pooling window to window.

    Returns:
        [batch, last of ``conv_num_filter``, height, width].

    Example:
        >>> image = fluid.layers.data("image", [3, 32, 32])
        >>> y = fluid.nets.img_conv_group(
        ...     image, [64, 64], pool_size=2, pool_stride=2, conv_act="relu", conv_with_batchnorm=True,
        ...     conv_batchnorm_drop_rate=[0.3, 0.0])
        >>> y.shape, [op.type for op in y.block.ops].count("dropout")
        ((-1, 64, 16, 16), 1)
    """
    count = len(conv_num_filter)

    def each(argument: str, value: Any) -> Sequence[Any]:
        values = value if isinstance(value, list | tuple) else [value] * count
        if len(values) != count:
            raise OpValueError(
                f"{argument} of img_conv_group has another length than conv_num_filter.", expected=count,
                received=len(values), hint="one value is enough for all convolutions.",
            )  # fmt: skip
        return values

    paddings, sizes = each("conv_padding", conv_padding), each("conv_filter_size", conv_filter_size)
    attrs, normal = each("param_attr", param_attr), each("conv_with_batchnorm", conv_with_batchnorm)
    drops = each("conv_batchnorm_drop_rate", conv_batchnorm_drop_rate)
    y = input
    for filters, padding, size, attr, normalised, drop in zip(
        conv_num_filter, paddings, sizes, attrs, normal, drops, strict=True
    ):
        act = None if normalised else conv_act
        y = layers.conv2d(y, filters, size, padding=padding, param_attr=attr, act=act, use_cudnn=use_cudnn)
        if normalised:
            y = layers.batch_norm(y, act=conv_act)
            if drop > 0:
                y = layers.dropout(y, dropout_prob=drop)
    return layers.pool2d(y, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


@naming.layer
def sequence_conv_pool(
    input: Variable, num_filters: int, filter_size: int, param_attr: ParamAttrLike = None, act: Any = "sigmoid",
    pool_type: str = "max", bias_attr: ParamAttrLike = None,
) -> Variable:  # fmt: skip
    """Filters over the rows of sequences, and one row from each sequence.

    Args:
        input: [rows, width] with one level of LoD.
        num_filters: how many filters.
        filter_size: how many rows a filter sees.
        param_attr: description of the filters [filter_size · width, num_filters].
        act: activation between the two.
        pool_type: ``"max"``, ``"average"``, ``"sum"``, ``"sqrt"``, ``"last"`` or ``"first"``.
        bias_attr: description of the bias; False leaves it out.

    Returns:
        [sequences, num_filters].

    Example:
        >>> word = fluid.layers.data("word", [1], dtype="int64", lod_level=1)
        >>> text = fluid.layers.embedding(word, size=[100, 32])
        >>> y = fluid.nets.sequence_conv_pool(text, num_filters=16, filter_size=3, act="tanh", pool_type="sqrt")
        >>> y.shape, y.lod_level
        ((-1, 16), 0)
    """
    conv = layers.sequence_conv(input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act)
    return layers.sequence_pool(conv, pool_type)


@naming.layer
def glu(input: Variable, dim: int = -1) -> Variable:
    """Gated linear unit: one half of a variable, each element let through by the sigmoid of the other half's.

    ``a · sigmoid(b)`` where ``a`` and ``b`` are the halves (Dauphin et al. 2016).

    Args:
        input: any shape with an even size along ``dim``.
        dim: the axis along which it is halved.

    Returns:
        A variable half as long along ``dim``.

    Example:
        >>> fluid.nets.glu(fluid.layers.data("x", [6, 9]), dim=1).shape
        (-1, 3, 9)
    """
    a, b = layers.split(input, num_or_sections=2, dim=dim)
    return layers.elementwise_mul(a, layers.sigmoid(b))


@naming.layer
def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    """For each query a mean of the values, weighed by how well its keys match (Vaswani et al. 2017).

    ``softmax(Q · Kᵀ / √d) · V``. With several heads each of Q, K and V first goes through an fc of its width and is
    cut into heads, and the heads' results are put side by side.

    Args:
        queries: [batch, number of queries, d].
        keys: [batch, number of keys, d].
        values: [batch, number of keys, width].
        num_heads: how many heads.
        dropout_rate: probability with which a weight is set to zero in training.

    Returns:
        [batch, number of queries, width].

    Example:
        >>> q, kv = fluid.layers.data("q", [5, 9]), fluid.layers.data("kv", [6, 9])
        >>> fluid.nets.scaled_dot_product_attention(q, kv, kv, num_heads=3).shape
        (-1, 5, 9)
    """
    _check_attention(queries, keys, values, num_heads)
    q, k, v = queries, keys, values
    if num_heads > 1:
        q, k, v = (_heads(layers.fc(x, x.shape[-1], num_flatten_dims=2), num_heads) for x in (q, k, v))
    width = keys.shape[-1] // num_heads
    weights = layers.softmax(layers.matmul(layers.scale(q, scale=width**-0.5), k, transpose_y=True))
    if dropout_rate:
        weights = layers.dropout(weights, dropout_prob=dropout_rate)
    context = layers.matmul(weights, v)
    if num_heads == 1:
        return context
    return layers.reshape(layers.transpose(context, [0, 2, 1, 3]), [0, 0, values.shape[-1]])


def _heads(x: Variable, count: int) -> Variable:
    """[batch, length, width] as [batch, heads, length, width / heads]."""
    return layers.transpose(layers.reshape(x, [0, 0, count, x.shape[-1] // count]), [0, 2, 1, 3])


def _check_attention(queries: Variable, keys: Variable, values: Variable, num_heads: int) -> None:
    operands: list[Operand] = []
    for name, x in (("queries", queries), ("keys", keys), ("values", values)):
        operands.append((name, x.name, dtype_name(x.dtype), x.shape))

    def require(holds: bool, message: str, hint: str | None = None) -> None:
        if not holds:
            raise OpValueError(message, slots=operands, attrs={"num_heads": num_heads}, hint=hint)

    require(
        all(len(x.shape) == 3 for x in (queries, keys, values)),
        "Inputs queries, keys and values should all be 3-D tensors.", "[batch, length, width] is wanted.",
    )  # fmt: skip
    require(queries.shape[-1] == keys.shape[-1], "The hidden size of queries and keys should be the same.")
    require(
        keys.shape[1] == values.shape[1] or -1 in (keys.shape[1], values.shape[1]),
        "The max sequence length in key batch and in value batch should be the same.",
    )
    require(keys.shape[-1] > 0, "The hidden size of queries and keys should be known.", "[batch, length, width].")
    require(num_heads >= 1, "num_heads must be a whole number of at least 1.")
    require(
        keys.shape[-1] % num_heads == 0 and values.shape[-1] % num_heads == 0,
        f"The hidden size of keys and of values must be divisible by the number of attention heads ({num_heads}).",
    )
