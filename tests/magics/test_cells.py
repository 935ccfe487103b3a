"""The cell contract: a cell that runs again replaces what it built, later cells follow, and nothing half is left."""

from __future__ import annotations

import pytest

import fluidnb as fluid
from tests.magics.conftest import Session

DATA = "%%fluid data\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])"
NET = "%%fluid net\nh = layers.fc(x, size=10)\npred = layers.fc(h, size=1)"
LOSS = (
    "%%fluid loss\nloss = layers.mean(layers.square_error_cost(pred, y))\n"
    "ops, grads = fluid.optimizer.SGD(0.1).minimize(loss)"
)


def model(session: Session) -> None:
    for cell in (DATA, NET, LOSS):
        session.run(cell)


def test_running_again_replaces(session: Session) -> None:
    model(session)
    before = session.state()
    for cell in (NET, DATA, LOSS, NET):
        session.run(cell)
        assert session.state() == before


def test_later_cells_that_read_it_are_built_again(session: Session) -> None:
    model(session)
    shown = session.run(NET.replace("size=10", "size=20"))
    assert "built again: loss" in shown
    block = fluid.default_main_program().global_block()
    assert block.var("h").shape == (-1, 20)
    assert block.var("h@GRAD").shape == (-1, 20)
    edited = session.state()
    with fluid.fresh():
        again = [NET.replace("size=10", "size=20") if cell is NET else cell for cell in (DATA, NET, LOSS)]
        session.shell.run_line_magic("unload_ext", "fluidnb")
        session.shell.run_line_magic("load_ext", "fluidnb")
        for cell in again:
            session.run(cell)
        assert session.state() == edited


def test_cells_that_do_not_read_it_stay(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])")
    session.run("%%fluid b\nh = layers.relu(x)")
    session.run("%%fluid c\nmarks = globals().setdefault('marks', [])\nmarks.append(1)\ng = layers.tanh(x)")
    handle = session.names["g"]
    assert "built again" not in session.run("%%fluid b\nh = layers.sigmoid(x)")
    assert session.names["marks"] == [1]
    assert session.names["g"] is handle
    assert handle.name == "g"


def test_a_changed_python_value_counts(session: Session) -> None:
    session.run("%%fluid sizes\nsize = 3\ndef wide(v): return layers.fc(v, size)")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.run("%%fluid net\nh = wide(x)")
    session.run("%%fluid other\nz = layers.relu(x)")
    shown = session.run("%%fluid sizes\nsize = 5\ndef wide(v): return layers.fc(v, size)")
    assert "built again: net" in shown
    assert "other" not in shown
    assert session.names["h"].shape == (-1, 5)


def test_a_name_that_is_bound_to_itself(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])")
    session.run("%%fluid b\nx = layers.relu(x)")
    session.run("%%fluid c\nx = layers.tanh(x)")
    for _ in range(2):
        session.run("%%fluid b\nx = layers.relu(x)")
        assert session.ops() == ["relu", "tanh"]
        assert session.names["x"].op.type == "tanh"


def test_an_error_leaves_everything(session: Session) -> None:
    model(session)
    before, names = session.state(), {n: session.names[n] for n in ("x", "h", "pred", "loss")}
    session.fail("%%fluid net\nh = layers.fc(x, size=3)\npred = layers.fc(h, size=1)\n1 / 0")
    session.fail("%%fluid fourth\nq = layers.relu(x)\nraise KeyboardInterrupt")
    session.fail("%%fluid net\nh = layers.fc(x, size=")
    assert session.state() == before
    assert {n: session.names[n] for n in names} == names
    assert "q" not in session.names
    assert names["h"].shape == (-1, 10)


