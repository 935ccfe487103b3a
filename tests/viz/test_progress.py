"""A loop that shows how far it is: never often, never for long, and right in the end."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError
from fluidnb.viz.base.curves import MOST_POINTS, Curve, bars, smoothed
from fluidnb.viz.base.curves_svg import curves_svg, traces
from fluidnb.viz.base.display_target import Notebook, Plain, Render, Terminal
from fluidnb.viz.time.progress import Progress, progress
from fluidnb.viz.time.progress_renderings import State, progress_html, progress_text


class NoDisplay:
    """Shows nothing."""

    def line(self, text: str) -> None: ...

    def show(self, text: Render, html: Render, last: bool) -> None: ...


class Watch(NoDisplay):
    """An target that notes when it was asked to draw, and takes its time.

    Args:
        clock: the time.
        cost: seconds that a drawing takes.
    """

    def __init__(self, clock: Clock, cost: float) -> None:
        self.clock, self.cost = clock, cost
        self.times: list[float] = []

    def show(self, text: Callable[[], str], html: Callable[[], str], last: bool) -> None:
        self.times.append(self.clock.now)
        self.clock.now += self.cost
        text(), html()


class Clock:
    """A time that only moves when told; looking at it takes a little."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 5e-8
        return self.now


def steps(clock: Clock, count: int, seconds: float) -> Iterator[int]:
    """Batches whose steps take a while."""
    for i in range(count):
        clock.now += seconds
        yield i


@pytest.mark.parametrize("seconds, cost", [(1e-5, 2e-3), (1e-3, 2e-3), (1e-3, 0.05), (0.5, 2e-3)])
def test_at_most_five_updates_a_second_and_one_percent(seconds: float, cost: float) -> None:
    clock = Clock()
    target = Watch(clock, cost)
    count = int(20 / seconds)

    def value() -> float:
        clock.now += 1e-6
        return 1.0

    loop = Progress(steps(clock, count, seconds), [value], total=count, target=target, clock=clock)
    start = clock.now
    for _ in loop:
        pass
    spent = clock.now - start - count * seconds
    assert spent - 2 * cost < 0.01 * count * seconds, "more than a hundredth of the run"
    inner = target.times[:-1]
    assert all(b - a >= 0.2 for a, b in zip(inner, inner[1:], strict=False)), "more than five updates a second"
    assert len(target.times) >= min(20, 0.01 * 20 / cost / 4)


def test_every_batch_comes_once_and_in_order() -> None:
    for count in (0, 1, 2, 7, 1000):
        loop = Progress(lambda n=count: iter(range(n)), passes=3, target=NoDisplay())  # type: ignore[misc]
        assert list(loop) == [*range(count)] * 3
        assert loop.step == 3 * count


def test_steps_so_far_are_right_inside_the_loop() -> None:
    loop = Progress(range(50), target=NoDisplay())
    for i in loop:
        assert loop.step <= i + 1
    assert loop.step == 50


def test_a_loop_that_is_left_shows_its_state() -> None:
    out = io.StringIO()
    for i in Progress(range(100), target=Plain(out), title="search"):
        if i == 10:
            break
    assert out.getvalue().startswith("search")
    assert "100/100" not in out.getvalue()


def test_watched_variables() -> None:
    x = fluid.layers.data("x", shape=[1])
    loss = fluid.layers.mean(x)
    exe = fluid.Executor()
    loop = Progress(range(5), loss, target=NoDisplay())
    for i in loop:
        exe.run(feed={"x": np.full((2, 1), i, "float32")}, fetch_list=[loss])
    assert loop.curves[0].name == loss.name
    assert loop.curves[0].last == 4
    points = loop.curves[0].points
    assert points
    assert all(step == value for step, value in points), "the value of another step"


def test_values_that_are_not_fetched_are_named() -> None:
    x = fluid.layers.data("x", shape=[1])
    out = io.StringIO()
    for _ in Progress(range(3), [x], target=Plain(out)):
        pass
    assert "x not fetched" in out.getvalue()


