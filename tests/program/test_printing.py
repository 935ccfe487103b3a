"""Programs as text: protobuf text, pseudo code, readable code, listings by index."""

from __future__ import annotations

from typing import Any

import pytest

from fluidnb.net_drawer import draw_graph
from fluidnb.program import Program
from fluidnb.program.index_view import index_view
from fluidnb.program.printing import pprint_block_codes, pprint_program_codes, repr_attr, repr_op, repr_var
from fluidnb.program.pseudo_code import op_code, value_code, var_code
from fluidnb.proto.desc import OpDesc
from fluidnb.proto.framework_pb2 import BlockDesc as BlockDescMessage
from fluidnb.values.dtypes import VarType
from fluidnb.viz.program.fluid_dot import draw_block_graphviz


@pytest.fixture
def program() -> Program:
    program = Program()
    block = program.global_block()
    x = block.create_var(name="x", shape=[-1, 13], dtype="float32", lod_level=1)
    w = block.create_parameter(name="fc_0.w_0", shape=[13, 1], dtype="float32")
    block.append_op("t_product", {"X": x, "Y": w}, {"Out": "fc_0.tmp_0"})
    with program.block_guard() as inner:
        inner.append_op("t_same", {"X": "fc_0.tmp_0"}, {"Out": "inside"}, {"factor": 0.1})
    block.append_op("t_loop", {"X": "x"}, attrs={"sub_block": inner})
    with program.role_guard(1):
        block.append_op("t_same", {"X": "x"}, {"Out": "x@GRAD"})
    return program


def test_the_program_ends_with_its_version(program: Program) -> None:
    for text in (str(program), program.to_string()):
        assert text.startswith("blocks {\n  idx: 0\n  parent_idx: -1\n")
        assert text.endswith("version {\n  version: 0\n}\n")


def test_unset_fields_are_an_error_only_when_asked(program: Program) -> None:
    program.desc.block(0).append_op()
    with pytest.raises(ValueError, match="are not initialized"):
        program.to_string(True)
    assert "ops {" in program.to_string(False)
    with pytest.raises(ValueError, match="are not initialized"):
        program.global_block().to_string(True)


def test_pseudo_code_hides_backward_unless_asked(program: Program) -> None:
    text = pprint_program_codes(program.desc)
    lines = text.splitlines()
    assert lines[:2] == ["// block-0  parent--1", "// variables"]
    assert "// operators" in lines and "// block-1  parent-0" in lines
    assert "fc_0.tmp_0 = t_product(X=x, Y=fc_0.w_0) [{}]" in lines
    assert "inside = t_same(X=fc_0.tmp_0) [{factor=0.1}]" in lines
    assert "t_loop(X=x) [{sub_block=block[1]}]" in lines
    assert "@GRAD" not in text
    shown = pprint_block_codes(program.global_block(), show_backward=True)
    assert "x@GRAD = t_same(X=x) [{factor=1}]" in shown


def test_readable_code(program: Program) -> None:
    text = program._to_readable_code()
    assert "    var x : LOD_TENSOR.shape(-1, 13).dtype(float32).lod_level(1)\n" in text
    assert "    param fc_0.w_0 : LOD_TENSOR.shape(13, 1).dtype(float32)  // persistable\n" in text
    assert "{ // block 1, in block 0\n" in text
    assert "op_role" not in text
    detailed = program.to_string(False, with_details=True)
    assert "op_role=0" in detailed and "// test_printing.py:" in detailed
    assert str(program.global_block()) in text


def test_index_view_lists_variables_by_number(program: Program) -> None:
    text = index_view(program)
    assert "  vars = { 0: x, 1: fc_0.w_0, 2: fc_0.tmp_0, 3: x@GRAD }\n" in text
    assert '    type = "t_product"\n    inputs = {0, 1}\n    outputs = {2}\n' in text
    assert 'attrs = { "sub_block": 1 }' in text
    assert "    inputs = {fc_0.tmp_0}\n" in text