def test_a_cell_that_cannot_be_rebuilt_is_stale(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[4])")
    session.run("%%fluid b\nz = layers.elementwise_add(x, y)")
    shown = session.run("%%fluid a\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[5])")
    [line] = [line for line in shown.splitlines() if "stale" in line]
    assert "stale: b, " in line
    assert session.ops() == []
    session.run("%%fluid a\nx = layers.data('x', shape=[4])\ny = layers.data('y', shape=[4])")
    assert session.ops() == ["elementwise_add"]


def test_a_failed_rebuild_leaves_no_names_behind(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])\nh = layers.relu(x)")
    session.run("%%fluid b\nsize = 5\ng = layers.fc(h, size)")
    session.shell.user_ns["size"] = 3  # bound again outside of the cells
    assert "stale: b" in session.run("%%fluid a\nx = layers.data('x', shape=[4])")
    assert session.names["size"] == 3, "b ran until its second line"


CONV = "%%fluid c1\nimage = layers.data('image', [1, 8, 8])\nconv1 = layers.conv2d(image, 4, 3)"
OUT = "%%fluid c2\nh = layers.fc(conv1, 10)"


def test_a_name_that_two_cells_share_is_renamed(session: Session) -> None:
    session.run(CONV)
    session.run(OUT)
    session.run("%%fluid c3\nloss = layers.mean(h)")
    shown = session.run(CONV.replace("conv1", "block1"))
    assert "stale: c2, conv1 is not defined" in shown
    assert 'stale: c3, h is not defined (cell "c2", which binds it, is stale)' in shown
    assert session.ops() == ["conv2d", "elementwise_add"]
    assert "built again: c3" in session.run(OUT.replace("conv1", "block1"))
    renamed = session.state()
    with fluid.fresh():
        session.shell.run_line_magic("unload_ext", "fluidnb")
        session.shell.run_line_magic("load_ext", "fluidnb")
        session.run(CONV.replace("conv1", "block1"))
        session.run(OUT.replace("conv1", "block1"))
        session.run("%%fluid c3\nloss = layers.mean(h)")
        assert session.state() == renamed


def test_running_with_stale_cells_says_so(session: Session) -> None:
    session.run("%%fluid a\nx = layers.fill_constant([1], 'float32', 2.0)\nw = layers.relu(x)")
    session.run("%%fluid b\ny = layers.scale(w, 3.0)")
    assert "stale" not in session.run("%fluid run --fetch x")
    session.run("%%fluid a\nx = layers.fill_constant([1], 'float32', 2.0)\nv = layers.relu(x)")
    for cell in ("%fluid run --fetch x", "for _ in range(3): fluid.Executor().run(fetch_list=[x])"):
        assert session.run(cell).count("not part of this run: cell b, which is stale (%fluid cells)") == 1, cell
    session.run("%fluid drop b")
    assert "stale" not in session.run("%fluid run --fetch x")


def test_a_restored_cell_heals_those_that_need_it(session: Session) -> None:
    model(session)
    session.run("%%fluid after\ndouble = layers.scale(pred, 2.0)")
    whole = session.state()
    shown = session.run("%fluid drop net")
    assert "stale: loss, pred is not defined" in shown
    assert "stale: after, pred is not defined" in shown
    assert "built again: loss, after" in session.run(NET)
    assert session.state() == whole


def test_the_second_run_builds_nothing_again(session: Session) -> None:
    model(session)
    names = {n: session.names[n] for n in ("x", "h", "loss", "grads")}
    whole = session.state()
    for cell in (DATA, NET, LOSS):
        shown = session.run(cell)
        assert "built again" not in shown
        assert "first values" not in shown
    assert session.state() == whole
    assert {n: session.names[n] for n in names} == names


def test_a_long_list_of_cells_is_cut(session: Session) -> None:
    session.run("%%fluid size\nsize = 3")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    for i in range(6):
        session.run(f"%%fluid c{i}\nh{i} = layers.fc(x, size)")
    assert "built again: c0, c1, c2 and 3 others\n" in session.run("%%fluid size\nsize = 4")


