"""After any sequence of edits, re-runs, removals and undos, the programs are those of a fresh run of the cells."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fluidnb.cells.cell_log import CellLog, Task
from fluidnb.program import (
    BlockGuard,
    Operator,
    Program,
    Variable,
    default_main_program,
    default_startup_program,
    fresh_programs,
    switch_main_program,
    unique_name,
)

Names = dict[str, Any]
Cell = tuple[tuple[str, ...], ...]


def run_cell(cell: Cell, ns: Names) -> None:
    """Run a cell of the little language of these tests; it has what real cells do to programs."""
    for verb, *args in cell:
        BY_NAME[verb](ns, *args)


def _same(source: Any, out: str | None = None, block: Any = None, **attrs: Any) -> Any:
    block = block or default_main_program().current_block()
    var = block.create_var(name=out or unique_name.generate("same.tmp"), shape=[], dtype="float32")
    block.append_op("t_same", {"X": source}, {"Out": var}, attrs)
    return var


def data(ns: Names, name: str) -> None:
    ns[name] = default_main_program().global_block().create_var(name=name, shape=[-1, 4], dtype="float32")


def wide(ns: Names, name: str) -> None:
    ns[name] = default_main_program().global_block().create_var(name=name, shape=[-1, 8], dtype="float32")


def same(ns: Names, out: str, source: str) -> None:
    ns[out] = _same(ns[source])


def named(ns: Names, out: str, source: str) -> None:
    ns[out] = _same(ns[source], out)


def by_name(ns: Names, out: str, source: str) -> None:
    ns[out] = _same(default_main_program().global_block().var(source))


def probe(ns: Names, name: str) -> None:
    block = default_main_program().global_block()
    source = block.create_var(name="probe", shape=[2], dtype="float32")
    _same(source, factor=2.0 if block.has_var(name) else 3.0)


def parameter(ns: Names, out: str) -> None:
    name = unique_name.generate("fc.w")
    ns[out] = default_main_program().create_parameter(
        name=name, shape=[4], dtype="float32", init_attr={"type": "t_source", "shape": [4]}
    )


def loop(ns: Names, source: str) -> None:
    program = default_main_program()
    with BlockGuard(program) as inner:
        out = _same(ns[source], block=inner)
        with BlockGuard(program) as innermost:
            _same(out, block=innermost)
        inner.append_op("t_loop", {"X": out}, attrs={"sub_block": innermost})
    program.current_block().append_op("t_loop", {"X": ns[source]}, attrs={"sub_block": inner})
    ns["body"] = inner


def into_loop(ns: Names, source: str) -> None:
    _same(ns[source], block=ns["body"])


def freeze(ns: Names, source: str) -> None:
    ns[source].stop_gradient = not ns[source].stop_gradient


def clip(ns: Names, source: str) -> None:
    ns[source].error_clip = "clip" if ns[source].error_clip is None else None
    _same(ns[source], factor=5.0 if ns[source].error_clip else 6.0)


def tune(ns: Names, out: str) -> None:
    ns[out].op.set_attr("factor", ns[out].op.attr("factor") + 1.0)


def count(ns: Names) -> None:
    block = default_main_program().global_block()
    out = block.create_var(name=unique_name.generate("count"), shape=[], dtype="float32")
    block.append_op("t_source", {}, {"Out": out}, {"shape": [len(block.ops) + 1, len(block.vars)]})


def prepend(ns: Names) -> None:
    block = default_startup_program().global_block()
    block.prepend_op("t_source", {}, {"Out": unique_name.generate("front")}, {"shape": [1]})


def append_startup(ns: Names) -> None:
    block = default_startup_program().global_block()
    block.append_op("t_source", {}, {"Out": unique_name.generate("back")}, {"shape": [1]})


def insert(ns: Names) -> None:
    block = default_main_program().global_block()
    block.insert_op(len(block.ops) // 2, "t_source", {}, {"Out": unique_name.generate("middle")}, {"shape": [1]})


def remove_last(ns: Names) -> None:
    block = default_main_program().global_block()
    block.remove_op(len(block.ops) - 1)


def rename(ns: Names, source: str) -> None:
    block = default_main_program().global_block()
    block.rename_var(ns[source].name, unique_name.generate("renamed"))


def shape(ns: Names, source: str) -> None:
    block = default_main_program().global_block()
    block.append_op("t_source", {}, {"Out": unique_name.generate("shaped")}, {"shape": list(ns[source].shape)})


def set_seed(ns: Names) -> None:
    default_main_program().random_seed += 1


def read_seed(ns: Names) -> None:
    program, out = default_main_program(), unique_name.generate("s")
    program.global_block().append_op("t_source", {}, {"Out": out}, {"shape": [program.random_seed]})


def one(ns: Names, name: str) -> None:
    ns["size " + name] = 1


def two(ns: Names, name: str) -> None:
    ns["size " + name] = 2


def sized(ns: Names, name: str) -> None:
    block = default_main_program().global_block()
    block.append_op("t_source", {}, {"Out": unique_name.generate("sized")}, {"shape": [ns["size " + name]]})


def clone(ns: Names) -> None:
    ns["test"] = default_main_program().clone()


def on_clone(ns: Names, source: str) -> None:
    block = ns["test"].global_block()
    _same(block.var(ns[source].name), block=block)
    default_main_program().global_block().append_op(
        "t_source", {}, {"Out": unique_name.generate("cloned")}, {"shape": [len(block.ops)]}
    )


def scope(ns: Names, source: str) -> None:
    with unique_name.name_scope("block"):
        _same(ns[source])


def two_writers(ns: Names, source: str) -> None:
    default_main_program().global_block().append_op("t_same", {"X": ns[source]}, {"Out": ns[source]})


def fail(ns: Names) -> None:
    raise RuntimeError("a mistake")


def keep_op(ns: Names, source: str) -> None:
    _same(ns[source])
    ns["op"] = default_main_program().global_block().append_op("t_same", {"X": ns[source]}, {"Out": ns[source]})


def tune_kept(ns: Names) -> None:
    ns["op"].set_attr("factor", ns["op"].attr("factor") + 1.0)


def read_kept(ns: Names) -> None:
    _same(default_main_program().global_block().create_var(name="k", shape=[1]), factor=ns["op"].attr("factor"))


def other(ns: Names) -> None:
    ns["other"] = Program()


def switch(ns: Names) -> None:
    switch_main_program(ns["other"])


def stop(ns: Names, source: str) -> None:
    ns[source].stop_gradient = True


def keep(ns: Names, source: str) -> None:
    ns[source].persistable = True


def link(ns: Names) -> None:
    ns["body"].program.global_block().append_op("t_loop", {}, attrs={"sub_block": ns["body"]})


#: Statements that meddle with each other; the number says how many handles one takes.
GROUPS = [
    {wide: 1, named: 2, by_name: 2, probe: 1},
    {rename: 1, shape: 1, by_name: 2},
    {parameter: 1, scope: 1, same: 2},
    {loop: 1, into_loop: 1, link: 0},
    {freeze: 1, stop: 1, keep: 1},
    {clip: 1, stop: 1, clone: 0},
    {tune: 1, keep_op: 1, tune_kept: 0, read_kept: 0},
    {count: 0, insert: 0, remove_last: 0},
    {prepend: 0, append_startup: 0, parameter: 1},
    {set_seed: 0, read_seed: 0},
    {one: 1, two: 1, sized: 1},
    {clone: 0, on_clone: 1, same: 2},
    {other: 0, switch: 0, count: 0},
    {two_writers: 1, count: 0, fail: 0},
]  # fmt: skip
BY_NAME = {verb.__name__: verb for verb in [data, *(v for group in GROUPS for v in group)]}


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int, Cell]]:
    """A sequence of edits over few verbs, so that they meet often."""
    takes = {data: 1, same: 2}
    for group in draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=2)):
        takes |= group
    handle = st.sampled_from(["x", "h"])
    statement = st.sampled_from(list(takes)).flatmap(
        lambda verb: st.tuples(st.just(verb.__name__), *[handle] * takes[verb])
    )
    cell = st.lists(statement, min_size=1, max_size=3).map(tuple)
    action = st.one_of(
        *[st.tuples(st.just("run"), st.integers(0, 2), cell)] * 4,
        st.tuples(st.just("drop"), st.integers(0, 2), st.just(())),
        st.tuples(st.just("undo"), st.just(0), st.just(())),
    )
    first = ("run", 9, (("data", "x"), ("data", "h"), ("other",)))
    return [first, *draw(st.lists(action, min_size=2, max_size=10))]


def uses(task: Task) -> set[str]:
    """The Python names that a cell reads. Those that only one verb binds are left to the log to notice."""
    handles = {arg for _, *args in task.source for arg in args}
    return handles | {"size " + handle for handle in handles}


def binds(task: Task) -> set[str]:
    """The Python names that a cell assigns."""
    firsts = {data, wide, same, named, by_name, parameter}
    fixed = {loop: "body", keep_op: "op", clone: "test", other: "other"}
    out = set()
    for verb, *args in task.source:
        if BY_NAME[verb] in firsts:
            out.add(args[0])
        elif BY_NAME[verb] in (one, two):
            out.add("size " + args[0])
        elif BY_NAME[verb] in fixed:
            out.add(fixed[BY_NAME[verb]])
    return out


def now(names: Names) -> tuple[bytes, bytes, Names]:
    """The bytes of both default programs, and what the Python names mean."""
    return (
        default_main_program().desc.serialize_to_string(),
        default_startup_program().desc.serialize_to_string(),
        {name: meaning(value) for name, value in names.items()},
    )


def meaning(value: Any) -> object:
    """The meaning of a Python name, comparable between two runs; reading a shape refuses a handle that was replaced."""
    if isinstance(value, Variable):
        facts = value.stop_gradient, value.error_clip, value.persistable, value.op and str(value.op)
        return value.name, value.shape, value.block.idx, type(value), facts
    if isinstance(value, Operator):
        return str(value), value.block.idx
    return value if isinstance(value, int) else (type(value), value.desc.serialize_to_string())


def fresh_run(cells: list[tuple[int, Cell]]) -> tuple[tuple[bytes, bytes, Names] | None, list[int]]:
    """The bytes and names after a fresh run in order of the cells that do not raise, and the keys of those that do."""
    live: list[tuple[int, Cell]] = []
    for cell in cells:
        if run_all([*live, cell]) is not None:
            live.append(cell)
    return run_all(live), [key for key, cell in cells if (key, cell) not in live]


def run_all(cells: list[tuple[int, Cell]]) -> tuple[bytes, bytes, Names] | None:
    """The bytes and names after the cells; None when one raises."""
    with fresh_programs():
        names: Names = {}
        try:
            for _, cell in cells:
                run_cell(cell, names)
        except Exception:
            return None
        return now(names)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(stories())
def test_the_programs_are_those_of_a_fresh_run(actions: list[tuple[str, int, Cell]]) -> None:
    with fresh_programs():
        names: Names = {}
        log = CellLog(lambda task: run_cell(task.source, names), names, uses, binds)
        cells: list[tuple[int, Cell]] = []
        history: list[list[tuple[int, Cell]]] = []
        for verb, key, cell in actions:
            wanted = list(cells)
            place = next((i for i, (k, _) in enumerate(cells) if k == key), None)
            if verb == "run":
                if place is None:
                    wanted.append((key, cell))
                else:
                    wanted[place] = (key, cell)
            elif verb == "drop":
                if place is None:
                    continue
                del wanted[place]
            else:
                if not history:
                    continue
                wanted = history[-1]
            before, before_names = now(names), dict(names)
            was_stale = any(f.stale for f in log.runs)
            try:
                if verb == "run":
                    log.run(key, cell)
                elif verb == "drop":
                    log.drop(key)
                else:
                    log.undo()
            except Exception:
                assert verb == "run"
                assert key in fresh_run(wanted)[1]
                assert now(before_names) == before
                # What a failed cell merely computed stays, as Python has it; a fresh run would not know it.
                assert all(names[n] is before_names[n] for n in before_names)
                names.clear()
                names.update(before_names)
                continue
            if verb == "undo":
                history.pop()
            else:
                history.append(cells)
            cells = wanted
            order = [f.key for f in log.runs]
            if was_stale and place is None:  # a new cell that binds what stale cells lack goes before them
                cells.sort(key=lambda cell: order.index(cell[0]))
            assert order == [k for k, _ in cells]
            assert (now(names), [f.key for f in log.runs if f.stale]) == fresh_run(cells)


def test_a_cell_that_lost_what_it_changes_becomes_stale(programs: Any) -> None:
    names: Names = {}
    log = CellLog(lambda task: run_cell(task.source, names), names, uses, binds)
    log.run("a", (("count",),))
    log.run("b", (("remove_last",),))
    assert log.drop("a").stale == {"b": "block 0 has no operator -1."}
    assert run_all([(0, (("remove_last",),))]) is None


def test_a_cell_that_reads_nothing_that_changed_is_kept(programs: Any) -> None:
    names: Names = {}
    log = CellLog(lambda task: run_cell(task.source, names), names, uses, binds)
    log.run("a", (("data", "x"),))
    log.run("b", (("data", "h"), ("named", "y", "h")))
    kept = names["y"]
    report = log.run("a", (("wide", "x"),))
    assert (report.executed, report.kept) == (["a"], ["b"])
    assert names["y"] is kept
    assert kept.shape == (-1, 4)


def test_a_cell_that_reads_a_changed_one_runs_again(programs: Any) -> None:
    names: Names = {}
    log = CellLog(lambda task: run_cell(task.source, names), names, uses, binds)
    log.run("a", (("data", "x"),))
    log.run("b", (("named", "y", "x"),))
    old = names["y"]
    report = log.run("a", (("wide", "x"),), "net")
    assert report.executed == ["net", "b"]
    assert names["y"] is not old
    assert names["y"].shape == (-1, 8)
    with pytest.raises(ValueError, match='variable y was replaced when cell "net" was run again; use the new one'):
        _same(old)
    with pytest.raises(ValueError, match='variable y was replaced when cell "net" was run again'):
        _ = old.shape
