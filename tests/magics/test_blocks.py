"""Cells that append to blocks, and %fluid block: the tree, opening and closing."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import FluidError, OpValueError
from tests.magics.conftest import Session

DATA = (
    "%%fluid data\ni = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 3)\n"
    "total = layers.fill_constant([1], 'float32', 0.0)\nstep = layers.fill_constant([1], 'float32', 2.0)\n"
    "more = layers.less_than(i, n)\nturns = layers.While(more)"
)
COUNT = "layers.increment(i, 1)\nlayers.less_than(i, n, cond=more);"
LOOP = "%%fluid loop\nwith turns.block() as body:\n    layers.increment(i, 1)\n    layers.less_than(i, n, cond=more)"
ADD = "layers.assign(layers.elementwise_add(total, step), output=total);"


def total() -> float:
    return float(fluid.Executor().run(fetch_list=["total"])[0].item())


def described() -> list[tuple[str, list[str]]]:
    """The operators, and what they read apart from variables named after a cell."""
    ops = [op for block in fluid.default_main_program().desc.blocks for op in block.ops]
    return [(op.optype, sorted(n for n in op.input_arg_names() if "." not in n)) for op in ops]


def last() -> fluid.framework.Operator:
    return fluid.default_main_program().global_block().ops[-1]


# Going on with a block that a `with` has filled.


@pytest.mark.parametrize("block", ["1", "loop", "loop.1", "turns", "turns.1", "body"])
def test_the_names_of_a_block(session: Session, block: str) -> None:
    session.run(DATA)
    session.run(LOOP)
    assert "add  2 ops in block 1 of loop" in session.run(f"%%fluid add --in {block}\n{ADD}")
    assert {"step", "total"} <= set(last().input("X"))
    assert "total" in last().output("Out")
    assert total() == 6


def test_it_is_as_if_written_there(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add --in turns\n{ADD}")
    session.run("%%fluid --in turns\nlayers.assign(layers.scale(total, 2.0), output=total);", "id")
    apart = described()
    whole = f"{LOOP}\n    {ADD}\n    layers.assign(layers.scale(total, 2.0), output=total)"
    session.run("%fluid reset")
    session.run(DATA)
    session.run(whole)
    assert apart == described()
    assert total() == 28


def test_running_again_replaces(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add --in turns\n{ADD}")
    session.run("%%fluid twice --in turns\nlayers.assign(layers.scale(total, 2.0), output=total);")
    session.run("%%fluid after\nout = layers.relu(total)")
    before = session.state()
    for cell in (f"%%fluid add --in turns\n{ADD}", LOOP, DATA, f"%%fluid add --in loop\n{ADD}"):
        session.run(cell)
        assert session.state() == before
    session.run("%%fluid add --in turns\nlayers.assign(total + 1.0, output=total);")
    assert total() == 14  # 2 * (2 * (2 * (0 + 1) + 1) + 1)
    assert session.run("%fluid undo") == "restored: add\n"
    assert session.state() == before
    session.run("%fluid drop twice")
    assert total() == 6
    assert session.run("%fluid undo") == "restored: twice\n"
    session.run("%fluid drop twice")
    session.run(f"%%fluid third --in turns\n{ADD}")
    assert session.run("%fluid undo") == "restored: nothing; removed: third\n"
    assert "built again: after" not in session.run("%%fluid other\nz = layers.relu(step)")


def test_cells_that_read_it_are_built_again(session: Session) -> None:
    session.run(DATA)
    session.run(f"{LOOP}\n    size = 3\nafter = layers.relu(total)")
    session.run("%%fluid reads\nout = layers.expand(after, [size])")
    assert "built again: reads" in session.run("%%fluid wide --in turns\nsize = 5")
    assert session.names["out"].shape == (5,)


def test_the_outer_cell_takes_all_with_it(session: Session) -> None:
    session.run(DATA)
    before = session.state()
    session.run(LOOP)
    session.run(f"%%fluid add --in turns\n{ADD}")
    assert "removed: loop, add" in session.run("%fluid drop loop")
    assert session.state() == before
    session.run("%fluid undo")
    assert total() == 6


def test_cells_of_a_notebook(session: Session) -> None:
    session.run(DATA.replace("data", ""), "one")
    session.run(LOOP.replace("loop", ""), "two")
    session.run(f"%%fluid --in turns\n{ADD}", "three")
    session.run("%%fluid --in turns\nlayers.assign(layers.scale(total, 2.0), output=total);", "four")
    assert total() == 28
    assert session.bench.follow(None, ["four"]).removed == ["In[5]"]
    assert total() == 6
    session.run(f"%%fluid --in turns\n{ADD}\n{ADD}", "three")
    assert total() == 12
    assert session.bench.follow(None, ["two"]).removed == ["In[3]", "In[6]"]
    assert total() == 0


def test_an_error_leaves_everything(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add --in turns\n{ADD}")
    before, handle = session.state(), session.names["turns"]
    error, shown = session.fail("%%fluid add --in turns\nlayers.concat([total, total], axis=7)")
    assert "cell add, line 2" in shown
    session.fail("%%fluid third --in turns\nlayers.relu(total)\n1 / 0")
    session.fail(LOOP.replace("turns.block()", "turns.blok()"))
    assert session.state() == before
    assert session.names["turns"] is handle
    assert total() == 6


def test_a_part_whose_block_is_gone_is_stale_and_heals(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add --in turns\n{ADD}")
    session.run(f"%%fluid twice --in turns\n{ADD}")
    before = session.state()
    shown = session.run("%%fluid loop\npass")
    assert 'stale: add, cell "add" appends to a block that cell "loop" no longer opens' in shown
    assert "stale: twice" in shown
    session.fail(f"%%fluid add --in turns\n{ADD}")
    assert "stale" not in session.run("%%fluid other\npass")
    assert "built again: add, twice" in session.run(LOOP)
    assert session.state() == before
    assert "stale: add, NameError" not in session.run("%fluid cells")
    assert total() == 12


def test_what_comes_later_is_not_there_yet(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run("%%fluid later\nweight = layers.create_parameter([1], 'float32')")
    session.run("%%fluid add --in turns\nlayers.assign(total * weight, output=total)")
    assert [p.title for p in session.bench.cells] == ["data", "later", "loop", "add"]


def test_what_comes_later_in_the_notebook_is_not_there_yet(session: Session) -> None:
    session.bench.notebook.report(["a", "b", "c", "d"])
    session.run(DATA, "a")
    session.run(LOOP, "b")
    session.run("%%fluid later\nweight = layers.create_parameter([1], 'float32')", "c")
    _, shown = session.fail("%%fluid add --in turns\nlayers.assign(total * weight, output=total)", "d")
    assert 'Cell "later" binds weight, and comes after cell "loop"' in shown


def test_only_the_cell_that_runs_is_heard(session: Session) -> None:
    session.run(DATA)
    assert "loop!" in session.run(f"{LOOP}\n    print('loop!')")
    assert "add!" in session.run(f"%%fluid add --in turns\n{ADD}\nprint('add!')")
    shown = session.run("%%fluid next --in turns\nprint('next!')\n'its value'")
    assert ("next!" in shown, "its value" in shown, "add!" in shown, "loop!" in shown) == (True, True, False, False)
    shown = session.run(f"{LOOP}\n    print('loop!')")
    assert ("next!" in shown, "its value" in shown, "loop!" in shown) == (False, False, True)
    session.run("print('still there')")


def test_operators_know_their_cell(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run("%%fluid add --in turns\nh = layers.elementwise_add(total, step)\nlayers.assign(h, output=total);")
    inner = fluid.default_main_program().block(1)
    assert [op.cell_key for op in inner.ops] == ["loop", "loop", "add", "add"]
    assert inner.ops[2].where.short() == "cell add, line 2"
    assert "cell add" in repr(session.names["h"])
    session.run("old = h")
    session.run("%%fluid add --in turns\nh = layers.relu(total)")
    _, shown = session.fail("layers.relu(old)")
    assert 'was replaced when cell "add" was run again' in shown
    assert "h = elementwise_add" not in session.run("%fluid show add")
    assert "h = relu(total)" in session.run("%fluid show add")
    assert "increment" not in session.run("%fluid show add")


def test_a_loop_in_a_loop(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(
        "%%fluid nested --in turns\nj = layers.fill_constant([1], 'int64', 0)\nless = layers.less_than(j, n)\n"
        "inner = layers.While(less)\nwith inner.block():\n    layers.increment(j, 1)\n"
        "    layers.less_than(j, n, cond=less)"
    )
    assert "in block 2 of nested" in session.run(f"%%fluid add --in inner\n{ADD}")
    outer, within = last(), fluid.default_main_program().block(1).ops[-1]
    assert {"total", "step"} <= set(within.input("X")) & set(outer.input("X"))
    assert "total" in within.output("Out")
    assert "total" in outer.output("Out")
    assert total() == 18
    rows = session.run("%fluid cells").splitlines()
    assert [row.split("  ")[0] or row[:8].strip() for row in rows] == ["data", "loop", "nested", "    add"[:8].strip()]
    assert "removed: nested, add" in session.run("%fluid drop nested")


def test_a_cell_moves(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add\n{ADD}")
    assert total() == 2
    session.run(f"%%fluid add --in turns\n{ADD}")
    assert total() == 6
    assert session.ops().count("elementwise_add") == 1
    session.run("%%fluid other\nc = layers.less_than(n, n)\nwith layers.ConditionalBlock([c], True).block():\n    pass")
    session.run(f"%%fluid add --in other\n{ADD}")
    assert total() == 0
    session.run(f"%%fluid add --in 0\n{ADD}")
    assert total() == 2
    assert [p.title for p in session.bench.cells] == ["data", "loop", "other", "add"]


def test_cases_of_a_switch(session: Session) -> None:
    session.run(
        "%%fluid sw\na = layers.ones([1], 'float32')\ntotal = layers.zeros([1], 'float32')\n"
        "with layers.Switch() as switch:\n    with switch.case(layers.less_than(a, total)):\n"
        "        layers.assign(a, total)\n"
        "    with switch.default():\n        layers.assign(a, output=total)"
    )
    session.run("%%fluid big --in switch.default\nlayers.assign(total + 4.0, output=total);")
    assert total() == 5
    session.run("%%fluid small --in switch.case\nlayers.assign(total - 4.0, output=total);")
    assert total() == 5
    session.run("%%fluid big --in sw.2\nlayers.assign(total + 6.0, output=total);")
    assert total() == 7
    assert "switch.case" in session.run("%fluid block")


def test_the_sides_of_an_if_else(session: Session) -> None:
    session.run(
        "%%fluid data\nx = layers.data('x', shape=[1])\n"
        "limit = layers.fill_constant_batch_size_like(x, [-1, 1], 'float32', 0.0)\n"
        "ie = layers.IfElse(layers.less_than(x, limit))"
    )
    session.run("%%fluid yes\nwith ie.true_block():\n    p = ie.input(x)\n    ie.output(layers.scale(p, -1.0))")
    session.run("%fluid block open no=ie.false_block()")
    session.run("%%fluid taken --in no\nz = ie.input(x)")
    session.run("%%fluid given --in ie.false_block\nie.output(layers.scale(z, 10.0))")
    session.run("%fluid block close no")
    session.run("%%fluid out\nout, = ie()")
    feed = {"x": np.array([[1.0], [-2.0], [3.0]], "float32")}

    def out() -> list[float]:
        return list(fluid.Executor().run(feed=feed, fetch_list=["out"])[0].ravel())

    assert out() == [10, 2, 30]
    before = session.state()
    for cell in (
        "%%fluid yes\nwith ie.true_block():\n    p = ie.input(x)\n    ie.output(layers.scale(p, -1.0))",
        "%%fluid taken --in no\nz = ie.input(x)",
    ):
        session.run(cell)
        assert session.state() == before
    assert "built again: out" in session.run("%%fluid given --in no\nie.output(layers.scale(z, 100.0))")
    assert out() == [100, 2, 300]
    session.run("%%fluid yes\nwith ie.true_block():\n    p = ie.input(x)\n    ie.output(layers.scale(p, -5.0))")
    assert out() == [100, 10, 300]


@pytest.mark.parametrize("kind", ["StaticRNN", "DynamicRNN"])
def test_a_step_of_a_network(session: Session, kind: str) -> None:
    x = "layers.data('x', [3, 4], append_batch_size=False)"
    if kind == "DynamicRNN":
        x = "layers.data('x', [4], lod_level=1)"
    session.run(f"%%fluid data\nx = {x}\nrnn = layers.{kind}()")
    session.run("%fluid block open rnn")
    session.run("%%fluid reads --in rnn\nword = rnn.step_input(x)")
    session.run("%%fluid makes --in rnn\nhidden = layers.scale(word, 2.0)")
    assert "open" in session.run("%fluid block")
    session.run("%%fluid gives --in rnn\nrnn.output(hidden)")
    session.run("%fluid block close rnn")
    session.run("%%fluid out\nout = rnn()")
    before = session.state()
    value = np.arange(12, dtype="float32").reshape(3, 4)
    feed = {"x": value if kind == "StaticRNN" else fluid.create_lod_tensor(value, [[2, 1]], fluid.CPUPlace())}

    def out() -> np.ndarray:
        return np.asarray(fluid.Executor().run(feed=feed, fetch_list=[session.names["out"]], return_numpy=False)[0])

    assert np.array_equal(out(), 2 * value)
    data = f"%%fluid data\nx = {x}\nrnn = layers.{kind}()"
    for cell in ("%%fluid makes --in rnn\nhidden = layers.scale(word, 2.0)", data):
        session.run(cell)
        assert session.state() == before
    assert "built again: out" in session.run("%%fluid makes --in rnn\nhidden = layers.scale(word, 5.0)")
    assert np.array_equal(out(), 5 * value)


def test_a_with_of_an_object_from_an_earlier_cell_runs_again(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', [3, 4], append_batch_size=False)\nrnn = layers.StaticRNN()")
    step = "%%fluid step\nwith rnn.step():\n    rnn.output(layers.relu(rnn.step_input(x)))"
    session.run(step)
    session.run("%%fluid out\nout = rnn()")
    before = session.state()
    session.run(step)
    assert session.state() == before
    two = step + "\n    rnn.output(layers.tanh(rnn.step_input(x)))"
    assert "built again: out" in session.run(two)
    assert len(session.names["out"]) == 2
    session.run("%fluid undo")
    assert session.names["out"].shape == (3, 4)
    session.run("%fluid drop step out")
    assert session.names["rnn"].status == fluid.layers.StaticRNN.BEFORE_RNN_BLOCK


# Opening and closing.


def opened(session: Session) -> None:
    session.run(DATA)
    assert "turns  0 ops, open" in session.run("%fluid block open turns")


def test_a_block_over_several_cells(session: Session) -> None:
    opened(session)
    session.run(f"%%fluid add --in turns\n{ADD}")
    assert session.ops()[-2:] == ["elementwise_add", "assign"]
    assert "while" not in session.ops()
    assert total() == 0, "a block that is open does not run"
    session.run("%%fluid between\nstep2 = layers.fill_constant([1], 'float32', 5.0)")
    session.run(f"%%fluid count --in turns\n{COUNT}\nlayers.assign(total + step2, output=total);")
    assert "turns  1 op, closed" in session.run("%fluid block close turns")
    assert {"step", "step2", "total", "i", "n"} <= set(last().input("X"))
    assert total() == 21
    session.run(f"%%fluid add --in turns\n{ADD.replace('add(', 'sub(')}")
    assert total() == 9
    assert "removed: turns, add, count" in session.run("%fluid drop turns")
    assert fluid.default_main_program().num_blocks == 1


def test_opened_and_closed_again(session: Session) -> None:
    opened(session)
    session.run(f"%%fluid count --in turns\n{COUNT}")
    half = session.state()
    session.run("%fluid block close turns")
    whole = session.state()
    session.run("%fluid undo")
    assert session.state() == half
    session.run("%fluid block close turns")
    session.run("%fluid block open turns")
    assert session.state() == half
    session.run("%fluid block open turns")
    assert session.state() == half
    session.run("%fluid block close turns")
    assert session.state() == whole
    session.run("%fluid undo")
    session.run("%fluid undo")
    session.run("%fluid undo")
    assert session.state() == whole


def test_the_name_may_be_left_out_while_one_is_open(session: Session) -> None:
    session.run(DATA)
    error, _ = session.fail("%fluid block close")
    assert "no block is open" in str(error)
    session.run("%fluid block open turns")
    session.run(f"%%fluid count --in turns\n{COUNT}")
    session.run("%fluid block open other=layers.ConditionalBlock([more], True).block()")
    error, shown = session.fail("%fluid block close")
    assert "several blocks are open" in str(error)
    assert "turns or other" in shown
    session.run("%fluid block close other")
    assert "turns  1 op, closed" in session.run("%fluid block close")


@pytest.mark.parametrize("text", ["5", "total"])
def test_an_expression_that_opens_no_block(session: Session, text: str) -> None:
    session.run(DATA)
    state = session.state()
    error, _ = session.fail(f"%fluid block open q={text}")
    assert isinstance(error, FluidError) and f"{text} opens no block" in str(error)
    assert session.state() == state


def test_an_error_inside_the_expression_is_its_own(session: Session) -> None:
    session.run(DATA)
    session.run("def block():\n    with 5: pass\n"
                "def refuse(): raise TypeError('the context manager protocol is not this one')")  # fmt: skip
    for text in ("block()", "refuse()", "block(1)", "5 + 'a'"):
        error, _ = session.fail(f"%fluid block open q={text}")
        assert isinstance(error, TypeError) and not isinstance(error, FluidError), text


def test_what_is_missing_at_the_end_is_said_at_the_end(session: Session) -> None:
    opened(session)
    with pytest.warns(UserWarning, match="Nothing in the block of while writes its condition"):
        session.run("%fluid block close turns")
    session.run("%%fluid r\nx = layers.data('x', [3, 4], append_batch_size=False)\nrnn = layers.StaticRNN()")
    session.run("%fluid block open rnn")
    session.run("%%fluid m --in rnn\nword = rnn.step_input(x)\nbefore = rnn.memory(init=total)")
    state = session.state()
    _, shown = session.fail("%fluid block close rnn")
    assert "update" in shown
    assert session.state() == state
    assert "open" in session.run("%fluid block")


def test_an_open_block_inside_another(session: Session) -> None:
    opened(session)
    session.run("%%fluid start --in turns\nj = layers.fill_constant([1], 'int64', 0)\nless = layers.less_than(j, n)")
    session.run("%%fluid make --in turns\ninner = layers.While(less)")
    session.run("%fluid block open inner --in turns")
    session.run(f"%%fluid add --in inner\nlayers.increment(j, 1)\nlayers.less_than(j, n, cond=less)\n{ADD}")
    shown = session.run("%fluid block").splitlines()
    assert shown[1].startswith("└─ block 1     in block 0")
    assert shown[2].startswith("   └─ block 2  in block 1")
    session.run("%fluid block close inner")
    session.run(f"%%fluid count --in turns\n{COUNT}")
    session.run("%fluid block close turns")
    assert total() == 18
    assert "total" in last().output("Out")


def test_a_cell_keeps_its_place_when_a_block_inside_it_closes(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run("%%fluid after\nother = layers.relu(step)")
    session.run("%%fluid make --in turns\nbranch = layers.ConditionalBlock([more], is_scalar_condition=True)")
    session.run("%fluid block open branch --in turns")
    session.run(f"%%fluid add --in branch\n{ADD}")
    session.run("%fluid block close branch")
    assert [p.title for p in session.bench.cells] == ["data", "loop", "make", "branch", "add", "after"]
    assert total() == 4, "the condition is tested after the count"


def test_what_is_open_moves_only_behind_what_does_not_read_it(session: Session) -> None:
    opened(session)
    session.run("%%fluid size --in turns\nsize = 3")
    session.run("%%fluid reads\nz = layers.expand(step, [size])")
    session.run("%%fluid apart\nstep2 = layers.relu(step)")
    session.run(f"%%fluid add --in turns\n{ADD}")
    assert [p.title for p in session.bench.cells] == ["data", "turns", "size", "add", "reads", "apart"]
    session.run("%fluid drop reads")
    session.run(f"%%fluid count --in turns\n{COUNT}")
    assert [p.title for p in session.bench.cells] == ["data", "apart", "turns", "size", "add", "count"]


def test_the_tree(session: Session) -> None:
    opened(session)
    session.run(f"%%fluid add --in turns\n{ADD}")
    session.run(
        "%%fluid if\nbranch = layers.ConditionalBlock([more], is_scalar_condition=True)\nwith branch.block():\n"
        "    layers.assign(step, output=total)"
    )
    assert session.run("%fluid block").splitlines() == [
        "block 0     the global block                                            6 ops, 6 variables",
        "├─ block 1  in block 0                           turns   from cell add  2 ops, 1 variable   open",
        "└─ block 2  in block 0        conditional_block  branch  from cell if   1 op, 0 variables   closed",
    ]
    assert "block 2  1 block, 1 op" in session.run("%fluid block branch")
    assert "total = assign(step)" in session.run("%fluid block 2")
    session.run("%%fluid g --program other\nlayers.data('z', [1])")
    assert session.run("%fluid block --program other").splitlines() == ["block 0  the global block  0 ops, 1 variable"]


def test_blocks_that_no_with_has_filled(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run(
        "%%fluid hand\nmain = fluid.default_main_program()\nback = main.create_block()\nback.set_forward_block_idx(1)\n"
        "main.rollback()\nmain.create_block()\nmain.rollback()"
    )
    shown = session.run("%fluid block").splitlines()
    assert shown[2].endswith("gradient block of block 1")
    assert shown[3].endswith("not run by any operator")
    error, _ = session.fail("%%fluid no --in 2\npass")
    assert "no cell can append to block 2" in str(error)


@pytest.mark.parametrize(
    "line, says",
    [
        ("open", "takes NAME"),
        ("open a b", "takes NAME"),
        ("open total", "total has no block to open"),
        ("open data", "data is a cell"),
        ("open loose", "loose"),
        ("open w=total + 1", "with"),
        ("open switch=layers.Switch()", "switch opens no block"),
        ("open 1", "%%fluid --in 1 appends to it"),
        ("close turn", 'Did you mean "turns"?'),
        ("close data", "no block data is open"),
        ("7", "no block 7"),
        ("turn", 'Did you mean "turns"?'),
        ("1 --in turns", "belongs to %fluid block open"),
    ],
)
def test_mistakes(session: Session, line: str, says: str) -> None:
    opened(session)
    before = session.state()
    error, shown = session.fail(f"%fluid block {line}")
    assert says in shown or says in str(error)
    assert isinstance(error, OpValueError | UsageError | TypeError)
    assert session.state() == before


def test_a_block_that_is_filled_already(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    error, shown = session.fail("%fluid block open turns")
    assert "%%fluid --in turns appends to it" in shown
    error, shown = session.fail("%%fluid add --in turn\npass")
    assert 'Did you mean "turns"?' in shown
    error, shown = session.fail("%%fluid loop --in turns\npass")
    assert "no block turns" in str(error)
    error, shown = session.fail("%%fluid loop --in 1\npass")
    assert "its own block" in str(error)


def test_an_index_stays_that_of_the_block(session: Session) -> None:
    session.run("%%fluid first --in 0\nz = layers.ones([1], 'float32')", "a")
    session.run(DATA)
    session.run(LOOP)
    session.run(f"%%fluid add --in 1\n{ADD}", "c")
    branch = "%%fluid first\nz = layers.ones([1], 'float32')\nwith layers.ConditionalBlock([z]).block():\n    pass"
    assert "stale: add, appends to block 1, which would be block 2" in session.run(branch, "a")
    session.run(f"%%fluid add --in 2\n{ADD}", "c")
    assert total() == 6
    session.bench.follow(None, ["a"])
    [row] = [row for row in session.run("%fluid cells").splitlines() if row.startswith("add ")]
    assert "stale: appends to block 2, which would be block 1" in row
    session.run(f"%%fluid add --in 1\n{ADD}", "c")
    assert total() == 6


def test_a_part_does_not_take_the_block_of_another(session: Session) -> None:
    session.run(DATA)
    session.run(LOOP)
    session.run("%%fluid yes\nwith layers.ConditionalBlock([layers.less_than(i, n)]).block():\n    pass")
    session.run("%%fluid add --in 2\nlayers.assign(layers.scale(total, 1.0), output=total);")
    before = session.state()
    error, _ = session.fail(
        "%%fluid inner --in turns\nwith layers.ConditionalBlock([layers.less_than(i, n)]).block():\n    pass"
    )
    assert 'cell "add" appends to block 2, which would be block 3' in str(error)
    assert session.state() == before


def test_a_cell_that_ran_a_program_takes_no_others(session: Session) -> None:
    session.run(DATA)
    session.run(f"{LOOP}\nvalue = fluid.Executor().run(fetch_list=[total])[0]")
    error, _ = session.fail(f"%%fluid add --in turns\n{ADD}")
    assert "ran a program while building" in str(error)
    session.run(LOOP)
    error, _ = session.fail("%%fluid add --in turns\nfluid.Executor().run(fetch_list=[total])")
    assert "runs a program that is incomplete" in str(error)
    session.run(f"%%fluid add --in turns\n{ADD}")
    assert total() == 6


def test_a_block_of_a_function_is_called_by_its_cell(session: Session) -> None:
    session.run(DATA)
    session.run(
        "%%fluid made\ndef loop(cond):\n    with layers.While(cond).block():\n        layers.increment(i, 1)\n"
        "        layers.less_than(i, n, cond=cond)\nloop(more)"
    )
    session.run(f"%%fluid add --in made\n{ADD}")
    assert total() == 6
    _, shown = session.fail("%%fluid add --in mde\npass")
    assert 'Did you mean "made"?' in shown


def test_tab(session: Session) -> None:
    opened(session)

    def offered(text: str) -> list[str]:
        with provisionalcompleter():
            return [c.text for c in session.shell.Completer.completions(text, len(text))]

    assert offered("%%fluid add --in tu") == ["turns"]
    assert offered("%fluid block clo") == ["close"]
    assert offered("%fluid block close tu") == ["turns"]


def test_a_named_program(session: Session) -> None:
    session.run(DATA.replace("%%fluid data", "%%fluid data --program other"))
    session.run("%fluid block open turns --program other")
    session.run(f"%%fluid add --in turns\n{ADD}")
    session.run(f"%%fluid count --in turns --program other\n{COUNT}")
    session.run("%fluid block close turns")
    main, _ = session.bench.program("other")
    assert fluid.Executor().run(main, fetch_list=["total"])[0].item() == 6
    assert session.ops() == []
    error, _ = session.fail("%%fluid no --in turns --program third\npass")
    assert "no block turns" in str(error)


def test_what_is_learned_inside_a_block(session: Session) -> None:
    session.run(DATA)
    session.run(
        "%%fluid w\nw = layers.create_parameter([1], 'float32', name='w')\ntotal = layers.scale(w, 0.0)"
    )
    session.run(LOOP)
    session.run("%%fluid add --in turns\nlayers.assign(total + w, output=total);")
    session.run("%%fluid loss\nloss = layers.mean(total)\nfluid.optimizer.SGD(0.1).minimize(loss);")

    def gradient() -> float:
        return float(fluid.Executor().run(fetch_list=["w@GRAD"])[0].item())

    assert gradient() == 3
    before = session.state()
    assert "built again: loss" in session.run("%%fluid add --in turns\nlayers.assign(total + w * 2.0, output=total);")
    assert gradient() == 6
    assert "gradient block of block 1" in session.run("%fluid block")
    session.run("%%fluid add --in turns\nlayers.assign(total + w, output=total);")
    assert session.state() == before
    session.run("%%fluid twice --in turns\nlayers.assign(layers.scale(total, 2.0), output=total);")
    assert gradient() == 14
