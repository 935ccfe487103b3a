"""Blocks: variables by name, operators in order."""

from __future__ import annotations

from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.program import Block, Program
from fluidnb.proto.desc import OpDesc


@pytest.fixture
def block() -> Block:
    return Program().global_block()


def test_var_of_an_unknown_name(block: Block) -> None:
    block.create_var(name="image", shape=[1], dtype="float32")
    with pytest.raises(ValueError, match="var imge not in this block") as caught:
        block.var("imge")
    assert 'Did you mean "image"?' in str(caught.value)


@pytest.mark.parametrize("name", [None, 3, b"x"])
def test_var_takes_a_text(block: Block, name: Any) -> None:
    with pytest.raises(TypeError, match="name of Block.var must be the name of a variable"):
        block.var(name)


def test_var_recursive_sees_parents_and_local_names_shadow(block: Block) -> None:
    outer = block.create_var(name="x", shape=[1], dtype="float32")
    inner = block.program.create_block()
    assert inner.var_recursive("x") is outer
    assert not inner.has_var("x")
    local = inner.create_var(name="x", shape=[5], dtype="float32")
    assert inner.var_recursive("x") is local
    assert block.var_recursive("x") is outer
    assert outer.shape == (1,)


def test_var_recursive_names_the_blocks_that_were_searched(block: Block) -> None:
    inner = block.program.create_block()
    inner.create_var(name="y", shape=[1], dtype="float32")
    with pytest.raises(ValueError, match="Var y is not found recursively") as caught:
        block.var_recursive("y")
    assert "block 1 has it" in str(caught.value)
    with pytest.raises(ValueError, match="Var z is not found recursively") as caught:
        inner.var_recursive("z")
    assert "blocks 1, 0" in str(caught.value)


def test_create_parameter_lands_in_the_global_block(block: Block) -> None:
    inner = block.program.create_block()
    w = inner.create_parameter(name="w", shape=[2], dtype="float32")
    assert w.block is block
    assert not inner.has_var("w")
    assert block.all_parameters() == [w]


def test_a_second_declaration_that_agrees_gives_the_same_variable(block: Block) -> None:
    x = block.create_var(name="x", shape=[-1, 3], dtype="float32", lod_level=1)
    assert block.create_var(name="x") is x
    assert block.create_var(name="x", shape=(-1, 3), dtype="float32", lod_level=1, persistable=False) is x
    w = block.create_parameter(name="w", shape=[2], dtype="float32", trainable=False)
    assert block.create_parameter(name="w", shape=[2], dtype="float32") is w
    assert not w.trainable
    assert len(block.vars) == 2


@pytest.mark.parametrize(
    ("again", "what"),
    [
        ({"shape": [3]}, r"previous shape is \(-1, 3\), the new shape is \(3,\)"),
        ({"dtype": "int64"}, "previous data type is float32, the new data type is int64"),
        ({"lod_level": 2}, "previous lod_level is 1, the new lod_level is 2"),
        ({"persistable": True}, "previous persistable is False, the new persistable is True"),
        ({"type": 13}, "previous type is LOD_TENSOR, the new type is LOD_TENSOR_ARRAY"),
    ],
)
def test_a_second_declaration_that_differs(block: Block, again: dict[str, Any], what: str) -> None:
    block.create_var(name="x", shape=[-1, 3], dtype="float32", lod_level=1)
    before = block.program.desc.serialize_to_string()
    with pytest.raises(ValueError, match=f"Variable x has been created before. The {what}. They are not matched."):
        block.create_var(name="x", **again)
    assert block.program.desc.serialize_to_string() == before


def test_prepend_insert_and_remove(block: Block) -> None:
    def put(where: str, out: str, *place: int) -> None:
        getattr(block, where)(*place, type="t_source", outputs={"Out": out}, attrs={"shape": [1]})

    put("append_op", "b")
    put("prepend_op", "a")
    put("insert_op", "c", 2)
    put("insert_op", "z", -1)
    assert [op.output("Out") for op in block.ops] == [["a"], ["b"], ["z"], ["c"]]
    assert block.ops[2].idx == 2
    block.remove_op(2)
    block.delete_ops(block.ops[0:2])
    assert [op.output("Out") for op in block.ops] == [["c"]]
    assert [op.type for op in block.slice_ops(0, 1)] == ["t_source"]


@pytest.mark.parametrize("index", [1, -2, 99])
def test_places_that_a_block_does_not_have(block: Block, index: int) -> None:
    block.append_op("t_source", outputs={"Out": "a"}, attrs={"shape": [1]})
    with pytest.raises(ValueError, match="has no operator"):
        block.remove_op(index)
    with pytest.raises(ValueError, match="has no place"):
        block.insert_op(index + (index > 0), "t_source", outputs={"Out": "b"}, attrs={"shape": [1]})
    assert len(block.ops) == 1
    assert not block.has_var("b")


def test_rename_var_follows_everywhere(block: Block) -> None:
    x = block.create_var(name="x", shape=[1], dtype="float32")
    block.append_op("t_same", {"X": x}, {"Out": "y"})
    inner = block.program.create_block()
    inner.append_op("t_same", {"X": x}, {"Out": "z"})
    assert block.rename_var("x", "image") is x
    assert (x.name, block.ops[0].input("X"), inner.ops[0].input("X")) == ("image", ["image"], ["image"])
    with pytest.raises(ValueError, match="var y is in this block already"):
        block.rename_var("image", "y")


def _scale(block: Block, x: str, out: str) -> Any:
    return block.append_op("scale", {"X": x}, {"Out": out})


