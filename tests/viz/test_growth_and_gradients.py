"""Changes over the steps of a loop: memory, gradients, updates."""

from __future__ import annotations

import gc
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory, viz
from fluidnb.errors import NotFound
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.memory.growth import Growth, GrowthPicture, Sample
from fluidnb.viz.time.gradients import GradientPicture, Gradients, ParameterRow, log_bars, norm
from tests.viz import memory_models
from tests.viz.conftest import same_as_golden


def picture(sizes: list[int]) -> GrowthPicture:
    """Growth made by hand."""
    return GrowthPicture(tuple(Sample(size, 1, 0, 0) for size in sizes))


@pytest.mark.parametrize(
    ("sizes", "verdict"),
    [
        ([100, 300, 300, 300, 300, 300], "steady since step 2"),
        ([300, 100, 300, 100, 300, 100], "steady since step 1"),
        ([100, 200, 300, 400, 500, 600], "grows by 100 bytes per step"),
        ([100, 100, 100, 100, 400, 400], "grows by 150 bytes per step"),
        ([100, 200], "run at least three steps to measure growth"),
    ],
)
def test_verdicts(sizes: list[int], verdict: str) -> None:
    assert picture(sizes).verdict == verdict
    assert verdict in viz.plain(viz.growth_lines(picture(sizes)))


def test_a_leak_is_found_and_named() -> None:
    exe, feed, loss = memory_models.ran(memory_models.small)
    gc.collect()  # what earlier tests left must not go while this one counts
    growth, kept = Growth(), []
    for _ in range(6):
        exe.run(feed=feed, fetch_list=[loss])
        kept.append(memory.raw(fluid.CPUPlace(), 8192))
        memory.tag(kept[-1], "forgotten")
        growth.add()
    made = growth.picture()
    assert made.verdict == "grows by 8.0 KB per step"
    assert (made.grown[0].name, made.grown[0].bytes, made.grown[0].count) == ("forgotten", 5 * 8192, 5)
    shown = viz.plain(viz.growth_lines(made, 80))
    assert "forgotten  40.0 KB  5 blocks" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert max(map(len, viz.plain(viz.growth_lines(made, 40)).splitlines())) <= 40
    ET.fromstring(re.search(r"<svg.*</svg>", viz.growth_html(made)).group())  # type: ignore[union-attr]


def test_training_is_steady_and_scopes_are_counted() -> None:
    exe, feed, loss = memory_models.ran(memory_models.small)
    growth = Growth()
    for _ in range(6):
        exe.run(feed=feed, fetch_list=[loss])
        growth.add()
    made = growth.picture()
    assert made.steady_since == 1
    scope = fluid.global_scope()
    arrays = [np.array(scope.find_var(n).get_tensor()) for n in scope.local_var_names()]
    assert made.samples[-1].scope == sum(a.nbytes for a in arrays)
    fluid.global_scope().new_scope().var("more").get_tensor().set(np.zeros(100, "float32"), fluid.CPUPlace())
    growth.add()
    last = growth.picture().samples
    assert (last[-1].scope - last[-2].scope, last[-1].variables - last[-2].variables) == (400, 1)
    fluid.global_scope().drop_kids()


def test_nothing_recorded() -> None:
    assert "0 steps" in viz.plain(viz.growth_lines(GrowthPicture()))
    assert "<svg" not in viz.growth_html(picture([1]))


def test_norms_are_those_of_numpy() -> None:
    exe, feed, loss = memory_models.ran(memory_models.small)
    scope = fluid.global_scope()
    names = ["fc_0.w_0", "fc_0.b_0", "fc_1.w_0", "fc_1.b_0"]
    gradients = Gradients()
    for step in range(3):
        before = {n: np.array(scope.find_var(n).get_tensor()) for n in names}
        (value,) = gradients.run(exe, feed, [loss])
        assert np.isfinite(value).all()
        for row in gradients.picture().rows:
            change = np.array(scope.find_var(row.name).get_tensor()).astype("float64") - before[row.name]
            assert row.update.last == pytest.approx(np.linalg.norm(change), rel=1e-6)
            assert row.gradient.last == pytest.approx(row.update.last / 0.01, rel=1e-3)  # SGD's learning rate
            assert row.gradient.points[-1][0] == step
    made = gradients.picture()
    assert [row.name for row in made.rows] == names
    assert made.steps == 3 and not made.without


