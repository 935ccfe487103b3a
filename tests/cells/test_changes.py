"""Changes of several cells at once, cells that run as parts of another, objects of layers that outlive a cell."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fluidnb.cells import saved_layer_objects as held
from fluidnb.cells.cell_log import CellLog
from fluidnb.program import Program, default_main_program, origin

Cell = Callable[[dict[str, Any]], None]


class Collects:
    """Stands for a layer that several calls fill, as an RNN does."""

    __module__ = "fluidnb.layers.of_a_test"

    def __init__(self) -> None:
        self.names: list[str] = []
        self.inner: dict[str, Collects] = {}


@pytest.fixture
def ns() -> dict[str, Any]:
    return {}


@pytest.fixture
def log(programs: tuple[Program, Program], ns: dict[str, Any]) -> Iterator[CellLog]:
    """A log whose cells are functions of the Python names; all of them may read ``it``."""
    yield CellLog(lambda task: task.source(ns), ns, lambda task: {"it"})


def source(name: str, fail: bool = False) -> Cell:
    """A cell with one operator."""

    def cell(ns: dict[str, Any]) -> None:
        default_main_program().current_block().append_op("t_source", {}, {"Out": name}, {"shape": [1]})
        if fail:
            raise RuntimeError("a mistake")

    return cell


def made() -> list[str]:
    return [op.output("Out")[0] for op in default_main_program().global_block().desc.ops]


def test_others_change_and_go_with_a_cell(log: CellLog) -> None:
    for name in "abcd":
        log.run(name, source(name))
    report = log.run("c", source("c2"), "C", "what the user ran", {"a": None, "b": source("b2")})
    assert made() == ["b2", "c2", "d"]
    assert (report.executed, report.removed, report.kept) == (["C", "b"], ["a"], ["d"])
    log.undo()
    assert made() == ["a", "b", "c", "d"]
    before = log.runs
    with pytest.raises(RuntimeError):
        log.run("a", source("a2", fail=True), "A", "what the user ran", {"c": source("c2")})
    assert (made(), log.runs) == (["a", "b", "c", "d"], before)
    report = log.run("a", source("a2"), "A", "what the user ran", {"c": source("c2", fail=True)})
    assert (report.stale, made()) == ({"c": "RuntimeError: a mistake"}, ["a2", "b", "d"])


def test_a_cell_moves_to_the_end(log: CellLog) -> None:
    for name in "abc":
        log.run(name, source(name))
    assert log.run("a", source("a2"), last=True).executed == ["a"]
    assert made() == ["b", "c", "a2"]
    assert [f.key for f in log.runs] == ["b", "c", "a"]


def test_a_removal_changes_others(log: CellLog) -> None:
    for name in "abc":
        log.run(name, source(name))
    report = log.drop("b", others={"c": source("c2")}, cause="b and a part of c")
    assert made() == ["a", "c2"]
    assert (report.removed, report.executed) == (["b"], ["c"])
    assert log.drop(others={}).removed == []


def test_a_stale_cell_whose_source_changed_is_not_put_back_as_it_was(log: CellLog) -> None:
    log.run("a", source("a"))
    log.run("b", source("b"))
    report = log.drop(others={"b": source("b", fail=True)}, cause="a part of b")
    assert "a mistake" in report.stale["b"]
    assert made() == ["a"]
    assert log.run("a", source("a2")).stale == {}
    assert made() == ["a2"]
    assert log.find("b").stale


def test_a_part_has_a_run_of_its_own(log: CellLog, ns: dict[str, Any]) -> None:
    def whole(ns: dict[str, Any]) -> None:
        block = default_main_program().global_block()
        ns["x"] = block.create_var(name="x", shape=[1], dtype="float32")
        with origin.part("p", "part"):
            ns["y"] = block.create_var(name="y", shape=[1], dtype="float32")
            ns["program"] = Program()
            with origin.part("q", "part of the part"):
                ns["program"].random_seed = 3
        ns["z"] = block.create_var(name="z", shape=[1], dtype="float32")

    log.run("w", whole)
    old = ns["y"]
    assert [ns[name].cell_key for name in "xyz"] == ["w", "p", "w"]
    log.run("w", whole)
    assert ns["y"] is old, "the same cell builds the same"
    log.run("w", lambda ns: (whole(ns), ns["program"].global_block().create_var(name="more", shape=[1])))
    assert "was replaced" in old.origin.fate
    with pytest.raises(ValueError, match='variable y was replaced when cell "w" was run again'):
        _ = old.shape
    assert ns["y"].shape == (1,)
    log.drop("w")
    assert "x" not in default_main_program().global_block().vars


def test_an_object_of_a_layer_is_put_back(log: CellLog, ns: dict[str, Any]) -> None:
    def make(ns: dict[str, Any]) -> None:
        ns["it"] = Collects()

    def fill(name: str) -> Cell:
        def cell(ns: dict[str, Any]) -> None:
            ns["it"].names.append(name)
            ns["it"].inner.setdefault("in", Collects()).names.append(name)

        return cell

    def read(ns: dict[str, Any]) -> None:
        ns["seen"] = list(ns["it"].names), list(ns["it"].inner["in"].names)

    log.run("make", make)
    log.run("one", fill("one"))
    log.run("two", fill("two"))
    log.run("read", read)
    assert ns["seen"] == (["one", "two"], ["one", "two"])
    assert log.run("one", fill("three")).executed == ["one", "two", "read"]
    assert ns["seen"] == (["three", "two"], ["three", "two"])
    assert log.run("two", fill("two")).kept == ["read"]
    log.drop("two")
    assert ns["seen"] == (["three"], ["three"])
    log.undo()
    assert ns["seen"] == (["three", "two"], ["three", "two"])

    def half(ns: dict[str, Any]) -> None:
        fill("four")(ns)
        raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError):
        log.run("five", half)
    assert ns["it"].names == ["three", "two"]
    log.drop("one", "two", "read")
    assert (ns["it"].names, ns["it"].inner) == ([], {})


def test_what_is_held() -> None:
    it, plain = Collects(), {"names": 1}
    it.inner["other"] = Collects()
    shots = held.take([it, plain, 3, Collects, it])
    assert {id(shot.thing) for shot in shots} == {id(it), id(it.inner["other"]), id(plain)}
    whole = next(shot for shot in shots if shot.thing is it)
    it.names.append("new")
    assert not whole.holds()
    assert whole.same(whole)
    whole.put_back()
    assert whole.holds()
    it.names.append("newer")
    assert whole.state["names"] == []


def test_containers_are_saved_with_those_inside_of_them() -> None:
    inner: list[Any] = []
    outer, pair, data = {"inner": inner}, (deque([1]), {2}), list(range(2_000))
    shots = held.take([outer, pair, data, inner])
    assert {id(shot.thing) for shot in shots} == {id(inner), id(outer), id(pair[0]), id(pair[1])}
    assert held.reached([pair], shots) == [s for s in shots if s.thing in pair]
    assert [s.thing for s in held.reached([outer], shots)] == [outer, inner]
    inner.append(outer)
    del outer["inner"]
    pair[0].clear()
    pair[1].add(3)
    assert [shot.holds() for shot in shots] == [False] * 4
    for shot in shots:
        shot.put_back()
    assert (inner, outer, pair) == ([], {"inner": inner}, (deque([1]), {2}))
    assert outer["inner"] is inner


def test_records_are_instances_of_the_notebooks_classes_without_other_state() -> None:
    def cls(name: str, *bases: type, **names: Any) -> Any:
        return type(name, bases, {"__module__": "__main__", **names})

    plain, slots = cls("Plain"), cls("Slots", __slots__=("inner",))
    records = [plain(), slots(), cls("Derived", plain, slots)(), SimpleNamespace(a=1)]
    others = [cls("Items", list)(), cls("Worker", Thread)(), cls("Error", Exception)(), plain, Path(), np.zeros(3)]
    assert [held.is_record(each) for each in (*records, *others)] == [True] * 4 + [False] * 6
    records[1].inner = [records[0]]
    shots = held.take([records[1], *others])
    assert {id(s.thing) for s in shots} == {id(each) for each in (records[1], records[1].inner, records[0])}
    records[0].__dict__.update((f"name{i}", i) for i in range(2_000))
    assert held.take([records[1]]) == [], "data: it is not copied before each cell"


def test_a_list_that_a_later_cell_fills() -> None:
    ns: dict[str, Any] = {"losses": []}
    log = CellLog(lambda task: task.source(ns), ns, uses=lambda task: task.source.reads)

    def cell(*reads: str) -> Callable[[Callable[..., Any]], Any]:
        def mark(function: Any) -> Any:
            function.reads = reads
            return function

        return mark

    @cell()
    def make(ns: dict[str, Any]) -> None:
        ns["sizes"] = [3]

    @cell("sizes")
    def fill(ns: dict[str, Any]) -> None:
        ns["sizes"].append(len(ns["sizes"]) + 4)

    @cell("sizes")
    def read(ns: dict[str, Any]) -> None:
        ns["seen"] = list(ns["sizes"])

    @cell("sizes")
    def fails(ns: dict[str, Any]) -> None:
        ns["sizes"].append(9)
        ns["losses"].append(0.5)
        raise RuntimeError("a mistake")

    for key, source in (("make", make), ("fill", fill), ("more", fill), ("read", read)):
        log.run(key, source)
    assert ns["seen"] == [3, 5, 6]
    assert log.run("make", make).kept == ["fill", "more", "read"]
    assert log.run("fill", fill).kept == ["more", "read"]
    ns["losses"].append(0.75)
    with pytest.raises(RuntimeError):
        log.run("fails", fails)
    assert (ns["sizes"], ns["losses"]) == ([3, 5, 6], [0.75, 0.5])
    log.drop("fill")
    assert ns["seen"] == ns["sizes"] == [3, 5]
    log.undo()
    assert (ns["seen"], ns["sizes"], ns["losses"]) == ([3, 5, 6], [3, 5, 6], [0.75, 0.5])
