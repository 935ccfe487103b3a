"""Real bytes in and out, what we do not know in them, and what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import OpDesc, ProgramDesc, VarDesc
from fluidnb.proto.wire import broken_at, parse
from tests.proto.goldens import NAMES, golden, keeps_any_bytes

#: Field 1000 with the number 7 in it: a field that no version of the format has.
UNKNOWN = b"\xc0\x3e\x07"


def delimited(number: int, *parts: bytes) -> bytes:
    """A field that holds bytes, a message for example."""
    body = b"".join(parts)
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def read_all(program: ProgramDesc) -> None:
    """Decode all that is decoded at the first use."""
    for block in program.blocks:
        for op in block.ops:
            assert op.ins is not None and op.outs is not None and op.attrs is not None
        for var in block.all_vars():
            assert var.name()


@pytest.mark.parametrize("name", NAMES)
def test_real_programs_keep_their_bytes(name: str) -> None:
    data = golden(name)
    program = ProgramDesc.parse_from_string(data)
    read_all(program)
    assert program.serialize_to_string() == data
    assert program.version == 0


@pytest.mark.parametrize("name", NAMES)
def test_copies_are_equal_and_apart(name: str) -> None:
    program = ProgramDesc.parse_from_string(golden(name))
    copy = ProgramDesc(program)
    assert copy.serialize_to_string() == golden(name)
    copy.block(0).op(0).set_attr("here", 1)
    copy.block(0).var("here")
    assert program.serialize_to_string() == golden(name)


@pytest.mark.parametrize("name", NAMES)
def test_parts_keep_their_bytes(name: str) -> None:
    message = pb2.ProgramDesc.FromString(golden(name))
    program = ProgramDesc.parse_from_string(golden(name))
    for block, theirs in zip(program.blocks, message.blocks, strict=True):
        assert block.serialize_to_string() == theirs.SerializeToString()
        for op in block.ops:
            assert OpDesc.parse_from_string(op.serialize_to_string()).serialize_to_string() == op.pb.SerializeToString()
        for var in block.all_vars():
            assert VarDesc.parse_from_string(var.serialize_to_string()).clone().pb == var.pb


def test_bytes_may_come_as_any_buffer() -> None:
    data = golden("while")
    for form in (bytearray(data), memoryview(data)):
        assert ProgramDesc.parse_from_string(form).serialize_to_string() == data  # type: ignore[arg-type]


def strange_program() -> bytes:
    """A program with an unknown field at every level."""
    tensor = delimited(1, b"\x08\x05", UNKNOWN)
    var = delimited(3, delimited(1, b"x"), delimited(2, b"\x08\x07", delimited(3, tensor, UNKNOWN), UNKNOWN), UNKNOWN)
    slot = delimited(1, delimited(1, b"X"), delimited(2, b"x"), UNKNOWN)
    attr = delimited(4, delimited(1, b"k"), b"\x10\x00", b"\x18\x03", UNKNOWN)
    op = delimited(4, slot, delimited(3, b"relu"), attr, UNKNOWN)
    version = delimited(4, b"\x08\x02", UNKNOWN)
    versions = delimited(5, delimited(1, delimited(1, b"relu"), delimited(2, b"\x08\x01", UNKNOWN), UNKNOWN), UNKNOWN)
    return delimited(1, b"\x08\x00\x10\x00".replace(b"\x10\x00", b"\x10" + b"\xff" * 9 + b"\x01"), var, op, UNKNOWN) + (
        version + versions + UNKNOWN
    )


def test_unknown_fields_are_kept_at_every_level() -> None:
    data = strange_program()
    assert data.count(UNKNOWN) == 13
    program = ProgramDesc.parse_from_string(data)
    read_all(program)
    assert program.serialize_to_string() == data
    assert ProgramDesc(program).serialize_to_string() == data


def test_unknown_fields_survive_edits_around_them() -> None:
    program = ProgramDesc.parse_from_string(strange_program())
    block = program.block(0)
    block.op(0).set_attr("a", 1)
    block.op(0).set_input("Y", ["y"])
    block.op(0).set_input("X", ["z"])
    block.var("x").set_shape([2])
    block.rename_var("x", "w")
    block.append_op(OpDesc("tanh"))
    block.append_op(block.remove_op(0)[0])
    program.append_block(block)
    assert program.serialize_to_string().count(UNKNOWN) == 13


def test_a_known_field_that_only_old_programs_have_keeps_its_place() -> None:
    info = delimited(2, delimited(1, b"1.6.0"), b"\x10\x01")
    old = delimited(3, delimited(1, delimited(1, b"relu"), info), delimited(2, b"1.5.0"))
    data = ProgramDesc().serialize_to_string()
    data = data[:-4] + old + data[-4:]
    assert ProgramDesc.parse_from_string(data).serialize_to_string() == data


@keeps_any_bytes
def test_text_that_is_not_utf8_is_kept() -> None:
    data = delimited(3, b"relu") + delimited(4, delimited(1, b"s"), b"\x10\x02", delimited(5, b"\xff\xfe"))
    op = OpDesc.parse_from_string(data)
    assert op.attr_names() == ["s"]
    assert op.serialize_to_string() == data


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "It has no blocks."),
        (b"\xff", "expected: a field of ProgramDesc at byte 0"),
        (b"\x0a\x7f\x08", "expected: 127 bytes of blocks[0] at byte 2\n  received: 1 bytes before the end"),
        (b"\x0a\x04\x08\x00\x10\x00\x0a\x02\x1a\x09", "9 bytes of blocks[1].vars[0] at byte 10"),
        (b"\x0a\x06\x08\x00\x10\x00\x22\x00", "['blocks[0].ops[0].type'] are not initialized"),
        (b"\x0a\x04\x08\x01\x10\x00", "Block 0 says that it is block 1."),
        (b"\x0a\x04\x08\x00\x10\x00", "Block 0 says that block 0 is around it."),
        (ProgramDesc().serialize_to_string() + b"\x0a\x04\x08\x01\x10\x01", "Block 1 says that block 1 is around it."),
        (b"# Fluid program", "expected: a field of ProgramDesc at byte 0"),
        (b"PK\x03\x04\x00\x00", "expected: a field of"),
    ],
)
def test_bad_bytes_are_refused_with_the_place(data: bytes, says: str) -> None:
    with pytest.raises(OpValueError) as refused:
        ProgramDesc.parse_from_string(data)
    assert str(refused.value).startswith("Fail to parse program_desc from binary string")
    assert says in str(refused.value)


def test_a_variable_declared_twice_is_refused() -> None:
    message = pb2.ProgramDesc.FromString(golden("while"))
    message.blocks[0].vars.add().CopyFrom(message.blocks[0].vars[0])
    name = message.blocks[0].vars[0].name
    with pytest.raises(OpValueError, match=f'Block 0 declares "{name}" more than once'):
        ProgramDesc.parse_from_string(message.SerializeToString())


def test_every_cut_is_a_program_or_an_error_with_its_place() -> None:
    data = golden("assign_value")
    refused = 0
    for end in range(len(data)):
        try:
            ProgramDesc.parse_from_string(data[:end])
        except OpValueError as error:
            refused += 1
            assert "are not init" in str(error) or "no blocks" in str(error) or error.received, (end, error)
    assert refused > len(data) // 2


@given(st.binary(max_size=40), st.integers(0, 600))
def test_any_bytes_are_a_program_or_a_readable_error(noise: bytes, at: int) -> None:
    data = golden("transpose2")
    for spoiled in (noise, data[:at] + noise + data[at + len(noise) :]):
        try:
            ProgramDesc.parse_from_string(spoiled)
        except OpValueError as error:
            assert error.summary.startswith("Fail to parse program_desc from binary string")


@pytest.mark.parametrize("name", NAMES)
def test_sound_bytes_have_no_broken_place(name: str) -> None:
    assert broken_at(golden(name), pb2.ProgramDesc.DESCRIPTOR) is None


def test_only_bytes_are_parsed() -> None:
    with pytest.raises(OpTypeError, match="A program_desc is read from bytes"):
        ProgramDesc.parse_from_string("text")  # type: ignore[arg-type]
    with pytest.raises(OpValueError, match="Fail to parse op_desc"):
        parse(pb2.OpDesc, b"\x1a\x7f", "op_desc")
