"""The widget that compares two runs: graphs, operators, renderings without a front end."""

from __future__ import annotations

import pytest

pytest.importorskip("anywidget")

from fluidnb.compare.difference import first_difference
from fluidnb.viz import plain
from fluidnb_magics.widgets.difference import DifferenceWidget
from tests.compare.networks import built


def test_both_graphs_and_the_values_of_each_operator() -> None:
    network = built("convolutions")
    faulty = network.copy()
    next(op for op in faulty.program.desc.blocks[0].ops if op.optype == "leaky_relu").set_attr("alpha", 0.5)
    widget = DifferenceWidget(first_difference(network.record("good"), faulty.record("bad")))
    assert "leaky_relu" in widget.operators[widget.first][2] and widget.operators[widget.first][3] == "differs"
    for svg in widget.graphs:
        for index, _, _, _, _ in widget.operators:
            assert f'op_0_{index}"' in svg
    assert all("first" in html and "second" in html for *_, html in widget.operators)
    assert "First difference" in widget.summary and "First difference" in plain(widget.lines())
    static = widget.static()
    assert static["text/html"].count("<svg") >= 2 and "<details>" in static["text/html"]


def test_equal_runs_and_a_difference_inside_a_loop() -> None:
    network = built("turns")
    assert DifferenceWidget(first_difference(network.record("a"), network.copy().record("b"))).first == -1
    faulty = network.copy()
    next(op for op in faulty.program.desc.blocks[1].ops if op.optype == "scale").set_attr("bias", 0.5)
    widget = DifferenceWidget(first_difference(network.record("a"), faulty.record("b")))
    assert widget.first == -1 and any(state == "differs" for _, _, _, state, _ in widget.operators)
