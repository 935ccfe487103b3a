"""Operators in a form that was appended before: the same bytes, the same errors, nothing shared that is edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError
from fluidnb.op import op, remove_op
from fluidnb.program import declare_var, repeated_ops
from fluidnb.proto import op_desc
from fluidnb.proto.desc import OpDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.values import strict_feeds


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    forget()
    yield
    forget()


def forget() -> None:
    for memory in (repeated_ops._found, op_desc._remembered, declare_var._types):
        memory.clear()  # type: ignore[attr-defined]


def images() -> Any:
    x = layers.data("x", [1, 12, 12])
    for channels in (2, 2, 3):
        x = layers.batch_norm(layers.conv2d(x, channels, 3, padding=1, act="relu"))
    return layers.pool2d(layers.pool2d(x, 2, "max", 2), 2, "avg", 2)


def sequences() -> Any:
    words = layers.data("words", [1], dtype="int64", lod_level=1)
    x = layers.embedding(words, [30, 8], is_sparse=True)
    for _ in range(2):
        x, _ = layers.dynamic_lstm(layers.fc(x, 16), 16)
        x = layers.fc(x, 8, act="tanh")
    return layers.sequence_pool(x, "max")


def loops() -> Any:
    i, n, x = (layers.fill_constant([1], "int64", v) for v in (0, 3, 1))
    for _ in range(2):
        more = layers.less_than(i, n)
        loop = layers.While(more)
        with loop.block():
            layers.assign(layers.elementwise_add(x, x), x)
            layers.increment(i, in_place=True)
            layers.less_than(i, n, cond=more)
    return layers.cast(x, "float32")


def attributes() -> Any:
    x = layers.data("x", [4])
    for factor in (1.0, 1, True, -0.0, 0.0, 1e-30, 2**24 + 1):
        x = layers.scale(x, factor)
    y = layers.reduce_sum(x, dim=[0, -1], keep_dim=True)
    return layers.concat([y, layers.reduce_sum(x, dim=[-1, 0], keep_dim=True), y], axis=0)


def build(model: Callable[[], Any]) -> fluid.Program:
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = layers.mean(model())
        if main.all_parameters():
            fluid.optimizer.Adam(0.1).minimize(loss)
    return main


@pytest.mark.parametrize("model", [images, sequences, loops, attributes])
def test_a_program_built_again_has_the_same_bytes(model: Callable[[], Any]) -> None:
    cold = build(model)
    known = len(repeated_ops._found)
    warm = build(model)
    assert known and len(repeated_ops._found) == known  # all was found
    assert warm.desc.serialize_to_string() == cold.desc.serialize_to_string()
    for ours, theirs in zip(warm.blocks, cold.blocks, strict=True):
        for one, other in zip(ours.ops, theirs.ops, strict=True):
            assert one.desc.attrs == other.desc.attrs and one.desc.attr_types == other.desc.attr_types
            parsed = OpDesc.parse_from_string(one.desc.serialize_to_string())
            assert repr(parsed.attrs) == repr(one.desc.attrs) and parsed.attr_types == one.desc.attr_types


def test_values_that_are_equal_and_not_the_same() -> None:
    made = [OpDesc("toy", attrs={"a": value}) for value in (True, 1, 1.0, 0.0, -0.0) for _ in range(2)]
    assert [repr(op.attr("a")) for op in made[::2]] == ["True", "1", "1.0", "0.0", "-0.0"]
    assert [op.serialize_to_string() for op in made[::2]] == [op.serialize_to_string() for op in made[1::2]]


def test_an_edit_stays_with_its_operator() -> None:
    first, second = (OpDesc("toy", attrs={"axes": [0, 1], "keep": True}) for _ in range(2))
    first.attr("axes").append(7)  # to read only; even so, it is a list of this operator
    second.set_attr("keep", False)
    second.remove_attr("axes")
    third = OpDesc("toy", attrs={"axes": [0, 1], "keep": True})
    assert (third.attr("axes"), third.attr("keep"), third.shared) == ([0, 1], True, first.shared)
    assert second.shared is None and second.attrs == {"keep": False}


def test_a_run_copies_no_attributes() -> None:
    values = [layers.uniform_random([2, 3]) for _ in range(3)]
    fluid.Executor().run(fluid.default_main_program(), fetch_list=values)
    _, first, second = (value.op.desc for value in values)  # the first one is what others share
    assert first.has_attr("shape") and "shape" in first.attr_names() and first.attr_type("shape") == AttrType.LONGS
    assert first.read_attrs is second.read_attrs
    first.attrs["shape"].append(4)
    assert (first.read_attrs["shape"], second.read_attrs["shape"]) == ([2, 3, 4], [2, 3])


@pytest.mark.parametrize("edited", [False, True])
def test_added_attributes_are_in_the_bytes(edited: bool) -> None:
    whole = OpDesc("toy", attrs={"a": 1, "m": [2], "z": 0.5}, types={"m": AttrType.LONGS})
    for _ in range(2):
        part = OpDesc("toy", attrs={"m": [2]}, types={"m": AttrType.LONGS})
        if edited:
            part.set_attr("m", [2])
        part._add_attrs({})
        part._add_attrs({"z": 0.5, "a": 1})
        part._add_attrs({})
        assert part.serialize_to_string() == whole.serialize_to_string()
        assert (part.attrs, part.attr_types) == (whole.attrs, whole.attr_types)


def test_an_error_comes_again() -> None:
    for _ in range(2):
        for wrong in ({"axis": 9}, {"axis": 0, "unknown": 1}):
            block = fluid.Program().global_block()
            x = block.create_var(name="x", shape=[2, 3], dtype="float32")
            with pytest.raises(FluidError):
                block.append_op("softmax", {"X": x}, {"Out": "y"}, wrong)
            assert list(block.vars) == ["x"] and not block.ops
            block.append_op("softmax", {"X": x}, {"Out": "y"}, {"axis": 0})


def test_what_an_output_was_before_counts() -> None:
    shapes = []
    for dtype in ("float32", "int64", "float32"):
        block = fluid.Program().global_block()
        x = block.create_var(name="x", shape=[2, 3], dtype=dtype)
        y = block.create_var(name="y", shape=[9], dtype="float64")
        block.append_op("relu", {"X": x}, {"Out": y})
        shapes.append((y.shape, y.dtype))
    assert shapes[0] == shapes[2] != shapes[1]


def test_a_variable_that_is_read_twice_is_another_form() -> None:
    block = fluid.Program().global_block()
    one, other = (block.create_var(name=n, shape=[2, 3], dtype="float32") for n in "ab")
    for pair in ((one, other), (one, one), (other, other), (other, one)):
        block.append_op("elementwise_add", {"X": pair[0], "Y": pair[1]}, {"Out": fluid.unique_name.generate("c")})
    assert len(repeated_ops._found) == 2


def test_an_output_that_is_left_out_is_no_variable() -> None:
    """A mark that is equal to a variable's number would make both one form."""
    block = fluid.Program().global_block()
    x, y = (block.create_var(name=n, shape=[2, 3], dtype="float32") for n in "xy")
    for k, diff in enumerate(("@EMPTY@", y, "new", x)):
        block.append_op("smooth_l1_loss", {"X": x, "Y": y}, {"Diff": diff, "Out": f"out_{k}"})
    assert len(repeated_ops._found) == 4