def test_what_a_cell_needs_goes_before_it(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.run("%%fluid net\nh = layers.fc(x, 3)")
    session.run("%%fluid between\nx2 = layers.relu(x)")
    session.run("%%fluid net\nh = layers.fc(x2, 3)")
    assert session.ops() == ["relu", "mul", "elementwise_add"]
    assert [p.title for p in session.bench.cells] == ["data", "between", "net"]


def test_two_cells_swap_their_names(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])", "a")
    session.run("%%fluid one\nh = layers.fc(x, 3)", "b")
    session.run("%%fluid two\ng = layers.fc(h, 3)", "c")
    assert "removed: two" in session.run("%%fluid two\nh = layers.fc(x, 3)", "b")
    session.run("%%fluid one\ng = layers.fc(h, 3)", "c")
    assert [p.title for p in session.bench.cells] == ["data", "two", "one"]
    assert session.ops() == ["mul", "elementwise_add"] * 2


def test_the_order_is_that_of_the_notebook(session: Session) -> None:
    session.bench.notebook.report(["a", "b", "d"])
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "a")
    session.run("%%fluid\nh = layers.relu(x)", "b")
    session.run("%%fluid\ng = layers.tanh(h)", "d")
    session.bench.notebook.report(["a", "b", "c", "d"])
    session.run("%%fluid\nh = layers.sigmoid(h)", "c")
    assert session.ops() == ["relu", "sigmoid", "tanh"]
    session.bench.notebook.report(["a", "c", "b", "d"])
    session.run("1 + 1", "d")
    assert session.ops() == ["relu", "tanh"], "sigmoid reads h, which comes later now"
    assert "stale: h is not defined" in session.run("%fluid cells", "d")
    session.bench.notebook.report(["a", "b", "d"])
    session.run("1 + 1", "d")
    assert session.ops() == ["relu", "tanh"]
    assert "stale" not in session.run("%fluid cells", "d")


def test_a_cell_that_comes_back_by_undo_is_not_in_the_notebook(session: Session) -> None:
    session.bench.notebook.report(["a", "b", "c"])
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "a")
    session.run("%%fluid\nh = layers.relu(x)", "b")
    session.bench.notebook.report(["a", "c"])
    assert "removed: In[3]" in session.run("1 + 1", "c")
    assert "not in the notebook: In[3]; the next %%fluid cell removes it" in session.run("%fluid undo", "c")
    assert session.ops() == ["relu"]
    assert "ghost: not in the notebook any more" in session.run("%fluid cells", "c")
    session.bench.notebook.report(["b", "a", "c"])
    assert "ghost" not in session.run("%fluid cells", "c")


def test_a_ghost_is_removed_by_the_next_cell_that_builds(session: Session) -> None:
    texts = {"a": "%%fluid\nx = layers.data('x', shape=[4])", "c": "%%fluid\ng = layers.tanh(x)"}
    session.bench.notebook.report(["a", "b", "c"])
    session.run(texts["a"], "a")
    session.run("%%fluid\nh = layers.relu(x)", "b")
    session.run(texts["c"], "c")
    session.bench.notebook.report(["a", "c"])
    session.run("1 + 1", "c")
    session.run("%fluid undo", "c")
    session.run("1 + 1", "c")
    assert session.ops() == ["relu", "tanh"], "what does not build leaves it, for inspection"
    shown = session.run(texts["c"], "c")
    assert shown.splitlines()[0].strip() == "removed: In[3] (not in the notebook)"
    assert session.ops() == ["tanh"]
    session.run("%fluid undo", "c")
    session.run("%fluid undo", "c")
    assert session.ops() == ["relu", "tanh"]
    session.bench.notebook.report(["a", "b", "c"])
    assert "removed" not in session.run(texts["c"], "c")
    assert session.ops() == ["relu", "tanh"], "the notebook has it again"


