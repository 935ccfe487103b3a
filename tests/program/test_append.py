"""Appending an operator: what is refused, all or nothing, quick."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from fluidnb.program import Block, Operator, Program, name_scope, unique_name
from fluidnb.program import layer_calls as naming
from fluidnb.values.dtypes import VarType
from tests.tools.refused import refused


@pytest.fixture
def block() -> Block:
    block = Program().global_block()
    block.create_var(name="x", shape=[-1, 13], dtype="float32")
    block.create_var(name="w", shape=[13, 4], dtype="float32")
    block.create_var(name="narrow", shape=[5, 4], dtype="float32")
    block.create_var(name="out", shape=[7], dtype="int64", lod_level=2)
    return block


MISTAKES: list[tuple[type[Exception], str, tuple[Any, ...]]] = [
    (ValueError, "`type` to initialized an Operator can not be None.", (None, {}, {})),
    (ValueError, 'Operator "t_sam" has not been registered', ("t_sam", {"X": "x"}, {"Out": "y"})),
    (ValueError, "Input Y of t_product not found", ("t_product", {"X": "x"}, {"Out": "y"})),
    (ValueError, "has no input Z", ("t_product", {"X": "x", "Y": "w", "Z": "x"}, {"Out": "y"})),
    (ValueError, "expects only one input, but 2 are given", ("t_product", {"X": ["x", "x"], "Y": "w"}, {"Out": "y"})),
    (ValueError, r"Incorrect setting for output\(s\) of operator t_product", ("t_product", {"X": "x", "Y": "w"}, {})),
    (TypeError, "'attrs' should be a dict", ("t_same", {"X": "x"}, {"Out": "y"}, [1])),
    (TypeError, "'inputs' should be a dict", ("t_same", ["x"], {"Out": "y"})),
    (TypeError, "'outputs' should be a dict", ("t_same", {"X": "x"}, "y")),
    (TypeError, "'inputs' should be a dict", ("t_same", {0: "x"}, {"Out": "y"})),
    (TypeError, "'attrs' should be a dict", ("t_same", {"X": "x"}, {"Out": "y"}, {3: 2.0})),
    (TypeError, "Slot X takes variables", ("t_same", {"X": np.zeros(3)}, {"Out": "y"})),
    (ValueError, "has no attribute fakctor", ("t_same", {"X": "x"}, {"Out": "y"}, {"fakctor": 2.0})),
    (TypeError, "Cannot get attribute factor", ("t_same", {"X": "x"}, {"Out": "y"}, {"factor": "two"})),
    (ValueError, "'shape' is required", ("t_source", {}, {"Out": "y"})),
    (ValueError, "reads missing in slot X, which block 0 does not have", ("t_same", {"X": "missing"}, {"Out": "y"})),
    (RuntimeError, "widths differ", ("t_product", {"X": "x", "Y": "narrow"}, {"Out": "y"})),
    (RuntimeError, "widths differ", ("t_product", {"X": "x", "Y": "narrow"}, {"Out": "out"})),
]


@pytest.mark.parametrize(("kind", "text", "parts"), MISTAKES)
@pytest.mark.parametrize("verb", ["append_op", "prepend_op", "insert_op"])
def test_a_rejected_operator_leaves_no_trace(
    block: Block, verb: str, kind: type[Exception], text: str, parts: tuple[Any, ...]
) -> None:
    program = block.program
    before, version, names = program.desc.serialize_to_string(), program.version, dict(unique_name.generator.ids)
    place = (0,) if verb == "insert_op" else ()
    with refused(kind, text):
        getattr(block, verb)(*place, *parts)
    assert program.desc.serialize_to_string() == before
    assert (program.version, unique_name.generator.ids, len(block.ops)) == (version, names, 0)
    assert not block.has_var("y")


def test_a_rejection_says_operator_operands_line_and_near_names(block: Block) -> None:
    with pytest.raises(RuntimeError) as caught:
        block.append_op("t_product", {"X": "x", "Y": "narrow"}, {"Out": "y"})
    text = str(caught.value)
    assert "op 0 (t_product) in block 0" in text
    assert "float32[-1, 13]" in text and "float32[5, 4]" in text
    assert "test_append.py" in text and 'block.append_op("t_product"' in text
    with pytest.raises(ValueError) as unknown:
        block.append_op("t_sam", {"X": "x"}, {"Out": "y"})
    assert '"t_same"' in str(unknown.value)


def test_outputs_are_declared_and_inferred(block: Block) -> None:
    op = block.append_op("t_product", {"X": "x", "Y": [block.var("w")]}, {"Out": "y"})
    y = block.var("y")
    assert (y.shape, y.dtype, y.lod_level, y.op) == ((-1, 4), VarType.FP32, 0, op)
    block.append_op("t_same", {"X": y}, {"Out": "out"})
    assert (block.var("out").shape, block.var("out").dtype, block.var("out").lod_level) == ((-1, 4), VarType.FP32, 0)


def test_an_output_of_an_outer_block_is_not_declared_again(block: Block) -> None:
    inner = block.program.create_block()
    inner.append_op("t_same", {"X": "x"}, {"Out": "out"})
    assert not inner.has_var("out")
    assert block.var("out").shape == (-1, 13)


def test_two_writers_one_description(block: Block) -> None:
    first = block.append_op("t_same", {"X": "x"}, {"Out": "y"})
    y = block.var("y")
    assert y.writer is y.op is first
    second = block.append_op("t_same", {"X": "x"}, {"Out": y})
    assert y.writer is second
    assert list(block.desc.vars).count("y") == 1
    block.remove_op(1)
    assert y.writer is first


def test_operator_constructor_appends(block: Block) -> None:
    op = Operator(block, "t_same", {"X": "x"}, {"Out": "y"}, {"factor": None})
    assert block.ops[-1] is op
    assert op.attr("factor") == 1.0


def test_a_variable_of_another_program_stands_for_its_name(block: Block) -> None:
    other = Program().global_block()
    twin = other.create_var(name="x", shape=[3], dtype="float32")
    assert block.append_op("t_same", {"X": twin}, {"Out": "y"}).input("X") == ["x"]
    assert block.var("y").shape == (-1, 13)
    stranger = other.create_var(name="stranger", shape=[3], dtype="float32")
    with pytest.raises(ValueError, match="stranger belongs to a program of 0 operators, the operator to a program"):
        block.append_op("t_same", {"X": stranger}, {"Out": "z"})


def test_operator_reads_and_edits(block: Block) -> None:
    op = block.append_op("t_product", {"X": "x", "Y": "w"}, {"Out": "y"})
    assert (op.type, op.idx, op.input_names, op.output_names) == ("t_product", 0, ["X", "Y"], ["Out"])
    assert (op.input_arg_names, op.output_arg_names) == (["x", "w"], ["y"])
    assert op.has_kernel("t_product") and not op.has_kernel("none")
    block.create_var(name="v", shape=[13, 4], dtype="float32")
    op.rename_input("w", "v")
    op.rename_output("y", "out")
    assert (op.input("Y"), op.output("Out")) == (["v"], ["out"])
    assert op.where is not None and op.where.file.endswith("test_append.py")


def test_block_attributes(block: Block) -> None:
    inner = block.program.create_block()
    block.program.rollback()
    op = block.append_op("t_loop", {"X": "x"}, attrs={"sub_block": inner})
    assert (op.block_attr("sub_block"), op.block_attr_id("sub_block")) == (inner, 1)
    assert op.all_attrs()["sub_block"] is inner
    op.set_attr("sub_block", block)
    assert op.block_attr("sub_block") is block


def test_name_scope_decorates_operators(block: Block) -> None:
    with unique_name.guard(), name_scope("a"):
        with name_scope("b"):
            op = block.append_op("t_same", {"X": "x"}, {"Out": "y"})
        with name_scope("b"):
            again = block.append_op("t_same", {"X": "x"}, {"Out": "z"})
    assert (op.attr("op_namescope"), again.attr("op_namescope")) == ("/a/b/", "/a/b_1/")


def test_a_layer_that_raises_leaves_no_trace(block: Block) -> None:
    program = block.program

    @naming.layer
    def layer() -> None:
        out = block.create_var(name=unique_name.generate("broken.tmp"), shape=[], dtype="float32")
        block.create_parameter(name="p", shape=[2], dtype="float32")
        block.append_op("t_same", {"X": "x"}, {"Out": out})
        block.prepend_op("t_source", outputs={"Out": "s"}, attrs={"shape": [1]})
        with program.block_guard() as inner:
            inner.append_op("t_same", {"X": "x"}, {"Out": "t"})
        block.append_op("t_product", {"X": "x", "Y": "narrow"}, {"Out": "y"})

    with unique_name.guard():
        unique_name.generate("other")
        before, names = program.desc.serialize_to_string(), dict(unique_name.generator.ids)
        with pytest.raises(RuntimeError, match="widths differ"):
            layer()
        assert program.desc.serialize_to_string() == before
        assert unique_name.generator.ids == names


def _chain(count: int) -> float:
    program = Program()
    block = program.global_block()
    block.create_var(name="v0", shape=[-1, 13], dtype="float32")
    began = time.process_time()
    for i in range(count):
        block.append_op("t_same", {"X": f"v{i}"}, {"Out": f"v{i + 1}"}, {"factor": 2.0})
        if i % 1000 == 999:
            with pytest.raises(RuntimeError), program.block_guard() as inner:
                inner.append_op("t_same", {"X": f"v{i}"}, {"Out": "inside"})
                raise RuntimeError
    assert (program.num_blocks, len(block.ops)) == (1, count)
    return (time.process_time() - began) / count


def test_appending_is_quick_and_linear() -> None:
    small = min(_chain(1000) for _ in range(3))
    large = _chain(20_000)
    assert large < 3 * small, f"{small * 1e6:.0f} microseconds among 1,000 and {large * 1e6:.0f} among 20,000"