def test_rename_var_refuses_a_name_that_means_another_variable(block: Block) -> None:
    block.create_var(name="x", shape=[1], dtype="float32")
    block.create_var(name="unused", shape=[1], dtype="float32")
    inner = block.program.create_block()
    inner.create_var(name="t", shape=[1], dtype="float32")
    _scale(inner, "x", "t")
    before = block.program.desc.serialize_to_string()
    with pytest.raises(ValueError, match='Block 1 uses "x" and would find another variable "t"'):
        block.rename_var("x", "t")
    with pytest.raises(ValueError, match='Block 1 uses a variable "x" of the blocks around and would find this one'):
        inner.rename_var("t", "x")
    assert block.program.desc.serialize_to_string() == before
    block.rename_var("unused", "t")
    inner.rename_var("t", "u")
    assert (inner.ops[0].input("X"), inner.ops[0].output("Out")) == (["x"], ["u"])


def test_rename_var_refuses_a_taken_gradient_before_it_changes_anything(block: Block) -> None:
    for name in ("x", "x@GRAD", "z@GRAD"):
        block.create_var(name=name, shape=[1], dtype="float32")
    with pytest.raises(ValueError, match='has a variable "z@GRAD" already'):
        block.rename_var("x", "z")
    assert block.has_var("x") and not block.has_var("z")


def test_rename_var_refuses_names_that_operators_match_with_inner_ones() -> None:
    with fluid.fresh():
        main, layers = fluid.default_main_program(), fluid.layers
        x, rnn = layers.data("x", [3, 2, 4], append_batch_size=False, stop_gradient=False), layers.StaticRNN()
        with rnn.step():
            word = rnn.step_input(x)
            rnn.step_output(layers.scale(word, 2.0))
        out = rnn()
        for block, name in ((main.global_block(), "x"), (main.global_block(), out.name), (main.block(1), word.name)):
            with pytest.raises(ValueError, match=f"var {name} cannot be renamed: recurrent finds"):
                block.rename_var(name, "other")


def test_rename_var_with_the_gradient_of_a_loop() -> None:
    """A parameter, whose gradients each iteration has, is refused; what the loop carries is renamed."""
    with fluid.fresh():
        main, layers = fluid.default_main_program(), fluid.layers
        w, exe = layers.create_parameter([2], "float32", name="w"), fluid.Executor(fluid.CPUPlace())
        carried, i, n = layers.scale(w, 1.0), *(layers.fill_constant([1], "int64", k) for k in (0, 2))
        more = layers.less_than(i, n)
        loop = layers.While(more)
        with loop.block():
            product = layers.elementwise_mul(carried, w)
            layers.assign(product, carried)
            layers.increment(i)
            layers.less_than(i, n, cond=more)
        [(_, gradient)] = fluid.append_backward(layers.mean(carried))
        exe.run(fluid.default_startup_program())
        before = exe.run(main, fetch_list=[gradient])[0]
        with pytest.raises(ValueError, match="var w cannot be renamed: while_grad finds"):
            main.global_block().rename_var("w", "v")
        main.global_block().rename_var(carried.name, "carried")
        main.block(1).rename_var(product.name, "product")
        assert exe.run(main, fetch_list=[gradient])[0].tobytes() == before.tobytes()


def test_delete_ops_removes_those_it_is_given(block: Block) -> None:
    block.create_var(name="a", shape=[1], dtype="float32")
    for x, out in ("ab", "bc", "cd", "de"):
        _scale(block, x, out)
    clone = block.program.clone().global_block()
    with pytest.raises(ValueError, match="scale is no operator of block 0"):
        block.delete_ops([block.ops[0], clone.ops[1]])
    block.delete_ops([block.ops[3], block.ops[0], block.ops[0]])
    assert [op.output("Out") for op in block.ops] == [["c"], ["d"]]


def test_put_desc_keeps_attributes_that_only_its_writer_knew(block: Block) -> None:
    block.create_var(name="x", shape=[1], dtype="float32")
    desc = OpDesc("t_same", {"X": ["x"]}, {"Out": ["y"]}, {"theirs": 1})
    with pytest.raises(ValueError, match="no attribute theirs"):
        block.put_desc(desc)
    assert desc.block is None
    op = block.put_desc(desc, strict=False)
    assert (op.attr("theirs"), op.attr("op_role"), block.var("y").shape) == (1, 0, (1,))


def test_ops_and_vars_are_live_sequences(block: Block) -> None:
    ops, variables = block.ops, block.vars
    x = block.create_var(name="x", shape=[1], dtype="float32")
    op = block.append_op("t_same", {"X": x}, {"Out": "y"})
    assert list(ops) == [op] == ops[:] and ops[-1] is op and len(ops) == 1 and op in ops
    assert list(variables) == ["x", "y"] and "x" in variables and 3 not in variables
    assert variables.get("none") is None
    with pytest.raises(KeyError):
        variables["none"]


def test_seed_spellings(block: Block) -> None:
    block.append_operator("t_source", outputs={"Out": "b"}, attrs={"shape": [1]})
    block.prepend_operator("t_source", outputs={"Out": "a"}, attrs={"shape": [1]})
    assert [op.output("Out") for op in block.ops] == [["a"], ["b"]]


def test_an_operator_that_is_not_there() -> None:
    ops = Program().global_block().ops
    with pytest.raises(IndexError, match=r"Block 0 has 0 operators\.[\s\S]*a block with operators"):
        ops[0]
    assert list(ops) == [] and ops[:1] == []
