"""Sequences as padded batches with lengths, and converters of operators on sequences.

A feed with sequences becomes a tensor [batch, time, …] and one of lengths [batch]. Inside, the rows of all sequences
are one after the other, as in a program, so that operators on rows need no change. Operators on sequences pad these
rows again, and results are padded too.
"""

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.export_math import reduce
from fluidnb.onnx.export_tensors import sliced, squeezed, unsqueezed
from fluidnb.onnx.exporter import Exporter, Lengths, Op, converts

#: The end of an axis in a slice.
_END = 2**31 - 1
#: Our activations -> ONNX's.
_ACTIVATIONS = {"sigmoid": "Sigmoid", "tanh": "Tanh", "relu": "Relu"}


def feed_sequences(exporter: Exporter, name: str) -> list[Any]:
    """Makes a feed with sequences of a padded batch and its lengths; the declarations of both.

    Args:
        name: the variable that is fed; it becomes the rows of its sequences.
    """
    counts = exporter.unique(f"{name}.lengths")
    shape = exporter.node("Shape", [name])
    sizes = sliced(exporter, shape, [0], [0], [2])
    zero, one = (exporter.initializer(n, np.int64) for n in (0, 1))
    time = exporter.node("Gather", [shape, one])
    steps = exporter.node("Range", [zero, time, one])
    inside = exporter.node("Less", [unsqueezed(exporter, steps, [0]), unsqueezed(exporter, counts, [1])])
    flags = exporter.node("Reshape", [inside, exporter.ints(-1)])
    rows = squeezed(exporter, exporter.node("NonZero", [flags]), [0])
    lengths = Lengths(
        name, counts, rows, exporter.node("Div", [rows, time]),
        exporter.node("CumSum", [counts, zero], exclusive=1), sizes, exporter.node("Shape", [flags]),
    )  # fmt: skip
    exporter.alias(name, unpadded(exporter, name, lengths, exporter.shape(name)[1:]))
    exporter.lengths[name] = lengths
    declare, kinds = exporter.onnx.helper.make_tensor_value_info, exporter.onnx.TensorProto
    return [declare_padded(exporter, name, name, lengths), declare(counts, kinds.INT64, ["batch"])]


def declare_padded(exporter: Exporter, tensor: str, name: str, lengths: Lengths) -> Any:
    """The declaration of a padded batch of a variable's sequences."""
    helper = exporter.onnx.helper
    rest = [n if n >= 0 else f"{name}_{i}" for i, n in enumerate(exporter.shape(name)[1:], 2)]
    kind = helper.np_dtype_to_tensor_dtype(exporter.dtype(name))
    return helper.make_tensor_value_info(tensor, kind, ["batch", f"{lengths.feed}_time", *rest])


def result(exporter: Exporter, name: str) -> list[Any]:
    """The declarations of the results of a variable with sequences: the padded batch, and its lengths."""
    lengths = exporter.lengths[name]
    out = exporter.unique(name) if name == lengths.feed else name
    padded(exporter, exporter.tensor(name), lengths, exporter.shape(name)[1:], 0, exporter.dtype(name), into=out)
    counts = exporter.node("Identity", [lengths.counts], exporter.unique(f"{name}.lengths"))
    kinds = exporter.onnx.TensorProto
    declared = exporter.onnx.helper.make_tensor_value_info(counts, kinds.INT64, ["batch"])
    return [declare_padded(exporter, out, name, lengths), declared]


def _sizes(exporter: Exporter, before: str, tensor: str, at: int, rest: tuple[int, ...]) -> str:
    """The tensor of sizes: some, and those of a tensor from an axis on."""
    if not rest:
        return before
    if min(rest) >= 0:
        behind = exporter.ints(*rest)
    else:
        behind = sliced(exporter, exporter.node("Shape", [tensor]), [0], [at], [_END])
    return exporter.node("Concat", [before, behind], axis=0)


def unpadded(
    exporter: Exporter, tensor: str, lengths: Lengths, rest: tuple[int, ...], into: str | None = None
) -> str:
    """The rows of a padded batch, those of all sequences one after the other.

    Args:
        rest: sizes of the axes behind those of batch and time.
    """
    flat = exporter.node("Reshape", [tensor, _sizes(exporter, exporter.ints(-1), tensor, 2, rest)])
    return exporter.node("Gather", [flat, lengths.rows], into)


def padded(
    exporter: Exporter, tensor: str, lengths: Lengths, rest: tuple[int, ...], value: float, dtype: Any,
    into: str | None = None,
) -> str:  # fmt: skip
    """The rows of sequences as a padded batch.

    Args:
        rest: sizes of the axes of a row.
        value: what is behind the end of a sequence.
    """
    filled = exporter.onnx.numpy_helper.from_array(np.full(1, value, dtype))
    room = exporter.node("ConstantOfShape", [_sizes(exporter, lengths.room, tensor, 1, rest)], value=filled)
    flat = exporter.node("ScatterND", [room, unsqueezed(exporter, lengths.rows, [1]), tensor])
    return exporter.node("Reshape", [flat, _sizes(exporter, lengths.sizes, tensor, 1, rest)], into)


