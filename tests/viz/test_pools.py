"""Pools of several places in one picture, and the times of operators in a listing."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import fluidnb as fluid
from fluidnb import viz
from fluidnb.debug.profile import Event
from fluidnb.memory import Span, Stats
from fluidnb.values import CPUPlace, CUDAPlace
from fluidnb.viz.memory.model import ArenaMap, ArenaStep, Buffer, Holder, MemoryPicture, PoolPicture
from fluidnb.viz.memory.pools import holders, read_pools
from fluidnb.viz.time.timeline import read_timeline, timed, timeline_lines
from tests.viz.conftest import same_as_golden


def on_a_device() -> MemoryPicture:
    """The memory of a program that ran on a device, beside what the host holds."""
    steps = (ArenaStep(0, "mul", location="cell net, line 2"), ArenaStep(1, "relu", location="cell net, line 3"))
    arena = ArenaMap(0, 1024, steps, (Buffer(("h",), 0, 512, 0, 1), Buffer(("y",), 512, 256, 1, 1)))
    held = [Holder("arena", "arena of block 0", 1024), *(Holder("persistable", f"w_{i}", 256) for i in range(12))]
    spans = [Span(256 * i, 256, 250, "w") for i in range(13)]
    device = PoolPicture(
        Stats("CUDAPlace(0)", 4096, 8192, 1 << 30, (1 << 30) - 4096, (1 << 30) - 4096, 40, spans), tuple(held),
        "A GPU, sm_90, cupy 14.0.1", 1 << 34,
    )  # fmt: skip
    host = PoolPicture(Stats("CPUPlace", 4096, 8192, 65536, 61440, 61440, 7, spans[:1]), (Holder("other", "x", 4096),))
    return MemoryPicture((arena,), (device, host))


def test_text_is_golden() -> None:
    same_as_golden("memory_places.txt", viz.plain(viz.memory_lines(on_a_device(), 110)))


def test_html_has_a_part_for_each_place() -> None:
    page = viz.memory_html(on_a_device())
    assert page.count("<details>") == 3
    assert "memory of CUDAPlace(0), A GPU, sm_90, cupy 14.0.1 by holder: 4.0 KB used" in page
    assert "memory of CPUPlace by holder: 4.0 KB used" in page


def test_an_arena_with_nothing_in_it_takes_no_room() -> None:
    empty = MemoryPicture((ArenaMap(0, 0, (ArenaStep(0, "sgd"),)),))
    svg = ET.fromstring(viz.arena_svg(empty.maps[0]))
    assert int(svg.get("height") or 0) < 40 and "empty arena" in "".join(svg.itertext())
    assert "live at the peak" not in viz.memory_html(empty)


def test_the_place_that_is_asked_for_comes_first_and_others_when_they_hold_something() -> None:
    kept = fluid.memory.empty(CPUPlace(), (4,), "float32")
    pools = read_pools(fluid.Program(), CPUPlace())
    assert pools[0].stats.place == "CPUPlace" and pools[0].stats.used >= kept.nbytes
    assert not pools[0].device and not pools[0].limit
    assert all(pool.stats.used for pool in pools[1:])
    assert sum(h.bytes for h in holders(fluid.Program(), pools[0].stats)) == sum(s.size for s in pools[0].stats.live)


#: Two runs of a loop: its operator on the host, those inside on a device.
RUN = [
    Event("mul", "op 0 (mul) in block 1", 1, "cell net, line 3", 10_000, 40_000, index=0, place=CUDAPlace(0)),
    Event("mul", "op 0 (mul) in block 1", 1, "cell net, line 3", 50_000, 70_000, index=0, place=CUDAPlace(0)),
    Event("while", "op 1 (while) in block 0", 0, "cell net, line 2", 0, 80_000, index=1),
]
TWO = [*RUN, *(replace(e, start=e.start + 100_000, end=e.end + 100_000) for e in RUN)]


def test_host_and_device_have_lanes_of_their_own() -> None:
    timeline = read_timeline(TWO, (0, 3))
    assert [timeline.label(lane) for lane in timeline.lanes] == ["host 0", "CUDAPlace(0) 1"]
    shown = viz.plain(timeline_lines(timeline, 60))
    assert "device time by CUDA events: CUDAPlace(0)" in shown
    assert "\nhost 0          █" in shown and "\nCUDAPlace(0) 1  " in shown
    svg = "".join(ET.fromstring(viz.timeline_svg(timeline, "a_")).itertext())
    assert "host 0" in svg and "CUDAPlace(0) 1" in svg and "30.0 µs on CUDAPlace(0)" in svg
    host = read_timeline([RUN[-1]])
    assert not host.clocks and [host.label(lane) for lane in host.lanes] == ["0"]


def test_a_listing_has_the_mean_time_of_each_operator() -> None:
    x = fluid.layers.fill_constant([1], "float32", 1.0)
    i = fluid.layers.fill_constant([1], "bool", True)
    loop = fluid.layers.While(i)
    with loop.block():
        fluid.layers.relu(x)
        fluid.layers.less_than(x, x, cond=i)
    index = len(fluid.default_main_program().global_block().ops) - 1
    events = [replace(e, index=index) if e.block == 0 else e for e in TWO]
    picture = timed(viz.read_program(fluid.default_main_program()), read_timeline(events, (0, 3)))
    shown = viz.plain(viz.program_lines(picture))
    assert "mean of 2 runs; device time by CUDA events: CUDAPlace(0)" in shown
    rows = shown.splitlines()
    [while_] = [row for row in rows if "while(" in row]
    [relu] = [row for row in rows if "relu(" in row]
    assert while_.split()[:3] == ["30.0", "µs", "████"]  # without what is inside it
    assert relu.split()[:5] == ["2", "times", "50.0", "µs", "██████"]
    svg = ET.fromstring(viz.program_svg(picture, "a_"))
    assert "2 times  50.0 µs" in "".join(svg.itertext())
