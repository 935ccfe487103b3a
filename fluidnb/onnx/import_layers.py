"""Converters of layers: convolutions, pools, normalisations, softmax, resizing, recurrent layers, quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.import_math import round_to_even
from fluidnb.onnx.import_tensors import sizes, whole_sizes
from fluidnb.onnx.importer import Importer, Node, converts
from fluidnb.values import dtypes


def paddings(importer: Importer, node: Node, x: str, kernel: list[int]) -> list[int]:
    """The numbers before and after each spatial axis: before, after, before, after, …"""
    count = len(kernel)
    auto = node.attrs.get("auto_pad", "NOTSET")
    if auto in ("NOTSET", "VALID"):
        pads = list(node.attrs.get("pads", [0] * (2 * count))) if auto == "NOTSET" else [0] * (2 * count)
        return [n for i in range(count) for n in (pads[i], pads[i + count])]
    strides, dilations = (node.attrs.get(name, [1] * count) for name in ("strides", "dilations"))
    out = []
    for i, size in enumerate(importer.shape(x)[2:]):
        if size < 0:
            raise Unsupported(f"auto_pad {auto} of any size")
        window = (kernel[i] - 1) * dilations[i] + 1
        total = max((-(-size // strides[i]) - 1) * strides[i] + window - size, 0)
        less, more = total // 2, total - total // 2
        out += [less, more] if auto == "SAME_UPPER" else [more, less]
    return out


def even(pads: list[int]) -> bool:
    """Whether as many numbers come before as after."""
    return pads[::2] == pads[1::2]


def flat(importer: Importer, node: Node, rank: int) -> bool:
    """Whether it is a layer of one spatial axis, which becomes one of two."""
    if rank not in (3, 4, 5):
        raise Unsupported(f"{rank} axes")
    return rank == 3


@converts("Conv")
def convolution(importer: Importer, node: Node) -> None:
    """A convolution, and its bias."""
    x, filters = importer.x(node), importer.x(node, 1)
    kernel, rank = list(importer.shape(filters)[2:]), importer.rank(x)
    pads = paddings(importer, node, x, kernel)
    strides, dilations = (list(node.attrs.get(name, [1] * len(kernel))) for name in ("strides", "dilations"))
    groups = node.attrs.get("group", 1)
    wide = flat(importer, node, rank)
    if wide:
        x = importer.value("unsqueeze2", {"X": x}, axes=[2])
        filters = importer.value("unsqueeze2", {"X": filters}, axes=[2])
        pads, strides, dilations = [0, 0, *pads], [1, *strides], [1, *dilations]
    type = "conv3d" if rank == 5 else "conv2d"
    if type == "conv2d" and groups > 1 and groups == importer.shape(filters)[0] == importer.shape(x)[1]:
        type = "depthwise_conv2d"
    attrs: dict[str, Any] = {"strides": strides, "paddings": pads[::2] if even(pads) else pads, "dilations": dilations}
    ended = not node.has(2) and not wide
    out = node.outputs[0] if ended else importer.new("conv")
    importer.append(type, {"Input": x, "Filter": filters}, {"Output": out}, groups=groups, **attrs)
    finish(importer, node, out, 2, wide)


@converts("DeformConv")
def deformable_convolution(importer: Importer, node: Node) -> None:
    """A convolution whose windows take their elements from where offsets lead, and its bias."""
    x, filters = importer.x(node), importer.x(node, 1)
    kernel = list(importer.shape(filters)[2:])
    pads = paddings(importer, node, x, kernel)
    if importer.rank(x) != 4 or not even(pads):
        raise Unsupported("other than two axes, or pads that are not even")
    ins = {"Input": x, "Offset": importer.x(node, 2), "Filter": filters}
    if node.has(4):
        ins["Mask"] = importer.x(node, 4)
    out = importer.new("conv") if node.has(3) else node.outputs[0]
    strides, dilations = (list(node.attrs.get(name, [1, 1])) for name in ("strides", "dilations"))
    importer.append(
        "deformable_conv" if node.has(4) else "deformable_conv_v1", ins, {"Output": out},
        groups=node.attrs.get("group", 1), deformable_groups=node.attrs.get("offset_group", 1), strides=strides,
        paddings=pads[::2], dilations=dilations,
    )  # fmt: skip
    finish(importer, node, out, 3, False)


def finish(importer: Importer, node: Node, out: str, bias: int, wide: bool) -> None:
    """Adds the bias of channels, and takes out the axis that a layer of one axis was given."""
    if wide:
        if node.has(bias):
            out = importer.value("squeeze2", {"X": out}, axes=[2])
        else:
            importer.into(node, "squeeze2", {"X": out}, axes=[2])
    if node.has(bias):
        importer.into(node, "elementwise_add", {"X": out, "Y": importer.x(node, bias)}, axis=1)


@converts("ConvTranspose")
def transposed_convolution(importer: Importer, node: Node) -> None:
    """A transposed convolution, and its bias."""
    x, filters = importer.x(node), importer.x(node, 1)
    kernel, rank = list(importer.shape(filters)[2:]), importer.rank(x)
    wide = flat(importer, node, rank)
    count = len(kernel)
    strides, dilations, extra = (
        list(node.attrs.get(name, [default] * count))
        for name, default in (("strides", 1), ("dilations", 1), ("output_padding", 0))
    )
    if node.attrs.get("auto_pad", "NOTSET") in ("NOTSET", "VALID") and "output_shape" not in node.attrs:
        pads = paddings(importer, node, x, kernel)
    else:
        wanted = node.attrs.get("output_shape")
        given = importer.shape(x)[2:]
        if min(given) < 0:
            raise Unsupported("auto_pad or output_shape of any size")
        wanted = list(wanted[-count:]) if wanted else [n * s for n, s in zip(given, strides, strict=True)]
        pads = []
        for i in range(count):
            total = strides[i] * (given[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - wanted[i]
            upper = node.attrs.get("auto_pad") != "SAME_UPPER"
            half = total // 2
            pads += [total - half, half] if upper else [half, total - half]
    if min(pads) < 0:
        raise Unsupported("negative pads")
    if wide:
        x = importer.value("unsqueeze2", {"X": x}, axes=[2])
        filters = importer.value("unsqueeze2", {"X": filters}, axes=[2])
        pads, strides, dilations, extra = [0, 0, *pads], [1, *strides], [1, *dilations], [0, *extra]
    attrs: dict[str, Any] = {"strides": strides, "paddings": pads[::2] if even(pads) else pads, "dilations": dilations}
    if any(extra):
        attrs["output_padding"] = extra
    ended = not node.has(2) and not wide
    out = node.outputs[0] if ended else importer.new("conv")
    importer.append(
        "conv3d_transpose" if rank == 5 else "conv2d_transpose", {"Input": x, "Filter": filters}, {"Output": out},
        groups=node.attrs.get("group", 1), **attrs,
    )  # fmt: skip
    finish(importer, node, out, 2, wide)


@converts("MaxPool", "AveragePool")
def pool(importer: Importer, node: Node) -> None:
    """The largest number or the mean of each window."""
    x, kernel = importer.x(node), list(node.attrs["kernel_shape"])
    rank = importer.rank(x)
    wide = flat(importer, node, rank)
    if set(node.attrs.get("dilations", [1])) != {1}:
        raise Unsupported("dilations")
    pads, strides = paddings(importer, node, x, kernel), list(node.attrs.get("strides", [1] * len(kernel)))
    if wide:
        x = importer.value("unsqueeze2", {"X": x}, axes=[2])
        kernel, pads, strides = [1, *kernel], [0, 0, *pads], [1, *strides]
    attrs: dict[str, Any] = {"ksize": kernel, "strides": strides, "paddings": pads[::2] if even(pads) else pads}
    out = importer.new("pool") if wide else node.outputs[0]
    if node.wants(1):
        if rank == 5 or not even(pads) or wide or node.attrs.get("storage_order", 0):
            raise Unsupported("indices")
        found = importer.new("index")
        importer.append("max_pool2d_with_index", {"X": x}, {"Out": out, "Mask": found}, **attrs)
        importer.cast(found, "int64", node.outputs[1])
        return
    if node.op == "AveragePool":
        attrs["exclusive"] = not node.attrs.get("count_include_pad", 0)
    importer.append(
        "pool3d" if rank == 5 else "pool2d", {"X": x}, {"Out": out}, **attrs,
        pooling_type="max" if node.op == "MaxPool" else "avg", ceil_mode=bool(node.attrs.get("ceil_mode", 0)),
    )  # fmt: skip
    if wide:
        importer.into(node, "squeeze2", {"X": out}, axes=[2])


@converts("GlobalAveragePool", "GlobalMaxPool")
def global_pool(importer: Importer, node: Node) -> None:
    """The mean or the largest number of each channel."""
    x = importer.x(node)
    type = "reduce_mean" if node.op == "GlobalAveragePool" else "reduce_max"
    importer.into(node, type, {"X": x}, dim=list(range(2, importer.rank(x))), keep_dim=True)


@converts("BatchNormalization")
def batch_norm(importer: Importer, node: Node) -> None:
    """Normalisation of channels by stored statistics."""
    if node.attrs.get("training_mode", 0) or node.wants(1):
        raise Unsupported("training_mode")
    scale, bias, mean, variance = (importer.x(node, i) for i in range(1, 5))
    importer.append(
        "batch_norm", {"X": importer.x(node), "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance},
        {"Y": node.outputs[0], "MeanOut": mean, "VarianceOut": variance, "SavedMean": importer.new("saved_mean"),
         "SavedVariance": importer.new("saved_variance")},
        epsilon=node.attrs.get("epsilon", 1e-5), momentum=node.attrs.get("momentum", 0.9), is_test=True,
    )  # fmt: skip


def two(importer: Importer) -> dict[str, str]:
    """New variables of the statistics of a normalisation."""
    return {"Mean": importer.new("mean"), "Variance": importer.new("variance")}


@converts("LayerNormalization")
def layer_norm(importer: Importer, node: Node) -> None:
    """Normalisation of the last axes, a scale and a bias for each number."""
    if node.wants(1):
        raise Unsupported("its statistics")
    x = importer.x(node)
    axis = node.attrs.get("axis", -1) % importer.rank(x)
    size = int(np.prod(importer.shape(x)[axis:]))
    ins = {"X": x}
    for slot, index in (("Scale", 1), ("Bias", 2)):
        if node.has(index):
            name = importer.x(node, index)
            ins[slot] = name if importer.rank(name) == 1 else importer.reshape(name, [size])
    importer.append(
        "layer_norm", ins, {"Y": node.outputs[0], **two(importer)}, epsilon=node.attrs.get("epsilon", 1e-5),
        begin_norm_axis=axis,
    )  # fmt: skip


@converts("RMSNormalization", "SimplifiedLayerNormalization")
def rms_norm(importer: Importer, node: Node) -> None:
    """x / sqrt(mean(x ** 2) + epsilon) * scale."""
    x = importer.x(node)
    axis = node.attrs.get("axis", -1) % importer.rank(x)
    squares = importer.value("square", {"X": x})
    mean = importer.value("reduce_mean", {"X": squares}, dim=list(range(axis, importer.rank(x))), keep_dim=True)
    root = importer.value("rsqrt", {"X": importer.value("scale", {"X": mean}, bias=node.attrs.get("epsilon", 1e-5))})
    normal = importer.value("elementwise_mul", {"X": x, "Y": root})
    importer.into(node, "elementwise_mul", {"X": normal, "Y": importer.x(node, 1)})


@converts("InstanceNormalization")
def instance_norm(importer: Importer, node: Node) -> None:
    """Normalisation of each channel of each example."""
    importer.append(
        "instance_norm", {"X": importer.x(node), "Scale": importer.x(node, 1), "Bias": importer.x(node, 2)},
        {"Y": node.outputs[0], "SavedMean": importer.new("mean"), "SavedVariance": importer.new("variance")},
        epsilon=node.attrs.get("epsilon", 1e-5),
    )  # fmt: skip


@converts("GroupNormalization")
def group_norm(importer: Importer, node: Node) -> None:
    """Normalisation of groups of channels; before opset 21 a scale and a bias for each group."""
    x, groups = importer.x(node), node.attrs["num_groups"]
    names, channels = [], importer.shape(x)[1]
    for i in (1, 2):
        value = importer.required(node, i, "scale")
        each = value.size == channels
        names.append(importer.x(node, i) if each else importer.made(np.repeat(value, channels // groups)))
    importer.append(
        "group_norm", {"X": x, "Scale": names[0], "Bias": names[1]}, {"Y": node.outputs[0], **two(importer)},
        epsilon=node.attrs.get("epsilon", 1e-5), groups=groups,
    )  # fmt: skip


@converts("LRN")
def local_response(importer: Importer, node: Node) -> None:
    """Normalisation by neighbouring channels."""
    count = node.attrs["size"]
    importer.append(
        "lrn", {"X": importer.x(node)}, {"Out": node.outputs[0], "MidOut": importer.new("middle")}, n=count,
        k=node.attrs.get("bias", 1.0), alpha=node.attrs.get("alpha", 1e-4) / count, beta=node.attrs.get("beta", 0.75),
    )  # fmt: skip


@converts("LpNormalization")
def unit_length(importer: Importer, node: Node) -> None:
    """x divided by its norm along an axis."""
    x, axis = importer.x(node), node.attrs.get("axis", -1)
    each = importer.value("abs" if node.attrs.get("p", 2) == 1 else "square", {"X": x})
    total = importer.value("reduce_sum", {"X": each}, dim=[axis % importer.rank(x)], keep_dim=True)
    if node.attrs.get("p", 2) == 2:
        total = importer.value("sqrt", {"X": total})
    importer.into(node, "elementwise_div", {"X": x, "Y": total})


@converts("Softmax", "LogSoftmax", "Hardmax")
def softmax(importer: Importer, node: Node) -> None:
    """exp(x) / sum(exp(x)) along an axis; before opset 13 over all axes from it on."""
    if node.op == "Hardmax":
        raise Unsupported("")
    type = "softmax" if node.op == "Softmax" else "log_softmax"
    x = importer.x(node)
    rank = importer.rank(x)
    axis = node.attrs.get("axis", -1 if importer.opset >= 13 else 1) % rank
    if importer.opset >= 13 or axis == rank - 1:
        importer.into(node, type, {"X": x}, axis=axis)
        return
    shape = importer.shape(x)
    rest = shape[axis:]
    if -1 in rest or shape[:axis].count(-1) > 1:
        raise Unsupported("several axes of any size")
    out = importer.value(type, {"X": importer.reshape(x, [-1, int(np.prod(rest))])}, axis=1)
    importer.reshape(out, list(shape), node.outputs[0])


#: Mode and number of axes -> the operator that resizes.
_RESIZED = {
    ("nearest", 4): "nearest_interp_v2", ("linear", 3): "linear_interp_v2", ("linear", 4): "bilinear_interp_v2",
    ("linear", 5): "trilinear_interp_v2", ("cubic", 4): "bicubic_interp_v2",
}  # fmt: skip


@converts("Resize", "Upsample")
def resize(importer: Importer, node: Node) -> None:
    """Images of another size."""
    x, mode = importer.x(node), node.attrs.get("mode", "nearest")
    rank = importer.rank(x)
    count, type = rank - 2, _RESIZED.get((mode, rank))
    if type is None:
        raise Unsupported(f"{rank} axes and mode {mode}")
    if [n % rank for n in node.attrs.get("axes", range(rank))][-count:] != list(range(2, rank)):
        raise Unsupported("other axes")
    if node.attrs.get("antialias", 0):
        raise Unsupported("antialias")
    names = ("out_d", "out_h", "out_w")[-count:]
    at = 2 if node.op == "Resize" and importer.opset >= 11 else 1
    scales = node.attrs.get("scales")
    if scales is None and node.has(at):
        found = importer.constant(node, at)
        if found is None:
            raise Unsupported("computed scales")
        scales = found.tolist()
    scales = [float(n) for n in scales[-count:]] if scales is not None and len(scales) else None
    ins = {"X": x}
    attrs: dict[str, Any] = {}
    if scales is None and node.has(3):
        wanted = whole_sizes(importer, node, 3)
        known = sizes(importer, node, 3)
        if wanted is not None:
            attrs = dict(zip(names, wanted[-count:], strict=True))
        elif known is not None and None not in known[-count:]:
            attrs = dict(zip(names, known[-count:], strict=True))
        else:
            last = importer.value(
                "slice", {"Input": importer.x(node, 3)}, "Out", axes=[0], starts=[-count], ends=[2**31 - 1]
            )
            ins["OutSize"] = importer.cast(last, "int32")
    else:
        attrs = {"scale": scales}
    how = node.attrs.get("coordinate_transformation_mode", "half_pixel" if importer.opset >= 11 else "asymmetric")
    method = type.partition("_")[0]
    corners, align = _positions(node, mode, how, scales)
    importer.into(
        node, type, ins, **attrs, interp_method=method, align_corners=corners, align_mode=align, data_layout="NCHW"
    )


def _positions(node: Node, mode: str, how: str, scales: list[float] | None) -> tuple[bool, int]:
    """The attributes align_corners and align_mode of a rule for positions of pixels."""
    if how == "align_corners":
        return True, 1
    if mode == "nearest":
        rounding = node.attrs.get("nearest_mode", "round_prefer_floor")
        whole = scales is not None and all(n.is_integer() for n in scales)
        if (how, rounding) == ("asymmetric", "floor") or (how in ("half_pixel", "pytorch_half_pixel") and whole):
            return False, 1
        raise Unsupported(f"nearest pixels by {how} and {rounding}")
    if mode == "cubic" and node.attrs.get("cubic_coeff_a", -0.75) != -0.75:
        raise Unsupported("another cubic_coeff_a")
    if how in ("half_pixel", "pytorch_half_pixel"):
        return False, 0
    if how == "asymmetric" and mode == "linear":
        return False, 1
    raise Unsupported(f"pixels by {how}")


@converts("GridSample")
def grid_sample(importer: Importer, node: Node) -> None:
    """Pixels at given positions."""
    mode = {"linear": "bilinear"}.get(node.attrs.get("mode", "bilinear"), node.attrs.get("mode", "bilinear"))
    if mode not in ("bilinear", "nearest"):
        raise Unsupported(f"mode {mode}")
    importer.into(
        node, "grid_sampler", {"X": importer.x(node), "Grid": importer.x(node, 1)}, "Output", mode=mode,
        padding_mode=node.attrs.get("padding_mode", "zeros"), align_corners=bool(node.attrs.get("align_corners", 0)),
    )  # fmt: skip


#: Where our gates are in those of ONNX: input, forget, cell, output of i, o, f, c; reset, update, new of z, r, h.
_GATES = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}
_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}


@converts("LSTM", "GRU", "RNN")
def recurrent(importer: Importer, node: Node) -> None:
    """A recurrent layer of one or two directions."""
    kind, hidden = node.op, node.attrs["hidden_size"]
    direction = node.attrs.get("direction", "forward")
    both = direction == "bidirectional"
    acts = node.attrs.get("activations", _DEFAULTS[kind] * (1 + both))
    relu = kind == "RNN" and acts == ["Relu"] * (1 + both)
    if not relu and acts != _DEFAULTS[kind] * (1 + both):
        raise Unsupported(f"activations {', '.join(acts)}")
    if kind == "GRU" and not node.attrs.get("linear_before_reset", 0):
        raise Unsupported("linear_before_reset 0")
    if node.attrs.get("layout", 0) or node.has(7) or node.attrs.get("clip") or node.attrs.get("input_forget", 0):
        raise Unsupported("layout 1, peepholes, clip or input_forget")
    x = importer.x(node)
    if direction == "reverse":
        if node.has(4):
            raise Unsupported("the reverse direction with lengths")
        x = importer.value("flip", {"X": x}, axis=[0])
    gates = _GATES[kind]
    weights, recurrences = (importer.required(node, i, "weight") for i in (1, 2))
    if recurrences.shape != (1 + both, len(gates) * hidden, hidden):
        raise importer.damaged(
            f"The weights of node {node.name or node.outputs[0]} ({kind}) do not fit its hidden_size.",
            f"hidden_size {hidden}, and R {list(recurrences.shape)}",
        )
    bias = np.zeros((1 + both, 2 * len(gates) * hidden), weights.dtype)
    if node.has(3):
        bias = importer.required(node, 3, "bias")

    def ordered(value: Any) -> Any:
        return np.concatenate([value[g * hidden : (g + 1) * hidden] for g in gates])

    names = []
    for d in range(1 + both):
        names += [importer.made(ordered(weights[d]), "weight"), importer.made(ordered(recurrences[d]), "weight")]
    for d in range(1 + both):
        halves = np.split(bias[d], 2)
        names += [importer.made(ordered(half), "bias") for half in halves]
    states = [_state(importer, node, x, 5 + i, 1 + both, hidden) for i in range(2 if kind == "LSTM" else 1)]
    ins: dict[str, Any] = {"Input": x, "PreState": states, "WeightList": names}
    if node.has(4):
        ins["SequenceLength"] = importer.x(node, 4)
    out = importer.new("rnn")
    last = [node.outputs[i] if node.wants(i) else importer.new("state") for i in (1, 2)]
    importer.append(
        "rnn", ins,
        {"Out": out, "State": last[: len(states)], "Reserve": importer.new("reserve"),
         "DropoutState": importer.new("dropout")},
        mode="RNN_RELU" if relu else "RNN_TANH" if kind == "RNN" else kind, is_bidirec=both, num_layers=1,
        hidden_size=hidden, input_size=importer.shape(x)[-1], dropout_prob=0.0, is_test=True,
    )  # fmt: skip
    if not node.wants(0):
        return
    if direction == "reverse":
        out = importer.value("flip", {"X": out}, axis=[0])
    if not both:
        importer.into(node, "unsqueeze2", {"X": out}, axes=[1])
        return
    parts = importer.reshape(out, [0, 0, 2, hidden])  # 0 keeps an axis: two of any size are possible
    importer.transpose(parts, [0, 2, 1, 3], node.outputs[0])


def _state(importer: Importer, node: Node, x: str, index: int, directions: int, hidden: int) -> str:
    """The first state; zeros where none is given."""
    if node.has(index):
        return importer.x(node, index)
    return importer.value(
        "fill_constant_batch_size_like", {"Input": x}, shape=[directions, -1, hidden], value=0.0, input_dim_idx=1,
        output_dim_idx=1, dtype=int(dtypes.var_type(importer.dtype_of(x))),
    )  # fmt: skip


@converts("QuantizeLinear")
def quantize(importer: Importer, node: Node) -> None:
    """Whole numbers: round(x / scale) + zero point, within the bounds of their dtype."""
    x, kind = importer.x(node), "uint8"
    if node.has(2):
        kind = importer.dtype_of(importer.x(node, 2))
    if kind not in ("uint8", "int8"):
        raise Unsupported(f"dtype {kind}")
    scaled = importer.value("elementwise_div", {"X": x, "Y": _channel(importer, node, 1, x)})
    whole = round_to_even(importer, scaled)
    if node.has(2):
        zero = importer.cast(_channel(importer, node, 2, x), "float32")
        whole = importer.value("elementwise_add", {"X": whole, "Y": zero})
    low, high = (0.0, 255.0) if kind == "uint8" else (-128.0, 127.0)
    importer.cast(importer.value("clip", {"X": whole}, min=low, max=high), kind, node.outputs[0])


@converts("DequantizeLinear")
def dequantize(importer: Importer, node: Node) -> None:
    """Numbers: (x - zero point) * scale."""
    x = importer.x(node)
    if node.attrs.get("block_size", 0):
        raise Unsupported("blocks")
    number = importer.cast(x, "float32")
    if node.has(2):
        zero = importer.cast(_channel(importer, node, 2, x), "float32")
        number = importer.value("elementwise_sub", {"X": number, "Y": zero})
    importer.into(node, "elementwise_mul", {"X": number, "Y": _channel(importer, node, 1, x)})


def _channel(importer: Importer, node: Node, index: int, x: str) -> str:
    """A scale or zero point in the shape in which it broadcasts: one number, or one for each channel."""
    name = importer.x(node, index)
    axis, rank = node.attrs.get("axis", 1), importer.rank(x)
    if importer.rank(name) == 0 or importer.shape(name) == (1,):
        return name
    shape = [1] * rank
    shape[axis % rank] = importer.shape(name)[0]
    return importer.reshape(name, shape)
