"""Converters of operators on arrays of tensors, as sequences of ONNX."""

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.export_blocks import defined, make_graph
from fluidnb.onnx.exporter import Exporter, Graph, Op, converts


def index(exporter: Exporter, op: Op) -> str:
    """The index of an element, without axes."""
    return exporter.cast(exporter.node("Reshape", [exporter.x(op, "I"), exporter.ints()]), np.int64)


@converts("write_to_array")
def write(exporter: Exporter, op: Op) -> None:
    """An array with a tensor at an index: in the place of another one, or behind the last."""
    name, x = op.out(), exporter.x(op)
    before = defined(exporter, name)
    if "accumulate" in op.desc.attrs and op.attr("accumulate"):
        raise Unsupported("sums")
    if before is None:
        kind = exporter.onnx.helper.np_dtype_to_tensor_dtype(exporter.dtype(op.var()))
        empty = exporter.node("SequenceEmpty", [], dtype=kind)
        exporter.node("SequenceInsert", [empty, x], exporter.written(name))
        return
    at = index(exporter, op)
    is_there = exporter.node("Less", [at, exporter.node("SequenceLength", [before])])
    exporter.around.append(exporter.graph)
    yes = exporter.graph = Graph()
    rest = exporter.node("SequenceErase", [before, at])
    yes_out = exporter.node("SequenceInsert", [rest, x, at])
    no = exporter.graph = Graph()
    no_out = exporter.node("SequenceInsert", [before, x])
    exporter.graph = exporter.around.pop()
    exporter.node(
        "If", [is_there], exporter.written(name), then_branch=make_graph(exporter, yes, "then", [], [(yes_out, name)]),
        else_branch=make_graph(exporter, no, "else", [], [(no_out, name)]),
    )  # fmt: skip


@converts("read_from_array")
def read(exporter: Exporter, op: Op) -> None:
    """The tensor at an index of an array."""
    if op.has("X_W"):
        raise Unsupported("elements that are not written")
    exporter.into(op, "SequenceAt", [exporter.x(op), index(exporter, op)])


@converts("lod_array_length")
def length(exporter: Exporter, op: Op) -> None:
    """The number of tensors of an array."""
    count = exporter.node("SequenceLength", [exporter.x(op)])
    exporter.into(op, "Reshape", [count, exporter.ints(1)])


@converts("tensor_array_to_tensor")
def joined(exporter: Exporter, op: Op) -> None:
    """The tensors of an array as one, along an axis or along a new one."""
    if "OutIndex" in op.desc.outs and exporter.is_read(op.out("OutIndex")):
        raise Unsupported("sizes that are read")
    stacked = int(bool(op.attr("use_stack")))
    exporter.into(op, "ConcatFromSequence", [exporter.x(op)], axis=int(op.attr("axis")), new_axis=stacked)
