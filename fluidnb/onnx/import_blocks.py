"""Converters of nodes that run graphs: If and Loop, as conditional_block and while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fluidnb.onnx.converters import Unsupported
from fluidnb.onnx.importer import Importer, Node, converts
from fluidnb.program.sub_blocks import outer_names
from fluidnb.proto.desc import OpDesc, VarDesc
from fluidnb.values import VarType


@contextmanager
def inside(importer: Importer) -> Iterator[Any]:
    """A new block in the current one, in which nodes are converted."""
    outer = importer.block
    importer.program.current_block_idx = outer.idx
    importer.block = importer.program.create_block(parent_idx=outer.idx)
    try:
        yield importer.block
    finally:
        importer.block = outer
        importer.program.current_block_idx = outer.idx


def body(importer: Importer, graph: Any) -> list[str]:
    """Converts the nodes of a graph into the current block; the variables of its results."""
    importer.initializers(graph)
    importer.nodes(graph.node)
    return [importer.tensor(each.name) for each in graph.output]


def run_block(importer: Importer, type: str, ins: dict[str, list[str]], outs: dict[str, list[str]], block: Any,
              attrs: dict[str, Any], reads: str) -> None:  # fmt: skip
    """Appends the operator that runs a block; what the block reads from outside is an input."""
    scope = importer.new("scope")
    importer.block.desc.add_var(VarDesc(scope, VarType.STEP_SCOPES))
    op = OpDesc(type, ins, outs | {"Scope" if type == "conditional_block" else "StepScopes": [scope]},
                attrs | {"op_namescope": importer.scope})  # fmt: skip
    op.set_block_attr("sub_block", block.desc)
    importer.block.desc.append_op(op)
    found, _ = outer_names(importer.program.desc, importer.block.desc, op)
    given = {name for names in ins.values() for name in names}
    op.set_input(reads, sorted((found | set(ins.get(reads, []))) - (given - set(ins.get(reads, [])))))


@converts("If")
def branch(importer: Importer, node: Node) -> None:
    """One of two graphs; a condition that is known chooses while converting."""
    graphs = node.attrs["then_branch"], node.attrs["else_branch"]
    known = importer.constant(node, 0)
    if known is not None:
        for name, result in zip(node.outputs, body(importer, graphs[0 if known.reshape(()) else 1]), strict=True):
            importer.same[name] = importer.resolve(result)
        return
    condition = importer.x(node)
    chosen: list[list[str]] = []
    test = condition
    for i, graph in enumerate(graphs):
        if i == 1:
            test = importer.value("logical_not", {"X": condition})
        outs = [importer.new("branch") for _ in node.outputs]
        with inside(importer) as block:
            results = body(importer, graph)
            for name, result in zip(outs, results, strict=True):
                copy_of(importer, result, name, importer.program.block(block.desc.parent_idx))
        run_block(
            importer, "conditional_block", {"Cond": [test], "Input": []}, {"Out": outs}, block,
            {"is_scalar_condition": True}, "Input",
        )  # fmt: skip
        chosen.append(outs)
    mask = importer.cast(condition, "int32")
    for name, yes, no in zip(node.outputs, *chosen, strict=True):
        importer.append("select_input", {"X": [no, yes], "Mask": mask}, {"Out": name})


def copy_of(importer: Importer, source: str, name: str, home: Any) -> None:
    """Assigns a variable to one of an outer block, which is declared there."""
    found = importer.block.desc.find_var_recursive(source)
    assert found is not None
    if home.desc.find_var_recursive(name) is None:
        var = VarDesc(name)
        var.set_dtype(found.dtype())
        var.set_shape(list(found.shape()))
        home.desc.add_var(var)
    importer.append("assign", {"X": source}, {"Out": name})


@converts("Loop")
def loop(importer: Importer, node: Node) -> None:
    """A graph repeated while a condition holds, at most a number of times."""
    graph = node.attrs["body"]
    states = len(node.inputs) - 2
    count = importer.made(np.zeros((), np.int64))
    turn = importer.value("assign", {"X": count}, stem="turn")
    least: str | None = None
    if node.has(0):
        least = importer.reshape(importer.x(node, 0), [])
    condition = importer.new("condition")
    start = importer.reshape(importer.x(node, 1), []) if node.has(1) else importer.made(np.ones((), bool))
    goes_on(importer, turn, least, start, condition)
    names = []
    for i in range(states):
        names.append(importer.value("assign", {"X": importer.x(node, i + 2)}, stem="state"))
    arrays = [importer.new("array") for _ in graph.output[1 + states :]]  # results of each iteration
    for array in arrays:
        importer.block.desc.add_var(VarDesc(array, VarType.LOD_TENSOR_ARRAY))
    given = [each.name for each in graph.input]
    importer.same[given[0]] = turn
    importer.same[given[1]] = condition
    for name, state in zip(given[2:], names, strict=True):
        importer.same[name] = state
    with inside(importer) as block:
        results = body(importer, graph)
        copies = [importer.value("assign", {"X": name}, stem="copy") for name in results]
        changed = any(
            not _stays(importer.shape(n), importer.shape(copy)) for n, copy in zip(names, copies[1:], strict=False)
        )
        index = importer.reshape(turn, [1])
        for array, copy in zip(arrays, copies[1 + states :], strict=True):
            importer.append("write_to_array", {"X": copy, "I": index}, {"Out": array})
        sizes = [importer.shape(copy) for copy in copies[1 + states :]]
        importer.append("increment", {"X": turn}, {"Out": turn}, step=1.0)
        for name, copy in zip(names, copies[1 : 1 + states], strict=True):
            importer.append("assign", {"X": copy}, {"Out": name})
        goes_on(importer, turn, least, importer.reshape(copies[0], []), condition)
    run_block(
        importer, "while", {"Condition": [condition], "X": []}, {"Out": [condition, turn, *names, *arrays]}, block,
        {"is_test": True}, "X",
    )  # fmt: skip
    if changed:  # the body was converted with the sizes of the first iteration
        raise Unsupported("a state whose shape changes")
    for name, state in zip(node.outputs, names, strict=False):
        importer.same[name] = state
    for name, array, size in zip(node.outputs[states:], arrays, sizes, strict=True):
        outs = {"Out": name or importer.new("scan"), "OutIndex": importer.new("sizes")}
        importer.append("tensor_array_to_tensor", {"X": array}, outs, axis=0, use_stack=True)
        found = importer.block.desc.find_var_recursive(outs["Out"])
        if found is not None:
            found.set_shape([-1, *size])


def _stays(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether sizes that were known before an iteration are the same after it."""
    return len(before) == len(after) and all(a in (-1, b) for a, b in zip(before, after, strict=True))


def goes_on(importer: Importer, turn: str, least: str | None, condition: str, into: str) -> None:
    """Computes whether a loop runs once more."""
    if least is None:
        importer.append("assign", {"X": condition}, {"Out": into})
        return
    below = importer.value("less_than", {"X": turn, "Y": least})
    importer.append("logical_and", {"X": below, "Y": condition}, {"Out": into})
