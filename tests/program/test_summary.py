"""Summaries of programs: sums by layer, operator and block, counted by hand."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.program.summary import summarize


def main() -> Program:
    return fluid.default_main_program()


def test_layers_by_the_names_of_parameters() -> None:
    x = layers.data("x", [8])
    layers.fc(layers.fc(x, 4, act="relu"), 2)
    summary = main().summary(feed_shapes={"x": (3, 8)})
    rows = {row.name: row for row in summary.rows}
    assert list(rows) == ["fc_0", "fc_1"]
    first = rows["fc_0"]
    assert (first.operators, first.parameters, first.activations) == (3, 8 * 4 + 4, 3 * 3 * 4 * 4)
    assert first.multiply_adds == 3 * 8 * 4 + 3 * 4 + 3 * 4 and first.exact
    assert summary.total.parameters == 36 + 4 * 2 + 2 and summary.total.dtypes == ("float32",)


def test_layers_inside_layers() -> None:
    x = layers.data("x", [8])
    layers.fc(layers.relu(layers.fc(x, 4)), 2)
    scopes = ("/Net/Block/Linear/", "/Net/Block/Linear/", "/Net/Block/", "/Net/Linear_1/", "/")
    for op, scope in zip(main().global_block().ops, scopes, strict=True):
        op.desc.set_attr("op_namescope", scope)
    found = [(row.depth, row.name, row.operators, row.parameters) for row in main().summary().rows]
    assert found == [
        (0, "Net", 4, 44), (1, "Block", 3, 36), (2, "Linear", 2, 36), (1, "Linear_1", 1, 8), (0, "fc_1", 1, 2),
    ]  # fmt: skip
    assert [row.name for row in main().summary(depth=1).rows] == ["Net", "fc_1"]


def test_a_shared_parameter_counts_once() -> None:
    x = layers.data("x", [4])
    shared = fluid.ParamAttr(name="shared.w")
    layers.fc(layers.fc(x, 4, param_attr=shared, bias_attr=False), 4, param_attr=shared, bias_attr=False)
    assert main().summary().total.parameters == 16
    assert [row.parameters for row in main().summary().rows] == [16], "one layer, by the parameter's name"


def test_by_operator_and_by_block() -> None:
    x = layers.data("x", [4])
    layers.fc(x, 3)
    count, limit = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    condition = layers.less_than(count, limit)
    with layers.While(condition).block():
        layers.increment(count)
        layers.less_than(count, limit, cond=condition)
    by_op = {row.name: row for row in main().summary("op").rows}
    assert by_op["fill_constant"].operators == 2 and by_op["mul"].parameters == 12
    blocks = main().summary("block").rows
    assert [row.name for row in blocks] == ["block 0", "block 1"] and blocks[1].operators == 2
    assert not blocks[1].exact, "how often a while runs is not known"


def test_its_renderings() -> None:
    layers.fc(layers.data("x", [4]), 3)
    summary = main().summary()
    assert str(summary).splitlines() == [
        "layer  operators  parameters  multiply-adds  activations  dtype",
        "fc_0           2          15             15     24 bytes  float32",
        "total          2          15             15     24 bytes  float32",
    ]
    assert repr(summary) == "ProgramSummary(2 operators, 15 parameters)"
    assert "fc_0" in (summary._repr_html_() or "")
    with pytest.raises(OpValueError, match="grouped by 'cell'"):
        summarize(main(), "cell")