def test_a_rule_of_somebody_else_runs_each_time() -> None:
    sizes = iter([3, 5])

    def next_size(c: Any) -> None:
        c.set("Out", (next(sizes),), "float32")

    @op("toy_sized", inputs={"X": "any"}, outputs={"Out": "of the next size"}, infer=next_size)
    def toy_sized(b: Any) -> None: ...

    try:
        block = fluid.Program().global_block()
        x = block.create_var(name="x", shape=[2], dtype="float32")
        for name in "ab":
            block.append_op("toy_sized", {"X": x}, {"Out": name})
        assert (block.var("a").shape, block.var("b").shape) == ((3,), (5,))
    finally:
        remove_op("toy_sized")


def test_strictness_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    block = fluid.Program().global_block()
    x = block.create_var(name="x", shape=[2], dtype="float32")
    monkeypatch.setattr(strict_feeds, "binding", False)
    block.append_op("relu", {"X": x}, {"Out": "y"}, {"unknown": 1})
    monkeypatch.setattr(strict_feeds, "binding", True)
    with pytest.raises(FluidError, match="no attribute unknown"):
        block.append_op("relu", {"X": x}, {"Out": "z"}, {"unknown": 1})


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_ops, "_MOST", 5)
    monkeypatch.setattr(op_desc, "_SETS", 5)
    x = layers.data("x", [4])
    for factor in range(20):
        layers.scale(x, 0.5 * factor)
    assert len(repeated_ops._found) <= 5 and len(op_desc._remembered) <= 5
    long = OpDesc("assign_value", attrs={"fp32_values": [0.5] * 1000})
    assert long.shared is None