def lengths_of(exporter: Exporter, name: str) -> Lengths:
    """The lengths of a variable's sequences."""
    if name not in exporter.lengths:
        raise Unsupported("sequences that no feed has")
    return exporter.lengths[name]


def _padded_input(exporter: Exporter, op: Op, slot: str = "X", value: float = 0) -> tuple[str, Lengths]:
    """An input as a padded batch, and its lengths."""
    name = op.var(slot)
    lengths = lengths_of(exporter, name)
    rest, kind = exporter.shape(name)[1:], exporter.dtype(name)
    return padded(exporter, exporter.tensor(name), lengths, rest, value, kind), lengths


def _lowest(dtype: np.dtype[Any]) -> float:
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(np.iinfo(dtype).min)


@converts("sequence_pool")
def pool(exporter: Exporter, op: Op) -> None:
    """One row from each sequence; a sequence without rows gives the padding value."""
    kind, name = str(op.attr("pooltype")), op.var()
    lengths, dtype, rank = lengths_of(exporter, name), exporter.dtype(name), exporter.rank(name)
    if "MaxIndex" in op.desc.outs and op.desc.outs["MaxIndex"] and exporter.is_read(op.out("MaxIndex")):
        raise Unsupported("positions that are read")
    zero, one = (exporter.initializer(n, np.int64) for n in (0, 1))
    if kind in ("FIRST", "LAST"):
        row = lengths.starts
        if kind == "LAST":
            row = exporter.node("Sub", [exporter.node("Add", [row, lengths.counts]), one])
        last = exporter.node("Sub", [exporter.node("Shape", [lengths.rows]), one])
        row = exporter.node("Max", [exporter.node("Min", [row, last]), zero])
        out = exporter.node("Gather", [exporter.x(op), row])
    else:
        batch, _ = _padded_input(exporter, op, value=_lowest(dtype) if kind == "MAX" else 0)
        out = reduce(exporter, "ReduceMax" if kind == "MAX" else "ReduceSum", batch, [1], False)
    counts = exporter.node("Reshape", [lengths.counts, exporter.ints(-1, *[1] * (rank - 1))])
    if kind in ("AVERAGE", "SQRT"):
        divisor = exporter.cast(exporter.node("Max", [counts, one]), dtype)
        divisor = exporter.node("Sqrt", [divisor]) if kind == "SQRT" else divisor
        out = exporter.node("Div", [out, divisor])
    empty = exporter.node("Equal", [counts, zero])
    exporter.into(op, "Where", [empty, exporter.initializer(op.attr("pad_value"), dtype), out])


@converts("sequence_softmax")
def softmax(exporter: Exporter, op: Op) -> None:
    """Rows as shares of their sequence."""
    name = op.var()
    batch, lengths = _padded_input(exporter, op, value=_lowest(exporter.dtype(name)))
    shares = exporter.node("Softmax", [batch], axis=1)
    unpadded(exporter, shares, lengths, exporter.shape(name)[1:], exporter.written(op.out()))


@converts("sequence_reverse")
def reverse(exporter: Exporter, op: Op) -> None:
    """The rows of each sequence from its last to its first."""
    batch, lengths = _padded_input(exporter, op)
    turned = exporter.node("ReverseSequence", [batch, lengths.counts], batch_axis=0, time_axis=1)
    unpadded(exporter, turned, lengths, exporter.shape(op.var())[1:], exporter.written(op.out("Y")))


@converts("sequence_conv")
def convolution(exporter: Exporter, op: Op) -> None:
    """A product of each row and its neighbours with a filter."""
    if op.attr("paddingTrainable"):
        raise Unsupported("rows of parameters beside a sequence")
    count, start = int(op.attr("contextLength")), int(op.attr("contextStart"))
    batch, lengths = _padded_input(exporter, op)
    before, after = max(-start, 0), max(start + count - 1, 0)
    wide = exporter.node("Pad", [batch, exporter.ints(0, before, 0, 0, after, 0)])
    time = sliced(exporter, lengths.sizes, [0], [1], [2])
    parts = []
    for k in range(count):
        first = exporter.ints(start + before + k)
        ends = exporter.node("Add", [time, first])
        parts.append(exporter.node("Slice", [wide, first, ends, exporter.ints(1)]))
    rows = exporter.node("Concat", parts, axis=2) if count > 1 else parts[0]
    out = exporter.node("MatMul", [rows, exporter.x(op, "Filter")])
    unpadded(exporter, out, lengths, exporter.shape(op.out())[1:], exporter.written(op.out()))