def test_a_ghost_stays_where_no_order_is_reported(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.run("%%fluid net\nh = layers.relu(x)")
    session.run("%fluid drop net")
    assert "not in the notebook" not in session.run("%fluid undo")
    session.run("%%fluid out\ng = layers.tanh(x)")
    [line] = [each for each in session.run("%fluid cells").splitlines() if "ghost" in each]
    assert line.startswith("net") and "ghost: restored by %fluid undo, not run since" in line
    session.run("%%fluid net\nh = layers.sigmoid(x)")
    assert "ghost" not in session.run("%fluid cells")
    assert session.ops() == ["sigmoid", "tanh"]


def test_what_rebuilt_cells_print_is_dropped(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])")
    assert "hello" in session.run("%%fluid b\nh = layers.fc(x, 2)\nprint('hello')\ndisplay('there')\nh")
    out = dict(session.names["Out"])
    shown = session.run("%%fluid a\nx = layers.data('x', shape=[5])")
    assert "built again: b" in shown
    assert "hello" not in shown
    assert "there" not in shown
    assert session.names["Out"] == out


def test_a_cell_that_ran_a_program_is_stale(session: Session) -> None:
    session.run("%%fluid a\nx = layers.fill_constant([1], 'float32', 1.0)")
    session.run("%%fluid b\nz = layers.scale(x, 2.0)\nvalue = fluid.Executor().run(fetch_list=[z])[0]")
    session.run("%%fluid c\ng = layers.relu(z)")
    shown = session.run("%%fluid a\nx = layers.fill_constant([1], 'float32', 5.0)")
    assert "stale: b" in shown
    assert "stale: c" in shown
    assert session.names["value"].item() == 2
    assert session.ops() == ["fill_constant"]
    assert sum("stale:" in row for row in session.run("%fluid cells").splitlines()) == 2
    error, _ = session.fail("layers.relu(z)")
    assert 'cell "b", which is stale' in str(error)
    session.run("%%fluid b\nz = layers.scale(x, 2.0)\nvalue = fluid.Executor().run(fetch_list=[z])[0]")
    assert session.names["value"].item() == 10
    assert "b  " in session.run("%fluid cells")
    session.run("%%fluid c\ng = layers.relu(z)")
    assert "stale" not in session.run("%fluid cells")
    assert session.ops() == ["fill_constant", "scale", "relu"]


def test_a_replaced_handle_names_the_cell(session: Session) -> None:
    model(session)
    session.run("old = h")
    session.run(NET.replace("size=10", "size=20"))
    error, shown = session.fail("layers.relu(old)")
    assert 'cell "net"' in shown
    assert isinstance(error, ValueError)


def test_undo_covers_runs_drops_and_resets(session: Session) -> None:
    model(session)
    states = [session.state()]
    session.run(NET.replace("size=10", "size=20"))
    states.append(session.state())
    session.run("%fluid drop loss")
    states.append(session.state())
    session.run("%fluid reset")
    assert session.ops() == []
    assert "x" not in session.names
    for state in reversed(states):
        session.run("%fluid undo")
        assert session.state() == state
    assert session.names["h"].shape == (-1, 10)


def test_cells_known_by_id(session: Session) -> None:
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "6a0b2c1e-11")
    session.run("%%fluid\nlayers.fc(x, 3)", "7b0b2c1e-22")
    parameter = fluid.default_main_program().all_parameters()[0].name
    assert parameter == "c7b0b2c1e.fc_0.w_0"
    session.run("%%fluid\nlayers.fc(x, 5)", "7b0b2c1e-22")
    assert session.ops() == ["mul", "elementwise_add"]
    assert fluid.default_main_program().all_parameters()[0].name == parameter
    assert "In[4]" in session.run("%fluid cells")


def test_deleted_cells_go(session: Session) -> None:
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "one")
    session.run("%%fluid\nh = layers.relu(x)", "two")
    session.run("%%fluid\ng = layers.relu(h)", "three")
    report = session.bench.follow(None, ["two", "no cell of ours"])
    assert report.removed == ["In[3]"]
    assert "In[4]" in report.stale
    assert session.ops() == []


