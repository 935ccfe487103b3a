"""``%fluid teach`` in a shell, and its widgets without a page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError

import fluidnb as fluid
from fluidnb.errors import FluidError, NotFound
from fluidnb.viz import plain
from fluidnb.viz.lessons.backward.model import read_backward_example, read_backward_lesson
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.model import Choice
from fluidnb_magics.widgets.lessons import BackwardLessonWidget, LodLessonWidget, OptimizerLessonWidget
from fluidnb_magics.widgets.widget import script, style
from tests.magics.conftest import Session

NET = """%%fluid net
x, y = layers.data("x", shape=[13]), layers.data("y", shape=[1])
h = layers.fc(x, 4)
"""
LOSS = "%%fluid cost\nloss = layers.mean(layers.square_error_cost(layers.fc(h, 1), y))"


def hear(face: Any, **content: Any) -> list[Any]:
    """Let a widget hear its page; gives what it told the page."""
    told: list[Any] = []
    face.send = lambda content, buffers=None: told.append(content)
    face._handle_custom_msg(content, [])
    return told


def test_sequences_in_a_terminal(session: Session) -> None:
    assert "step 2  rows 2  12  7     memory of 0 3 1    3 of 4" in session.run("%fluid teach lod")
    shown = session.run("%fluid teach lod 2 1 / 2 3 1 --step 1")
    assert "absolute offsets  level 0  0 5 6" in shown
    assert "step 1  rows 2 3 4  memory of 0  1 of 2" in shown and "step 0" not in shown
    assert "rows 2  0  5" in session.run("%fluid teach lod 2 1 / 2 3 1 --level 1 --step 0")
    error, _ = session.fail("%fluid teach lod 2 2 / 2 3 1")
    assert isinstance(error, FluidError) and "1 sequence is missing" in str(error)


def test_optimizers_in_a_terminal(session: Session) -> None:
    shown = session.run("%fluid teach optimizer saddle SGD:0.5 adam --steps 20 --step 8")
    assert "after 8 steps" in shown and "SGD 0.5" in shown and "w_moment2_0" in shown and "adam" in shown
    assert "Momentum 0.06" in session.run("%fluid teach optimizer")
    error, _ = session.fail("%fluid teach optimizer Adm")
    assert isinstance(error, NotFound) and "Adam" in str(error)
    assert isinstance(session.fail("%fluid teach optimizer --steps 0")[0], UsageError)


def test_backward_in_a_terminal(session: Session) -> None:
    assert "backward of example shared" in session.run("%fluid teach backward")
    assert "while_grad" in session.run("%fluid teach backward --example loop --step 8")
    session.run(NET)
    shown = session.run("%fluid teach backward")
    assert "backward of example shared" in shown, "the program has no loss yet"
    assert "while_grad" in session.run("%fluid teach backward loop --step 8")
    session.run(LOSS)
    before = session.state()
    whole = session.run("%fluid teach backward")
    assert "backward of default" in whole and "All operators are written." in whole
    part = session.run("%fluid teach backward net")
    assert "gradient maker of mul" in part and "gradient maker of mean" not in part
    assert "h gets no gradient: it is in no_grad_set." in session.run("%fluid teach backward --no-grad h")
    assert session.state() == before
    session.run("%%fluid train\nfluid.optimizer.Adam(0.1).minimize(loss)")
    assert session.run("%fluid teach backward") == whole
    error, _ = session.fail("%fluid teach backward nett")
    assert isinstance(error, NotFound)
    error, _ = session.fail("%fluid teach backward --loss los")
    assert isinstance(error, NotFound)


def test_another_program(session: Session) -> None:
    session.run("%%fluid g --program gan\nloss = layers.mean(layers.fc(layers.data('noise', [2]), 1))")
    assert "backward of gan" in session.run("%fluid teach backward gan")
    assert "backward of gan" in session.run("%fluid teach backward g")


def test_help(session: Session) -> None:
    assert "--level" in session.run("%fluid teach lod --help")
    shown = session.run("%fluid teach optimizer --help")
    for table in (OPTIMIZERS, SURFACES, SCHEDULES, DECAYS):
        assert all(re.search(rf"\b{name}\b", shown) for name in table)
    assert "\n  %fluid teach lod" in session.run("%fluid teach --help")
    error, _ = session.fail("%fluid teach bakward")
    assert isinstance(error, UsageError) and "backward" in str(error)
    error, _ = session.fail("%fluid teach")
    assert isinstance(error, UsageError) and "%fluid teach lod" in str(error)
    assert "teach" in session.run("%fluid --help")


def test_tab(session: Session) -> None:
    session.run(NET)
    with provisionalcompleter():
        for line, word in (
            ("%fluid tea", "teach"), ("%fluid teach opt", "optimizer"), ("%fluid teach optimizer Ad", "Adam"),
            ("%fluid teach optimizer bo", "bowl"), ("%fluid teach lod --le", "--level"),
            ("%fluid teach backward ne", "net"), ("%fluid teach backward --example lo", "loop"),
        ):  # fmt: skip
            assert word in {c.text for c in session.shell.Completer.completions(line, len(line))}, line


def test_the_widget_about_sequences() -> None:
    face = LodLessonWidget("5 3 2 4", step=9)
    assert face.shown["step"] == 4 and face.shown["steps"] == 5 and face.shown["levels"] == 1
    assert hear(face, do="go", step=2) == [{"problem": ""}]
    assert face.shown["step"] == 2 and "memory at step 2" in face.shown["picture"]
    told = hear(face, do="type", text="2 2 / 2 3 1")
    assert "1 sequence is missing" in told[0]["problem"] and face.shown["text"] == "5 3 2 4"
    hear(face, do="type", text="2 1 / 2 3 1")
    assert (face.shown["levels"], face.shown["steps"], face.shown["step"]) == (2, 2, 1)
    hear(face, do="level", level=1)
    assert (face.shown["level"], face.shown["steps"]) == (1, 3)
    hear(face, do="type", text="4 4")
    assert (face.shown["level"], face.shown["levels"]) == (0, 1)
    hear(face, do="go", step=-1)
    assert face.shown["step"] == 3
    assert "step 3" in face.html() and "step 0" in plain(face.lines())
    with pytest.raises(FluidError):
        LodLessonWidget("")


def test_the_widget_about_optimizers() -> None:
    face = OptimizerLessonWidget("bowl", [Choice("SGD", 0.4)], 10)
    assert face.shown["step"] == 10 and set(face.kinds) == {"surfaces", "optimizers", "schedules", "decays"}
    hear(face, do="add")
    assert [c["name"] for c in face.shown["choices"]] == ["SGD", "Momentum"] and face.shown["focus"] == 1
    hear(face, do="choose", index=1, name="Adam", rate="", schedule="warmup", decay="L2")
    assert face.shown["choices"][1]["rate"] == "0.3" and "Adam 0.3 warmup L2" in face.shown["picture"]
    before = dict(face.shown)
    told = hear(face, do="choose", index=1, name="Adam", rate="x", schedule="warmup", decay="L2")
    assert "is a number" in told[0]["problem"] and face.shown == before
    hear(face, do="steps", count=30)
    assert face.shown["step"] == face.shown["steps"] == 30
    assert "1 to 400 steps" in hear(face, do="steps", count=1000)[0]["problem"]
    hear(face, do="go", step=3)
    assert "gradient of step 3" in face.shown["picture"] and "gradient of step 3" in plain(face.lines())
    hear(face, do="surface", name="saddle")
    assert face.shown["surface"] == "saddle" and face.shown["step"] == 3
    hear(face, do="focus", index=0)
    assert face.shown["focus"] == 0
    hear(face, do="remove", index=0)
    assert [c["name"] for c in face.shown["choices"]] == ["Adam"]
    assert "problem" in hear(face, do="remove", index=0)[0] and len(face.shown["choices"]) == 1
    assert "way" in face.html()


def test_the_widget_about_backward() -> None:
    loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))
    programs = {"mine": fluid.default_main_program(), "empty": fluid.Program()}
    face = BackwardLessonWidget(lambda: programs, read_backward_example("shared"), 9)
    assert face.shown["programs"] == ["mine", "example shared", "example loop", "example recurrent"]
    assert "@RENAME@block0" in face.shown["picture"] and face.shown["program"] == "example shared"
    hear(face, do="no_grad", text="left, y")
    assert face.shown["no_grad"] == "left y" and "@RENAME@block0" not in face.shown["picture"]
    assert "no variable lef" in hear(face, do="no_grad", text="lef")[0]["problem"]
    hear(face, do="program", name="mine")
    assert face.shown["step"] == 0 and face.shown["no_grad"] == "" and f"{loss.name}@GRAD" in face.shown["picture"]
    hear(face, do="go", step=-1)
    assert face.shown["step"] == face.shown["steps"] - 1
    del programs["mine"]
    assert "no program mine" in hear(face, do="no_grad", text="")[0]["problem"]
    assert "step 0" in plain(face.lines()) and "All operators are written" in face.html()
    face = BackwardLessonWidget(lambda: programs, read_backward_lesson(fluid.default_main_program(), title="mine"))
    assert face.shown["step"] == 0


def test_scripts_fetch_nothing_and_need_no_build() -> None:
    for name in ("lod_lesson", "optimizer_lesson", "backward_lesson"):
        text = script(name) + style(name)
        assert not re.search(r"https?://|\bimport\b|\brequire\(|@import", text)
        assert "export default" in text
