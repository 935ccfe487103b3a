"""OpDesc: slots, names, copies."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import OpDesc, ProgramDesc
from tests.proto.goldens import golden


def sgd() -> OpDesc:
    """An operation with slots on both sides, one name in both."""
    return OpDesc(
        "sgd",
        {"Param": ["w"], "Grad": ["w@GRAD"], "LearningRate": ["lr"]},
        {"ParamOut": ["w"]},
        {"op_role_var": ["w", "w@GRAD"], "op_role": 2},
    )


def reread(op: OpDesc) -> OpDesc:
    """The operation as its bytes tell it."""
    return OpDesc.parse_from_string(op.serialize_to_string())


def check_caches(op: OpDesc) -> None:
    """Requires that dicts and message agree after edits, also in their order."""
    again = reread(op)
    assert list(op.ins.items()) == list(again.ins.items())
    assert list(op.outs.items()) == list(again.outs.items())
    assert list(op.attrs.items()) == list(again.attrs.items())


def test_what_is_written_is_read() -> None:
    for op in (sgd(), reread(sgd())):
        assert (op.type(), op.optype) == ("sgd", "sgd")
        assert op.input("Param") == ["w"] and op.output("ParamOut") == ["w"]
        assert op.input_names() == ["Grad", "LearningRate", "Param"]
        assert op.output_names() == ["ParamOut"]
        assert op.input_arg_names() == ["w@GRAD", "lr", "w"]
        assert op.output_arg_names() == ["w"]
        assert op.attr_names() == ["op_role", "op_role_var"]
        assert op.has_attr("op_role") and not op.has_attr("role")
        assert not op.is_target()


def test_a_slot_left_out_on_purpose_is_there_and_empty() -> None:
    op = reread(OpDesc("conv2d", {"Bias": [], "Input": ["x"]}))
    assert op.ins == {"Bias": [], "Input": ["x"]}


def test_an_edit_of_one_leaves_the_attributes_of_others_alone() -> None:
    first, second = (OpDesc("scale", {}, {}, {"scale": 2.0, "shape": [1, 2], "name": "a"}) for _ in range(2))
    first.attr("shape").append(3)
    first.set_attr("scale", 3.0)
    first.remove_attr("name")
    assert second.attrs == {"name": "a", "scale": 2.0, "shape": [1, 2]} == reread(second).attrs
    third = OpDesc("scale", {}, {}, {"scale": 2.0})
    OpDesc("scale", {}, {}, {"scale": 2.0})._set_texts({"op_role_var": ["w"]})
    assert third.attrs == {"scale": 2.0} and third.attr_types == {"scale": pb2.FLOAT}


@pytest.mark.parametrize("first", ["before", "after"])
def test_texts_of_one_are_written_as_other_attributes(first: str) -> None:
    texts = {"op_role_var": ["w", "w@GRAD"], "op_namescope": "/a/", "zz": ["z"]}
    one, other = sgd(), sgd()
    if first == "before":
        assert one.pb.type == "sgd"
    one._set_texts(texts)
    for name, value in texts.items():
        other.set_attr(name, value)
    assert (one.attrs, one.attr_types) == (other.attrs, other.attr_types)
    assert one.serialize_to_string() == other.serialize_to_string()
    check_caches(one)


def test_slots_are_edited_in_place() -> None:
    op = sgd()
    op.set_input("Param", ["v"])
    op.set_input("A", ["a", "b"])
    op.set_input("Z", "z")  # type: ignore[arg-type]
    op.set_output("B", [])
    op.set_type("sgd2")
    op.set_is_target(True)
    assert op.input_names() == ["A", "Grad", "LearningRate", "Param", "Z"]
    assert op.output_names() == ["B", "ParamOut"]
    assert op.input("Z") == ["z"]
    assert reread(op).is_target()
    check_caches(op)
    op.remove_input("A")
    op.remove_output("B")
    op.remove_output("never there")
    assert op.input_names() == ["Grad", "LearningRate", "Param", "Z"]
    check_caches(op)


@pytest.mark.parametrize("fresh", [True, False])
def test_edits_in_any_order_give_the_same_bytes(fresh: bool) -> None:
    op = OpDesc("sgd") if fresh else OpDesc("sgd", {"Param": ["old"]}, attrs={"op_role": 9})
    op.set_attr("op_role_var", ["w", "w@GRAD"])
    op.set_input("Param", ["w"])
    op.set_output("ParamOut", ["w"])
    op.set_input("Grad", ["w@GRAD"])
    op.set_attr("op_role", 2)
    op.set_input("LearningRate", ["lr"])
    assert op.serialize_to_string() == sgd().serialize_to_string()
    check_caches(op)


def test_renaming() -> None:
    op = sgd()
    op.rename_input("w", "v")
    assert (op.input("Param"), op.output("ParamOut"), op.attr("op_role_var")) == (["v"], ["w"], ["w", "w@GRAD"])
    op.rename_output("w", "v")
    assert op.output("ParamOut") == ["v"]
    check_caches(op)
    op = sgd()
    op.rename("w", "v")
    assert (op.input("Param"), op.output("ParamOut"), op.attr("op_role_var")) == (["v"], ["v"], ["v", "w@GRAD"])
    check_caches(op)


def test_an_attribute_of_another_type_under_a_known_name_is_left_alone() -> None:
    op = OpDesc("mine", {"X": ["w"]}, attrs={"states": 3})
    op.rename("w", "v")
    assert (op.input("X"), op.attr("states")) == (["v"], 3)


def test_edits_of_a_real_operation_touch_nothing_else() -> None:
    op = ProgramDesc.parse_from_string(golden("fit_a_line")).block(0).op(0)
    names = op.attr_names()
    assert names != sorted(names), "Paddle sorts attributes in two groups; this is the case to keep"
    before = op.serialize_to_string()
    op.set_attr(names[0], op.attr(names[0]))
    op.set_input("X", op.input("X"))
    assert op.serialize_to_string() == before
    op.set_attr("zzz", 1)
    assert op.attr_names() == [*names, "zzz"]
    op.remove_attr("zzz")
    assert op.serialize_to_string() == before
    check_caches(op)


def test_copies_share_nothing() -> None:
    op = sgd()
    twin = op.clone()
    twin.set_input("Param", ["v"])
    twin.set_attr("op_role", 0)
    assert (op.input("Param"), op.attr("op_role")) == (["w"], 2)
    op.copy_from(twin)
    assert op.serialize_to_string() == twin.serialize_to_string()
    assert (op.input("Param"), op.attr("op_role")) == (["v"], 0)
    twin.set_type("other")
    assert op.type() == "sgd"


def test_an_operation_without_a_type_has_no_bytes() -> None:
    with pytest.raises(OpValueError, match=r"op without a type: \['type'\] are not initialized"):
        OpDesc().serialize_to_string()


def test_wrong_names_are_refused_and_leave_no_trace() -> None:
    op = sgd()
    before = op.serialize_to_string()
    for names in ([1], [None], ["a", b"\xff"]):
        with pytest.raises(OpTypeError, match='Slot "Param" holds names of variables'):
            op.set_input("Param", names)  # type: ignore[arg-type]
        with pytest.raises(OpTypeError, match='Slot "Param" holds names of variables'):
            OpDesc("sgd", {"Param": names})  # type: ignore[dict-item]
    with pytest.raises(OpTypeError, match="The type of an operation is a text"):
        op.set_type(3)  # type: ignore[arg-type]
    assert op.serialize_to_string() == before


_SLOTS = st.sampled_from(["A", "In", "X", "Zz"])
_VARIABLES = st.lists(st.sampled_from(["a", "b", "ü", "c@GRAD"]), max_size=3)
_VALUES = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.floats(width=32, allow_nan=False), st.sampled_from(["", "ü"]),
    st.lists(st.integers(-5, 5), max_size=3), st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=2),
)  # fmt: skip
_EDITS = st.one_of(
    st.tuples(st.just("set_input"), _SLOTS, _VARIABLES), st.tuples(st.just("set_output"), _SLOTS, _VARIABLES),
    st.tuples(st.sampled_from(["remove_input", "remove_output", "remove_attr"]), _SLOTS),
    st.tuples(st.sampled_from(["rename_input", "rename_output", "rename"]), *[st.sampled_from(["a", "b", "d"])] * 2),
    st.tuples(st.just("set_attr"), _SLOTS, _VALUES), st.tuples(st.just("set_type"), st.sampled_from(["relu", "toy"])),
    st.tuples(st.just("set_is_target"), st.booleans()), st.tuples(st.just("serialize_to_string")),
)  # fmt: skip


@given(st.dictionaries(_SLOTS, _VARIABLES), st.dictionaries(_SLOTS, _VALUES), st.lists(_EDITS, max_size=6))
def test_a_message_that_is_made_late_is_the_same(
    slots: dict[str, list[str]], attrs: dict[str, Any], edits: list[tuple[Any, ...]]
) -> None:
    late, early, parsed = (OpDesc("toy", slots, {"Out": ["a"], **slots}, attrs) for _ in range(3))
    parsed = reread(parsed)
    assert early.pb.type == "toy"
    for name, *arguments in edits:
        for op in (late, early, parsed):
            getattr(op, name)(*arguments)
        assert (late.optype, late.ins, late.outs) == (early.optype, early.ins, early.outs)
        assert repr(late.attrs) == repr(early.attrs) and late.attr_types == early.attr_types
    assert late.serialize_to_string() == early.serialize_to_string() == parsed.serialize_to_string()
    check_caches(late)


def test_what_no_file_can_hold_is_refused_at_once() -> None:
    for arguments in (("\ud800",), ("toy", {"X": ["\ud800"]}), ("toy", {"\ud800": []})):
        with pytest.raises(UnicodeEncodeError):
            OpDesc(*arguments)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="The name of a slot is a text"):
        OpDesc("toy", {1: ["x"]})  # type: ignore[dict-item]


def test_what_is_not_there_is_named_with_what_is() -> None:
    op = ProgramDesc().block(0).append_op(sgd())
    for call, says in (
        (lambda: op.input("Parm"), 'Did you mean "Param"?'),
        (lambda: op.output("Out"), "expected: one of ParamOut"),
        (lambda: op.attr("op_rol"), 'There is no attribute "op_rol"'),
        (lambda: op.attr_type("op_rol"), 'Did you mean "op_role"'),
        (lambda: op.block_attr("op_role"), "received: INT"),
    ):
        with pytest.raises(OpValueError) as refused:
            call()
        assert says in str(refused.value)
        assert "op 0 (sgd) in block 0" in str(refused.value)


def test_repr_is_short() -> None:
    assert repr(sgd()) == "OpDesc(sgd: Grad=[w@GRAD], LearningRate=[lr], Param=[w] -> ParamOut=[w])"
    assert repr(OpDesc.over(pb2.OpDesc())) == "OpDesc(:  -> )"


def test_threads_that_ask_for_a_new_message_at_the_same_time_get_it_whole() -> None:
    """Python switches every µs, eight threads serialize the same operations for the first time."""
    interval, slots = sys.getswitchinterval(), {f"X{i}": ["a", "b"] for i in range(8)}
    operators = [OpDesc("scale", slots, slots, {"scale": 2.0}) for _ in range(500)]
    expected = OpDesc("scale", slots, slots, {"scale": 2.0}).serialize_to_string()
    given: list[list[bytes]] = []
    threads = [
        threading.Thread(target=lambda: given.append([op.serialize_to_string() for op in operators])) for _ in range(8)
    ]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert given == [[expected] * 500] * 8
