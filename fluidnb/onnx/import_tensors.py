"""Converters of nodes that move numbers: shapes, slices, indices, pads, constants."""

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.importer import Importer, Node, converts
from fluidnb.onnx.shape_values import ints
from fluidnb.values import dtypes

#: The end of an axis in a slice, in Fluid's operators.
_END = 2**31 - 1


def sizes(importer: Importer, node: Node, index: int) -> list[int | None] | None:
    """The known sizes of an input that holds sizes; None where their number is unknown too."""
    value = importer.constant(node, index)
    if value is not None:
        return [int(n) for n in value.reshape(-1)]
    found = importer.shape_value(node, index)
    return None if found is None else [None if n is None else int(n) for n in found.values.reshape(-1)]


@converts("Reshape")
def reshape(importer: Importer, node: Node) -> None:
    """Another shape."""
    x, shape = importer.x(node), node.attrs.get("shape") or sizes(importer, node, 1)
    if node.attrs.get("allowzero", 0) and shape and 0 in shape:
        raise Unsupported("a size of zero")
    if shape is not None and shape.count(None) == 1 and -1 not in shape:
        shape = [-1 if n is None else n for n in shape]
    ins: dict[str, Any] = {"X": x}
    if shape is None or None in shape:
        ins["Shape"] = importer.cast(importer.x(node, 1), "int32")
        count = importer.shape(importer.x(node, 1))
        shape = [-1 if n is None else n for n in shape or [None] * (count[0] if count else 0)]
        if shape and shape.count(-1) > 1:  # the shape rule takes one unknown; the tensor decides
            shape = [-1] * len(shape)
    importer.into(node, "reshape2", ins, shape=shape)


@converts("Flatten")
def flatten(importer: Importer, node: Node) -> None:
    """A matrix: the axes before one, and those from it on."""
    x = importer.x(node)
    rank = importer.rank(x)
    axis = node.attrs.get("axis", 1)
    axis = axis + rank if axis < 0 else axis
    shape = importer.shape(x)
    rest = shape[axis:]
    if axis == 1 and rank > 1:
        importer.into(node, "flatten_contiguous_range", {"X": x}, start_axis=1, stop_axis=rank - 1)
    elif -1 not in rest:
        importer.into(node, "reshape2", {"X": x}, shape=[-1, int(np.prod(rest))])
    elif -1 not in shape[:axis]:
        importer.into(node, "reshape2", {"X": x}, shape=[int(np.prod(shape[:axis])), -1])
    else:
        out = importer.value("flatten_contiguous_range", {"X": x}, start_axis=axis, stop_axis=rank - 1)
        importer.into(node, "flatten_contiguous_range", {"X": out}, start_axis=0, stop_axis=axis - 1)


@converts("Transpose")
def transpose(importer: Importer, node: Node) -> None:
    """Axes in another order."""
    x = importer.x(node)
    importer.transpose(x, list(node.attrs.get("perm", range(importer.rank(x))[::-1])), node.outputs[0])


@converts("Squeeze")
def squeeze(importer: Importer, node: Node) -> None:
    """Without axes of one number."""
    x = importer.x(node)
    axes = importer.axes(node, 1, importer.rank(x))
    if axes is None:
        axes = [i for i, n in enumerate(importer.shape(x)) if n == 1]
    importer.into(node, "squeeze2", {"X": x}, axes=axes)


@converts("Unsqueeze")
def unsqueeze(importer: Importer, node: Node) -> None:
    """With new axes of one number."""
    x, axes = importer.x(node), importer.axes(node, 1) or []
    rank = importer.rank(x) + len(axes)
    importer.into(node, "unsqueeze2", {"X": x}, axes=sorted(axis % rank for axis in axes))


@converts("Concat")
def concat(importer: Importer, node: Node) -> None:
    """Tensors behind each other."""
    names = [importer.x(node, i) for i in range(len(node.inputs))]
    importer.into(node, "concat", {"X": names}, axis=node.attrs.get("axis", 1))


