"""Attribute values: types, ranges, what reads back."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import FluidError, OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import OpDesc, ProgramDesc, guess_type

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT32 = st.floats(width=32, allow_nan=False)
FLOAT64 = st.floats(allow_nan=False)
TEXT = st.text()
SCALAR = st.booleans() | INT64 | FLOAT64 | st.complex_numbers(allow_nan=False)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    pb2.INT: INT32,
    pb2.FLOAT: FLOAT32,
    pb2.STRING: TEXT,
    pb2.INTS: st.lists(INT32),
    pb2.FLOATS: st.lists(FLOAT32),
    pb2.STRINGS: st.lists(TEXT),
    pb2.BOOLEAN: st.booleans(),
    pb2.BOOLEANS: st.lists(st.booleans()),
    pb2.BLOCK: st.integers(0, 9),
    pb2.LONG: INT64,
    pb2.BLOCKS: st.lists(st.integers(0, 9)),
    pb2.LONGS: st.lists(INT64),
    pb2.FLOAT64S: st.lists(FLOAT64),
    pb2.VAR: TEXT,
    pb2.VARS: st.lists(TEXT),
    pb2.FLOAT64: FLOAT64,
    pb2.SCALAR: SCALAR,
    pb2.SCALARS: st.lists(SCALAR),
}
ATTR = st.sampled_from(sorted(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind]))
ATTRS = st.dictionaries(TEXT, ATTR, max_size=6)


def test_every_attr_type_is_tried() -> None:
    assert sorted(VALUES) == sorted(pb2.AttrType.values())


@given(ATTRS, st.randoms())
def test_attributes_come_back_whatever_they_hold(attrs: dict[str, tuple[int, Any]], shuffler: Any) -> None:
    values = {name: value for name, (_, value) in attrs.items()}
    kinds = {name: kind for name, (kind, _) in attrs.items()}
    op = OpDesc("any", attrs=values, types=kinds)
    assert op.attrs == values
    back = OpDesc.parse_from_string(op.serialize_to_string())
    assert back.attrs == values
    assert {name: back.attr_type(name) for name in back.attr_names()} == kinds
    assert [type(back.attr(name)) for name in values] == [type(op.attr(name)) for name in values]

    order = list(attrs)
    shuffler.shuffle(order)
    by_edits = OpDesc("any")
    for name in order:
        by_edits.set_attr(name, values[name], kinds[name])
    assert by_edits.serialize_to_string() == op.serialize_to_string()
    assert list(by_edits.attrs) == list(back.attrs) == sorted(attrs)
    for name in order:
        by_edits.remove_attr(name)
    assert by_edits.serialize_to_string() == OpDesc("any").serialize_to_string()


class Color(enum.IntEnum):
    """An enum that counts as an int."""

    RED = 3


@pytest.mark.parametrize(
    ("value", "kind", "reads"),
    [
        (True, "BOOLEAN", True),
        (np.bool_(True), "BOOLEAN", True),
        (3, "INT", 3),
        (Color.RED, "INT", 3),
        (np.int64(3), "INT", 3),
        (2**31, "LONG", 2**31),
        (-(2**31), "INT", -(2**31)),
        (0.1, "FLOAT", float(np.float32(0.1))),
        (np.float32(0.1), "FLOAT", float(np.float32(0.1))),
        (math.inf, "FLOAT", math.inf),
        (1e300, "FLOAT", math.inf),
        ("é", "STRING", "é"),
        (np.str_("a"), "STRING", "a"),
        (b"a", "STRING", "a"),
        (1j, "SCALAR", 1j),
        ([], "INTS", []),
        ((1, 2), "INTS", [1, 2]),
        (np.array([1, 2]), "INTS", [1, 2]),
        ([1, 2**40], "LONGS", [1, 2**40]),
        ([1, 0.5], "FLOATS", [1.0, 0.5]),
        (["a", "b"], "STRINGS", ["a", "b"]),
        ([True, False], "BOOLEANS", [True, False]),
        ([True, 2], "SCALARS", [True, 2]),
    ],
)
def test_the_type_is_guessed_from_the_value(value: Any, kind: str, reads: Any) -> None:
    assert pb2.AttrType.Name(guess_type(value)) == kind  # type: ignore[arg-type]
    read = OpDesc("any", attrs={"k": value}).attr("k")
    assert read == reads
    assert type(read) is type(reads)
    if isinstance(reads, list):
        assert [type(v) for v in read] == [type(v) for v in reads]


def test_blocks_are_written_as_their_index() -> None:
    program = ProgramDesc()
    inner = program.append_block(program.block(0))
    op = OpDesc("while", attrs={"sub_block": inner, "blocks": [program.block(0), inner]})
    assert (op.block_attr("sub_block"), op.attr("sub_block"), op.attr("blocks")) == (1, 1, [0, 1])
    assert (op.attr_type("sub_block"), op.attr_type("blocks")) == (pb2.BLOCK, pb2.BLOCKS)
    op.set_blocks_attr("blocks", [inner])
    assert op.attr("blocks") == [1]


@pytest.mark.parametrize(
    ("value", "kind", "error", "says"),
    [
        (None, None, OpTypeError, "received: None, a NoneType"),
        ({"a": 1}, None, OpTypeError, "received: {'a': 1}, a dict"),
        ([1, "a"], None, OpTypeError, 'Attribute "k" cannot hold this value'),
        ([[1]], None, OpTypeError, 'Attribute "k" cannot hold this value'),
        (2**63, None, OpValueError, "9223372036854775808 needs more than 64 bits"),
        (2**31, pb2.INT, OpValueError, "needs more than 32 bits"),
        ([0, 2**31], pb2.INTS, OpValueError, "needs more than 32 bits"),
        (1.0, pb2.INT, OpTypeError, "expected: INT"),
        ("1", pb2.INT, OpTypeError, "received: '1', a str"),
        ("1", pb2.FLOAT, OpTypeError, "a text is not a number"),
        (1, pb2.STRING, OpTypeError, "not a text"),
        ("\ud800", pb2.STRING, OpValueError, "expected: STRING"),
        (b"\xff", pb2.STRING, OpValueError, "expected: STRING"),
        (2, pb2.BOOLEAN, OpTypeError, "neither True nor False"),
        (1.0, pb2.BOOLEAN, OpTypeError, "neither True nor False"),
        ("ab", pb2.STRINGS, OpTypeError, "not a list"),
        (3, pb2.INTS, OpTypeError, "not a list"),
        ("x", pb2.SCALAR, OpTypeError, "not a number"),
        (1, 99, OpValueError, "there is no AttrType 99"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_no_trace(
    value: Any, kind: int | None, error: type[FluidError], says: str
) -> None:
    with pytest.raises(error) as refused:
        OpDesc("any", attrs={"k": value}, types={} if kind is None else {"k": kind})
    assert says in str(refused.value)
    assert "op any" in str(refused.value)
    op = OpDesc("any", attrs={"k": "was", "l": 1})
    before = op.serialize_to_string()
    for name in ("k", "new"):
        with pytest.raises(error):
            op.set_attr(name, value, kind)
    assert op.serialize_to_string() == before
    assert op.attrs == {"k": "was", "l": 1}


def test_an_attribute_keeps_its_type_while_the_value_fits() -> None:
    op = OpDesc("any", attrs={"f": 0.5, "l": 1, "i": 1}, types={"l": pb2.LONG})
    op.set_attr("f", 2)
    op.set_attr("l", 3)
    op.set_attr("i", "now a text")
    assert op.attrs == {"f": 2.0, "i": "now a text", "l": 3}
    assert [op.attr_type(n) for n in "fil"] == [pb2.FLOAT, pb2.STRING, pb2.LONG]
    assert OpDesc.parse_from_string(op.serialize_to_string()).attrs == op.attrs


def test_lists_are_copied_in() -> None:
    mine = [1, 2]
    op = OpDesc("any", {"X": mine_names}, attrs={"shape": mine}) if (mine_names := ["x"]) else None
    assert op is not None
    mine.append(3)
    mine_names.append("y")
    assert (op.attr("shape"), op.input("X")) == ([1, 2], ["x"])
    op.input("X").append("z")
    assert op.input("X") == ["x"]
