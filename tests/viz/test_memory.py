"""The picture of memory: what is drawn is what was placed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import viz
from fluidnb.memory import Stats
from fluidnb.memory.arena import place
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.replay import buffer_placement as placing
from fluidnb.viz.memory.buffer_aliases import BufferGroups
from fluidnb.viz.memory.model import ArenaMap, ArenaStep, Buffer, Holder, MemoryPicture, PoolPicture
from tests.viz import memory_models
from tests.viz.conftest import same_as_golden

Life = tuple[int, int, int, int]


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Life], int]]:
    """The placement of a run: lives of buffers, and the arena's size, for each node."""
    found: list[tuple[list[Life], int]] = []

    def watched(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
        made = place(lives)
        found.append((list(lives), made[1]))
        return made

    monkeypatch.setattr(placing, "place", watched)
    return found


def arena_of(make: Callable[[], memory_models.Made]) -> ArenaMap:
    """The arena of block 0 of a program that has run."""
    memory_models.ran(make)
    return viz.read_memory().maps[0]


def held(lives: Sequence[Life]) -> list[int]:
    """Bytes held during each call, from the lives themselves."""
    end = max(last for _, last, _, _ in lives) + 1
    return [sum(size for first, last, size, _ in lives if first <= t <= last) for t in range(end)]


@pytest.mark.parametrize("name", ["lenet", "lstm", "views", "small"])
def test_the_picture_is_what_was_placed(name: str, placed: list[tuple[list[Life], int]]) -> None:
    arena = arena_of(getattr(memory_models, name))
    lives, size = placed[-1]
    true = held(lives)
    assert arena.size == max(size, 64)
    assert arena.peak == max(true)
    assert len(arena.live) >= len(true)
    # workspace is told apart by what lies where, so that some of it may seem to live longer within its operator
    ends = [arena.starts[i + 1] - 1 for i, step in enumerate(arena.steps) if step.calls]
    for call in ends:
        assert abs(arena.live[call] - (true[call] if call < len(true) else 0)) <= 0.05 * max(true)


@pytest.mark.parametrize("name", ["lenet", "lstm", "views", "recurrent", "small"])
def test_no_two_buffers_hold_a_byte_at_once_and_the_peak_is_the_largest_sum(name: str) -> None:
    memory_models.ran(getattr(memory_models, name))
    picture = viz.read_memory()
    for arena in picture.maps:
        for i, a in enumerate(arena.buffers):
            assert 0 <= a.offset and a.offset + a.size <= arena.size
            assert not any(a.meets(b) for b in arena.buffers[i + 1 :])
        sums = [sum(b.size for b in arena.buffers if b.first <= t <= b.last) for t in range(arena.starts[-1])]
        assert arena.live == sums
        assert arena.peak == max(sums) == sum(b.size for b in arena.at_peak) <= arena.size
        assert arena.live_by_step[arena.step_of(arena.peak_call)] == arena.peak


def test_nothing_is_lost(placed: list[tuple[list[Life], int]]) -> None:
    memory_models.ran(memory_models.small)
    arena = viz.read_memory().maps[0]
    block = fluid.default_main_program().global_block()
    assert [s.type for s in arena.steps] == [op.type for op in block.ops]
    named = {n for b in arena.buffers for n in b.names}
    lowered = program_state(fluid.default_main_program().desc).recent[-1]
    local = {n for op in block.ops for row in op.desc.outs.values() for n in row}
    kept = {h.name for h in viz.read_memory().holders}
    assert local - named <= lowered.pinned | lowered.persistable | kept | {"@EMPTY@"}
    assert "fc_0.tmp_0" in named and "fc_0.w_0@GRAD" in named
    assert len(placed[-1][0]) <= sum(max(len(b.names), 1) for b in arena.buffers)


def test_blocks_of_loops_have_arenas_of_their_own() -> None:
    memory_models.ran(memory_models.recurrent)
    maps = viz.read_memory().maps
    assert [m.block for m in maps] == [0, 1, 2]
    assert "mul" in {s.type for s in maps[1].steps} and maps[1].peak_step.role == "forward"
    assert maps[2].peak_step.role == "backward"


def test_who_holds_the_rest() -> None:
    memory_models.ran(memory_models.small)
    picture = viz.read_memory()
    kinds = {h.name: h.kind for h in picture.holders}
    assert kinds["fc_0.w_0"] == "persistable"
    assert kinds["arena of block 0"] == "arena"
    assert kinds["mean_0.tmp_0"] == "separate buffer"  # it is fetched
    assert picture.pool is not None
    assert sum(h.bytes for h in picture.holders) == sum(s.size for s in picture.pool.live)
    assert sum(h.count for h in picture.holders) == len(picture.pool.live)


def test_a_program_that_has_not_run_says_how() -> None:
    feed, loss = memory_models.small()
    with pytest.raises(fluid.errors.NotFound, match="(?s)has not run yet.*exe.run"):
        viz.read_memory()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=feed, fetch_list=[loss])
    assert viz.read_memory().maps[0].buffers