@converts("Split")
def split(importer: Importer, node: Node) -> None:
    """Parts along an axis."""
    x, axis = importer.x(node), node.attrs.get("axis", 0)
    parts = node.attrs.get("split")
    if parts is None and node.has(1):
        parts = importer.required(node, 1, "list of sizes").tolist()
    outs = [name or importer.new("part") for name in node.outputs]
    whole = importer.shape(x)[axis]
    if parts is None and whole > 0:
        each = -(-whole // len(outs))
        parts = [min(each, whole - i * each) for i in range(len(outs))]
    if parts is None:
        importer.append("split", {"X": x}, {"Out": outs}, axis=axis, num=len(outs))
    else:
        importer.append("split", {"X": x}, {"Out": outs}, axis=axis, sections=parts, num=0)


@converts("Slice")
def slices(importer: Importer, node: Node) -> None:
    """Parts of some axes."""
    x = importer.x(node)
    rank = importer.rank(x)
    if "starts" in node.attrs:
        starts, ends = list(node.attrs["starts"]), list(node.attrs["ends"])
        axes, steps = list(node.attrs.get("axes", range(len(starts)))), [1] * len(starts)
    else:
        first, last = sizes(importer, node, 1), sizes(importer, node, 2)
        if first is None or last is None or None in first or None in last:
            computed_slice(importer, node, x, first, last)
            return
        starts, ends = [int(n or 0) for n in first], [int(n or 0) for n in last]
        axes = importer.required(node, 3, "list of axes").tolist() if node.has(3) else list(range(len(starts)))
        steps = importer.required(node, 4, "list of steps").tolist() if node.has(4) else [1] * len(starts)
    axes = [axis % rank for axis in axes]
    whole = [i for i, k in enumerate(steps) if k == -1 and starts[i] == -1 and ends[i] < -_END]
    if whole:
        x = importer.value("flip", {"X": x}, axis=[axes[i] for i in whole])
        starts, ends, axes, steps = (
            [each for i, each in enumerate(values) if i not in whole] for values in (starts, ends, axes, steps)
        )
        if not axes:
            importer.rename(node, x)
            return
    if min(steps) < 0:
        x, starts, ends, steps = backwards(importer, x, axes, starts, ends, steps)
    starts, ends = ([max(-_END, min(_END, n)) for n in each] for each in (starts, ends))
    if set(steps) == {1}:
        importer.into(node, "slice", {"Input": x}, "Out", axes=axes, starts=starts, ends=ends)
    else:
        importer.into(
            node, "strided_slice", {"Input": x}, "Out", axes=axes, starts=starts, ends=ends, strides=steps,
            infer_flags=[1] * len(axes),
        )  # fmt: skip


def backwards(
    importer: Importer, x: str, axes: list[int], starts: list[int], ends: list[int], steps: list[int]
) -> tuple[str, list[int], list[int], list[int]]:
    """A slice with negative steps as one of the turned tensor, whose axes must have known sizes."""
    turned, starts, ends, steps = [], list(starts), list(ends), list(steps)
    for i, axis in enumerate(axes):
        if steps[i] > 0:
            continue
        size = importer.shape(x)[axis]
        if size < 0:
            raise Unsupported("a negative step along an axis of any size")
        start = min(starts[i] + size if starts[i] < 0 else starts[i], size - 1)
        end = max(ends[i] + size if ends[i] < 0 else ends[i], -1)
        turned.append(axis)
        starts[i], ends[i], steps[i] = size - 1 - start, size - 1 - end, -steps[i]
    return importer.value("flip", {"X": x}, axis=turned), starts, ends, steps


def computed_slice(
    importer: Importer, node: Node, x: str, first: list[int | None] | None, last: list[int | None] | None
) -> None:
    """A slice whose ends are computed; its axes and steps must be known."""
    steps = importer.required(node, 4, "list of steps").tolist() if node.has(4) else [1]
    if set(steps) != {1}:
        raise Unsupported("computed ends and a step")
    count = len(first or last or importer.shape(importer.x(node, 1)))
    axes = importer.required(node, 3, "list of axes").tolist() if node.has(3) else list(range(count))
    ins = {"Input": x}
    for slot, index in (("StartsTensor", 1), ("EndsTensor", 2)):
        value = importer.constant(node, index)  # the end of an axis is a number that an int32 has not
        if value is not None:
            ins[slot] = importer.made(np.clip(value, -_END, _END).astype("int32"))
        else:
            ins[slot] = importer.cast(importer.x(node, index), "int32")
    importer.into(
        node, "slice", ins, "Out", axes=[axis % importer.rank(x) for axis in axes], starts=[0] * count,
        ends=[-1] * count, infer_flags=[-1] * count,
    )  # fmt: skip


@converts("Gather")
def gather(importer: Importer, node: Node) -> None:
    """Rows of an axis, by an index of any shape."""
    x, axis = importer.x(node), node.attrs.get("axis", 0)
    rank = importer.rank(x)
    axis = axis % rank
    index = importer.constant(node, 1)
    size = importer.shape(x)[axis]
    if index is not None and index.ndim == 0:
        at = int(index)
        end = at + 1 if at != -1 else _END
        importer.into(
            node, "slice", {"Input": x}, "Out", scalar=rank == 1, axes=[axis], starts=[at], ends=[end],
            decrease_axis=[axis],
        )  # fmt: skip
        return
    if index is not None and index.size and index.min() < 0 <= size:
        name = importer.made(np.where(index < 0, index + size, index))
    else:
        name = importer.x(node, 1)
        if index is None and size > 0 and importer.dtype_of(name).startswith("int"):
            name = not_negative(importer, name, size) if _may_be_negative(importer, node) else name
    if importer.rank(name) == 1:
        importer.into(node, "gather", {"X": x, "Index": name}, "Out", axis=axis)
        return
    if importer.rank(name) == 0:
        row = importer.value("gather", {"X": x, "Index": importer.reshape(name, [1])}, axis=axis)
        importer.into(node, "squeeze2", {"X": row}, axes=[axis])
        return
    if rank == 2 and axis == 0 and importer.dtype_of(x).startswith("float"):
        importer.into(node, "lookup_table_v2", {"W": x, "Ids": name})
        return
    order = [axis, *(i for i in range(rank) if i != axis)]
    source = x if axis == 0 else importer.transpose(x, order)
    where = importer.value("unsqueeze2", {"X": name}, axes=[importer.rank(name)])
    if axis == 0:
        importer.into(node, "gather_nd", {"X": source, "Index": where})
        return
    out = importer.value("gather_nd", {"X": source, "Index": where})
    many = importer.rank(name)  # axes of the index, which come first and belong in the place of the axis
    back = [*range(many, many + axis), *range(many), *range(many + axis, many + rank - 1)]
    importer.transpose(out, back, node.outputs[0])


def _may_be_negative(importer: Importer, node: Node) -> bool:
    """Whether an index is computed; one that is fed counts from the beginning, as in an embedding."""
    return importer.resolve(node.inputs[1]) not in importer.done.feeds


def not_negative(importer: Importer, name: str, size: int) -> str:
    """An index in which negative numbers count from the end."""
    dtype = importer.dtype_of(name)
    negative = importer.value("less_than", {"X": name, "Y": importer.made(np.zeros((), dtype))})
    moved = importer.value("elementwise_add", {"X": name, "Y": importer.made(np.asarray(size, dtype))})
    return importer.value("where", {"Condition": negative, "X": moved, "Y": name})


@converts("GatherElements")
def gather_elements(importer: Importer, node: Node) -> None:
    """Numbers along an axis, by an index for each."""
    importer.into(
        node, "take_along_axis", {"Input": importer.x(node), "Index": importer.x(node, 1)}, "Result",
        Axis=node.attrs.get("axis", 0),
    )  # fmt: skip


@converts("GatherND")
def gather_nd(importer: Importer, node: Node) -> None:
    """Parts, by their first indices."""
    if node.attrs.get("batch_dims", 0):
        raise Unsupported("batch_dims")
    importer.into(node, "gather_nd", {"X": importer.x(node), "Index": importer.x(node, 1)})


@converts("ScatterElements", "Scatter")
def scatter_elements(importer: Importer, node: Node) -> None:
    """A tensor with numbers along an axis replaced, by an index for each."""
    how = {"none": "assign", "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}[
        node.attrs.get("reduction", "none")
    ]
    importer.into(
        node, "put_along_axis",
        {"Input": importer.x(node), "Index": importer.x(node, 1), "Value": importer.x(node, 2)}, "Result",
        Axis=node.attrs.get("axis", 0), Reduce=how,
    )  # fmt: skip


@converts("ScatterND")
def scatter_nd(importer: Importer, node: Node) -> None:
    """A tensor with parts replaced, or added to; no part is named twice."""
    x, index, updates = (importer.x(node, i) for i in range(3))
    how = node.attrs.get("reduction", "none")
    if how == "add":
        importer.into(node, "scatter_nd_add", {"X": x, "Index": index, "Updates": updates})
        return
    if how != "none":
        raise Unsupported(f"reduction {how}")
    dtype = importer.dtype_of(x)
    number = "float32" if dtype == "bool" else dtype
    old, new = (importer.cast(n, number) if number != dtype else n for n in (x, updates))
    nothing = importer.value("fill_any_like", {"X": old}, value=0.0)
    ones = importer.value("fill_any_like", {"X": new}, value=1.0)
    written = importer.value("scatter_nd_add", {"X": nothing, "Index": index, "Updates": ones})
    values = importer.value("scatter_nd_add", {"X": nothing, "Index": index, "Updates": new})
    there = importer.cast(written, "bool")
    if number == dtype:
        importer.into(node, "where", {"Condition": there, "X": values, "Y": old})
    else:
        importer.cast(importer.value("where", {"Condition": there, "X": values, "Y": old}), dtype, node.outputs[0])


@converts("Expand")
def expand(importer: Importer, node: Node) -> None:
    """A tensor repeated along axes of one number."""
    x, shape = importer.x(node), sizes(importer, node, 1)
    rank = importer.rank(x)
    if shape is not None and None not in shape and len(shape) >= rank:
        old = [1] * (len(shape) - rank) + list(importer.shape(x))
        if all(n == 1 or o in (1, n) for n, o in zip(shape, old, strict=True)):
            new = [o if n == 1 else n for n, o in zip(shape, old, strict=True)]
            importer.into(node, "expand_v2", {"X": x}, shape=new)
            return
    # Both broadcast, and the file does not say which axes of the shape do: a product with ones does what is right.
    target = importer.cast(importer.x(node, 1), "int32")
    known = [-1 if n is None else n for n in shape or [-1] * max(importer.shape(importer.x(node, 1))[0], 0)]
    dtype = importer.dtype_of(x)
    number = "float32" if dtype == "bool" else dtype
    ones = importer.value(
        "fill_constant", {"ShapeTensor": target}, shape=known, dtype=int(dtypes.var_type(number)), value=1.0
    )
    if dtype == "bool":
        wide = importer.value("elementwise_mul", {"X": importer.cast(x, number), "Y": ones})
        importer.cast(wide, dtype, node.outputs[0])
    else:
        importer.into(node, "elementwise_mul", {"X": x, "Y": ones})


@converts("Tile")
def tile(importer: Importer, node: Node) -> None:
    """A tensor repeated along each axis."""
    times = sizes(importer, node, 1)
    if times is None or None in times:
        importer.into(node, "tile", {"X": importer.x(node), "RepeatTimes": importer.cast(importer.x(node, 1), "int32")})
    else:
        importer.into(node, "tile", {"X": importer.x(node)}, repeat_times=times)


@converts("Pad")
def pad(importer: Importer, node: Node) -> None:
    """Numbers around a tensor."""
    x = importer.x(node)
    rank = importer.rank(x)
    pads = node.attrs.get("pads") or node.attrs.get("paddings")
    pads = list(pads if pads is not None else importer.required(node, 1, "list of pads").tolist())
    value: Any = node.attrs.get("value", 0.0)
    if node.has(2):
        value = importer.required(node, 2, "value").reshape(()).item()
    if node.has(3):
        axes = importer.required(node, 3, "list of axes").tolist()
        whole = [0] * (2 * rank)
        for i, axis in enumerate(axes):
            whole[axis % rank], whole[axis % rank + rank] = pads[i], pads[i + len(axes)]
        pads = whole
    before, after = pads[:rank], pads[rank:]
    if min(pads) < 0:
        cut = [i for i in range(rank) if before[i] < 0 or after[i] < 0]
        x = importer.value(
            "slice", {"Input": x}, "Out", axes=cut, starts=[max(0, -before[i]) for i in cut],
            ends=[min(0, after[i]) or _END for i in cut],
        )  # fmt: skip
        before, after = [max(0, n) for n in before], [max(0, n) for n in after]
    mode = node.attrs.get("mode", "constant")
    if mode == "constant":
        pairs = [n for pair in zip(before, after, strict=True) for n in pair]
        importer.into(node, "pad", {"X": x}, paddings=pairs, pad_value=float(value))
        return
    if mode == "wrap" or rank not in (3, 4, 5) or any(before[:2] + after[:2]):
        raise Unsupported(f"mode {mode} along these axes")
    spatial = [n for pair in zip(before[:1:-1], after[:1:-1], strict=True) for n in pair]  # the last axis first
    new = list(range(2, 2 + 5 - rank))
    wide = importer.value("unsqueeze2", {"X": x}, axes=new) if new else x
    out = importer.value(
        "pad3d", {"X": wide}, paddings=spatial + [0, 0] * len(new), mode={"edge": "replicate"}.get(mode, mode)
    )
    if new:
        importer.into(node, "squeeze2", {"X": out}, axes=new)
    else:
        importer.rename(node, out)


@converts("Shape")
def shape(importer: Importer, node: Node) -> None:
    """The sizes of a tensor."""
    out = importer.value("shape", {"Input": importer.x(node)})
    start, end = node.attrs.get("start", 0), node.attrs.get("end")
    if start or end is not None:
        end = _END if end is None else end
        out = importer.value("slice", {"Input": out}, "Out", axes=[0], starts=[start], ends=[end])
    importer.cast(out, "int64", node.outputs[0])


@converts("Size")
def size(importer: Importer, node: Node) -> None:
    """The number of numbers of a tensor."""
    importer.into(node, "size", {"Input": importer.x(node)}, scalar=True)


@converts("ConstantOfShape")
def filled(importer: Importer, node: Node) -> None:
    """A tensor of one value."""
    value = np.asarray(node.attrs.get("value", np.zeros(1, np.float32))).reshape(-1)[0]
    shape = sizes(importer, node, 0)
    kind = int(dtypes.var_type(value.dtype.name))
    text: dict[str, Any] = {"dtype": kind, "value": float(value)}
    text["shape"] = [-1 if n is None else n for n in shape or []]
    text["str_value"] = str(value.item() if value.dtype != bool else int(value))
    if shape is not None and None not in shape:
        importer.into(node, "fill_constant", {}, **text)
    else:
        text["shape"] = text["shape"] or [-1] * max(importer.shape(importer.x(node))[0], 0)
        importer.into(node, "fill_constant", {"ShapeTensor": importer.cast(importer.x(node), "int32")}, **text)


@converts("Range")
def counted(importer: Importer, node: Node) -> None:
    """Numbers at equal distances."""
    ins = {slot: importer.reshape(importer.x(node, i), [1]) for i, slot in enumerate(("Start", "End", "Step"))}
    importer.into(node, "range", ins)


@converts("OneHot")
def one_hot(importer: Importer, node: Node) -> None:
    """A row for each index, with one value there and another elsewhere."""
    depth = int(importer.required(node, 1, "depth").reshape(-1)[0])
    off, on = importer.required(node, 2, "list of values").tolist()
    index = importer.x(node)
    if importer.dtype_of(index) not in ("int32", "int64"):
        index = importer.cast(index, "int64")
    rank = importer.rank(index)
    axis = node.attrs.get("axis", -1) % (rank + 1)
    kind = importer.dtype_of(importer.x(node, 2))
    index = not_negative(importer, index, depth)
    rows = importer.value("one_hot_v2", {"X": index}, depth=depth, dtype=int(dtypes.var_type("float32")))
    if axis != rank:
        rows = importer.transpose(rows, [*range(axis), rank, *range(axis, rank)])
    if (off, on) != (0, 1):
        rows = importer.value("scale", {"X": rows}, scale=float(on - off), bias=float(off))
    if kind == "float32":
        importer.rename(node, rows)
    else:
        importer.cast(rows, kind, node.outputs[0])


@converts("NonZero")
def nonzero(importer: Importer, node: Node) -> None:
    """The indices of what is not zero, a row for each axis."""
    rows = importer.value("where_index", {"Condition": importer.x(node)})
    importer.transpose(rows, [1, 0], node.outputs[0])


@converts("Compress")
def compress(importer: Importer, node: Node) -> None:
    """The parts of an axis where a condition holds; without an axis, of all numbers in one row."""
    x, axis = importer.x(node), node.attrs.get("axis")
    if axis is None:
        x, axis = importer.reshape(x, [-1]), 0
    rows = importer.value("where_index", {"Condition": importer.x(node, 1)})
    index = importer.value("squeeze2", {"X": rows}, axes=[1])
    importer.into(node, "gather", {"X": x, "Index": index}, axis=axis)


@converts("TopK")
def top(importer: Importer, node: Node) -> None:
    """The largest or smallest numbers along an axis, and where they are."""
    ins: dict[str, Any] = {"X": importer.x(node)}
    count = importer.constant(node, 1) if node.has(1) else np.asarray(node.attrs.get("k", 1))
    attrs: dict[str, Any] = {"k": 1 if count is None else int(count.reshape(-1)[0])}
    if count is None:
        ins["K"] = importer.cast(importer.x(node, 1), "int32")
    importer.append(
        "top_k_v2", ins, {"Out": node.outputs[0] or importer.new("top"), "Indices": node.outputs[1]}, **attrs,
        axis=node.attrs.get("axis", -1), largest=bool(node.attrs.get("largest", 1)),
        sorted=bool(node.attrs.get("sorted", 1)),
    )  # fmt: skip


@converts("Trilu")
def triangle(importer: Importer, node: Node) -> None:
    """The upper or lower part of matrices."""
    diagonal = int(importer.required(node, 1, "diagonal").reshape(())) if node.has(1) else 0
    x, upper = importer.x(node), bool(node.attrs.get("upper", 1))
    if importer.dtype_of(x) == "bool":
        part = importer.value("tril_triu", {"X": importer.cast(x, "int32")}, diagonal=diagonal, lower=not upper)
        importer.cast(part, "bool", node.outputs[0])
    else:
        importer.into(node, "tril_triu", {"X": x}, diagonal=diagonal, lower=not upper)


@converts("EyeLike")
def identity_matrix(importer: Importer, node: Node) -> None:
    """A matrix with ones on its diagonal."""
    x = importer.x(node)
    rows, columns = importer.shape(x)
    if min(rows, columns) < 0 or node.attrs.get("k", 0):
        raise Unsupported("any size, or another diagonal")
    dtype = importer.dtype(node.attrs["dtype"]) if "dtype" in node.attrs else importer.dtype_of(x)
    importer.into(node, "eye", {}, num_rows=rows, num_columns=columns, dtype=int(dtypes.var_type(dtype)))


@converts("DepthToSpace")
def depth_to_space(importer: Importer, node: Node) -> None:
    """Channels as blocks of pixels."""
    x, block = importer.x(node), node.attrs["blocksize"]
    if node.attrs.get("mode", "DCR") == "CRD":
        importer.into(node, "pixel_shuffle", {"X": x}, upscale_factor=block)
        return
    n, c, h, w = importer.shape(x)
    if min(c, h, w) < 0:
        raise Unsupported("any height or width")
    parts = importer.reshape(x, [n, block, block, c // block**2, h, w])
    turned = importer.transpose(parts, [0, 3, 4, 1, 5, 2])
    importer.reshape(turned, [n, c // block**2, h * block, w * block], node.outputs[0])


@converts("SpaceToDepth")
def space_to_depth(importer: Importer, node: Node) -> None:
    """Blocks of pixels as channels."""
    x, block = importer.x(node), node.attrs["blocksize"]
    n, c, h, w = importer.shape(x)
    if min(c, h, w) < 0:
        raise Unsupported("any height or width")
    parts = importer.reshape(x, [n, c, h // block, block, w // block, block])
    turned = importer.transpose(parts, [0, 3, 5, 1, 2, 4])
    importer.reshape(turned, [n, c * block**2, h // block, w // block], node.outputs[0])


@converts("ReverseSequence")
def reversed_sequences(importer: Importer, node: Node) -> None:
    """Each sequence turned round, for sequences that all have full length."""
    lengths = importer.required(node, 1, "list of lengths")
    x, time = importer.x(node), node.attrs.get("time_axis", 0)
    if not bool((lengths == importer.shape(x)[time]).all()):
        raise Unsupported("sequences of several lengths")
    importer.into(node, "flip", {"X": x}, axis=[time])


def whole_sizes(importer: Importer, node: Node, index: int) -> list[int] | None:
    """An input of sizes where all are known."""
    if not node.has(index):
        return None
    value = importer.constant(node, index)
    if value is None and (found := importer.shape_value(node, index)) is not None:
        value = ints(found)
    return None if value is None else [int(n) for n in value.reshape(-1)]