@pytest.mark.parametrize("again", ["", "two"])
def test_a_deletion_that_was_interrupted_waits_for_the_next_cell(session: Session, again: str) -> None:
    session.names["interrupt"] = False
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "one")
    session.run("%%fluid\nx = layers.relu(x)", "two")
    session.run("%%fluid\nif interrupt: raise KeyboardInterrupt\ny = layers.tanh(x)", "three")
    session.names["interrupt"] = True
    with pytest.raises(KeyboardInterrupt):
        session.bench.follow("three", ["two"])
    assert session.ops() == ["relu", "tanh"]
    session.names["interrupt"] = False
    removed = session.bench.follow(again or "three", []).removed  # a cell that runs is not deleted
    assert (removed, session.ops()) == (([], ["relu", "tanh"]) if again else (["In[3]"], ["tanh"]))
    assert session.bench.follow("three", []).removed == []


def test_a_deleted_cell_that_the_saved_file_still_has_goes(session: Session) -> None:
    session.run("%%fluid\nx = layers.data('x', shape=[4])", "one")
    session.run("%%fluid\nh = layers.relu(x)", "two")
    session.bench.notebook.positions = {"one": 0, "two": 1}
    assert session.bench.follow("one", ["two"]).removed == ["In[3]"]
    assert session.ops() == []


