"""Commands as text: short words of gdb and pdb, expressions without a command, lines of a width."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug.session import Session
from fluidnb.errors import FluidError
from fluidnb.terminal.commands import command_of, run_command
from fluidnb.viz import plain


@pytest.fixture
def session() -> Iterator[Session]:
    """A session in the second iteration of a loop."""
    i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 3)
    x = layers.data("x", shape=[2])
    total = layers.fill_constant([1], "float32", 0.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.increment(i)
        layers.assign(layers.elementwise_add(total, layers.reduce_sum(x)), total)
        layers.less_than(i, n, cond=more)
    d = fluid.debug(feed={"x": np.ones((1, 2), "float32")})
    d.run_to("block 1@1")
    yield d
    d.close()


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("b", "break"), ("c", "continue"), ("n", "next"), ("s", "step"), ("u", "up"), ("d", "down"), ("p", "print"),
        ("l", "where"), ("bt", "where"), ("rs", "back"), ("rc", "rcontinue"), ("rn", "rnext"), ("unt", "until"),
        ("delete", "clear"), ("finish", "out"),
    ],
)  # fmt: skip
def test_short_words(short: str, name: str) -> None:
    command = command_of(short)
    assert command is not None and command.name == name


def test_up_and_down_show_the_blocks(session: Session) -> None:
    shown = plain(run_command(session, "u"))
    assert "while(" in next(line for line in shown.splitlines() if "▶" in line)
    with pytest.raises(FluidError, match="no block further out"):
        run_command(session, "u")
    assert "block 1, iteration 1" in plain(run_command(session, "d"))
    with pytest.raises(FluidError, match="no block further in"):
        run_command(session, "d")
    assert "reduce_sum" in plain(run_command(session, "u op reduce_sum")), "with a place it runs there"
    assert "no breakpoints" in plain(run_command(session, "break"))


def test_an_expression_without_a_command_is_printed(session: Session) -> None:
    assert plain(run_command(session, "x.sum() + 1")) == "x.sum() + 1  3.0"
    assert plain(run_command(session, "x")) == "x  float32[1, 2]  [1, 1]"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("prnt", 'There is no command or variable prnt.*Did you mean "print"'),
        ("brek op mul", 'There is no command brek.*Did you mean "break"'),
        ("x = 3", "There is no command x.*edit x = 3 sets x"),
        ("x.summ()", "has no attribute"),
        ("clear one", "That is not a breakpoint"),
    ],
)
def test_what_is_no_command(session: Session, line: str, said: str) -> None:
    before = session.snapshot
    with pytest.raises(FluidError, match=f"(?s){said}"):
        run_command(session, line)
    assert session.snapshot is before and session["x"].tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("width", [60, 80])
def test_the_operator_is_never_cut(width: int) -> None:
    x = layers.data("a_name_as_long_as_users_write_them_now_and_then", shape=[3, 8, 8])
    with fluid.unique_name.guard("prefix_of_a_block_"):
        h = layers.batch_norm(layers.conv2d(x, 4, 3, act="relu"))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(layers.mean(layers.fc(h, 3)))
    fluid.Executor().run(fluid.default_startup_program())
    d = fluid.debug(feed={x.name: np.ones((2, 3, 8, 8), "float32")})
    try:
        types = [op.type for op in fluid.default_main_program().global_block().ops]
        for at in range(len(types)):
            lines = plain(run_command(d, "where", width)).splitlines()
            assert max(map(len, lines)) <= width
            row = next(line for line in lines if "▶" in line)
            assert f"{types[at]}(" in row, row
            d.step()
    finally:
        d.close()


def test_the_difference_from_another_step():
    x = fluid.layers.data("x", [2])
    with fluid.unique_name.guard():
        y = fluid.layers.fc(x, 2, param_attr="w", bias_attr=False)
    loss = fluid.layers.mean(y)
    fluid.optimizer.SGD(0.5).minimize(loss)
    fluid.Executor().run(fluid.default_startup_program())
    fluid.global_scope().var("w").get_tensor().set(np.array([[0.0, 1.0], [2.0, np.nan]], "float32"))
    d = fluid.debug(feed={"x": np.array([[1.0, 0.0]], "float32")})
    d.continue_()
    text = plain(run_command(d, "p w --against 0"))
    assert text.splitlines() == [
        "w  2 of 4 elements differ from step 0, by 0.125 on average",
        "  index   old  new    absolute  relative",
        "  [0, 0]  0    -0.25  -0.25     inf",
        "  [0, 1]  1    0.75   -0.25     0.25",
    ]
    assert plain(run_command(d, "p x --against 3")) == "x  no element differs from step 3"
    assert plain(run_command(d, f"p {y.name} --against 0")) == f"{y.name}  it had no value at step 0"
    end = d.snapshot.at
    d.go(1)
    assert "differ from step" in plain(run_command(d, f"print w --against {end}")) and d.snapshot.at == 1
    for wrong in ("p w --against", "p w --against later", "p w --against 999", "p nothing --against 1"):
        with pytest.raises(FluidError):
            run_command(d, wrong)
    d.close()


def test_an_operator_beside_its_function_in_c(session: Session) -> None:
    assert "static void op_increment(" in plain(run_command(session, "code"))
    shown = plain(run_command(session, "code 1"))
    assert "reduce_sum(X=x)" in shown and "test_commands.py:" in shown
    assert "static void op_reduce_sum(const float *X, float *Out) {" in shown
    with pytest.raises(FluidError, match="This block has no operator 9"):
        run_command(session, "code 9")
    with pytest.raises(FluidError, match="An operator is a number in this block"):
        run_command(session, "code x")


def test_an_operator_without_c_code() -> None:
    x = layers.data("x", [2])
    out = x.block.create_var(name="out", dtype="float32", shape=[-1, 2])
    x.block.append_op("lgamma", {"X": x}, {"Out": out})
    session = fluid.debug(feed={"x": np.ones((1, 2), "float32")})
    with pytest.raises(FluidError, match=r"lgamma has no C code\."):
        run_command(session, "code")
    session.close()


@pytest.mark.parametrize(
    "line",
    ["change", "change 1:0 block=1", "change 1:0 index=1", "change 1:0 self=1", "change 1:0 step={[]:1}", "step ²",
     "change ²:0 step=1", "goto ²", "back ²", "clear ²", "code ²", "print total --against ²"],
)  # fmt: skip
def test_a_command_that_makes_no_sense(session: Session, line: str) -> None:
    with pytest.raises(FluidError):
        run_command(session, line)


def test_a_tensor_without_a_value_is_printed(session: Session) -> None:
    session.around = {"fluid": fluid}
    assert "no value" in plain(run_command(session, "print fluid.LoDTensor()"))


@pytest.mark.parametrize("line", ["history x", "back", "goto 0", "who x", "restart", "edit x = 1", "code", "print x"])
def test_a_command_before_the_first_run(line: str) -> None:
    d = Session(fluid.Program())
    with pytest.raises(FluidError):
        run_command(d, line)
    d.close()
