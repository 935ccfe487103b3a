"""The text form, and the listing with indices."""

from __future__ import annotations

import math

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import OpDesc, ProgramDesc
from fluidnb.proto.indexed import indexed
from fluidnb.proto.text import to_text
from tests.proto.goldens import NAMES, golden, keeps_any_bytes


@pytest.mark.parametrize("name", NAMES)
def test_the_text_is_protobufs(name: str) -> None:
    message = pb2.ProgramDesc.FromString(golden(name))
    assert text_format.Parse(to_text(message), pb2.ProgramDesc()) == message


# Less than the greatest float32: some runtimes read its shortest form, their own too, as infinite.
SINGLE = st.floats(-(2.0**127), 2.0**127, width=32) | st.sampled_from([math.inf, -math.inf])


@given(st.text(), SINGLE, st.floats(allow_nan=False), st.booleans(), st.integers(-9, 9))
def test_any_value_reads_back(text: str, single: float, double: float, flag: bool, number: int) -> None:
    message = pb2.OpDesc.Attr(name=text, type=1, f=single, float64=double, b=flag, longs=[number], strings=[text, ""])
    assert text_format.Parse(to_text(message), pb2.OpDesc.Attr()) == message


def test_the_text_is_fixed_to_the_letter() -> None:
    attr = pb2.OpDesc.Attr(
        name="a\"b'c\\\n\t\r\x00\x7fé漢", type=4, floats=[0.1, 1.0, 1e10, -0.0, math.inf, -math.inf, math.nan, 1 / 3]
    )
    assert to_text(attr) == (
        'name: "a\\"b\\\'c\\\\\\n\\t\\r\\000\\177é漢"\n'
        "type: FLOATS\n"
        "floats: 0.1\nfloats: 1.0\nfloats: 10000000000.0\nfloats: -0.0\nfloats: inf\nfloats: -inf\nfloats: nan\n"
        "floats: 0.33333334\n"
    )


def test_a_program_ends_with_its_version() -> None:
    assert to_text(ProgramDesc().to_pb()) == ("blocks {\n  idx: 0\n  parent_idx: -1\n}\nversion {\n  version: 0\n}\n")
    assert to_text(pb2.ProgramDesc()) == ""


@keeps_any_bytes
def test_text_that_is_not_utf8_is_escaped() -> None:
    op = pb2.OpDesc.FromString(b"\x1a\x03\xff\x01a")
    assert to_text(op) == 'type: "\\377\\001a"\n'


def recurrent_program() -> ProgramDesc:
    """The step net that Fluid's design documents draw: act(hidden + fc(x))."""
    program = ProgramDesc()
    outer = program.block(0)
    step = program.append_block(outer)
    for name in ("x", "h", "fc_out", "hidden_out", "sum", "act"):
        step.var(name)
    outer.var("weight")
    step.append_op(OpDesc("matmul", {"X": ["x"], "Y": ["weight"]}, {"Out": ["fc_out"]}))
    step.append_op(OpDesc("add_two", {"X": ["fc_out", "hidden_out"]}, {"Out": ["sum"]}))
    step.append_op(OpDesc("sigmoid", {"X": ["sum"]}, {"Out": ["act"]}))
    rnn = OpDesc("rnn", {"inputs": ["x"]}, {"outputs": ["act", "hidden_out"]}, {"states": ["h"], "reverse": False})
    rnn.set_block_attr("step_net", step)
    outer.append_op(rnn)
    return program


def test_the_listing_of_the_design_documents() -> None:
    assert (
        indexed(recurrent_program())
        == """\
BlockDesc {  // 0
  vars = {
    VarDesc {...}  // 0: weight
  }
  ops = {
    OpDesc {  // rnn
      inputs = {0}  // x
      outputs = {5, 3}  // act, hidden_out
      attrs {
        "reverse" : False
        "states" : {1}  // h
        "step_net" : <BlockDesc 1>
      }
    }
  }
}
BlockDesc {  // 1 in 0
  vars = {
    VarDesc {...}  // 0: x
    VarDesc {...}  // 1: h
    VarDesc {...}  // 2: fc_out
    VarDesc {...}  // 3: hidden_out
    VarDesc {...}  // 4: sum
    VarDesc {...}  // 5: act
  }
  ops = {
    OpDesc {  // matmul
      inputs = {0, 0:0}  // x, weight
      outputs = {2}  // fc_out
    }
    OpDesc {  // add_two
      inputs = {2, 3}  // fc_out, hidden_out
      outputs = {4}  // sum
    }
    OpDesc {  // sigmoid
      inputs = {4}  // sum
      outputs = {5}  // act
    }
  }
}
"""
    )


@pytest.mark.parametrize("name", NAMES)
def test_real_programs_can_be_listed(name: str) -> None:
    program = ProgramDesc.parse_from_string(golden(name))
    listing = indexed(program)
    assert listing.count("OpDesc {") == sum(block.op_size() for block in program.blocks)
    assert listing.count("VarDesc {") == sum(len(block.vars) for block in program.blocks)


def test_a_name_that_nobody_declares_is_a_question() -> None:
    program = ProgramDesc()
    program.block(0).append_op(OpDesc("relu", {"X": ["lost"]}))
    assert "inputs = {?}  // lost" in indexed(program)
