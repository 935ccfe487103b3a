"""Converters of operators that move numbers: shapes, slices, indices, pads, constants."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.exporter import Exporter, Op, converts
from fluidnb.values import dtypes

#: The end of an axis in a slice.
_END = 2**31 - 1


def numbers(exporter: Exporter, op: Op, attr: str, *slots: str) -> str:
    """The tensor of whole numbers that operators of Paddle 2 take as an attribute, a variable, or a list of them."""
    for slot in slots:
        if not op.has(slot):
            continue
        names = [_flat(exporter, name) for name in op.vars(slot)]
        return names[0] if len(names) == 1 else exporter.node("Concat", names, axis=0)
    value = op.attr(attr)
    return exporter.ints(*([value] if isinstance(value, int) else value))


def _flat(exporter: Exporter, name: str) -> str:
    tensor = exporter.cast(exporter.tensor(name), np.int64)
    return tensor if exporter.rank(name) == 1 else exporter.node("Reshape", [tensor, exporter.ints(-1)])


def given(op: Op, *slots: str) -> bool:
    """Whether one of some inputs is given."""
    return any(op.has(slot) for slot in slots)


def squeezed(exporter: Exporter, tensor: str, axes: Sequence[int], into: str | None = None) -> str:
    """A tensor without some axes."""
    return exporter.node("Squeeze", [tensor, exporter.ints(*axes)], into)


def unsqueezed(exporter: Exporter, tensor: str, axes: Sequence[int], into: str | None = None) -> str:
    """A tensor with new axes."""
    return exporter.node("Unsqueeze", [tensor, exporter.ints(*axes)], into)


def sliced(
    exporter: Exporter, tensor: str, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int],
    steps: Sequence[int] | None = None, into: str | None = None,
) -> str:  # fmt: skip
    """A part of a tensor."""
    names = [exporter.ints(*starts), exporter.ints(*ends), exporter.ints(*axes)]
    return exporter.node("Slice", [tensor, *names, *([exporter.ints(*steps)] if steps else [])], into)


@converts("reshape2", "reshape")
def reshape(exporter: Exporter, op: Op) -> None:
    """Another shape."""
    exporter.into(op, "Reshape", [exporter.x(op), numbers(exporter, op, "shape", "ShapeTensor", "Shape")])


@converts("flatten_contiguous_range", "flatten2", "flatten")
def flatten(exporter: Exporter, op: Op) -> None:
    """Some axes as one."""
    shape, rank = exporter.shape(op.var()), exporter.rank(op.var())
    if op.type != "flatten_contiguous_range":
        exporter.into(op, "Flatten", [exporter.x(op)], axis=int(op.attr("axis")))
        return
    start, stop = (int(op.attr(name)) % max(rank, 1) for name in ("start_axis", "stop_axis"))
    if rank == 0:
        wanted = [1]
    elif -1 not in shape[stop + 1 :]:
        wanted = [0] * start + [-1] + list(shape[stop + 1 :])
    else:
        sizes = exporter.node("Shape", [exporter.x(op)])
        parts = [sliced(exporter, sizes, [0], [a], [b]) for a, b in ((0, start), (stop + 1, _END))]
        whole = exporter.node("Concat", [parts[0], exporter.ints(-1), parts[1]], axis=0)
        exporter.into(op, "Reshape", [exporter.x(op), whole])
        return
    exporter.into(op, "Reshape", [exporter.x(op), exporter.ints(*wanted)])


@converts("transpose2", "transpose")
def transpose(exporter: Exporter, op: Op) -> None:
    """Axes in another order."""
    exporter.into(op, "Transpose", [exporter.x(op)], perm=[int(n) for n in op.attr("axis")])


@converts("squeeze2", "squeeze")
def squeeze(exporter: Exporter, op: Op) -> None:
    """Without axes of one number."""
    shape, rank = exporter.shape(op.var()), exporter.rank(op.var())
    axes = [int(n) % rank for n in op.attr("axes")] or list(range(rank))
    axes = [n for n in axes if shape[n] == 1] if -1 not in [shape[n] for n in axes] else axes
    if axes:
        squeezed(exporter, exporter.x(op), axes, exporter.written(op.out()))
    else:
        exporter.alias(op.out(), exporter.x(op))


@converts("unsqueeze2", "unsqueeze")
def unsqueeze(exporter: Exporter, op: Op) -> None:
    """With new axes of one number."""
    if given(op, "AxesTensor", "AxesTensorList"):
        raise Unsupported("computed axes")
    out, axes = exporter.x(op), [int(n) for n in op.attr("axes")]
    rank = exporter.rank(op.var())
    for i, axis in enumerate(axes):  # one after another: each axis counts those before it
        last = i == len(axes) - 1
        out = unsqueezed(exporter, out, [axis % (rank + i + 1)], exporter.written(op.out()) if last else None)
    if not axes:
        exporter.alias(op.out(), out)


@converts("concat")
def concat(exporter: Exporter, op: Op) -> None:
    """Tensors behind each other."""
    if op.has("AxisTensor"):
        raise Unsupported("a computed axis")
    exporter.into(op, "Concat", [exporter.tensor(name) for name in op.vars()], axis=int(op.attr("axis")))


@converts("stack")
def stack(exporter: Exporter, op: Op) -> None:
    """Tensors along a new axis."""
    axis = int(op.attr("axis"))
    names = [unsqueezed(exporter, exporter.tensor(name), [axis]) for name in op.vars()]
    exporter.into(op, "Concat", names, "Y", axis=axis)


@converts("split")
def split(exporter: Exporter, op: Op) -> None:
    """Parts along an axis."""
    if given(op, "AxisTensor", "SectionsTensorList"):
        raise Unsupported("computed sizes")
    axis, sections = int(op.attr("axis")), [int(n) for n in op.attr("sections")]
    outs = op.desc.outs["Out"]
    size = exporter.shape(op.var())[axis]
    if -1 in sections and size > 0:
        sections[sections.index(-1)] = size - sum(sections) - 1
    x = exporter.x(op)
    _split(exporter, x, axis, sections or [size // len(outs)] * len(outs), [exporter.written(n) for n in outs], size)


def _split(exporter: Exporter, x: str, axis: int, sections: list[int], outs: list[str], size: int) -> None:
    """Appends the node that splits a tensor."""
    if size < 0 and len(set(sections)) != 1:
        raise Unsupported("an axis of any size")
    inputs = [x] if size < 0 else [x, exporter.ints(*sections)]
    more: dict[str, Any] = {"num_outputs": len(outs)} if size < 0 and exporter.opset >= 18 else {}
    exporter.node("Split", inputs, outputs=outs, axis=axis, **more)


@converts("unbind", "unstack")
def unbind(exporter: Exporter, op: Op) -> None:
    """The parts along an axis, without it."""
    axis, slot = int(op.attr("axis")), "Out" if op.type == "unbind" else "Y"
    outs = op.desc.outs[slot]
    parts = [exporter.new("part") for _ in outs]
    _split(exporter, exporter.x(op), axis, [1] * len(outs), parts, exporter.shape(op.var())[axis])
    for part, out in zip(parts, outs, strict=True):
        squeezed(exporter, part, [axis], exporter.written(out))


@converts("slice", "strided_slice")
def slices(exporter: Exporter, op: Op) -> None:
    """Parts of some axes, and without those of one number where requested."""
    axes, gone = [int(n) for n in op.attr("axes")], [int(n) for n in op.attr("decrease_axis")]
    inputs = [
        exporter.x(op, "Input"),
        numbers(exporter, op, "starts", "StartsTensorList", "StartsTensor"),
        numbers(exporter, op, "ends", "EndsTensorList", "EndsTensor"),
        exporter.ints(*axes),
    ]
    if op.type == "strided_slice":
        inputs.append(numbers(exporter, op, "strides", "StridesTensorList", "StridesTensor"))
        if op.attr("strides") and not given(op, "EndsTensorList", "EndsTensor", "StridesTensorList", "StridesTensor"):
            shape = exporter.shape(op.var("Input"))
            ends = [
                -_END if end == -1 and step < 0 else max(end, -shape[axis]) if step < 0 <= shape[axis] else end
                for axis, end, step in zip(axes, map(int, op.attr("ends")), op.attr("strides"), strict=True)
            ]
            inputs[2] = exporter.ints(*ends)
    if not gone:
        exporter.into(op, "Slice", inputs)
        return
    out = exporter.node("Slice", inputs)
    if exporter.rank(op.var("Input")) == len(gone) and exporter.rank(op.out()) == 1:
        exporter.alias(op.out(), out)  # Fluid keeps one axis
    else:
        squeezed(exporter, out, gone, exporter.written(op.out()))


@converts("gather", "index_select")
def gather(exporter: Exporter, op: Op) -> None:
    """Rows of an axis, by an index."""
    if op.has("Axis"):
        raise Unsupported("a computed axis")
    axis = int(op.attr("axis" if op.type == "gather" else "dim"))
    index = exporter.x(op, "Index")
    if exporter.rank(op.var("Index")) > 1:
        index = exporter.node("Reshape", [index, exporter.ints(-1)])
    exporter.into(op, "Gather", [exporter.x(op), index], axis=axis)


@converts("gather_nd")
def gather_nd(exporter: Exporter, op: Op) -> None:
    """Parts, by their first indices."""
    exporter.into(op, "GatherND", [exporter.x(op), exporter.cast(exporter.x(op, "Index"), np.int64)])


@converts("lookup_table_v2", "lookup_table")
def lookup(exporter: Exporter, op: Op) -> None:
    """Rows of a table; those of the padding index are zero."""
    ids, padding = exporter.x(op, "Ids"), int(op.attr("padding_idx"))
    if op.type == "lookup_table":
        ids = squeezed(exporter, ids, [-1])
    rows = exporter.node("Gather", [exporter.x(op, "W"), ids], None if padding != -1 else exporter.written(op.out()))
    if padding != -1:
        kind = exporter.dtype(op.var("Ids"))
        same = exporter.node("Equal", [ids, exporter.initializer(padding, kind)])
        zero = exporter.initializer(0, exporter.dtype(op.var("W")))
        exporter.into(op, "Where", [unsqueezed(exporter, same, [-1]), zero, rows])


@converts("take_along_axis")
def take(exporter: Exporter, op: Op) -> None:
    """Numbers along an axis, by an index for each."""
    x, index = exporter.shape(op.var("Input")), exporter.shape(op.var("Index"))
    axis = int(op.attr("Axis")) % len(x)
    if any(a != b and i != axis and 1 in (a, b) for i, (a, b) in enumerate(zip(x, index, strict=True))):
        raise Unsupported("shapes that broadcast")
    exporter.into(op, "GatherElements", [exporter.x(op, "Input"), exporter.x(op, "Index")], "Result", axis=axis)


@converts("put_along_axis")
def put(exporter: Exporter, op: Op) -> None:
    """A tensor with numbers along an axis replaced, by an index for each."""
    how = {"assign": "none", "add": "add", "mul": "mul", "multiply": "mul", "amin": "min", "amax": "max"}.get(
        op.attr("Reduce")
    )
    if how is None or (how != "none" and exporter.opset < 16) or (how in ("min", "max") and exporter.opset < 18):
        raise Unsupported(f"Reduce {op.attr('Reduce')}, which needs another opset or is not ONNX's")
    index = exporter.x(op, "Index")
    value = exporter.x(op, "Value")
    if exporter.shape(op.var("Value")) != exporter.shape(op.var("Index")):
        value = exporter.node("Expand", [value, exporter.node("Shape", [index])])
    more = {} if how == "none" else {"reduction": how}
    exporter.into(
        op, "ScatterElements", [exporter.x(op, "Input"), index, value], "Result", axis=int(op.attr("Axis")), **more
    )


@converts("scatter", "scatter_nd_add")
def scatter(exporter: Exporter, op: Op) -> None:
    """A tensor with rows replaced, or with parts added to."""
    x, updates = exporter.x(op), exporter.x(op, "Updates")
    if op.type == "scatter_nd_add":
        if exporter.opset < 16:
            raise Unsupported("opset 16 or later")
        index = exporter.cast(exporter.x(op, "Index"), np.int64)
        exporter.into(op, "ScatterND", [x, index, updates], reduction="add")
        return
    if not op.attr("overwrite"):
        raise Unsupported("overwrite False")
    ids = exporter.cast(exporter.x(op, "Ids"), np.int64)
    if exporter.rank(op.var("Ids")) == 1:
        ids = unsqueezed(exporter, ids, [-1])
    exporter.into(op, "ScatterND", [x, ids, updates])


@converts("expand_v2")
def expand(exporter: Exporter, op: Op) -> None:
    """A tensor repeated along axes of one number."""
    if given(op, "Shape", "expand_shapes_tensor"):
        shape = numbers(exporter, op, "shape", "Shape", "expand_shapes_tensor")
        shape = exporter.node("Abs", [shape])  # -1 keeps an axis, and 1 does so in ONNX
    else:
        shape = exporter.ints(*(1 if n == -1 else int(n) for n in op.attr("shape")))
    exporter.into(op, "Expand", [exporter.x(op), shape])


@converts("expand_as_v2")
def expand_as(exporter: Exporter, op: Op) -> None:
    """A tensor repeated to the shape of another."""
    shape = exporter.node("Shape", [exporter.x(op, "Y")]) if op.has("Y") else exporter.ints(*op.attr("target_shape"))
    exporter.into(op, "Expand", [exporter.x(op), shape])


@converts("tile")
def tile(exporter: Exporter, op: Op) -> None:
    """A tensor repeated along each axis."""
    x, times = exporter.x(op), [int(n) for n in op.attr("repeat_times")]
    if given(op, "RepeatTimes", "repeat_times_tensor"):
        exporter.into(op, "Tile", [x, numbers(exporter, op, "repeat_times", "RepeatTimes", "repeat_times_tensor")])
        return
    rank = exporter.rank(op.var())
    if len(times) > rank:
        x = unsqueezed(exporter, x, list(range(len(times) - rank)))
    times = [1] * (rank - len(times)) + times
    exporter.into(op, "Tile", [x, exporter.ints(*times)])


@converts("pad", "pad2d", "pad3d")
def pad(exporter: Exporter, op: Op) -> None:
    """Numbers around a tensor."""
    rank, value = exporter.rank(op.var()), 0.0
    if op.type == "pad":
        pads, mode, value = [int(n) for n in op.attr("paddings")], "constant", float(op.attr("pad_value"))
        before, after = pads[::2], pads[1::2]
    else:
        if op.has("Paddings") or op.attr("data_format") not in ("NCHW", "NCDHW"):
            raise Unsupported("computed pads, or channels last")
        pads, mode = [int(n) for n in op.attr("paddings")], op.attr("mode")
        value = float(op.attr("pad_value" if op.type == "pad2d" else "value"))
        if op.type == "pad2d":  # top, bottom, left, right
            before, after = [0, 0, *pads[::2]], [0, 0, *pads[1::2]]
        else:  # left, right, top, bottom, front, back
            before, after = [0, 0, *pads[::2][::-1]], [0, 0, *pads[1::2][::-1]]
    mode = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    if mode == "wrap" and exporter.opset < 19:
        raise Unsupported("opset 19 or later")
    assert len(before) == rank
    names = [exporter.x(op), exporter.ints(*before, *after)]
    if mode == "constant":
        names.append(exporter.initializer(value, exporter.dtype(op.var())))
    exporter.into(op, "Pad", names, mode=mode)


@converts("shape", "size")
def shape(exporter: Exporter, op: Op) -> None:
    """The sizes of a tensor, or their product."""
    kind, known = exporter.dtype(op.out()), exporter.shape(op.var("Input"))
    if -1 not in known and exporter.desc(op.var("Input")).lod_level() == 0:
        value = np.array(known if op.type == "shape" else np.prod(known, dtype=np.int64), kind)
        exporter.alias(op.out(), exporter.initializer(value.reshape(exporter.shape(op.out()))))
        return
    out = exporter.node("Shape" if op.type == "shape" else "Size", [exporter.x(op, "Input")])
    if op.type == "size":
        out = exporter.node("Reshape", [out, exporter.ints(*exporter.shape(op.out()))])
    exporter.cast(out, kind, exporter.written(op.out()))


@converts("fill_constant")
def filled(exporter: Exporter, op: Op) -> None:
    """A tensor of one value."""
    kind = dtypes.np_dtype(op.attr("dtype"))
    text = op.attr("str_value")
    value = np.array(float(text) if text else op.attr("value")).astype(kind)
    shape = [int(n) for n in op.attr("shape")]
    if op.has("ValueTensor"):
        number = exporter.node("Reshape", [exporter.x(op, "ValueTensor"), exporter.ints()])
        sizes = numbers(exporter, op, "shape", "ShapeTensor", "ShapeTensorList")
        exporter.into(op, "Expand", [exporter.cast(number, kind), sizes])
    elif given(op, "ShapeTensor", "ShapeTensorList"):
        sizes = numbers(exporter, op, "shape", "ShapeTensor", "ShapeTensorList")
        one = exporter.onnx.numpy_helper.from_array(value.reshape(1))
        exporter.into(op, "ConstantOfShape", [sizes], value=one)
    else:
        exporter.alias(op.out(), exporter.initializer(np.full(shape, value, kind)))


@converts("fill_any_like", "fill_zeros_like")
def filled_like(exporter: Exporter, op: Op) -> None:
    """A tensor of one value in the shape of another."""
    kind = exporter.dtype(op.out())
    value = np.full(1, op.attr("value") if op.type == "fill_any_like" else 0, kind)
    sizes = exporter.node("Shape", [exporter.x(op)])
    exporter.into(op, "ConstantOfShape", [sizes], value=exporter.onnx.numpy_helper.from_array(value))


@converts("fill_constant_batch_size_like")
def filled_batch(exporter: Exporter, op: Op) -> None:
    """A tensor of one value with one size of another tensor."""
    kind, shape = exporter.dtype(op.out()), [int(n) for n in op.attr("shape")]
    at, of = int(op.attr("output_dim_idx")), int(op.attr("input_dim_idx"))
    if of == 0 and op.var("Input") in exporter.lengths:
        size = exporter.node("Shape", [exporter.lengths[op.var("Input")].counts])
    else:
        size = sliced(exporter, exporter.node("Shape", [exporter.x(op, "Input")]), [0], [of], [of + 1])
    parts = [exporter.ints(*shape[:at])] * bool(at) + [size] + [exporter.ints(*shape[at + 1 :])] * (at + 1 < len(shape))
    value = np.full(1, float(op.attr("str_value") or op.attr("value")), kind)
    exporter.into(
        op, "ConstantOfShape", [exporter.node("Concat", parts, axis=0)],
        value=exporter.onnx.numpy_helper.from_array(value),
    )  # fmt: skip


@converts("assign_value")
def assign_value(exporter: Exporter, op: Op) -> None:
    """A tensor of given values."""
    kind = dtypes.np_dtype(op.attr("dtype"))
    slots = ("bool_values", "fp32_values", "fp64_values", "int32_values", "int64_values")
    values: list[Any] = next((op.attr(slot) for slot in slots if op.attr(slot)), [])
    exporter.alias(op.out(), exporter.initializer(np.array(values, kind).reshape(op.attr("shape"))))


@converts("range")
def counted(exporter: Exporter, op: Op) -> None:
    """Numbers at equal distances."""
    names = [exporter.node("Reshape", [exporter.x(op, slot), exporter.ints()]) for slot in ("Start", "End", "Step")]
    exporter.into(op, "Range", names)


@converts("one_hot_v2", "one_hot")
def one_hot(exporter: Exporter, op: Op) -> None:
    """A row with a one for each index."""
    ids, kind = exporter.x(op), exporter.dtype(op.out())
    if op.has("depth_tensor"):
        raise Unsupported("a computed depth")
    if op.type == "one_hot":
        ids = squeezed(exporter, ids, [-1])
    depth = exporter.initializer(int(op.attr("depth")), np.int64)
    exporter.into(op, "OneHot", [ids, depth, exporter.initializer([0, 1], kind)], axis=-1)


@converts("where_index")
def nonzero(exporter: Exporter, op: Op) -> None:
    """The indices of what is not zero."""
    exporter.into(op, "Transpose", [exporter.node("NonZero", [exporter.x(op, "Condition")])], perm=[1, 0])


@converts("masked_select")
def masked(exporter: Exporter, op: Op) -> None:
    """The numbers where a mask holds, in one row."""
    names = [exporter.node("Reshape", [exporter.x(op, slot), exporter.ints(-1)]) for slot in ("X", "Mask")]
    exporter.node("Compress", names, exporter.written(op.out("Y")), axis=0)


@converts("top_k_v2", "top_k", "argsort")
def top(exporter: Exporter, op: Op) -> None:
    """The largest or smallest numbers along an axis, and where they are."""
    exporter.require_axis(op)
    axis = int(op.attr("axis")) if op.type != "top_k" else -1
    if op.type == "argsort":
        size = exporter.shape(op.var())[axis]
        count = exporter.ints(size) if size > 0 else sliced(
            exporter, exporter.node("Shape", [exporter.x(op)]), [0], [axis % exporter.rank(op.var())],
            [axis % exporter.rank(op.var()) + 1])  # fmt: skip
        largest, ordered = bool(op.attr("descending")), True
    else:
        count = _flat(exporter, op.var("K")) if op.has("K") else exporter.ints(int(op.attr("k")))
        largest = bool(op.attr("largest")) if op.type == "top_k_v2" else True
        ordered = bool(op.attr("sorted")) if op.type == "top_k_v2" else True
    exporter.node(
        "TopK", [exporter.x(op), count], outputs=[exporter.written(op.out()), exporter.written(op.out("Indices"))],
        axis=axis, largest=int(largest), sorted=int(ordered),
    )  # fmt: skip


@converts("tril_triu")
def triangle(exporter: Exporter, op: Op) -> None:
    """The upper or lower part of matrices."""
    if exporter.opset < 14:
        raise Unsupported("opset 14 or later")
    diagonal = exporter.initializer(int(op.attr("diagonal")), np.int64)
    exporter.into(op, "Trilu", [exporter.x(op), diagonal], upper=int(not op.attr("lower")))


@converts("flip", "reverse")
def flip(exporter: Exporter, op: Op) -> None:
    """Axes turned round."""
    axes = [int(n) for n in op.attr("axis")]
    many = len(axes)
    sliced(exporter, exporter.x(op), axes, [-1] * many, [-(2**31)] * many, [-1] * many, exporter.written(op.out()))


@converts("roll")
def roll(exporter: Exporter, op: Op) -> None:
    """Numbers moved along axes; those that leave at one end come in at the other."""
    if op.has("ShiftsTensor"):
        raise Unsupported("computed shifts")
    x, axes = exporter.x(op), [int(n) for n in op.attr("axis")]
    shape, shifts = exporter.shape(op.var()), [int(n) for n in op.attr("shifts")]
    if not axes:
        x, axes = exporter.node("Reshape", [x, exporter.ints(-1)]), [0]
        size = int(np.prod(shape))
        shifts = [shifts[0] % size if size > 0 else shifts[0]]
    for axis, shift in zip(axes, shifts, strict=True):
        parts = [sliced(exporter, x, [axis], [-shift], [_END]), sliced(exporter, x, [axis], [0], [-shift])]
        x = exporter.node("Concat", parts, axis=axis)
    if not op.attr("axis"):
        x = exporter.node("Reshape", [x, exporter.node("Shape", [exporter.x(op)])])
    exporter.alias(op.out(), x)


@converts("meshgrid")
def meshgrid(exporter: Exporter, op: Op) -> None:
    """A grid of coordinates."""
    names = [exporter.tensor(name) for name in op.vars()]
    sizes = [exporter.node("Shape", [name]) for name in names]
    whole = exporter.node("Concat", sizes, axis=0)
    for i, (name, out) in enumerate(zip(names, op.desc.outs["Out"], strict=True)):
        shape = [1] * len(names)
        shape[i] = -1
        column = exporter.node("Reshape", [name, exporter.ints(*shape)])
        exporter.node("Expand", [column, whole], exporter.written(out))


@converts("set_value")
def set_value(exporter: Exporter, op: Op) -> None:
    """A tensor with a part replaced, by the indices of the part."""
    if given(op, "StartsTensorList", "EndsTensorList", "StepsTensorList") or op.attr("none_axes"):
        raise Unsupported("computed ends")
    shape = exporter.shape(op.var("Input"))
    part: list[slice] = [slice(None)] * len(shape)
    for axis, start, end, step in zip(
        op.attr("axes"), op.attr("starts"), op.attr("ends"), op.attr("steps") or [1] * len(op.attr("axes")), strict=True
    ):
        part[axis] = slice(int(start), None if step < 0 and end == -1 else int(end), int(step))
    if op.has("ValueTensor"):
        value = exporter.x(op, "ValueTensor")
        single = np.prod(exporter.shape(op.var("ValueTensor"))) == 1
    else:
        slots = ("values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values")
        found = next((op.attr(slot) for slot in slots if op.attr(slot)), [0])
        value = exporter.initializer(np.array(found, exporter.dtype(op.var("Input"))).reshape(op.attr("shape") or [-1]))
        single = len(found) == 1
    if single and all(n >= 0 or p == slice(None) for n, p in zip(shape, part, strict=True)):
        mask = np.zeros([max(n, 1) for n in shape], bool)
        mask[tuple(part)] = True
        number = exporter.node("Reshape", [value, exporter.ints()])
        exporter.into(op, "Where", [exporter.initializer(mask), number, exporter.x(op, "Input")])
        return
    if -1 in shape:
        raise Unsupported("a tensor of any size")
    index = np.stack(np.meshgrid(*(np.arange(n)[p] for n, p in zip(shape, part, strict=True)), indexing="ij"), -1)
    kept = [n for i, n in enumerate(index.shape[:-1]) if i not in op.attr("decrease_axes")]
    wide = exporter.node("Expand", [value, exporter.ints(*kept)])
    updates = exporter.node("Reshape", [wide, exporter.ints(*index.shape[:-1])])
    exporter.into(op, "ScatterND", [exporter.x(op, "Input"), exporter.initializer(index, np.int64), updates])
