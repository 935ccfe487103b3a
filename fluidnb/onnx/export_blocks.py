"""Converters of operators that run blocks: conditional_block and while, as If and Loop; arrays are sequences there."""

from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.exporter import Exporter, Graph, Op, converts, is_array, is_tensor
from fluidnb.proto.desc import BlockDesc


def outer_writes(exporter: Exporter, block: BlockDesc) -> list[str]:
    """The tensors and arrays of blocks around that a block writes, in order."""
    names = dict.fromkeys(n for op in block.ops for n in op.output_arg_names() if n not in block.vars)
    found = {name: block.find_var_recursive(name) for name in names}
    return [name for name, var in found.items() if is_tensor(var) or is_array(var)]


def declared(exporter: Exporter, tensor: str, name: str) -> Any:
    """The declaration of a tensor or sequence inside a graph, without sizes."""
    helper, var = exporter.onnx.helper, exporter.block.find_var_recursive(name)
    kind = helper.np_dtype_to_tensor_dtype(exporter.dtype(name))
    if is_array(var) and exporter.opset < 14:
        raise Unsupported("arrays of tensors before opset 14")
    make = helper.make_tensor_sequence_value_info if is_array(var) else helper.make_tensor_value_info
    return make(tensor, kind, None)


def one(exporter: Exporter, name: str) -> str:
    """The tensor of a condition, without axes."""
    tensor = exporter.tensor(name)
    return tensor if exporter.rank(name) == 0 else exporter.node("Reshape", [tensor, exporter.ints()])


def make_graph(exporter: Exporter, graph: Graph, name: str, inputs: list[Any], outs: list[tuple[str, str]]) -> Any:
    """A graph of nodes; each result is a new tensor, and has no declared sizes.

    Args:
        outs: tensor and variable of each result.
    """
    outputs = [declared(exporter, tensor, var) for tensor, var in outs]
    return exporter.onnx.helper.make_graph(graph.nodes, name, inputs, outputs)


@converts("conditional_block")
def conditional(exporter: Exporter, op: Op) -> None:
    """The values that a block writes where a condition holds; else those before it."""
    block = exporter.program.desc.blocks[op.desc.block_attr("sub_block")]
    names = [n for n in outer_writes(exporter, block) if n in op.desc.outs.get("Out", [])]
    condition = one(exporter, op.desc.ins["Cond"][0])
    before = {name: defined(exporter, name) for name in names}
    exporter.around.append(exporter.graph)
    yes = exporter.graph = Graph()
    exporter.operators(block)
    yes_outs = [(exporter.node("Identity", [exporter.tensor(name)]), name) for name in names]
    no = exporter.graph = Graph()
    no_outs = [(exporter.node("Identity", [before[name] or _nothing(exporter, name)]), name) for name in names]
    exporter.graph = exporter.around.pop()
    branches = {"then_branch": make_graph(exporter, yes, "then", [], yes_outs),
                "else_branch": make_graph(exporter, no, "else", [], no_outs)}  # fmt: skip
    exporter.node("If", [condition], outputs=[exporter.written(name) for name in names], **branches)


def defined(exporter: Exporter, name: str) -> str | None:
    """The tensor or sequence of a variable that has one."""
    graphs = (exporter.graph, *exporter.around)
    known = any(name in g.tensors or any(name in n.output for n in g.nodes) for g in graphs)
    return exporter.tensor(name) if known or name in exporter.parameters else None


def _nothing(exporter: Exporter, name: str) -> str:
    """A tensor or sequence in the place of a value that the program does not compute."""
    if is_array(exporter.block.find_var_recursive(name)):
        kind = exporter.onnx.helper.np_dtype_to_tensor_dtype(exporter.dtype(name))
        return exporter.node("SequenceEmpty", [], dtype=kind)
    shape = [max(n, 1) for n in exporter.shape(name)]
    return exporter.initializer(np.zeros(shape, exporter.dtype(name)))


@converts("select_input")
def select(exporter: Exporter, op: Op) -> None:
    """One of two tensors, by a number."""
    condition = exporter.node("Cast", [one(exporter, op.var("Mask"))], to=exporter.onnx.TensorProto.BOOL)
    no, yes = (exporter.tensor(name) for name in op.vars())
    branches = {}
    for key, tensor, name in (("then_branch", yes, op.vars()[1]), ("else_branch", no, op.vars()[0])):
        exporter.around.append(exporter.graph)
        inner = exporter.graph = Graph()
        outs = [(exporter.node("Identity", [tensor]), name)]
        exporter.graph = exporter.around.pop()
        branches[key] = make_graph(exporter, inner, key, [], outs)
    exporter.into(op, "If", [condition], **branches)


@converts("while")
def loop(exporter: Exporter, op: Op) -> None:
    """A block repeated while a condition holds; what it writes outside goes from turn to turn."""
    block = exporter.program.desc.blocks[op.desc.block_attr("sub_block")]
    condition = op.desc.ins["Condition"][0]
    names = [n for n in outer_writes(exporter, block) if n != condition]
    others = [exporter.block.find_var_recursive(n) for n in op.desc.outs.get("Out", [])]
    if not all(is_tensor(var) or is_array(var) for var in others):
        raise Unsupported("values that are no tensors")
    helper, kinds = exporter.onnx.helper, exporter.onnx.TensorProto
    start = one(exporter, condition)
    before = [defined(exporter, name) or _nothing(exporter, name) for name in names]
    exporter.around.append(exporter.graph)
    body = exporter.graph = Graph()
    turn, goes_on = exporter.new("turn"), exporter.new("condition")
    declare = helper.make_tensor_value_info
    inputs = [declare(turn, kinds.INT64, []), declare(goes_on, kinds.BOOL, [])]
    shape = list(exporter.shape(condition))
    body.tensors[condition] = goes_on if not shape else exporter.node("Reshape", [goes_on, exporter.ints(*shape)])
    for name in names:
        body.tensors[name] = exporter.new(name)
        inputs.append(declared(exporter, body.tensors[name], name))
    exporter.operators(block)
    outs = [(exporter.node("Identity", [one(exporter, condition)]), condition)]
    outs += [(exporter.node("Identity", [exporter.tensor(name)]), name) for name in names]
    exporter.graph = exporter.around.pop()
    exporter.node(
        "Loop", ["", start, *before], outputs=[exporter.written(name) for name in names],
        body=make_graph(exporter, body, "body", inputs, outs),
    )  # fmt: skip
    exporter.alias(condition, exporter.initializer(np.zeros(shape, bool)))
