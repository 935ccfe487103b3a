"""The lesson about backward tells what append_backward really writes, operator by operator."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.backward.watch import watched, watching
from fluidnb.errors import NotFound, OpValueError
from fluidnb.program import Program, unique_name
from fluidnb.viz import plain, read_program
from fluidnb.viz.lessons.backward.examples import EXAMPLES, example, find_loss, forward_part
from fluidnb.viz.lessons.backward.model import BackwardLesson, read_backward_example, read_backward_lesson
from fluidnb.viz.lessons.backward.renderings import backward_lesson_html, backward_lesson_lines, step_lines
from fluidnb.viz.lessons.backward.svg import MOST, backward_svg
from tests.viz import programs

layers = fluid.layers


def written(program: Program, before: int) -> list[tuple[int, str]]:
    """(depth, type and results) of what stands behind the forward part of the global block."""
    ops = read_program(program).root
    return [(depth, f"{op.left} {op.type}") for op in ops.ops[before:] for depth, op in _walk(op)]


def _walk(op: object, depth: int = 0) -> list[tuple[int, object]]:
    inner = [row for block in op.blocks for each in block.ops for row in _walk(each, depth + 1)]  # type: ignore[attr-defined]
    return [(depth, op), *inner]


def told(lesson: BackwardLesson) -> list[tuple[int, str]]:
    """The same, as the last step of a lesson has it."""
    return [(row.depth, f"{row.op.left} {row.op.type}") for row in lesson.steps[-1].listing]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_told_as_they_are_written(name: str) -> None:
    program, loss = example(name)
    before = len(program.global_block().ops)
    with unique_name.guard():
        pairs = append_backward(loss)
    lesson = read_backward_example(name)
    assert told(lesson) == written(program, before)
    assert lesson.steps[-1].pairs == tuple((p.name, g.name) for p, g in pairs)


@pytest.mark.parametrize("build", [programs.fit_a_line, programs.lenet, programs.normalized, programs.sequences,
                                   programs.static_rnn, programs.dynamic_rnn])  # fmt: skip
def test_programs_that_were_minimized_are_told_as_they_are(build: object) -> None:
    build()  # type: ignore[operator]
    program = fluid.default_main_program()
    bytes_before, names = program.desc.serialize_to_string(), dict(unique_name.generator.ids)
    lesson = read_backward_lesson(program)
    assert program.desc.serialize_to_string() == bytes_before
    assert dict(unique_name.generator.ids) == names
    ops = read_program(program).root.ops
    backward = [op for op in ops if op.role == "backward"]
    types = [row.op.type for row in lesson.steps[-1].listing if row.depth == 0]
    assert types == [op.type for op in backward][: len(types)]  # clips come behind, and have the role too
    considered = [step.at for step in lesson.steps if step.at is not None]
    assert len(considered) == len(set(considered)) == len(lesson.forward)


def test_the_shared_variable() -> None:
    lesson = read_backward_example("shared")
    assert [step.kind for step in lesson.steps] == [
        "seed", "gradient", "gradient", "gradient", "nothing", "gradient", "gradient", "gradient", "gradient",
        "gradient", "gradient", "end",
    ]  # fmt: skip
    seed, joined = lesson.steps[0], lesson.steps[9]
    assert [(row.kind, row.op.left) for row in seed.listing] == [("seed", "loss@GRAD")]
    assert joined.at == (0, 1)
    assert joined.arrived == (("h", "h@GRAD"),)
    assert joined.maker == ("fc_0.tmp_0@GRAD = tanh_grad(Out=h, Out@GRAD=h@GRAD)",)
    assert joined.renamed == (
        ("h@GRAD", "h@GRAD@RENAME@block0@0"), ("h@GRAD", "h@GRAD@RENAME@block0@1"),
    )  # fmt: skip
    assert [row.kind for row in joined.listing if row.written == 9] == ["sum", "gradient"]
    assert [row.op.left for row in lesson.steps[8].listing][-2:] == ["h@GRAD", "h@GRAD"]  # before they were renamed
    assert lesson.steps[3].unwanted == (("y", "its stop_gradient is set, as for all fed data"),)


def test_no_grad_set_prunes() -> None:
    lesson = read_backward_example("shared", ["left"])
    assert not any("RENAME" in row.op.left for row in lesson.steps[-1].listing)
    step = next(step for step in lesson.steps if step.at == (0, 2))
    assert step.kind == "nothing" and not step.arrived
    assert ("left", "it is in no_grad_set") in next(s for s in lesson.steps if s.at == (0, 4)).unwanted
    with pytest.raises(NotFound, match="no variable lef"):
        read_backward_example("shared", ["lef"])


def test_a_parameter_that_is_not_trained() -> None:
    frozen = fluid.ParamAttr(name="frozen", trainable=False)
    loss = layers.mean(layers.fc(layers.fc(layers.data("x", [2]), 2), 1, param_attr=frozen))
    lesson = read_backward_lesson(fluid.default_main_program(), loss.name)
    reasons = dict(pair for step in lesson.steps for pair in step.unwanted)
    assert reasons["frozen"] == "it is a parameter that is not trained"


def test_the_loop() -> None:
    lesson = read_backward_example("loop")
    kinds = {step.at: step for step in lesson.steps}
    assert kinds[0, 4].kind == "block"
    assert kinds[0, 4].copies == (("h", "h@SAVED"),)
    assert [step.kind for step in lesson.steps].count("enter") == 1
    assert {row.depth for row in lesson.steps[-1].listing} == {0, 1}
    inside = next(row for row in kinds[1, 1].listing if row.op.type == "tanh_grad")
    assert inside.of == (1, 1) and inside.depth == 1
    text = plain(step_lines(lesson, lesson.steps.index(kinds[0, 4])))
    assert "while_grad runs it once for each iteration, in reverse order, and writes h@GRAD, w@GRAD." in text


def test_the_loss_is_found() -> None:
    x = layers.data("x", [2])
    loss = layers.mean(layers.fc(x, 1))
    layers.accuracy(layers.softmax(layers.fc(x, 3)), layers.data("label", [1], dtype="int64"))
    program = fluid.default_main_program()
    assert find_loss(program) == loss.name
    assert find_loss(program, "x") == "x"
    with pytest.raises(NotFound, match="no variable los"):
        find_loss(program, "los")
    fluid.optimizer.Adam(0.1).minimize(loss)
    assert find_loss(program) == loss.name
    part = forward_part(program)
    assert [op.role for op in read_program(part).root.ops] == ["forward"] * len(part.global_block().ops)
    assert not part.global_block().has_var(f"{loss.name}@GRAD")
    with pytest.raises(NotFound, match="no loss"):
        read_backward_lesson(Program())


def test_what_backward_refuses_is_told_by_backward() -> None:
    x = layers.data("x", [3])
    layers.mean(x)
    with pytest.raises(OpValueError, match="one number"):
        read_backward_lesson(fluid.default_main_program(), "x")


def test_watching_ends() -> None:
    with watched(lambda walk, position: None):
        assert watching() is not None
    assert watching() is None


def test_text() -> None:
    lesson = read_backward_example("shared")
    text = plain(backward_lesson_lines(lesson))
    assert "step 4 of 0 to 11  op 0:6  largest = reduce_max(both, reduce_all=True)" in text
    assert "No gradient reaches largest: no operator on the path to loss reads it. Nothing is written." in text
    assert "sum adds them before it is read." in text
    assert "+ h@GRAD = sum([h@GRAD@RENAME@block0@0, h@GRAD@RENAME@block0@1])" in text
    assert "fc_0.w_0 with fc_0.w_0@GRAD" in text
    one = plain(backward_lesson_lines(lesson, [4], 60))
    assert "step 3" not in one and all(len(line) <= 60 for line in one.splitlines())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_picture_of_each_step(name: str) -> None:
    lesson = read_backward_example(name)
    for i, step in enumerate(lesson.steps):
        svg = backward_svg(lesson, i)
        ET.fromstring(svg)
        assert svg.count('class="back') == len(step.listing)
        assert svg.count('class="back new') == sum(row.written == i for row in step.listing)
        assert svg.count('class="fore now"') == (step.at is not None)
        assert step_lines(lesson, i)
    html = backward_lesson_html(lesson, 3)
    assert "<script" not in html
    assert backward_lesson_html(lesson, 999) == backward_lesson_html(lesson, len(lesson.steps) - 1)


def test_a_long_program_is_drawn_around_the_step() -> None:
    h = layers.fc(layers.data("x", [4]), 4)
    for _ in range(100):
        h = layers.tanh(h)
    layers.mean(h)
    lesson = read_backward_lesson(fluid.default_main_program())
    svg = backward_svg(lesson, 50)
    assert svg.count('class="fore') == MOST and svg.count('class="fore now"') == 1
    assert svg.count('class="back') == MOST and svg.count('class="back new') == 1
    assert re.search(r"… \d+ more", svg)
    assert len(backward_lesson_html(lesson, 50)) < 100_000
