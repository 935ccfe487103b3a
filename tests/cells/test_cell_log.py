"""Cells that run again, go, and are undone: reports, handles, edits between cells, mistakes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fluidnb.cells.cell_log import CellLog, Task
from fluidnb.program import Program, default_main_program, origin, program_guard, unique_name
from fluidnb.proto.desc import OpDesc

Cell = Callable[[dict[str, Any]], None]


@pytest.fixture
def ns() -> dict[str, Any]:
    return {}


@pytest.fixture
def log(programs: tuple[Program, Program], ns: dict[str, Any]) -> Iterator[CellLog]:
    """A log whose cells are functions of the Python names."""
    yield CellLog(lambda task: task.source(ns), ns, lambda task: getattr(task.source, "reads", ()))


def data(name: str = "x", width: int = 3) -> Cell:
    """A cell that declares what is fed."""

    def cell(ns: dict[str, Any]) -> None:
        block = default_main_program().global_block()
        ns[name] = block.create_var(name=name, shape=[-1, width], dtype="float32")

    return cell


def apply(out: str, source: str) -> Cell:
    """A cell with one operator."""

    def cell(ns: dict[str, Any]) -> None:
        block = default_main_program().global_block()
        block.append_op("t_same", {"X": ns[source]}, {"Out": out})
        ns[out] = block.var(out)

    cell.reads = {source}  # type: ignore[attr-defined]
    return cell


def fail(ns: dict[str, Any]) -> None:
    raise RuntimeError("a mistake")


def now() -> bytes:
    return default_main_program().desc.serialize_to_string()


def test_order_is_that_of_the_first_run(log: CellLog) -> None:
    log.run("a", data("x"), "first")
    log.run("b", data("y"))
    report = log.run("a", data("x", 5), "first")
    assert [f.title for f in log.runs] == ["first", "b"]
    assert (report.executed, report.kept) == (["first"], ["b"])
    assert list(default_main_program().global_block().vars) == ["x", "y"]


def test_everything_knows_its_cell(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data(), "net")
    log.run("b", apply("h", "x"))
    assert (ns["x"].cell_key, ns["h"].cell_key, ns["h"].op.cell_key) == ("a", "b", "b")
    assert "cell net" in repr(ns["x"])
    assert origin.current() is None


def test_a_handle_of_a_replaced_cell_says_which_cell_replaced_it(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data(), "net")
    old = ns["x"]
    log.run("b", apply("h", "x"), "top")
    old_op = ns["h"].op
    log.run("a", data(width=5), "net")
    with pytest.raises(ValueError, match='variable x was replaced when cell "net" was run again; use the new one'):
        _ = old.shape
    with pytest.raises(ValueError, match='operator t_same was replaced when cell "net" was run again'):
        old_op.attr("factor")
    assert 'was replaced when cell "net" was run again' in repr(old)
    gone = ns["h"]
    log.drop("b")
    with pytest.raises(ValueError, match='variable h went when cell "top" was removed'):
        apply("z", "h")({"h": gone})


def test_a_cell_that_uses_its_own_name_again(log: CellLog, ns: dict[str, Any]) -> None:
    """``h = relu(h)`` runs again on the h of the cell before, not on its own result."""

    def again(ns: dict[str, Any]) -> None:
        block = default_main_program().global_block()
        out = unique_name.generate("relu")
        block.append_op("t_same", {"X": ns["x"]}, {"Out": out})
        ns["x"] = block.var(out)

    log.run("a", data())
    log.run("b", again)
    before = now()
    for _ in range(3):
        log.run("b", again)
        assert now() == before
    log.drop("b")
    assert ns["x"].name == "x"


def test_a_failing_cell_leaves_all_as_it_was(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data())
    log.run("b", apply("h", "x"))
    before, names, fragments = now(), dict(ns), log.runs

    def half(ns: dict[str, Any]) -> None:
        data("x", 7)(ns)
        default_main_program().create_block()
        default_main_program().random_seed = 3
        unique_name.generate("fc")
        ns["loaded"] = [1, 2, 3]
        raise RuntimeError("a mistake")

    for key in ("a", "c"):
        with pytest.raises((RuntimeError, ValueError)):
            log.run(key, half)
        assert (now(), log.runs) == (before, fragments)
        assert default_main_program().current_block_idx == 0
        assert default_main_program().random_seed == 0
        assert "fc" not in unique_name.generator.ids
        assert {n: ns[n] for n in names} == names
        assert ns["h"].shape == (-1, 3)
    assert ns["loaded"] == [1, 2, 3]


def test_a_later_cell_that_fails_becomes_stale_and_heals(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data())
    log.run("b", apply("h", "x"), "top")
    log.run("c", apply("y", "h"), "next")
    before = now()
    report = log.run("a", data("image"), "net")
    assert report.stale == {"top": "KeyError: 'x'", "next": "KeyError: 'h'"}
    assert list(default_main_program().global_block().vars) == ["image"]
    assert log.run("d", data("z")).stale == {}, "what was stale before is not reported again"
    log.drop("d")
    assert log.run("a", data(), "net").executed == ["net", "top", "next"]
    assert now() == before


def test_a_name_that_is_missing_is_the_reason(log: CellLog, ns: dict[str, Any]) -> None:
    def needs(name: str, out: str) -> Cell:
        def cell(ns: dict[str, Any]) -> None:
            if name not in ns:
                raise NameError(f"name {name!r} is not defined", name=name)
            apply(out, name)(ns)

        cell.reads = {name}  # type: ignore[attr-defined]
        return cell

    log.run("a", data())
    log.run("b", needs("x", "h"), "top")
    log.run("c", needs("h", "y"), "next")
    log.run("d", data("z"), "other")
    whole = now()
    assert log.drop("a").stale == {
        "top": "x is not defined", "next": 'h is not defined (cell "top", which binds it, is stale)'
    }  # fmt: skip
    assert log.run("a", data()).executed == ["a", "top", "next"], "it goes before what lacks it"
    assert now() == whole
    log.run("e", data("w"), "late")
    assert log.run("b", needs("w", "h"), "top").executed == ["top"], "what it needs goes before it"
    assert [f.key for f in log.runs] == ["a", "e", "b", "c", "d"]
    with pytest.raises(NameError):
        log.run("b", needs("nothing", "h"), "top")
    assert [f.key for f in log.runs] == ["a", "e", "b", "c", "d"]


def test_the_order_is_that_of_the_notebook(log: CellLog, ns: dict[str, Any]) -> None:
    order = {"a": 0, "b": 1, "c": 2, "d": 3}
    for name in "acd":
        log.run(name, data(name), order=order)
    log.run("free", data("free"), order=order)
    log.run("b", data("b"), order=order)
    assert list(default_main_program().global_block().vars) == ["a", "b", "c", "d", "free"]
    report = log.drop(order={"c": 0, "b": 1, "a": 2, "d": 3})
    assert list(default_main_program().global_block().vars) == ["c", "b", "a", "d", "free"]
    assert report.executed == []
    assert log.drop(order={"c": 0, "b": 1, "a": 2, "d": 3}).kept == []


def test_what_did_not_change_is_not_built_again(log: CellLog, ns: dict[str, Any]) -> None:
    runs = []

    def counted(out: str, source: str) -> Cell:
        def cell(ns: dict[str, Any]) -> None:
            runs.append(out)
            apply(out, source)(ns)
            ns["handles"] = [*ns.get("handles", []), ns[out]]

        return cell

    log.run("a", data())
    log.run("b", counted("h", "x"))
    log.run("c", apply("y", "h"))
    whole, handle = now(), ns["h"]
    report = log.run("b", counted("h", "x"))
    assert (report.executed, report.unchanged, runs) == (["b"], True, ["h", "h"])
    assert now() == whole
    assert ns["h"] is handle
    assert [v.shape for v in ns["handles"]] == [(-1, 3)], "a new handle that a list got is an alias of the old one"
    assert not log.run("b", counted("g", "x")).unchanged


def test_drop_goes_on_without_what_breaks(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data())
    log.run("b", apply("h", "x"), "top")
    log.run("c", data("z"))
    before = now()
    report = log.drop("a")
    assert (report.removed, report.kept, list(report.stale)) == (["a"], ["c"], ["top"])
    assert list(default_main_program().global_block().vars) == ["z"]
    assert log.find("b").stale
    log.run("a2", data())
    log.run("b", apply("h", "x"), "top")
    assert not log.find("b").stale
    assert [f.key for f in log.runs] == ["a2", "b", "c"]
    for _ in range(3):
        log.undo()
    assert now() == before


def test_a_cell_that_ran_a_program_is_stale_rather_than_run_again(log: CellLog, ns: dict[str, Any]) -> None:
    runs = []

    def train(ns: dict[str, Any]) -> None:
        apply("h", "x")(ns)
        origin.ran(default_main_program())
        runs.append(1)

    log.run("a", data())
    log.run("b", train, "train")
    log.run("c", apply("y", "x"))
    report = log.run("a", data(width=4))
    assert (report.executed, list(report.stale), len(runs)) == (["a", "c"], ["train"], 1)
    assert list(default_main_program().global_block().vars) == ["x", "y"]
    report = log.run("b", train, "train")
    assert (report.executed, report.kept, report.stale) == (["train"], ["c"], {})
    assert list(default_main_program().global_block().vars) == ["x", "h", "y"]


def test_undo_goes_back_step_by_step(log: CellLog, ns: dict[str, Any]) -> None:
    states: list[Any] = []
    steps: list[Callable[[], Any]] = [
        lambda: log.run("a", data()),
        lambda: log.run("b", apply("h", "x")),
        lambda: log.run("a", data(width=9)),
        lambda: log.drop("b"),
    ]
    for step in steps:
        states.append((now(), dict(ns)))
        step()
    for before, names in reversed(states):
        log.undo()
        assert (now(), ns) == (before, names)
        assert all(v.shape for v in ns.values())
    with pytest.raises(ValueError, match="nothing to undo"):
        log.undo()


def test_a_handle_of_an_undone_cell(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data(), "net")
    x = ns["x"]
    log.undo()
    with pytest.raises(ValueError, match='variable x was undone; run cell "net" again'):
        _ = x.shape


def test_edits_between_cells_stay_where_they_can(log: CellLog, ns: dict[str, Any]) -> None:
    log.run("a", data())
    log.run("b", data("z"))
    apply("h", "z")(ns)
    report = log.run("a", data(width=4))
    assert report.kept == ["b", "edits outside cells"]
    assert ns["h"].shape == (-1, 3)
    report = log.run("b", data("z", 5))
    assert list(report.stale) == ["edits outside cells"]
    assert not default_main_program().global_block().has_var("h")
    log.undo()
    log.undo()
    assert default_main_program().global_block().has_var("h")
    log.undo()
    assert not default_main_program().global_block().has_var("h")
    assert [f.key for f in log.runs] == ["a", "b"]


def test_edits_through_descriptions_belong_to_their_cell(log: CellLog, ns: dict[str, Any]) -> None:
    def by_desc(ns: dict[str, Any]) -> None:
        block = default_main_program().desc.block(0)
        block.var("h").set_dtype(5)
        block.append_op(OpDesc("t_same", {"X": ["x"]}, {"Out": ["h"]}))

    log.run("a", data())
    log.run("b", by_desc)
    report = log.run("a", data(width=4))
    assert (report.executed, report.kept) == (["a"], ["b"]), "it ran again, and built the same"
    log.drop("b")
    assert list(default_main_program().global_block().vars) == ["x"]
    log.run("b", by_desc)
    with pytest.raises(ValueError, match="Variable h has been created before"):
        log.run("c", data("h", 2))

    def both(ns: dict[str, Any]) -> None:
        data()(ns)
        data("h")(ns)

    assert log.run("a", both).executed == ["a", "b"]
    assert list(default_main_program().global_block().vars) == ["x", "h"]


def test_programs_made_outside_cells_are_kept_in_order_too(log: CellLog, ns: dict[str, Any]) -> None:
    other = Program()

    def on_other(width: int) -> Cell:
        def cell(ns: dict[str, Any]) -> None:
            with program_guard(other):
                data("o", width)(ns)

        return cell

    log.run("a", on_other(3))
    log.run("a", on_other(4))
    assert [v.shape for v in other.list_vars()] == [(-1, 4)]
    log.undo()
    assert [v.shape for v in other.list_vars()] == [(-1, 3)]
    log.drop("a")
    assert list(other.list_vars()) == []


def test_programs_made_in_cells_go_with_them(log: CellLog, ns: dict[str, Any]) -> None:
    def cloned(ns: dict[str, Any]) -> None:
        ns["test"] = default_main_program().clone()

    def on_clone(ns: dict[str, Any]) -> None:
        with program_guard(ns["test"]):
            apply("t", "x")(ns)

    log.run("a", data())
    log.run("b", cloned)
    log.run("c", on_clone)
    old = ns["test"]
    report = log.run("a", data(width=6))
    assert report.executed == ["a", "b", "c"]
    assert ns["test"] is not old
    assert [v.shape for v in ns["test"].list_vars()] == [(-1, 6), (-1, 6)]
    with pytest.raises(ValueError, match="was replaced when cell"):
        _ = old.global_block().var("x").shape


def test_plain_python_values_count_as_read(log: CellLog, ns: dict[str, Any]) -> None:
    def size(value: int) -> Cell:
        return lambda ns: ns.update(size=value)

    def sized(ns: dict[str, Any]) -> None:
        data("x", ns["size"])(ns)

    sized.reads = {"size"}  # type: ignore[attr-defined]
    log.run("a", size(3))
    log.run("b", sized)
    assert log.run("a", size(3)).kept == ["b"]
    assert log.run("a", size(8)).executed == ["a", "b"]
    assert ns["x"].shape == (-1, 8)
    ns["size"] = 9
    assert log.run("c", data("y")).executed == ["c"]
    assert ns["size"] == 9


def test_cells_do_not_nest(log: CellLog) -> None:
    with pytest.raises(ValueError, match="a cell cannot run cells"):
        log.run("a", lambda ns: log.run("b", data()))
    assert origin.recorder is None
    assert log.runs == ()


def test_unknown_cells(log: CellLog) -> None:
    log.run("net", data())
    with pytest.raises(ValueError, match="there is no cell 'nte'") as caught:
        log.drop("nte")
    assert 'Did you mean "net"?' in str(caught.value)


def test_history_is_bounded(programs: tuple[Program, Program]) -> None:
    ns: dict[str, Any] = {}
    log = CellLog(lambda task: task.source(ns), ns, depth=3)
    for i in range(6):
        log.run(str(i), data(f"v{i}"))
    for _ in range(3):
        log.undo()
    with pytest.raises(ValueError, match="nothing to undo"):
        log.undo()
    assert len(log.runs) == 3


def test_a_task_says_whether_it_runs_again(programs: tuple[Program, Program]) -> None:
    ns: dict[str, Any] = {}
    seen: list[tuple[str, bool]] = []

    def execute(task: Task) -> None:
        seen.append((task.title, task.again))
        task.source(ns)

    log = CellLog(execute, ns)
    log.run("a", data())
    log.run("b", apply("h", "x"))
    log.run("a", data(width=5))
    assert seen == [("a", False), ("b", False), ("a", False), ("b", True)]
    assert not log.find("b").task.again


def test_generators_of_names_that_a_cell_used_are_freed(log: CellLog, ns: dict[str, Any]) -> None:
    def guarded(ns: dict[str, Any]) -> None:
        with unique_name.guard():
            data(unique_name.generate("x"))(ns)

    def alive() -> int:
        gc.collect()
        return len(unique_name.generators)

    for _ in range(60):  # the log keeps 50 changes
        log.run("a", guarded)
    before = alive()
    for _ in range(60):
        log.run("a", guarded)
    assert alive() <= before


def test_a_failing_cell_leaves_names_that_it_had_bound_to_other_values(log: CellLog, ns: dict[str, Any]) -> None:
    """Corrected, it would otherwise compute with what it had changed itself; new names are data that may stay."""
    ns["n"], ns["_n"], ns["gone"] = 2, 2, 1

    def source(ns: dict[str, Any], mistake: bool = True) -> None:
        ns["n"] *= 2
        ns["_n"] *= 2
        ns["loaded"] = 5
        del ns["gone"]
        if mistake:
            raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError):
        log.run("a", source)
    assert (ns["n"], ns["_n"], ns["gone"], ns["loaded"]) == (2, 2, 1, 5)
    log.run("a", lambda ns: source(ns, mistake=False))
    assert ns["n"] == 4 and "gone" not in ns
