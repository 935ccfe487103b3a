"""A fault that is planted in a network is named: its operator, and what is wrong there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.compare.difference import Difference, first_difference
from fluidnb.op import get_op
from fluidnb.proto.desc import OpDesc, VarDesc
from tests.compare.networks import NETWORKS, Network, built

#: Operator and attribute -> the value of the fault.
ATTRIBUTES: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("leaky_relu", "alpha"): lambda v: 0.2,
    ("scale", "scale"): lambda v: v * 1.1,
    ("scale", "bias"): lambda v: v + 0.5,
    ("pool2d", "pooling_type"): lambda v: "max",
    ("batch_norm", "epsilon"): lambda v: 9e-4,
    ("layer_norm", "epsilon"): lambda v: 9e-4,
    ("softmax", "axis"): lambda v: 0,
    ("clip", "max"): lambda v: 0.3,
    ("slice", "starts"): lambda v: [v[0] - 1] if v[0] else [1],
    ("conv2d", "paddings"): lambda v: [2, 0, 1, 1],
}


def attribute_faults(network: Network) -> Iterator[tuple[str, int, Network]]:
    """An attribute of one operator is another."""
    for i, op in enumerate(network.program.desc.blocks[0].ops):
        for (kind, name), change in ATTRIBUTES.items():
            if op.optype == kind:
                faulty = network.copy()
                there = faulty.program.desc.blocks[0].ops[i]
                there.set_attr(name, change(there.attrs.get(name, get_op(kind).attrs[name].default)))
                if kind == "slice":
                    there.set_attr("ends", [there.attrs["starts"][0] + 1])
                yield f"attribute {name}", i, faulty


def weight_faults(network: Network) -> Iterator[tuple[str, int, Network]]:
    """One number of a parameter is another."""
    ops = network.program.desc.blocks[0].ops
    seen = set()
    for i, op in enumerate(ops):
        for name in op.input_arg_names():
            var = network.program.desc.blocks[0].vars.get(name)
            if var is not None and var.persistable() and name not in seen:
                seen.add(name)
                faulty = network.copy()
                tensor = faulty.scope.var(name).get_tensor()
                value = np.array(tensor)
                value.reshape(-1)[value.size // 2] += 3.0
                tensor.set(value, fluid.CPUPlace())
                yield f"weight {name}", i, faulty


def type_faults(network: Network) -> Iterator[tuple[str, int, Network]]:
    """One operator is another, or runs in half precision."""
    other = {"tanh": "sigmoid", "sigmoid": "tanh", "relu": "tanh", "elementwise_add": "elementwise_sub",
             "square": "abs", "elementwise_mul": "elementwise_add", "reduce_max": "reduce_min"}  # fmt: skip
    for i, op in enumerate(network.program.desc.blocks[0].ops):
        if op.optype in other:
            faulty = network.copy()
            block = faulty.program.desc.blocks[0]
            attrs = {n: v for n, v in op.attrs.items() if n in get_op(other[op.optype]).attrs or n.startswith("op_")}
            block.remove_op(i, i + 1)
            block.insert_op(i, OpDesc(other[op.optype], dict(op.ins), dict(op.outs), attrs))
            yield f"type {other[op.optype]}", i, faulty
        if op.optype in ("tanh", "softmax"):
            faulty = network.copy()
            block = faulty.program.desc.blocks[0]
            (name,) = op.ins["X"]
            half = VarDesc("rounded")
            half.set_shape(block.vars[name].shape())
            block.add_var(half)
            block.insert_op(i, OpDesc("round", {"X": [name]}, {"Out": ["rounded"]}))
            block.ops[i + 1].set_input("X", ["rounded"])
            yield "precision", i, faulty


def order_faults(network: Network) -> Iterator[tuple[str, int, Network]]:
    """The two inputs of an operator are exchanged."""
    for i, op in enumerate(network.program.desc.blocks[0].ops):
        if op.optype == "elementwise_sub":
            faulty = network.copy()
            there = faulty.program.desc.blocks[0].ops[i]
            there.set_input("X", op.ins["Y"])
            there.set_input("Y", op.ins["X"])
            yield "order", i, faulty


def shows(network: Network, faulty: Network) -> bool:
    """Whether a fault changes a result: a softmax, for example, does not depend on what is added to all scores."""
    results = []
    for each in (network, faulty):
        exe = fluid.Executor(fluid.CPUPlace())
        results.append(exe.run(each.program, each.feeds, each.fetches, scope=each.scope)[0])
    return bool(np.abs(results[0] - results[1]).max() > 2e-4 * np.abs(results[0]).max())


def found(network: Network, faulty: Network) -> Difference:
    """The difference of two networks."""
    return first_difference(network.record(), faulty.record())


#: How many faults each network gets at least.
FAULTS = {"convolutions": 20, "attention": 30, "branches": 10, "turns": 5, "recurrent": 20}


def test_there_are_fifty_faults() -> None:
    assert sum(FAULTS.values()) >= 50 and FAULTS.keys() == NETWORKS.keys()


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str) -> None:
    network, count = built(name), 0
    for plant in (attribute_faults, weight_faults, type_faults, order_faults):
        for what, index, faulty in plant(network):
            if shows(network, faulty):
                check(network, faulty, index, what)
                count += 1
    assert count >= FAULTS[name]


def check(network: Network, faulty: Network, index: int, what: str) -> None:
    """A fault is named: its operator, and what is wrong with it."""
    difference = found(network, faulty)
    assert not difference.equal and difference.op is not None and difference.output is not None, what
    assert (difference.op.block, difference.op.index) == (0, index), what
    assert all(each.equal or what.startswith("weight") for each in difference.inputs), what
    kind, _, detail = what.partition(" ")
    text = "\n".join(difference.changes)
    assert {"attribute": f"attribute {detail} is", "weight": f"{detail} differs", "type": f"{detail} in the second",
            "precision": "slot X reads", "order": "slot X reads"}[kind] in text, what  # fmt: skip


def test_a_fault_of_one_iteration_is_named() -> None:
    network = built("turns")
    for turn in range(4):
        faulty = network.copy()
        body = faulty.program.desc.blocks[1]
        at = next(i for i, op in enumerate(body.ops) if op.optype == "elementwise_add")
        for name, kind in (("which", "int64"), ("now", "bool"), ("number", "float32"), ("moved", "float32")):
            var = VarDesc(name)
            var.set_shape([1])
            var.set_dtype({"int64": 3, "bool": 0, "float32": 5}[kind])
            body.add_var(var)
        counter = next(op for op in body.ops if op.optype == "increment").ins["X"][0]
        added = body.ops[at].ins["X"][0]
        new = [
            OpDesc("fill_constant", {}, {"Out": ["which"]}, {"shape": [1], "dtype": 3, "value": float(turn)}),
            OpDesc("equal", {"X": [counter], "Y": ["which"]}, {"Out": ["now"]}),
            OpDesc("cast", {"X": ["now"]}, {"Out": ["number"]}, {"in_dtype": 0, "out_dtype": 5}),
            OpDesc("elementwise_add", {"X": [added], "Y": ["number"]}, {"Out": ["moved"]}, {"axis": -1}),
        ]
        body.vars["moved"].set_shape(body.vars[added].shape())
        for k, op in enumerate(new):
            body.insert_op(at + k, op)
        body.ops[at + 4].set_input("X", ["moved"])
        difference = found(network, faulty)
        assert difference.op is not None and difference.op.op is not None
        assert difference.op.op.optype == "elementwise_add" and difference.op.block == 1
        assert difference.op.iterations == (turn,), "the iteration of the fault"


def test_shapes_and_dtypes_differ() -> None:
    network = built("branches")
    faulty = network.copy()
    block = faulty.program.desc.blocks[0]
    at = next(i for i, op in enumerate(block.ops) if op.optype == "reduce_sum")
    block.ops[at].set_attr("keep_dim", True)
    difference = found(network, faulty)
    assert difference.op is not None and difference.op.index == at
    assert difference.output is not None and difference.output.problem == "shape [2] and [2, 1]"
