"""Timelines of profiled runs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.debug.profile import Event, profile_steps
from fluidnb.runtime.observers import observers
from fluidnb.viz.time.timeline import Timeline, read_timeline, time_text, timeline_lines
from tests.viz import memory_models
from tests.viz.conftest import same_as_golden


def event(name: str, start: int, end: int, block: int = 0, role: str = "forward", index: int = 0) -> Event:
    """An operator that ran; times in microseconds."""
    label = f"op {index} ({name}) in block {block}"
    return Event(name, label, block, f"cell net, line {index + 1}", start * 1000, end * 1000, role)


#: Two runs of a program with a loop in a loop; events come in the order of their ends, as a profile has them.
RUN = [
    event("mul", 0, 40), event("less_than", 110, 115, 2), event("while", 100, 120, 1, index=1),
    event("relu", 125, 145, 1, index=2), event("while", 50, 150, index=1),
    event("while_grad", 160, 190, 0, "backward", 2), event("sgd", 190, 200, 0, "optimizer", 3),
]  # fmt: skip
TWO = [*RUN, *(Event(e.type, e.label, e.block, e.cell, e.start + 250_000, e.end + 250_000, e.role) for e in RUN)]


def made() -> Timeline:
    """The timeline of both runs."""
    return read_timeline(TWO, (0, len(RUN)))


def test_depth_and_own_time_come_from_what_lies_in_what() -> None:
    bars = read_timeline(RUN).bars
    assert [(b.event.type, b.depth, b.own) for b in bars] == [
        ("mul", 0, 40_000), ("while", 0, 60_000), ("while", 1, 15_000), ("less_than", 2, 5_000),
        ("relu", 1, 20_000), ("while_grad", 0, 30_000), ("sgd", 0, 10_000),
    ]  # fmt: skip


def test_nothing_is_lost() -> None:
    timeline = made()
    assert sorted(id(b.event) for b in timeline.bars) == sorted(map(id, TWO))
    assert sum(s.calls for s in timeline.shares) == len(TWO)
    assert sum(s.own for s in timeline.shares) == timeline.busy == 360_000
    assert (timeline.length, len(timeline.lanes), timeline.runs) == (450_000, 3, (0, 250_000))
    assert [s.type for s in timeline.shares[:2]] == ["while", "mul"]
    for _, lane in timeline.lanes:
        bars = [b for b in timeline.bars if b.depth == lane]
        assert all(a.end <= b.start for a, b in zip(bars, bars[1:], strict=False))


@pytest.mark.parametrize("width", [80, 120])
def test_text_is_golden(width: int) -> None:
    assert max(map(len, viz.plain(timeline_lines(made(), width // 2)).splitlines())) <= width // 2
    text = viz.plain(timeline_lines(made(), width))
    assert max(map(len, text.splitlines())) <= width
    same_as_golden(f"timeline_{width}.txt", text)


def test_svg_is_golden() -> None:
    same_as_golden("timeline.svg", viz.timeline_svg(made(), "g_").replace("><", ">\n<"))


def test_narrow_operators_run_together_and_none_disappears() -> None:
    events = [event("relu", i, i + 1) for i in range(20_000)]
    svg = viz.timeline_svg(read_timeline([*events, event("mean", 20_000, 40_000)]), "u_")
    root = ET.fromstring(svg)
    boxes = [e for e in root.iter() if str(e.get("id")).startswith("u_bar_")]
    assert len(boxes) < 50
    counted = sum(int(n) for n in re.findall(r"<title>(\d+) operators from", svg))
    assert counted + svg.count("<title>op ") == len(events) + 1


def test_ids_are_unique_and_text_is_escaped() -> None:
    html = viz.timeline_html(made()) + viz.timeline_html(read_timeline([event("<b>&", 0, 10)]))
    found = re.findall(r' id="([^"]+)"', html)
    assert len(found) == len(set(found)) == 17
    assert "<b>&" not in html.replace("<b>&amp;", "")


def test_nothing_ran() -> None:
    empty = read_timeline([])
    assert viz.plain(timeline_lines(empty)) == "timeline  0 operators, 0.0 µs"
    ET.fromstring(viz.timeline_svg(empty))
    assert time_text(12_340_000) == "12.3 ms"


def test_profiled_steps_have_roles_and_leave_no_observer() -> None:
    exe, feed, loss = memory_models.ran(memory_models.small)
    profile, runs = profile_steps(lambda: exe.run(feed=feed, fetch_list=[loss]), 2)
    assert not observers
    block = fluid.default_main_program().global_block()
    called = [e for e in profile.events[: runs[1]]]
    assert {e.role for e in called} == {"forward", "backward", "optimizer"}
    assert len(profile.events) == 2 * runs[1] <= 2 * len(block.ops)
    assert [e.type for e in called] == [e.type for e in profile.events[runs[1] :]]
    with pytest.raises(ZeroDivisionError):
        profile_steps(lambda: 1 // 0)
    assert not observers


def test_loops_are_a_lane_of_their_own() -> None:
    exe, feed, loss = memory_models.ran(memory_models.recurrent)
    profile, runs = profile_steps(lambda: exe.run(feed=feed, fetch_list=[loss]))
    timeline = viz.read_timeline(profile, runs)
    assert {b.depth for b in timeline.bars} == {0, 1}
    for bar in timeline.bars:
        assert bar.depth == (0 if bar.event.block == 0 else 1)
        assert 0 <= bar.own <= bar.end - bar.start
