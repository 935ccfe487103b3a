"""Tensors, scopes, variables: summaries, text and HTML."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.values import LoDTensor
from tests.viz.conftest import same_as_golden


def tensor(array: object, lod: list[list[int]] | None = None) -> LoDTensor:
    """A tensor on the CPU."""
    made = LoDTensor(name="t")
    made.set(np.asarray(array), fluid.CPUPlace())
    if lod:
        made.set_lod(lod)
    return made


def test_summaries() -> None:
    values = np.linspace(-1, 1, 101, dtype="float32")
    values[3], values[4] = np.nan, np.inf
    summary = viz.read_tensor(tensor(values), "x")
    assert (summary.nan, summary.inf) == (1, 1)
    assert summary.low == -1
    assert summary.high == 1
    assert summary.mean == pytest.approx(np.mean(values[np.isfinite(values)]), rel=1e-6)
    assert sum(summary.histogram) == 99
    assert summary.statistics.startswith("1 NaN  1 Inf")


@pytest.mark.parametrize("array", [np.zeros((0, 3), "float32"), np.zeros(20, "float32"), np.full(9, np.nan, "float32"),
                                   np.array([True] * 9), np.arange(9, dtype="uint8"), np.arange(3000000)],
                         ids=["empty", "constant", "nan", "bool", "uint8", "large"])  # fmt: skip
def test_any_array_has_a_summary(array: np.ndarray) -> None:  # type: ignore[type-arg]
    lines = viz.tensor_lines(viz.read_tensor(tensor(array)))
    assert str(list(array.shape)) in viz.plain(lines)


def test_scopes_as_text() -> None:
    scope = fluid.Scope()
    scope.var("w").get_tensor().set(np.arange(12, dtype="float32").reshape(3, 4), fluid.CPUPlace())
    scope.var("empty").get_tensor()
    inner = scope.new_scope()
    inner.var("words").get_tensor().set(np.array([7, 8, 9]), fluid.CPUPlace())
    inner.find_var("words").get_tensor().set_lod([[0, 1, 3]])
    same_as_golden("scope.txt", viz.plain(viz.scope_lines(viz.read_scope(scope))))
    html = viz.repr_html(scope)
    assert html is not None
    assert "words" in html


def test_variables_show_their_last_value() -> None:
    x = fluid.layers.fill_constant([2], "float32", 3.0)
    y = fluid.layers.scale(x, 2.0)
    assert "no value yet" in str(viz.repr_html(y))
    fluid.Executor().run(fetch_list=[y])
    html = str(viz.repr_html(y))
    assert "[6, 6]" in html
    assert "by scale" in html
    w = fluid.layers.fc(fluid.layers.data("z", shape=[3]), 2).param
    assert "parameter" in str(viz.repr_html(w))


def test_drawing_does_not_change_a_program() -> None:
    y = fluid.layers.fc(fluid.layers.data("z", shape=[3]), 2)
    program = fluid.default_main_program()
    before = program.desc.serialize_to_string(), program.version
    for thing in (y, program, y.op):
        viz.repr_html(thing)
    viz.program_lines(viz.read_program(program))
    assert (program.desc.serialize_to_string(), program.version) == before


def test_html_is_escaped() -> None:
    assert "<b>" not in viz.lines_html([[("<b>", "name")]])
