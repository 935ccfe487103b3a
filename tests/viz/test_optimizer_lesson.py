"""The lesson about optimizers: their ways against numpy's, and what is told about them."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, NotFound, OpValueError
from fluidnb.program import unique_name
from fluidnb.viz import plain
from fluidnb.viz.lessons.optimizer.choices import DECAYS, OPTIMIZERS, SCHEDULES, SURFACES
from fluidnb.viz.lessons.optimizer.map_svg import optimizer_map_svg
from fluidnb.viz.lessons.optimizer.model import Choice, heights, parse_choice, read_optimizer_lesson
from fluidnb.viz.lessons.optimizer.renderings import optimizer_lesson_html, optimizer_lesson_lines

START, SLOPE = np.array([-4.2, 1.6]), np.array([0.1, 2.0])  # of the bowl: 0.05 x² + y²


def points(choice: Choice, steps: int = 20) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The way of an optimizer in the bowl."""
    return np.array(read_optimizer_lesson("bowl", [choice], steps).tracks[0].points)


def test_sgd_goes_against_the_gradient() -> None:
    expected = [START * (1 - 0.4 * SLOPE) ** k for k in range(21)]
    np.testing.assert_allclose(points(Choice("SGD", 0.4)), expected, atol=1e-5)


def test_momentum_gathers_speed() -> None:
    w, v, expected = START, np.zeros(2), [START]
    for _ in range(20):
        v = 0.9 * v + SLOPE * w
        w = w - 0.06 * v
        expected.append(w)
    np.testing.assert_allclose(points(Choice("Momentum", 0.06)), expected, atol=1e-4)


