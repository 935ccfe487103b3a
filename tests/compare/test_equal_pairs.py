"""Networks that compute the same by other operators: nothing is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.compare.difference import first_difference
from fluidnb.compare.runtimes import without_program
from fluidnb.onnx import exporter, importer
from fluidnb.proto.desc import OpDesc, VarDesc
from tests.compare.networks import NETWORKS, Network, built


def through_onnx(opset: int) -> Callable[[Network], Iterator[Network]]:
    """Written as ONNX and read again: normalisations and activations become several operators in old sets."""

    def change(network: Network) -> Iterator[Network]:
        parameters = {
            v.name: np.array(network.scope.var(v.name).get_tensor()) for v in network.program.list_vars()
            if v.persistable and network.scope.find_var(v.name) is not None
        }  # fmt: skip
        exported = exporter.export(network.program, list(network.feeds), network.fetches, parameters, opset)
        done, scope = importer.convert(exported.model), fluid.Scope()
        for name, value in done.parameters.items():
            scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        yield Network(done.program, scope, network.feeds, done.fetches)

    return change


def with_copies(network: Network) -> Iterator[Network]:
    """Each operator's output is scaled by two and halved again."""
    changed = network.copy()
    block = changed.program.desc.blocks[0]
    for index in reversed(range(len(block.ops))):
        op = block.ops[index]
        (name, *_) = op.output_arg_names() or [""]
        if op.optype not in ("conv2d", "mul", "tanh", "softmax", "elementwise_mul") or name in network.fetches:
            continue
        for k, (source, target, factor) in enumerate(((f"{name}.raw", f"{name}.two", 2.0), (f"{name}.two", name, 0.5))):
            for new in (source, target):
                if new not in block.vars:
                    block.add_var(VarDesc(new)).set_shape(block.vars[name].shape())
            block.insert_op(index + 1 + k, OpDesc("scale", {"X": [source]}, {"Out": [target]}, {"scale": factor}))
        op.set_output(next(slot for slot, names in op.outs.items() if name in names), [f"{name}.raw"])
    yield changed


def with_fused_norms(network: Network) -> Iterator[Network]:
    """Fluid's own fusion: batch_norm becomes a part of the convolution before it."""
    changed = network.copy()
    with fluid.scope_guard(changed.scope):
        fluid.transpiler.InferenceTranspiler().transpile(changed.program, fluid.CPUPlace(), changed.scope)
    yield changed


def with_other_names(network: Network) -> Iterator[Network]:
    """No intermediate variable has the name that it had."""
    changed = network.copy()
    kept = {*network.feeds, *network.fetches, "feed", "fetch", "@EMPTY@"}
    desc = changed.program.desc
    names = {name for block in desc.blocks for name, var in block.vars.items() if not var.persistable()} - kept
    text = desc.serialize_to_string()
    program = fluid.Program.parse_from_string(text)
    for block in program.desc.blocks:
        for name in [n for n in block.vars if n in names]:
            block.rename_var(name, f"other_{name}")
    yield Network(program, changed.scope, network.feeds, network.fetches)


def in_another_order(network: Network) -> Iterator[Network]:
    """Two neighbouring operators that do not depend on each other are exchanged."""
    changed = network.copy()
    block = changed.program.desc.blocks[0]
    index = 0
    while index + 1 < len(block.ops):
        first, second = block.ops[index], block.ops[index + 1]
        apart = set(first.output_arg_names()).isdisjoint(second.input_arg_names() + second.output_arg_names())
        apart &= set(second.output_arg_names()).isdisjoint(first.input_arg_names())
        if apart and not any("sub_block" in op.attrs for op in (first, second)):
            again = OpDesc(first.optype, dict(first.ins), dict(first.outs), dict(first.attrs))
            block.remove_op(index, index + 1)
            block.insert_op(index + 1, again)
            index += 1
        index += 1
    yield changed


CHANGES: dict[str, Callable[[Network], Iterator[Network]]] = {
    **{f"onnx{opset}": through_onnx(opset) for opset in (13, 15, 17, 18, 20, 21)},
    "copies": with_copies, "fused": with_fused_norms, "names": with_other_names, "order": in_another_order,
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", NETWORKS)
def test_equal_networks_have_no_difference(name: str, change: str) -> None:
    network = built(name)
    (other,) = CHANGES[change](network)
    difference = first_difference(network.record(), other.record())
    assert difference.equal and difference.op is None
    assert difference.compared[0] > 0


def test_there_are_fifty_pairs() -> None:
    assert len(NETWORKS) * len(CHANGES) >= 50


def test_a_fault_behind_a_fusion_is_named() -> None:
    network = built("convolutions")
    (fused,) = with_fused_norms(network)
    at = next(i for i, op in enumerate(network.program.desc.blocks[0].ops) if op.optype == "leaky_relu")
    faulty = fused.program.desc.blocks[0]
    next(op for op in faulty.ops if op.optype == "leaky_relu").set_attr("alpha", 0.3)
    difference = first_difference(network.record(), fused.record())
    assert difference.op is not None and difference.op.index == at
    assert "attribute alpha is 0.1 in" in difference.changes[0]


def test_recordings_need_no_program() -> None:
    network = built("branches")
    one = network.record()
    values: dict[str, Any] = {n: v for write in one.writes for n, v in write.values.items()}
    two = without_program("values", network.feeds, values)
    two.fetches = one.fetches
    assert first_difference(one, two).equal
    last = one.writes[-1]
    two = without_program("values", network.feeds, values | {one.fetches[0]: values[one.fetches[0]] + 1})
    two.fetches = one.fetches
    difference = first_difference(one, two)
    assert difference.op is last