def test_memory_optimize_shows_both_numbers() -> None:
    exe, feed, loss = memory_models.ran(memory_models.views)
    before = viz.read_memory().maps[0]
    fluid.memory_optimize(fluid.default_main_program(), skip_opt_set=[loss])
    assert viz.read_memory().changed
    assert "was changed since it ran" in viz.plain(viz.memory_lines(viz.read_memory()))
    exe.run(feed=feed, fetch_list=[loss])
    after = viz.read_memory()
    assert not after.changed
    assert [m.peak for m in after.earlier] == [before.peak]
    shown = viz.plain(viz.memory_lines(after))
    assert f"before the program was changed  arena {fluid.memory.size_text(before.size)}" in shown


def test_views_of_one_buffer_are_one_buffer() -> None:
    groups = BufferGroups()
    groups.touch("x", 0, 128, 0)
    groups.touch("x", 0, 128, 4)
    groups.view([], 64, 128, 2, "op", 1)  # within its life and its bytes
    groups.view(["x"], 0, 64, 5, "op", 2)  # behind its life, of an operator that reads it
    groups.touch("y", 0, 64, 6)  # in the same place, later
    groups.touch("same", 0, 64, 8)
    groups.view(["x"], 0, 64, 9, "other", 3)  # x is gone for long: workspace of an operator that names it
    groups.touch("z", 128, 192, 3)  # beside it
    groups.view(["w"], 256, 300, 2, "op", 4)  # a variable of which only pieces are touched
    groups.view(["w"], 300, 320, 4, "op", 5)
    groups.join("y", "same")
    done = groups.done()
    assert [(g.names, g.low, g.high, g.first, g.last) for g in done] == [
        (("x",), 0, 128, 0, 5), (("w",), 256, 320, 2, 4), (("z",), 128, 192, 3, 3), (("y", "same"), 0, 64, 6, 8),
        ((), 0, 64, 9, 9),
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_what_was_placed_comes_back_from_its_touches(seed: int) -> None:
    random = np.random.RandomState(seed)
    lives: list[Life] = []
    for key in range(60):
        first = int(random.randint(0, 100))
        lives.append((first, first + int(random.randint(0, 20)), int(random.randint(1, 2000)), key))
    offsets, _ = place(lives)
    groups = BufferGroups()
    for first, last, size, key in lives:
        low, middle = offsets[key], size // 2
        groups.touch(f"x{key}", low, low + size, first)
        groups.view([], low, low + middle + 1, int(random.randint(first, last + 1)), "op", key)  # a part, in between
        groups.touch(f"x{key}", low + middle, low + size, last)
    found = {(g.low, g.high, g.first, g.last): g.names for g in groups.done()}
    assert found == {(offsets[k], offsets[k] + s, a, b): (f"x{k}",) for a, b, s, k in lives}


def test_pieces_of_workspace_are_one_buffer_unless_something_else_lies_there() -> None:
    groups = BufferGroups()
    for call, (low, high) in enumerate(((0, 100), (0, 80), (300, 400), (300, 380))):
        groups.view([], low, high, 2 * call, "op", call)
    groups.touch("x", 380, 420, 5)  # between the third and the fourth piece, where the third lay
    assert [(g.names, g.low, g.high, g.first, g.last) for g in groups.done()] == [
        ((), 0, 100, 0, 2), ((), 300, 400, 4, 4), (("x",), 380, 420, 5, 5), ((), 300, 380, 6, 6),
    ]  # fmt: skip


def plain_picture() -> MemoryPicture:
    """A picture made by hand: a buffer under two names, another in its place later, workspace, a step without calls."""
    steps = (
        ArenaStep(0, "mul", calls=2, location="cell net, line 2"), ArenaStep(1, "reshape", calls=0),
        ArenaStep(2, "relu"), ArenaStep(3, "relu_grad", "backward"), ArenaStep(4, "sgd", "optimizer"),
    )  # fmt: skip
    buffers = (
        Buffer(("h", "h2"), 0, 4096, 0, 2), Buffer((), 4096, 1000, 1, 1), Buffer(("y",), 4096, 4096, 2, 3),
        Buffer(("h@GRAD",), 0, 4096, 3, 4),
    )  # fmt: skip
    holders = (Holder("arena", "arena of block 0", 8192), Holder("persistable", "w", 4096), Holder("other", "?", 64, 2))
    pool = PoolPicture(Stats("CPUPlace", 12352, 16448, 65536, 53184, 53184, 9), holders)
    return MemoryPicture((ArenaMap(0, 8256, steps, buffers),), (pool,))


def test_a_picture_made_by_hand() -> None:
    arena = plain_picture().maps[0]
    assert arena.live == [4096, 5096, 8192, 8192, 4096]
    assert arena.live_by_step == [5096, 5096, 8192, 8192, 4096]
    assert (arena.peak, arena.peak_call, arena.peak_step.type) == (8192, 2, "relu")
    assert [arena.called(b) for b in arena.buffers] == ["h", "workspace of mul", "y", "h@GRAD"]
    assert arena.maker(arena.buffers[3]).role == "backward"


def test_the_peak_is_divided_among_cells() -> None:
    cells = ("net", "net", "", "loss")
    steps = tuple(ArenaStep(i, "relu", cell=cell) for i, cell in enumerate(cells))
    arena = ArenaMap(0, 9 * 1024, steps, tuple(Buffer((f"v{i}",), i * 2048, 1024, i, 3) for i in range(4)))
    assert arena.peak_by_cell == [("net", 2048), ("", 1024), ("loss", 1024)]
    *_, last = viz.plain(viz.memory_lines(MemoryPicture((arena,)))).splitlines()
    assert last == "  by cell  net 2.0 KB, outside cells 1.0 KB, loss 1.0 KB"


def without_places(arena: ArenaMap) -> ArenaMap:
    """An arena without lines of test files, which move."""
    return replace(arena, steps=tuple(replace(s, location="here, line 1", cell="") for s in arena.steps))


@pytest.mark.parametrize("name", ["small", "recurrent"])
def test_text_and_svg_are_golden(name: str) -> None:
    memory_models.ran(getattr(memory_models, name))
    picture = viz.read_memory()
    drawn = MemoryPicture(tuple(map(without_places, picture.maps)))
    same_as_golden(f"memory_{name}.txt", viz.plain(viz.memory_lines(drawn, 100)))
    same_as_golden(f"memory_{name}.svg", viz.arena_svg(drawn.maps[-1], "g_").replace("><", ">\n<"))


def test_svg_has_a_box_for_each_buffer() -> None:
    arena = plain_picture().maps[0]
    svg = viz.arena_svg(arena, "u_")
    ids = [e.get("id") for e in ET.fromstring(svg).iter() if e.get("id")]
    assert [i for i in ids if str(i).startswith("u_buffer_")] == [f"u_buffer_{i}" for i in range(4)]
    assert len(ids) == len(set(ids))
    html = viz.memory_html(plain_picture()) + viz.memory_html(plain_picture())
    found = re.findall(r' id="([^"]+)"', html)
    assert len(found) == len(set(found)) == 10
    assert "<script" not in html and "http:" not in html.replace("http://www.w3.org/2000/svg", "")


def test_of_very_many_buffers_the_largest_are_drawn() -> None:
    steps = tuple(ArenaStep(i, "relu") for i in range(2000))
    buffers = tuple(Buffer((f"x{i}",), 0, 64 + i, i, i) for i in range(2000))
    svg = viz.arena_svg(ArenaMap(0, 4096, steps, buffers), "u_")
    assert svg.count('id="u_buffer_') == 1500
    assert "500 smaller buffers are not drawn" in svg and 'id="u_buffer_1999"' in svg and 'id="u_buffer_3"' not in svg


def test_names_of_users_are_escaped() -> None:
    arena = ArenaMap(0, 64, (ArenaStep(0, "re<lu", location="<b>&"),), (Buffer(('<script>&"',), 0, 64, 0, 0),))
    ET.fromstring(viz.arena_svg(arena))
    assert "<script>" not in viz.memory_html(MemoryPicture((arena,)))


def test_nothing_in_the_arena() -> None:
    empty: Any = MemoryPicture((ArenaMap(0, 0, (ArenaStep(0, "sgd"),)),))
    assert viz.plain(viz.memory_lines(empty)) == "block 0  empty arena"
    ET.fromstring(viz.arena_svg(empty.maps[0]))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_terminals_of_any_width(width: int) -> None:
    memory_models.ran(memory_models.lenet)
    lines = viz.plain(viz.memory_lines(viz.read_memory(), width)).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("block 0  arena")