def test_without_id_and_name_a_cell_appends(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    shown = session.run("%%fluid\nlayers.relu(x)")
    assert "%%fluid NAME" in shown
    session.run("%%fluid\nlayers.relu(x)")
    assert session.ops() == ["relu", "relu"]
    session.run("%fluid drop 3")
    assert session.ops() == ["relu"]


def test_append_adds(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.run("%%fluid more --append\nx = layers.relu(x)", "one")
    session.run("%%fluid more --append\nx = layers.relu(x)", "one")
    assert session.ops() == ["relu", "relu"]
    assert [f.title for f in session.bench.cells] == ["data", "more", "more_1"]


def test_a_name_means_one_cell(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])", "one")
    session.run("%%fluid net\nz = layers.relu(x)", "two")
    session.run("%%fluid net\nz = layers.tanh(x)", "three")
    assert session.ops() == ["tanh"]
    session.run("%%fluid other\nz = layers.sigmoid(x)", "three")
    assert session.ops() == ["sigmoid"]
    assert [f.title for f in session.bench.cells] == ["data", "other"]
    assert "removed: other" in session.run("%%fluid data\nx = layers.data('x', shape=[5])", "three")
    assert session.names["x"].shape == (-1, 5)
    assert session.bench.follow(None, ["two"]).removed == []
    assert session.bench.follow(None, ["three"]).removed == ["data"]


def test_programs_of_their_own(session: Session) -> None:
    session.run("%%fluid a --program other\nx = layers.data('x', shape=[4])\nh = layers.fc(x, 2)")
    assert session.ops() == []
    main, startup = session.bench.program("other")
    assert [op.optype for op in main.desc.blocks[0].ops] == ["mul", "elementwise_add"]
    assert len(startup.desc.blocks[0].ops) == 2
    assert "other" in session.run("%fluid programs")


@pytest.mark.parametrize("body", ["raise ValueError", "(("])
def test_a_refused_cell_creates_no_program(session: Session, body: str) -> None:
    session.fail(f"%%fluid a --program other\n{body}")
    assert "other" not in session.run("%fluid programs")
    session.run("%%fluid a --program other\nx = layers.data('x', shape=[4])")
    session.fail(f"%%fluid a --program other\n{body}")
    assert "other" in session.run("%fluid programs")


def test_a_cell_may_switch_the_default_programs(session: Session) -> None:
    session.run("%%fluid a\nx = layers.data('x', shape=[4])")
    first = fluid.default_main_program()
    session.run("%%fluid b\nother = fluid.Program()\nbefore = fluid.switch_main_program(other)")
    session.run("%%fluid c\ny = layers.data('y', shape=[4])\nz = layers.relu(y)")
    assert session.ops() == ["relu"]
    assert session.names["other"] is fluid.default_main_program()
    session.run("%fluid drop b")
    assert fluid.default_main_program() is first
    assert session.ops() == ["relu"]


LOOP = (
    "%%fluid loop\ni = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 3)\n"
    "total = layers.fill_constant([1], 'float32', 0.0)\nstep = layers.fill_constant([1], 'float32', 2.0)\n"
    "more = layers.less_than(i, n)\nturns = layers.While(more)\nwith turns.block():\n"
    "    i = layers.increment(i, 1)\n    more = layers.less_than(i, n, cond=more)"
)


@pytest.mark.parametrize("block", ["1", "loop"])
def test_going_on_with_a_block(session: Session, block: str) -> None:
    session.run(LOOP)
    session.run(f"%%fluid body --in {block}\nlayers.assign(layers.elementwise_add(total, step), output=total)")
    loop = fluid.default_main_program().global_block().ops[-1]
    assert {"step", "total"} <= set(loop.input("X"))
    assert "total" in loop.output("Out")
    assert fluid.Executor().run(fetch_list=["total"])[0].item() == 6
    session.run(LOOP.replace("'int64', 3", "'int64', 5"))
    assert fluid.Executor().run(fetch_list=["total"])[0].item() == 10
    session.run("%fluid drop body")
    assert "total" not in fluid.default_main_program().global_block().ops[-1].output("Out")


def test_run_and_show(session: Session) -> None:
    shown = session.run(
        "%%fluid a --run --show\nx = layers.fill_constant([2], 'float32', 3.0)\nz = layers.scale(x, 2.0)"
    )
    assert "z  float32[2]  [6, 6]" in shown
    assert "z = scale(x, scale=2)" in shown


def test_lines_are_those_of_the_editor(session: Session) -> None:
    session.run("%%fluid a\n\nx = layers.data('x', shape=[4])\n\nh = layers.relu(x)")
    assert fluid.default_main_program().global_block().ops[0].where.short() == "cell a, line 5"


def test_a_cell_is_plain_ipython(session: Session) -> None:
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    shown = session.run("%%fluid net\n%time h = layers.fc(x, 3)\nfiles = !echo one\n%precision\nh.shape")
    assert "Wall time" in shown
    assert "(-1, 3)" in shown
    assert session.names["files"] == ["one"]
    assert session.names["_"] == (-1, 3)
    assert session.names["h"].name == "h"
    assert session.names["h"].param.name == "h.w_0"
    assert fluid.default_main_program().global_block().ops[0].where.short() == "cell net, line 2"
    assert "(-1, 3)" not in session.run("%%fluid net\nh = layers.fc(x, 3)\nh.shape;")


@pytest.mark.parametrize(
    "mode, shown", [("all", 2), ("last", 1), ("none", 0), ("last_expr", 1), ("last_expr_or_assign", 1)]
)
def test_the_shells_way_of_showing(session: Session, mode: str, shown: int) -> None:
    session.shell.ast_node_interactivity = mode
    text = session.run("%%fluid a\n'first'\n'second'")
    assert ("'first'" in text) + ("'second'" in text) == shown


def test_help(session: Session) -> None:
    for cell in ("%%fluid --help\nlayers.data('x', shape=[1])", "%fluid --help", "%fluid"):
        assert "--program" in session.run(cell)
    assert not fluid.default_main_program().desc.blocks[0].vars


def test_a_cell_that_branches_on_a_variable_is_warned(session: Session) -> None:
    session.run('%%fluid net\nx = layers.data("x", shape=[2])')
    with pytest.warns(UserWarning, match=r"x counts as True while a program is built.*layers\.IfElse"):
        session.run("%%fluid more\nif x:\n    y = layers.relu(x)")
    assert session.ops() == ["relu"]


RECORDS = {
    "plain": "class Config:\n    def __init__(self, width): self.width = width",
    "slots": "class Config:\n    __slots__ = 'width', 'last'\n    def __init__(self, width): self.width = width",
    "frozen": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Config:\n    width: int",
    "dataclass": "from dataclasses import dataclass\n@dataclass(slots=True)\nclass Config:\n    width: int",
    "inherits": "class Base: __slots__ = 'width'\n"
    "class Config(Base):\n    def __init__(self, width): self.width = width",
    "strict": "class Config:\n    def __init__(self, width): self.__dict__['width'] = width\n"
    "    def __getattr__(self, name): return 7\n    def __setattr__(self, name, value): raise TypeError(name)",
    "namespace": "from types import SimpleNamespace\ndef Config(width): return SimpleNamespace(width=width)",
}
#: Changes the width; `strict` has no other way.
WIDER = {
    "frozen": "object.__setattr__(cfg, 'width', 6)",
    "strict": "cfg.__dict__['width'] = 6",
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_later_cell_changes_an_object_of_the_users(session: Session, kind: str) -> None:
    cells = {
        "data": "x = layers.data('x', shape=[4])",
        "config": "cfg = Config(3)",
        "net": "h = layers.fc(x, cfg.width)",
        "wider": WIDER.get(kind, "cfg.width = 6"),
        "out": "g = layers.fc(h, cfg.width)",
    }
    session.run(RECORDS[kind])
    for name, text in cells.items():
        session.run(f"%%fluid {name}\n{text}")
    whole = session.state()
    for name, text in cells.items():
        session.run(f"%%fluid {name}\n{text}")
        assert session.state() == whole, f"after {name} ran again"
    assert session.names["cfg"].width == 6
    session.run("%fluid drop wider")
    assert [session.names[name].shape for name in "hg"] == [(-1, 3), (-1, 3)]
    session.run("%fluid undo")
    assert session.state() == whole


def test_an_object_keeps_pieces_of_the_program(session: Session) -> None:
    session.run("class Net:\n    def __init__(self): self.parts, self.last = [], None")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])\nnet = Net()")
    part = "net.last = layers.fc(net.parts[-1] if net.parts else x, 3)\nnet.parts.append(net.last)"
    for name in ("one", "two"):
        session.run(f"%%fluid {name}\n{part}")
    session.run("%%fluid out\nlayers.sum(net.parts)")
    whole = session.state()
    session.run(f"%%fluid one\n{part}")
    assert session.state() == whole
    session.run("%fluid drop one")
    assert session.ops() == ["mul", "elementwise_add", "sum"]
    assert len(session.names["net"].parts) == 1


def test_what_is_changed_outside_of_cells_stays(session: Session) -> None:
    session.run("class History:\n    losses, best = (), None\nhistory = History()")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.run("%%fluid net\nh = layers.fc(x, 3)")
    session.run("history.best = 0.5")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    session.fail("%%fluid net\nh = layers.fc(x, 'wrong')")
    session.run("%fluid undo")
    assert session.names["history"].best == 0.5


def test_names_with_an_underscore_in_front_are_restored_as_others_are(session: Session) -> None:
    session.run("_n = 2")
    session.run("%%fluid data\nx = layers.data('x', shape=[4])")
    for _ in range(2):
        session.run("%%fluid net\n_n *= 2\nh = layers.fc(x, _n)\nfor _ in range(2): pass\n__m = 1")
        assert session.names["h"].shape == (-1, 4) and session.names["_n"] == 4
    session.run("%%fluid net\n_n = 9\nh = layers.fc(x, _n)")
    session.run("%fluid undo")
    assert session.names["_n"] == 4
    session.run("%fluid drop net")
    assert session.names["_n"] == 2 and session.names["__m"] == 1
