"""Converters of layers: convolutions, pools, normalisations, softmax, resizing, recurrent layers, quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.export_math import reduce, scalar
from fluidnb.onnx.export_tensors import given, numbers, sliced, squeezed, unsqueezed
from fluidnb.onnx.exporter import Exporter, Op, converts


def channels_first(op: Op, attr: str) -> None:
    """Refuses channels in the last axis."""
    if str(op.attr(attr)) in ("NHWC", "NDHWC", "NLC"):
        raise Unsupported("channels last")


def window(op: Op, count: int) -> dict[str, Any]:
    """The moves of a window: strides, and pads before and after each axis."""
    algorithm, attrs = op.attr("padding_algorithm"), {"strides": [int(n) for n in op.attr("strides")]}
    if algorithm == "SAME":
        return attrs | {"auto_pad": "SAME_UPPER"}
    pads = [int(n) for n in op.attr("paddings")]
    if len(pads) > 2 * count:  # with those of batch and channels
        pads = pads[4:]
    if algorithm == "VALID":
        pads = [0] * count
    before, after = (pads, pads) if len(pads) == count else (pads[::2], pads[1::2])
    return attrs | {"pads": [*before, *after]}


@converts("conv2d", "depthwise_conv2d", "conv3d")
def convolution(exporter: Exporter, op: Op) -> None:
    """A convolution."""
    channels_first(op, "data_format")
    kernel = list(exporter.shape(op.var("Filter"))[2:])
    exporter.into(
        op, "Conv", [exporter.x(op, "Input"), exporter.x(op, "Filter")], "Output", kernel_shape=kernel,
        group=int(op.attr("groups")), dilations=[int(n) for n in op.attr("dilations")], **window(op, len(kernel)),
    )  # fmt: skip


@converts("deformable_conv", "deformable_conv_v1")
def deformable(exporter: Exporter, op: Op) -> None:
    """A convolution whose windows take their elements from where offsets lead."""
    if exporter.opset < 19:
        raise Unsupported("opset 19 or later")
    inputs = [exporter.x(op, slot) for slot in ("Input", "Filter", "Offset")]
    inputs += ["", exporter.x(op, "Mask")] if op.has("Mask") else []
    kernel, pads = list(exporter.shape(op.var("Filter"))[2:]), [int(n) for n in op.attr("paddings")]
    exporter.into(
        op, "DeformConv", inputs, "Output", kernel_shape=kernel, group=int(op.attr("groups")),
        offset_group=int(op.attr("deformable_groups")), strides=[int(n) for n in op.attr("strides")],
        pads=pads * 2 if len(pads) == 2 else [*pads[::2], *pads[1::2]],
        dilations=[int(n) for n in op.attr("dilations")],
    )  # fmt: skip


@converts("conv2d_transpose", "depthwise_conv2d_transpose", "conv3d_transpose")
def transposed_convolution(exporter: Exporter, op: Op) -> None:
    """A transposed convolution."""
    channels_first(op, "data_format")
    kernel = list(exporter.shape(op.var("Filter"))[2:])
    attrs = window(op, len(kernel))
    extra = [int(n) for n in op.attr("output_padding")]
    wanted = [int(n) for n in op.attr("output_size")]
    if wanted and "pads" in attrs:
        given_sizes, dilations = exporter.shape(op.var("Input"))[2:], op.attr("dilations")
        if min(given_sizes) < 0:
            raise Unsupported("output_size of any size")
        pads = attrs["pads"]
        extra = [
            n - ((given_sizes[i] - 1) * attrs["strides"][i] - pads[i] - pads[i + len(kernel)]
                 + dilations[i] * (kernel[i] - 1) + 1)
            for i, n in enumerate(wanted)
        ]  # fmt: skip
    if any(extra):
        attrs["output_padding"] = extra
    out = exporter.written(op.out("Output"))
    inputs = [exporter.x(op, "Input"), exporter.x(op, "Filter")] + ([exporter.x(op, "Bias")] if op.has("Bias") else [])
    exporter.node(
        "ConvTranspose", inputs, out, kernel_shape=kernel, group=int(op.attr("groups")),
        dilations=[int(n) for n in op.attr("dilations")], **attrs,
    )  # fmt: skip


@converts("pool2d", "pool3d")
def pool(exporter: Exporter, op: Op) -> None:
    """The largest number or the mean of each window."""
    channels_first(op, "data_format")
    largest, kernel = op.attr("pooling_type") == "max", [int(n) for n in op.attr("ksize")]
    sizes = exporter.shape(op.var())[2:]
    if op.attr("global_pooling") or (op.attr("adaptive") and set(kernel) == {1}):
        exporter.into(op, "GlobalMaxPool" if largest else "GlobalAveragePool", [exporter.x(op)])
        return
    attrs = window(op, len(kernel))
    if op.attr("adaptive"):
        if min(sizes) < 0:
            raise Unsupported("images of any size")
        if any(n % k for n, k in zip(sizes, kernel, strict=True)):
            adaptive(exporter, op, largest, kernel)
            return
        kernel = [n // k for n, k in zip(sizes, kernel, strict=True)]
        attrs = {"strides": kernel}
    more: dict[str, Any] = {} if largest else {"count_include_pad": int(not op.attr("exclusive"))}
    if op.attr("ceil_mode"):
        more["ceil_mode"] = 1
        pads = attrs.get("pads", [])
        for n, k, s, first, last in zip(sizes, kernel, attrs["strides"], pads, pads[len(kernel) :], strict=False):
            start = -((k - n - first - last) // s) * s - first  # of the last window, in the image
            if start >= n if n >= 0 else last > k - s:
                raise Unsupported("ceil_mode with a window that is behind the image, for ONNX leaves it out")
    exporter.into(op, "MaxPool" if largest else "AveragePool", [exporter.x(op)], kernel_shape=kernel, **attrs, **more)


def adaptive(exporter: Exporter, op: Op, largest: bool, wanted: list[int]) -> None:
    """A pool whose windows differ in size: along one axis after the other, by a product or by the largest of each."""
    out, rank = exporter.x(op), exporter.rank(op.var())
    for i, (size, count) in enumerate(zip(exporter.shape(op.var())[2:], wanted, strict=True)):
        axis = i + 2
        ends = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        if largest:
            parts = [sliced(exporter, out, [axis], [start], [end]) for start, end in ends]
            out = exporter.node("Concat", [reduce(exporter, "ReduceMax", p, [axis], True) for p in parts], axis=axis)
            continue
        means = np.zeros((size, count), exporter.dtype(op.var()))
        for k, (start, end) in enumerate(ends):
            means[start:end, k] = 1 / (end - start)
        order = [n for n in range(rank) if n != axis] + [axis]
        last = exporter.node("Transpose", [out], perm=order)
        product = exporter.node("MatMul", [last, exporter.initializer(means)])
        out = exporter.node("Transpose", [product], perm=[order.index(n) for n in range(rank)])
    exporter.alias(op.out(), out)


@converts("max_pool2d_with_index")
def pool_with_index(exporter: Exporter, op: Op) -> None:
    """The largest number of each window, and where it is in its image."""
    if op.attr("adaptive") and not exporter.is_read(op.out("Mask")):
        if min(exporter.shape(op.var())) < 0 and min(exporter.shape(op.var())[2:]) < 0:
            raise Unsupported("images of any size")
        adaptive(exporter, op, True, [int(n) for n in op.attr("ksize")])
        return
    kernel, pads = [int(n) for n in op.attr("ksize")], [int(n) for n in op.attr("paddings")]
    sizes, strides = exporter.shape(op.var())[2:], [int(n) for n in op.attr("strides")]
    if op.attr("global_pooling"):
        kernel, strides, pads = list(sizes), [1, 1], [0, 0]
    if op.attr("adaptive"):
        if any(n < 0 or n % k for n, k in zip(sizes, kernel, strict=True)):
            raise Unsupported("windows of several sizes")
        kernel = strides = [n // k for n, k in zip(sizes, kernel, strict=True)]
        pads = [0, 0]
    if min(sizes) < 0:
        raise Unsupported("images of any size")
    found = exporter.new("index")
    exporter.node(
        "MaxPool", [exporter.x(op)], outputs=[exporter.written(op.out()), found], kernel_shape=kernel, strides=strides,
        pads=[*pads, *pads],
    )  # fmt: skip
    inside = exporter.node("Mod", [found, exporter.initializer(int(np.prod(sizes)), np.int64)])
    exporter.cast(inside, exporter.dtype(op.out("Mask")), exporter.written(op.out("Mask")))


@converts("batch_norm")
def batch_norm(exporter: Exporter, op: Op) -> None:
    """Normalisation of channels by stored statistics."""
    channels_first(op, "data_layout")
    if not (op.desc.attrs.get("is_test") or op.attr("use_global_stats")):
        raise Unsupported("statistics of the batch")
    ones = exporter.shape(op.var("Mean"))
    names = [
        exporter.x(op, slot) if op.has(slot) else exporter.initializer(np.full(ones, value, "float32"))
        for slot, value in (("Scale", 1), ("Bias", 0))
    ]
    exporter.into(
        op, "BatchNormalization", [exporter.x(op), *names, exporter.x(op, "Mean"), exporter.x(op, "Variance")], "Y",
        epsilon=float(op.attr("epsilon")), momentum=float(op.attr("momentum")),
    )  # fmt: skip


@converts("layer_norm")
def layer_norm(exporter: Exporter, op: Op) -> None:
    """Normalisation of the last axes."""
    x, axis, shape = exporter.x(op), int(op.attr("begin_norm_axis")), exporter.shape(op.var())
    rest = shape[axis:]
    if -1 in rest:
        raise Unsupported("axes of any size")
    kind = exporter.dtype(op.var())
    names = []
    for slot, value in (("Scale", 1), ("Bias", 0)):
        if not op.has(slot):
            names.append(exporter.initializer(np.full(rest, value, kind)))
        elif len(rest) == 1:
            names.append(exporter.x(op, slot))
        else:
            names.append(exporter.node("Reshape", [exporter.x(op, slot), exporter.ints(*rest)]))
    if exporter.opset >= 17:
        exporter.into(op, "LayerNormalization", [x, *names], "Y", axis=axis, epsilon=float(op.attr("epsilon")))
        return
    axes = list(range(axis, len(shape)))
    centred = exporter.node("Sub", [x, reduce(exporter, "ReduceMean", x, axes, True)])
    variance = reduce(exporter, "ReduceMean", exporter.node("Mul", [centred, centred]), axes, True)
    moved = exporter.node("Add", [variance, scalar(exporter, op, op.attr("epsilon"))])
    normal = exporter.node("Div", [centred, exporter.node("Sqrt", [moved])])
    exporter.into(op, "Add", [exporter.node("Mul", [normal, names[0]]), names[1]], "Y")


def per_channel(exporter: Exporter, op: Op, tensor: str) -> str:
    """A tensor of channels in the shape in which it broadcasts."""
    return exporter.node("Reshape", [tensor, exporter.ints(-1, *[1] * (exporter.rank(op.var()) - 2))])


@converts("group_norm")
def group_norm(exporter: Exporter, op: Op) -> None:
    """Normalisation of groups of channels: of instances, with a group as a channel."""
    channels_first(op, "data_layout")
    x, groups, kind = exporter.x(op), int(op.attr("groups")), exporter.dtype(op.var())
    rows = exporter.node("Reshape", [x, exporter.ints(0, groups, -1)])
    plain = [exporter.initializer(np.full(groups, value, kind)) for value in (1, 0)]
    normal = exporter.node("InstanceNormalization", [rows, *plain], epsilon=float(op.attr("epsilon")))
    out = exporter.node("Reshape", [normal, exporter.node("Shape", [x])])
    for slot, type in (("Scale", "Mul"), ("Bias", "Add")):
        if op.has(slot):
            out = exporter.node(type, [out, per_channel(exporter, op, exporter.x(op, slot))])
    exporter.alias(op.out("Y"), out)


@converts("instance_norm")
def instance_norm(exporter: Exporter, op: Op) -> None:
    """Normalisation of each channel of each example."""
    channels, kind = exporter.shape(op.var())[1], exporter.dtype(op.var())
    names = [
        exporter.x(op, slot) if op.has(slot) else exporter.initializer(np.full(channels, value, kind))
        for slot, value in (("Scale", 1), ("Bias", 0))
    ]
    exporter.into(op, "InstanceNormalization", [exporter.x(op), *names], "Y", epsilon=float(op.attr("epsilon")))


@converts("lrn")
def local_response(exporter: Exporter, op: Op) -> None:
    """Normalisation by neighbouring channels."""
    count = int(op.attr("n"))
    exporter.into(
        op, "LRN", [exporter.x(op)], size=count, bias=float(op.attr("k")), alpha=float(op.attr("alpha")) * count,
        beta=float(op.attr("beta")),
    )  # fmt: skip


@converts("softmax", "log_softmax")
def softmax(exporter: Exporter, op: Op) -> None:
    """exp(x) / sum(exp(x)) along an axis, or its logarithm."""
    exporter.into(op, "Softmax" if op.type == "softmax" else "LogSoftmax", [exporter.x(op)], axis=int(op.attr("axis")))


#: Operators that resize -> ONNX's mode.
_RESIZED = {
    "nearest_interp": "nearest", "nearest_interp_v2": "nearest", "bilinear_interp": "linear",
    "linear_interp_v2": "linear", "bilinear_interp_v2": "linear", "trilinear_interp_v2": "linear",
    "bicubic_interp_v2": "cubic",
}  # fmt: skip


@converts(*_RESIZED)
def resize(exporter: Exporter, op: Op) -> None:
    """Images of another size."""
    channels_first(op, "data_layout")
    mode, axes = _RESIZED[op.type], exporter.rank(op.var()) - 2
    names = ("out_d", "out_h", "out_w")[-axes:]
    corners, half = bool(op.attr("align_corners")), mode == "cubic" or op.attr("align_mode") == 0
    how = "align_corners" if corners else "half_pixel" if half else "asymmetric"
    attrs: dict[str, Any] = {"mode": mode}
    if mode == "nearest":
        how = "align_corners" if corners else "asymmetric"
        attrs["nearest_mode"] = "round_prefer_ceil" if corners else "floor"
    if mode == "cubic":
        attrs["cubic_coeff_a"] = -0.75
    inputs = [exporter.x(op), "", "", ""]
    scales = [float(n) for n in np.reshape(op.attr("scale"), -1)]
    if given(op, "Scale"):
        raise Unsupported("computed scales")
    if given(op, "OutSize", "SizeTensor") or not (scales and min(scales) > 0):
        if given(op, "OutSize", "SizeTensor"):
            sizes = numbers(exporter, op, names[0], "SizeTensor", "OutSize")
        else:
            sizes = exporter.ints(*(int(op.attr(name)) for name in names))
        before = sliced(exporter, exporter.node("Shape", [exporter.x(op)]), [0], [0], [2])
        inputs[3] = exporter.node("Concat", [before, sizes], axis=0)
    else:
        each = scales if len(scales) == axes else scales * axes
        inputs[2] = exporter.initializer([1.0, 1.0, *each], np.float32)
        inputs = inputs[:3]
    exporter.into(op, "Resize", inputs, coordinate_transformation_mode=how, **attrs)


@converts("grid_sampler")
def grid_sample(exporter: Exporter, op: Op) -> None:
    """Pixels at given positions."""
    if exporter.opset < 16:
        raise Unsupported("opset 16 or later")
    mode = str(op.attr("mode"))
    if exporter.opset >= 20 and mode == "bilinear":
        mode = "linear"
    exporter.into(
        op, "GridSample", [exporter.x(op), exporter.x(op, "Grid")], "Output", mode=mode,
        padding_mode=str(op.attr("padding_mode")), align_corners=int(bool(op.attr("align_corners"))),
    )  # fmt: skip


@converts("affine_grid")
def affine_grid(exporter: Exporter, op: Op) -> None:
    """Positions of a grid that a matrix moves."""
    shape = [int(n) for n in op.attr("output_shape")]
    if op.has("OutputShape") or len(shape) != 4 or min(shape) < 0:
        raise Unsupported("a computed or unknown shape")
    rows, columns = shape[2:]
    ends = [1.0 if op.attr("align_corners") else (n - 1) / n for n in (rows, columns)]
    y, x = (np.linspace(-end, end, n) for end, n in zip(ends, (rows, columns), strict=True))
    grid = np.stack([*np.meshgrid(x, y), np.ones((rows, columns))], -1).reshape(-1, 3)
    theta = exporter.x(op, "Theta")
    moved = exporter.node(
        "MatMul", [exporter.initializer(grid, exporter.dtype(op.var("Theta"))),
                   exporter.node("Transpose", [theta], perm=[0, 2, 1])],
    )  # fmt: skip
    exporter.into(op, "Reshape", [moved, exporter.ints(-1, rows, columns, 2)], "Output")


@converts("pixel_shuffle")
def pixel_shuffle(exporter: Exporter, op: Op) -> None:
    """Channels as blocks of pixels."""
    channels_first(op, "data_format")
    exporter.into(op, "DepthToSpace", [exporter.x(op)], blocksize=int(op.attr("upscale_factor")), mode="CRD")


@converts("unfold")
def unfold(exporter: Exporter, op: Op) -> None:
    """The windows of images as columns: a convolution with a filter for each number of a window."""
    kernel, pads = [int(n) for n in op.attr("kernel_sizes")], [int(n) for n in op.attr("paddings")]
    channels = exporter.shape(op.var())[1]
    many = kernel[0] * kernel[1]
    filters = np.tile(np.eye(many).reshape(many, 1, *kernel), (channels, 1, 1, 1))
    pads = [*pads, *pads] if len(pads) == 2 else pads
    out = exporter.node(
        "Conv", [exporter.x(op), exporter.initializer(filters, exporter.dtype(op.var()))], group=channels,
        kernel_shape=kernel, strides=[int(n) for n in op.attr("strides")], pads=pads,
        dilations=[int(n) for n in op.attr("dilations")],
    )  # fmt: skip
    exporter.into(op, "Reshape", [out, exporter.ints(0, channels * many, -1)], "Y")


#: Our gates in the order of ONNX: i, o, f, c of input, forget, cell, output; z, r, h of reset, update, new.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN_TANH": [0], "RNN_RELU": [0]}


@converts("rnn")
def recurrent(exporter: Exporter, op: Op) -> None:
    """Recurrent layers, a node for each."""
    mode, both, layers = str(op.attr("mode")), bool(op.attr("is_bidirec")), int(op.attr("num_layers"))
    hidden, directions, gates = int(op.attr("hidden_size")), 1 + both, _GATES[mode]
    names = op.vars("WeightList")
    values = [exporter.parameters.get(name) for name in names]
    if any(value is None for value in values):
        raise Unsupported("computed weights")

    def ordered(index: int) -> Any:
        value = values[index]
        assert value is not None
        return np.concatenate([value[g * hidden : (g + 1) * hidden] for g in gates])

    x = exporter.x(op, "Input")
    states = [exporter.tensor(name) for name in op.vars("PreState")]
    lengths = exporter.cast(exporter.x(op, "SequenceLength"), np.int32) if op.has("SequenceLength") else ""
    last: list[list[str]] = [[] for _ in states]
    half = 2 * directions * layers
    for layer in range(layers):
        at = 2 * directions * layer
        weights = [np.stack([ordered(at + 2 * d + i) for d in range(directions)]) for i in (0, 1)]
        bias = np.stack([np.concatenate([ordered(half + at + 2 * d + i) for i in (0, 1)]) for d in range(directions)])
        first = [
            state if layers == 1 else sliced(exporter, state, [0], [layer * directions], [(layer + 1) * directions])
            for state in states
        ]
        outs = [exporter.new("rnn"), *(exporter.new("state") for _ in states)]
        attrs: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if both else "forward"}
        if mode == "GRU":
            attrs["linear_before_reset"] = 1
        if mode == "RNN_RELU":
            attrs["activations"] = ["Relu"] * directions
        inputs = [x, *map(exporter.initializer, (*weights, bias)), lengths, *first]
        exporter.node(mode.partition("_")[0], inputs, outputs=outs, **attrs)
        if both:
            turned = exporter.node("Transpose", [outs[0]], perm=[0, 2, 1, 3])
            x = exporter.node("Reshape", [turned, exporter.ints(0, 0, 2 * hidden)])
        else:
            x = squeezed(exporter, outs[0], [1])
        for i, name in enumerate(outs[1:]):
            last[i].append(name)
    exporter.alias(op.out(), x)
    for name, parts in zip(op.desc.outs.get("State", []), last, strict=False):
        exporter.alias(name, parts[0] if layers == 1 else exporter.node("Concat", parts, axis=0))


@converts("quantize_linear", "dequantize_linear")
def quantize(exporter: Exporter, op: Op) -> None:
    """Whole numbers as floats: round(x / scale * m), within the bounds of the bits; and back."""
    if op.attr("only_observer"):
        exporter.alias(op.out("Y"), exporter.x(op))
        return
    bound = float((1 << (int(op.attr("bit_length")) - 1)) - 1)
    factor, rank, axis = exporter.x(op, "Scale"), exporter.rank(op.var()), int(op.attr("quant_axis"))
    if axis >= 0 and exporter.rank(op.var("Scale")) == 1 and exporter.shape(op.var("Scale")) != (1,):
        factor = unsqueezed(exporter, factor, list(range(1, rank - axis)))
    most = exporter.initializer(bound, np.float32)
    if op.type == "dequantize_linear":
        exporter.into(op, "Div", [exporter.node("Mul", [exporter.cast(exporter.x(op), np.float32), factor]), most], "Y")
        return
    scaled = exporter.node("Mul", [exporter.node("Div", [exporter.x(op), factor]), most])
    away = int(op.attr("round_type")) == 1
    if away:
        moved = exporter.node("Add", [exporter.node("Abs", [scaled]), exporter.initializer(0.5, np.float32)])
        whole = exporter.node("Mul", [exporter.node("Sign", [scaled]), exporter.node("Floor", [moved])])
    else:
        whole = exporter.node("Round", [scaled])
    low = exporter.initializer(-bound if away else -bound - 1, np.float32)
    exporter.into(op, "Clip", [whole, low, most], "Y")
