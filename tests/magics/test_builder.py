"""``%fluid add`` in a shell, and the builder's widget without a page."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb.program import unique_name as names
from fluidnb_magics.widgets.builder import Builder
from tests.magics.conftest import Session

DATA = "%%fluid data\nx = layers.data('x', [4])\nids = layers.data('ids', [1], dtype='int64')"
LOOP = (
    "%%fluid begin\ni = layers.fill_constant([1], 'int64', 0)\nturns = layers.While(layers.less_than(i, i))\n"
    "with turns.block():\n    j = layers.increment(i)\n    layers.less_than(i, i, cond=turns.cond_var)"
)


@pytest.fixture
def data(session: Session) -> Session:
    """A session with a cell."""
    session.run(DATA)
    return session


def next_input(session: Session) -> str:
    """The text of the next prompt."""
    text: str = vars(session.shell).pop("rl_next_input", "")
    return text


def test_a_line_goes_to_the_next_prompt(data: Session) -> None:
    before = data.state()
    shown = data.run("%fluid add fc x size=10 act=relu --as h")
    assert shown.splitlines()[:2] == ['h = layers.fc(x, 10, act="relu")', "  h  float32[-1, 10]"]
    assert "2 parameters: h.w_0 [4, 10], h.b_0 [10]" in shown
    assert data.state() == before
    cell = next_input(data)
    assert cell == '%%fluid h\nh = layers.fc(x, 10, act="relu")'
    data.run(cell)
    assert data.ops() == ["mul", "elementwise_add", "relu"]
    assert data.names["h"].shape == (-1, 10)


def test_without_a_name_one_is_suggested(data: Session) -> None:
    data.run("%fluid add fc x 3")
    data.run(next_input(data))
    data.run("%fluid add fc fc1 3")
    assert next_input(data) == "%%fluid fc2\nfc2 = layers.fc(fc1, 3)"


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("fc x size=0", OpValueError, "expected: size > 0"),
        ("fc x size=ten", OpTypeError, "Cannot get attribute size of fc by type int"),
        ("conv2d x 3 3", OpValueError, "4-D"),
        ("fc 10", OpTypeError, "input of fc must be a Variable."),
        ("cf x size=3", NotFound, "nothing that can be built is called cf"),
        ("fc x sise=3", NotFound, 'Did you mean "size"?'),
        ("fc x size=3 --in nowhere", NotFound, "one cannot build in nowhere."),
        ("relu x ids", UsageError, "is one argument too many; it is relu(x)"),
        ("", UsageError, "needs a NAME"),
        ("relu x --as", UsageError, "expected one argument"),
        ("relu 'x", UsageError, "No closing quotation"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(data: Session, line: str, kind: type, said: str) -> None:
    before, counted = data.state(), dict(names.generator.ids)
    error, _ = data.fail(f"%fluid add {line}".strip())
    assert isinstance(error, kind) and said in str(error)
    assert data.state() == before and names.generator.ids == counted
    assert next_input(data) == ""


def test_it_asks_for_what_is_missing(data: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["nothing", "", "ten", "10", "net"])
    asked: list[str] = []
    monkeypatch.setattr(builtins, "input", lambda text: asked.append(text) or next(answers))
    shown = data.run("%fluid add fc")
    assert asked == ["input [x]: ", "input [x]: ", "size: ", "size: ", "result [fc1]: "]
    assert "input of fc must be a Variable." in shown and "Cannot get attribute size" in shown
    assert next_input(data) == "%%fluid net\nnet = layers.fc(x, 10)"


def test_inside_a_block(data: Session) -> None:
    data.run(LOOP)
    data.run("%fluid add scale j scale=2.0 --in turns --as k")
    cell = next_input(data)
    assert cell == "%%fluid k --in turns\nk = layers.scale(j, scale=2.0)"
    data.run(cell)
    assert data.ops()[-1] == "scale" and data.names["k"].block.idx == 1


def test_into_another_program(data: Session) -> None:
    data.run("%%fluid a --program side\ns = layers.data('s', [2])")
    data.run("%fluid add relu s --program side --as t")
    cell = next_input(data)
    assert cell.startswith("%%fluid t --program side\n")
    data.run(cell)
    assert data.names["t"].block.program is data.bench.program("side")[0]


def test_a_network_that_trains_line_by_line(data: Session) -> None:
    lines = ["fc x 1 --as h", "mean h --as loss", "SGD loss 0.1", "append_backward loss"]
    for line in lines[:3]:
        data.run(f"%fluid add {line}")
        data.run(next_input(data))
    assert data.ops().count("sgd") == 2
    assert "6 backward" in data.run("%fluid add append_backward loss") or next_input(data)


def test_what_a_terminal_says_of_the_widget(data: Session) -> None:
    assert "%fluid add fc" in data.run("%fluid build")
    assert "number of output features" in data.run("%fluid build fc")
    error, _ = data.fail("%fluid build cf")
    assert isinstance(error, NotFound)


def test_tab(data: Session) -> None:
    def offered(line: str) -> set[str]:
        with provisionalcompleter():
            return {c.text for c in data.shell.Completer.completions(line, len(line))}

    assert {"softmax", "softmax_with_cross_entropy"} <= offered("%fluid add softm")
    assert {"x", "ids", "size=", "act=relu", "--as"} <= offered("%fluid add fc ")
    assert "size=" not in offered("%fluid add fc size=3 ")
    assert offered("%fluid add nothing x") == set() or "x" not in offered("%fluid add nothing x")


# The widget, without a page.


@pytest.fixture
def builder(data: Session) -> Iterator[Builder]:
    """The widget over a session with a cell."""
    made = Builder(data.bench, "fc")
    yield made
    made.close()


def hear(builder: Builder, **content: Any) -> dict[str, Any]:
    """The answer to a command of the page."""
    builder._handle_custom_msg(content, [])
    return dict(builder.state)


def test_a_draft_begins_with_what_fits(builder: Builder) -> None:
    assert "fc  Fully connected layer" in builder.static()["text/plain"]
    state = builder.state
    assert state["values"] == {"input": ["x"]} and state["result"] == "fc1"
    assert [[row[0], row[2]] for row in state["choices"]["input"]] == [["x", True], ["ids", False]]
    assert "fc needs size." in state["problems"]["size"] and state["line"] == ""
    assert state["locations"] == [["main", "global block"]]


def test_a_draft_is_tried(builder: Builder, data: Session) -> None:
    before = data.state()
    state = hear(builder, do="draft", name="fc", values={"input": ["x", ""], "size": "5"}, result="net", serial=7)
    assert state["serial"] == 7 and state["line"] == "net = layers.fc(x, 5)" and not state["refused"]
    assert state["preview"][0] == [["net", "name"], ["  float32[-1, 5]", ""]]
    state = hear(builder, do="draft", name="fc", values={"input": ["x"], "size": "0"}, serial=8)
    assert state["refused"] and state["problems"] == {"size": "fc needs at least one output feature."}
    values = {"input": ["x"], "size": "3", "act": "rlu"}
    assert hear(builder, do="draft", name="fc", values=values)["problems"] == {"act": "rlu is not an activation."}
    hear(builder, do="draft", name="fc", values={"input": ["x"], "size": "0"}, serial=8)
    assert data.state() == before
    assert "net = layers.fc" not in builder.static()["text/plain"]
    assert "fc needs at least one output feature." in builder.static()["text/html"]


def test_the_cells_that_a_line_can_join(builder: Builder, data: Session) -> None:
    data.run("%%fluid\nh = layers.fc(x, 3)", cell_id="a-1")
    data.run("%%fluid\ng = layers.fc(h, 3)", cell_id="b-2")
    state = hear(builder, do="draft", name="relu", values={}, cell="a-1")
    assert [row[0] for row in state["cells"]] == ["a-1", "b-2"] and state["cell"] == "a-1"
    assert [row[0] for row in state["choices"]["x"] if row[3]] == ["h", "x", "ids"], "g comes from a later cell"
    assert hear(builder, do="draft", name="relu", values={}, cell="gone")["cell"] == ""


def test_it_searches_and_shows_a_page(builder: Builder) -> None:
    hear(builder, do="search", text="softmax")
    assert builder.matches[0][:2] == ["softmax", "layer"]
    hear(builder, do="page")
    text = "\n".join("".join(piece for piece, _ in line) for line in builder.page)
    assert "num_flatten_dims: how many leading axes stay rows" in text
    hear(builder, do="choose", name="gelu")
    assert builder.page == []
    hear(builder, do="page")
    assert any("kernels" in piece for line in builder.page for piece, _ in line)


def test_a_command_that_fails_is_told(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(builder, "report", told.append)
    before = dict(builder.state)
    assert hear(builder, do="choose", name="cf") == before
    assert "nothing that can be built is called cf" in told[0]


def test_it_answers_between_cells_and_never_beside_one(data: Session) -> None:
    async def a_cell_shows_it() -> tuple[str, str]:
        builder = Builder(data.bench, "fc")
        while_it_runs = hear(builder, do="draft", name="relu", values={"x": "x"})["line"]
        await asyncio.sleep(0)  # the cell is over: the loop takes the next
        line = builder.state["line"]
        builder.close()
        return while_it_runs, line

    assert asyncio.run(a_cell_shows_it()) == ("", "relu1 = layers.relu(x)")