def test_adam_and_what_it_keeps() -> None:
    [track] = read_optimizer_lesson("bowl", [Choice("Adam", 0.3)], 20).tracks
    w, m, v = START, np.zeros(2), np.zeros(2)
    for t in range(1, 21):
        g = SLOPE * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - 0.3 * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(track.points[t], w, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(track.accumulators["w_moment1_0"][t], m, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(track.accumulators["w_moment2_0"][t], v, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(track.gradients[t - 1], g, rtol=1e-3, atol=1e-4)
    assert [op.type for op in track.ops] == ["adam"]


def test_a_rate_that_is_too_large_is_lost() -> None:
    [track] = read_optimizer_lesson("rosenbrock", [Choice("SGD", 30.0)], 20).tracks
    assert track.lost is not None and track.lost < 20
    text = plain(optimizer_lesson_lines(read_optimizer_lesson("rosenbrock", [Choice("SGD", 30.0)], 20)))
    assert f"diverged in step {track.lost}" in text
    ET.fromstring(optimizer_map_svg(read_optimizer_lesson("rosenbrock", [Choice("SGD", 30.0)], 20), 20))


@pytest.mark.parametrize(
    ("schedule", "rate"),
    [
        ("constant", lambda k: 0.4),
        ("exponential", lambda k: 0.4 * 0.7 ** (k / 10)),
        ("inverse", lambda k: 0.4 / (1 + k / 10)),
        ("piecewise", lambda k: 0.4 if k < 30 else 0.04),
        ("warmup", lambda k: 0.4 * min(k / 15, 1)),
    ],
)
def test_schedules(schedule: str, rate: object) -> None:
    [track] = read_optimizer_lesson("bowl", [Choice("SGD", 0.4, schedule)], 40).tracks
    np.testing.assert_allclose(track.rates, [rate(k) for k in range(40)], rtol=1e-5)  # type: ignore[operator]
    assert len(track.ops) == 1 or schedule != "constant"


@pytest.mark.parametrize(("decay", "more"), [("L2", lambda w: 0.2 * w), ("L1", lambda w: 0.2 * np.sign(w))])
def test_penalties_are_in_the_gradient(decay: str, more: object) -> None:
    [track] = read_optimizer_lesson("bowl", [Choice("SGD", 0.1, decay=decay)], 5).tracks
    w = np.array(track.points[:5])
    np.testing.assert_allclose(track.gradients, SLOPE * w + more(w), rtol=1e-4)  # type: ignore[operator]
    assert len(track.ops) > 1


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("surface", SURFACES)
def test_each_optimizer_goes_down_each_surface(name: str, surface: str) -> None:
    [track] = read_optimizer_lesson(surface, [parse_choice(name)], 60).tracks
    assert track.lost is None
    assert track.heights[-1] < track.heights[0]
    assert all(len(values) == 61 for values in track.accumulators.values())
    assert track.ops[-1].role == "optimizer"


def test_noise_is_the_same_for_all() -> None:
    slow, slower = read_optimizer_lesson("noise", [Choice("SGD", 1e-4), Choice("SGD", 2e-4)], 10).tracks
    np.testing.assert_allclose(slow.gradients, slower.gradients, atol=0.05)
    assert np.std(np.array(slow.gradients)[:, 0]) > 0.3


def test_heights_are_the_formulas() -> None:
    x, y = np.random.RandomState(0).uniform(-2, 2, (2, 50))
    given = np.stack([x, y], axis=1).astype("float32")
    formulas = {
        "bowl": 0.05 * x**2 + y**2, "rosenbrock": 0.03 * (1 - x) ** 2 + 0.1 * (y - x**2) ** 2,
        "saddle": 0.5 * x**2 - 0.5 * y**2 + 0.1 * y**4, "noise": 0.5 * x**2 + 0.8 * y**2,
    }  # fmt: skip
    assert formulas.keys() == SURFACES.keys()
    for name, expected in formulas.items():
        np.testing.assert_allclose(heights(name, given), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("Adm", NotFound), ("Adam:x", OpValueError), ("Adam:-1", OpValueError), ("Adam:nan", OpValueError),
     ("Adam:1:weekly", NotFound), ("Adam:1:constant:L3", NotFound)],
)  # fmt: skip
def test_choices_that_there_are_not(text: str, kind: type[FluidError]) -> None:
    with pytest.raises(kind) as caught:
        parse_choice(text)
    assert "at:" not in str(caught.value)


def test_choices_as_they_are_typed() -> None:
    assert parse_choice("adam") == Choice("Adam", 0.3)
    assert parse_choice("SGD:0.5:exponential:l2") == Choice("SGD", 0.5, "exponential", "L2")
    assert Choice("SGD", 0.5, "exponential", "L2").title == "SGD 0.5 exponential L2"
    with pytest.raises(NotFound, match="no surface hill"):
        read_optimizer_lesson("hill", [Choice("SGD", 0.1)])
    with pytest.raises(NotFound, match="no optimizer Adm"):
        read_optimizer_lesson("bowl", [Choice("Adm", 0.1)])
    with pytest.raises(OpValueError):
        read_optimizer_lesson("bowl", [])
    with pytest.raises(OpValueError):
        read_optimizer_lesson("bowl", [Choice("SGD", 0.1)], 0)


def test_nothing_of_the_user_changes() -> None:
    before, names = fluid.default_main_program().desc.serialize_to_string(), dict(unique_name.generator.ids)
    read_optimizer_lesson("bowl", [Choice("SGD", 0.123, "exponential", "L2")], 3)
    assert fluid.default_main_program().desc.serialize_to_string() == before
    assert dict(unique_name.generator.ids) == names
    assert fluid.global_scope().find_var("w") is None


def test_faces() -> None:
    lesson = read_optimizer_lesson("saddle", [parse_choice("SGD"), parse_choice("Adam")], 30)
    text = plain(optimizer_lesson_lines(lesson, 12))
    assert "after 12 steps" in text and "gradient of step 12" in text and "w_moment1_0" in text
    assert "w = sgd(Grad=w@GRAD, LearningRate=learning_rate_0, Param=w)" in text
    assert all(len(line) <= 80 for line in plain(optimizer_lesson_lines(lesson, 12, 80)).splitlines())
    html = optimizer_lesson_html(lesson, 12, 1)
    assert "<script" not in html and f"{lesson.tracks[1].heights[12]:.4g}" in html
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ET.fromstring(svg)
    assert html.count('class="dot"') == 12
    assert "gradient of step" not in optimizer_lesson_html(lesson, 0)


def test_everything_to_choose_is_told_in_words() -> None:
    tables = (SURFACES, OPTIMIZERS, SCHEDULES, DECAYS)
    assert all(kind.words.endswith(".") for table in tables for kind in table.values())