@converts("sequence_expand", "sequence_expand_as")
def expand(exporter: Exporter, op: Op) -> None:
    """A row for each row of the sequence of its number."""
    if op.var() in exporter.lengths:
        raise Unsupported("sequences that are repeated")
    lengths = lengths_of(exporter, op.var("Y"))
    exporter.into(op, "Gather", [exporter.x(op), lengths.owners])
    if op.type == "sequence_expand_as":
        exporter.lengths[op.out()] = lengths


def _parameter(exporter: Exporter, op: Op, slot: str) -> Any:
    """The value of a parameter."""
    value = exporter.parameters.get(op.var(slot))
    if value is None:
        raise Unsupported("computed weights")
    return value


def _activations(op: Op, *attrs: str) -> list[str]:
    """Activations by ONNX's names."""
    names = [str(op.attr(attr)) for attr in attrs]
    if strange := [name for name in names if name not in _ACTIVATIONS]:
        raise Unsupported(f"activation {strange[0]}")
    return [_ACTIVATIONS[name] for name in names]


def _recurrent(exporter: Exporter, op: Op, type: str, weights: list[Any], states: list[str], **attrs: Any) -> None:
    """Appends a recurrent layer over the rows of sequences.

    Args:
        weights: of the input, of the state, biases; for an LSTM those of peepholes too.
        states: slots of the first states.
    """
    if any(exporter.is_read(name) for slot, names in op.desc.outs.items() if slot != "Hidden" for name in names):
        raise Unsupported("other results than Hidden")
    batch, lengths = _padded_input(exporter, op, "Input")
    steps, dtype = exporter.node("Transpose", [batch], perm=[1, 0, 2]), exporter.dtype(op.var("Input"))
    tensors = [exporter.initializer(value[None], dtype) for value in weights]
    counts = exporter.cast(lengths.counts, np.int32)
    first = [unsqueezed(exporter, exporter.x(op, slot), [0]) if op.has(slot) else "" for slot in states]
    inputs = [steps, *tensors[:3], counts, *first, *tensors[3:]]
    while not inputs[-1]:
        inputs.pop()
    width = exporter.shape(op.out("Hidden"))[1]
    direction = "reverse" if op.attr("is_reverse") else "forward"
    out = exporter.node(type, inputs, hidden_size=width, direction=direction, **attrs)
    turned = exporter.node("Transpose", [squeezed(exporter, out, [1])], perm=[1, 0, 2])
    unpadded(exporter, turned, lengths, (width,), exporter.written(op.out("Hidden")))


@converts("lstm")
def lstm(exporter: Exporter, op: Op) -> None:
    """A long short-term memory over sequences; its input is projected already, and chosen by ones and zeros."""
    weight, bias = _parameter(exporter, op, "Weight"), _parameter(exporter, op, "Bias").reshape(-1)
    width = len(weight)
    order = [slice(g * width, (g + 1) * width) for g in (1, 3, 2, 0)]  # ours is candidate, input, forget, output
    weights = [
        np.concatenate([np.eye(4 * width)[gate] for gate in order]),
        np.concatenate([weight[:, gate].T for gate in order]),
        np.concatenate([*(bias[gate] for gate in order), np.zeros(4 * width)]),
    ]
    if op.attr("use_peepholes"):
        weights.append(np.concatenate([bias[g * width : (g + 1) * width] for g in (4, 6, 5)]))
    names = _activations(op, "gate_activation", "candidate_activation", "cell_activation")
    _recurrent(exporter, op, "LSTM", weights, ["H0", "C0"], activations=names)


@converts("gru")
def gru(exporter: Exporter, op: Op) -> None:
    """A gated recurrent unit over sequences; where ours takes the share of the new state, the gate's sign changes."""
    flat = _parameter(exporter, op, "Weight")
    width = len(flat)
    flat = flat.reshape(-1)
    gates, candidate = flat[: 2 * width * width].reshape(width, -1), flat[2 * width * width :].reshape(width, width)
    bias = _parameter(exporter, op, "Bias").reshape(-1) if op.has("Bias") else np.zeros(3 * width)
    names = _activations(op, "gate_activation", "activation")
    if not op.attr("origin_mode") and names[0] != "Sigmoid":
        raise Unsupported(f"gate_activation {op.attr('gate_activation')}")
    signs = np.ones(3 * width)
    signs[:width] = 1 if op.attr("origin_mode") else -1
    weights = [
        np.eye(3 * width) * signs[:, None],
        np.concatenate([gates.T, candidate.T]) * signs[:, None],
        np.concatenate([bias * signs, np.zeros(3 * width)]),
    ]
    _recurrent(exporter, op, "GRU", weights, ["H0"], activations=names, linear_before_reset=0)