def test_index_view_of_a_recurrent_operator_speaks_of_states_and_step_net() -> None:
    program = Program()
    step = program.create_block()
    for name in ("x", "h", "fc_out", "hidden_out", "sum", "act"):
        step.create_var(name=name, shape=[1], dtype="float32")
    block = program.global_block()
    for name in ("boot", "act", "hidden_out"):
        block.create_var(name=name, shape=[1], dtype="float32")
    inputs, outputs = {"inputs": ["x"], "initial_states": ["boot"]}, {"outputs": ["act", "hidden_out"]}
    desc = OpDesc("recurrent", inputs, outputs, {"ex_states": ["h"], "states": ["act"]})
    desc.set_block_attr("sub_block", 1)
    block.desc.append_op(desc)
    text = index_view(program.desc)
    assert '    inputs = {0}\n    initial_states = {0}\n    outputs = {5, 3}\n' in text
    assert 'attrs = { "new_states": {5}, "states": {1}, "step_net": 1 }' in text
    assert "  vars = { 0: x, 1: h, 2: fc_out, 3: hidden_out, 4: sum, 5: act }\n" in text
    desc.set_block_attr("sub_block", 7)  # one that is not there
    assert "    outputs = {1, 2}\n" in index_view(program.desc)


def test_lines_of_other_kinds() -> None:
    block = Program().global_block()
    steps = block.create_var(name="steps", type=VarType.STEP_SCOPES)
    rows = block.create_var(name="rows", type=VarType.SELECTED_ROWS, shape=[3], dtype="float64", stop_gradient=True)
    assert var_code(steps.desc) == "var steps : STEP_SCOPES"
    assert var_code(rows.desc) == "var rows : SELECTED_ROWS.shape(3).dtype(float64)  // stop_gradient"
    assert op_code(OpDesc("print")) == "print()"
    assert op_code(OpDesc("split", {"X": ["a"]}, {"Out": ["b", "c"]})) == "Out=[b, c] = split(X=a)"
    assert value_code(list(range(30))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … 30 in all]"


def test_reprs_are_one_line(program: Program) -> None:
    block = program.global_block()
    assert repr(block) == "Block 0: 4 variables, 3 operators"
    assert repr(program).startswith("Program: 2 block(s), 5 variable(s), 4 operator(s), version ")
    assert repr(block.ops[0]).startswith("Operator fc_0.tmp_0 = t_product(X=x, Y=fc_0.w_0)  # test_printing.py:")
    assert block.ops[0].to_string().startswith("inputs {")
    assert block.var("x").to_string(True, True).endswith("cell_key: None\n")


def test_own_lines_for_operators(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    def short(optype: str, inputs: list[str], outputs: list[str], attrs: dict[str, object]) -> str | None:
        return f"{outputs} from {inputs}" if optype == "t_product" else None

    before = pprint_program_codes(program)
    monkeypatch.setattr("fluidnb.program.printing.op_repr_handlers", [short])
    after = pprint_program_codes(program)
    assert "['fc_0.tmp_0'] from ['X=x', 'Y=fc_0.w_0']\n" in after
    assert len(before.splitlines()) == len(after.splitlines())
    assert repr_op(program.global_block().ops[0]) == "['fc_0.tmp_0'] from ['X=x', 'Y=fc_0.w_0']"
    assert repr_var(program.global_block().var("x")) == var_code(program.global_block().var("x").desc)


def test_messages_of_protobuf_are_printed_alike(program: Program) -> None:
    block = program.global_block()
    message = BlockDescMessage.FromString(block.desc.serialize_to_string())
    assert pprint_block_codes(message, True) == pprint_block_codes(block, True)
    assert [repr_op(op) for op in message.ops] == [repr_op(op) for op in block.ops]
    assert [repr_var(var) for var in message.vars] == [repr_var(block.var(var.name)) for var in message.vars]
    texts = dict(repr_attr(attr)[1] for attr in message.ops[1].attrs)
    assert texts["sub_block"] == 1


def test_a_constant_is_printed_as_its_value() -> None:
    optype, outs, attrs = "fill_constant", {"Out": ["one"]}, {"value": 1.0, "shape": [2, 3], "dtype": 5}
    assert repr_op(OpDesc(optype, {}, outs, attrs)) == "one = 1 [shape=[2, 3]]"
    assert repr_op(OpDesc(optype, {}, outs, {"value": 1.0})) == "one = fill_constant() [{value=1}]"
    target = OpDesc("t_same", {"X": ["a"]}, {"Out": ["b"]})
    target.set_is_target(True)
    assert repr_op(target) == "b = t_same(X=a, is_target) [{}]"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (pprint_program_codes, "a program"),
        (pprint_block_codes, "a block"),
        (repr_op, "an operator"),
        (repr_var, "a variable"),
        (lambda wrong: draw_graph(Program(), wrong), "a program"),
        (lambda wrong: draw_block_graphviz(wrong), "a block"),
    ],
)
def test_what_cannot_be_printed_or_drawn_is_told(call: Any, what: str) -> None:
    with pytest.raises(TypeError, match=rf"This is not {what}\.(.|\n)*test_printing.py(.|\n)*received: 3 \(int\)"):
        call(3)