def test_what_cannot_be_watched() -> None:
    with pytest.raises(OpTypeError, match="cannot watch this value"):
        progress(range(3), watch=["loss"])
    with pytest.raises(OpTypeError, match="reader"):
        progress(3)  # type: ignore[arg-type]
    with pytest.raises(OpTypeError, match="must return the samples of one pass"):
        next(iter(progress(lambda: 5)))  # type: ignore[arg-type,return-value]


def test_terminal_writes_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    out = io.StringIO()
    for _ in Progress(range(3), target=Terminal(out), title="training"):
        pass
    text = out.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert all(len(part) <= 60 for part in text.replace("\x1b[K", "").split("\r"))


def test_notebooks_get_html_only_when_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    import IPython.display

    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            shown.append(bundle)

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(bundle)
        return Handle()

    monkeypatch.setattr(IPython.display, "display", display)
    for rich in (True, False):
        shown.clear()
        for _ in Progress(range(3), target=Notebook(rich)):
            pass
        assert len(shown) == 2
        assert ("text/html" in shown[-1]) == rich
        assert "3/3" in shown[-1]["text/plain"]


def test_curves_are_thinned_and_drawn() -> None:
    curve = Curve("loss")
    for i in range(100_000):
        curve.add(i, math.exp(-i / 20_000) if i % 1000 else math.nan)
    assert len(curve.points) <= MOST_POINTS
    assert curve.count == 100_000
    assert len(bars(curve, 24)) == 24
    svg = curves_svg([curve], 200_000)
    assert "NaN" not in svg
    ET.fromstring(svg)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0], [math.nan], [1e-9, 1e9], [-1.0, 1.0], [0.0, math.inf]])
def test_any_curve_can_be_drawn(values: list[float]) -> None:
    curve = Curve("v")
    for i, v in enumerate(values):
        curve.add(i, v)
    state = State("t", len(values), None, 0, 1, 1.0, [curve])
    ET.fromstring(curves_svg([curve]))
    assert progress_text(state)
    assert progress_html(state)


def test_shares_have_an_axis_of_their_own_and_each_step_its_values() -> None:
    loss, accuracy, tested = Curve("loss"), Curve("accuracy", share=True), Curve("loss")
    for i in range(300):
        loss.add(i, 40.0 + 10 * math.sin(i))
        accuracy.add(i, 0.5 + i / 1000)
    tested.add(299, 45.0)
    alone = curves_svg([loss], smooth=1)
    assert 'text-anchor="start"' not in alone and 'stroke-opacity=".3"' not in alone
    svg = curves_svg(traces([loss, accuracy], [tested]), smooth=30)
    drawn = ET.fromstring(svg)
    right = [e.text for e in drawn.iter("{http://www.w3.org/2000/svg}text") if e.get("text-anchor") == "start"]
    assert right and all(0.5 <= float(text or 0) <= 0.8 for text in right)
    assert svg.count('stroke-opacity=".3"') == 2, "both curves as they are, paler"
    shown = ["".join(g.itertext()) for g in drawn.iter() if g.get("class") == "fluidnb-at"]
    assert 50 < len(shown) <= 96
    assert "step 300" in shown[-1] and "accuracy 0.7845" in shown[-1] and "test loss 45" in shown[-1]
    values = [v for _, v in smoothed(loss, 30)]
    assert max(values[60:]) - min(values[60:]) < 3 < max(v for _, v in loss.points) - 40


def test_means_of_passes_stay_where_nobody_looks() -> None:
    out = io.StringIO()
    tested = {"<lambda>": 2.0}
    loop = Progress(lambda: iter(range(4)), lambda: 1.0, passes=2, target=Plain(out), after_pass=lambda: tested)
    for i in loop:
        loop.take([float(i)])
    lines = out.getvalue().splitlines()
    assert re.match(r"pass 1  <lambda> 1\.5  test <lambda> 2  in ", lines[0]) and lines[1].startswith("pass 2")
    assert "8/8" in lines[2] and len(lines) == 3
    assert progress_html(loop.state()).count("<tr>") == 3