def test_it_changes_no_result() -> None:
    losses = []
    for watched in (False, True):
        with fluid.fresh():
            fluid.seed(7)
            exe, feed, loss = memory_models.ran(memory_models.small)
            gradients = Gradients()
            for _ in range(3):
                (value,) = gradients.run(exe, feed, [loss]) if watched else exe.run(feed=feed, fetch_list=[loss])
            losses.append(value.tobytes())
    assert losses[0] == losses[1]


def test_sparse_gradients_and_parameters_without() -> None:
    words = fluid.layers.data("words", [1], dtype="int64")
    fluid.layers.create_parameter([3], "float32", name="unused")
    loss = fluid.layers.mean(fluid.layers.embedding(words, [10, 4], is_sparse=True))
    fluid.optimizer.SGD(1.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    gradients = Gradients()
    gradients.run(exe, {"words": np.array([[1], [2]], "int64")}, [loss], return_numpy=False)
    made = gradients.picture()
    assert made.rows[0].gradient.last == pytest.approx(np.sqrt(8) / 8)
    assert made.without == ("unused",)
    assert "no gradient  unused" in viz.plain(viz.gradient_lines(made))


def test_a_program_without_backward_is_told() -> None:
    fluid.layers.fc(fluid.layers.data("x", [2]), 1)
    with pytest.raises(NotFound, match="No parameter of this program has a gradient"):
        Gradients()


def by_hand() -> GradientPicture:
    """Gradients over six orders of magnitude, one that dies and one that becomes NaN."""
    rows = []
    for name, values in (
        ("embedding_0.w_0", [10.0**-i for i in range(7)]), ("fc_0.w_0", [1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ("fc_0.b_0", [1.0, 10.0, 100.0, float("nan"), float("nan"), float("inf"), float("nan")]),
    ):  # fmt: skip
        gradient, update = Curve(name), Curve(name)
        for step, value in enumerate(values):
            gradient.add(step, value)
            update.add(step, value / 10)
        rows.append(ParameterRow(name, gradient, update, 2.0))
    return GradientPicture(tuple(rows), 7, ("fc_9.b_0",))


def test_text_and_svg_are_golden() -> None:
    same_as_golden("gradients.txt", viz.plain(viz.gradient_lines(by_hand(), 80)))
    same_as_golden("gradients.svg", viz.gradients_svg(by_hand(), "g_").replace("><", ">\n<"))


def test_heat_map_has_a_cell_for_each_step_of_each_parameter() -> None:
    svg = viz.gradients_svg(by_hand(), "u_")
    root = ET.fromstring(svg)
    titles = [e.text or "" for e in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 2 * 3 * 7
    assert sum("NaN or infinite" in t for t in titles) == 2 * 4
    assert svg.count('fill="#d97706"') == 2 * 4
    html = viz.gradients_html(by_hand()) + viz.gradients_html(by_hand())
    found = re.findall(r' id="([^"]+)"', html)
    assert len(found) == len(set(found)) == 6


def test_many_steps_are_put_together() -> None:
    gradient = Curve("w")
    for step in range(5000):
        gradient.add(step, 1.0 + step)
    made = GradientPicture((ParameterRow("w", gradient, gradient, 1.0),), 5000)
    assert viz.gradients_svg(made).count("<title>") == 2 * 140
    for width in (40, 80):
        assert max(map(len, viz.plain(viz.gradient_lines(made, width)).splitlines())) <= width


def test_bars_of_flat_and_empty_curves() -> None:
    flat = Curve("w")
    flat.add(0, 2.0)
    assert (log_bars(flat, 2.0, 2.0, 8), log_bars(Curve("w"), 1.0, 1.0, 8)) == ("▄", "")
    assert norm(np.array([np.nan])) != norm(np.array([1.0]))
