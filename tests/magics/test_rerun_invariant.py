"""After any sequence of edits, re-runs, deletions and undos the program is that of a fresh run from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import fluidnb as fluid
from fluidnb_magics import extension
from fluidnb_magics.session.cell_groups import CLOSED, Group
from fluidnb_magics.session.workbench import Workbench
from tests.magics.rerun_texts import BLOCKS, CELLS


def actions(texts: dict[str, tuple[str, ...]]) -> st.SearchStrategy[list[tuple[str, Any]]]:
    """Actions of users on some cells."""
    runs = st.tuples(st.just("run"), st.sampled_from([(n, i) for n, all in texts.items() for i in range(len(all))]))
    some = st.lists(st.sampled_from(sorted(texts)), min_size=1, max_size=3)
    drops = st.tuples(st.just("drop"), st.sampled_from(sorted(texts)))
    undo = st.tuples(st.just("undo"), st.none())
    return st.lists(st.one_of(runs, runs, drops, st.tuples(st.just("delete"), some), undo), min_size=3, max_size=14)


@pytest.fixture(scope="module")
def shells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[InteractiveShell, InteractiveShell]]:
    """A shell to work in, and one for fresh runs."""
    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(ipython_dir=str(tmp_path_factory.mktemp("ipython"))), InteractiveShell()
    for shell in made:
        shell.history_manager.enabled = False
    yield made
    for shell in made:
        extension.unload(shell)
        shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def start(shell: InteractiveShell) -> Workbench:
    """A session with nothing in it, on the default programs of now."""
    extension.unload(shell)
    for name in [n for n in shell.user_ns if not n.startswith("_")]:
        shell.user_ns.pop(name)
    return extension.load(shell).bench


def state() -> dict[str, Any]:
    """The bytes of the default programs."""
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    return {"main": main.desc.serialize_to_string(), "startup": startup.desc.serialize_to_string()}


def typed(shell: InteractiveShell, text: str, cell_id: str | None = None) -> bool:
    """Run a cell as the user does; whether it succeeded."""
    with capture_output():
        return bool(shell.run_cell(text, cell_id=cell_id).success)


def build(shell: InteractiveShell, name: str, text: str) -> bool:
    """Run a text of a cell; whether it succeeded."""
    if text.startswith(("open ", "close ")):
        return typed(shell, f"%fluid block {text}")
    options, _, rest = text.partition("\n") if text.startswith("--") else ("", "", text)
    return typed(shell, f"%%fluid {name} {options}\n{rest}", name)


def apply(bench: Workbench, texts: dict[str, tuple[str, ...]], action: str, what: Any) -> None:
    """One thing that a user does; errors are the user's to see, and leave everything as it was."""
    before = state()
    if action == "run":
        name, which = what
        fine = build(bench.shell, name, texts[name][which])
    elif action == "drop":
        fine = typed(bench.shell, f"%fluid drop {what}")
    elif action == "undo":
        fine = typed(bench.shell, "%fluid undo")
    else:
        bench.follow(None, what)
        fine = True
    assert fine or state() == before


def run_afresh(bench: Workbench, group: Group) -> None:
    """Run a cell as it is stored, and those that go on with its blocks."""
    if group.state:
        bench.open_block(group.cell)
    else:
        bench.run_cell(group.cell)
    for part in group.parts:
        run_afresh(bench, part)
    if group.state == CLOSED:
        bench.close_block(group.cell.name)


def check(shells: tuple[InteractiveShell, InteractiveShell], texts: dict[str, tuple[str, ...]], steps: Any) -> None:
    """Do what a user does, and compare with a fresh run of what is left."""
    with fluid.fresh():
        bench = start(shells[0])
        for name, choices in texts.items():
            assert build(bench.shell, name, choices[0]), name
        for action, what in steps:
            apply(bench, texts, action, what)
        left = [placed.group for placed in bench.cells if not placed.stale and placed.owner is None]
        names = {n: bench.shell.user_ns[n] for n in ("size",) if n in bench.shell.user_ns}
        got = state()
        with fluid.fresh():
            again = start(shells[1])
            for group in left:
                run_afresh(again, group)
            assert state() == got
            if any(group.cell.name == "size" for group in left):
                assert again.shell.user_ns["size"] == names["size"]


#: An example takes up to a second: a sampled run takes fewer than elsewhere, fewest of nested cells.
FULL = settings.default.max_examples > 100
SOME, FEW = (settings.default.max_examples // (1 if FULL else part) for part in (2, 4))


@pytest.mark.timeout(3600)
@settings(max_examples=SOME, suppress_health_check=list(HealthCheck))
@given(actions(CELLS))
def test_like_a_fresh_run(shells: tuple[InteractiveShell, InteractiveShell], steps: list[tuple[str, Any]]) -> None:
    check(shells, CELLS, steps)


@pytest.mark.timeout(3600)
@settings(max_examples=FEW, suppress_health_check=list(HealthCheck))
@given(actions(BLOCKS))
def test_blocks_like_a_fresh_run(
    shells: tuple[InteractiveShell, InteractiveShell], steps: list[tuple[str, Any]]
) -> None:
    check(shells, BLOCKS, steps)


def test_undo_brings_back_the_order_of_first_runs(shells: tuple[InteractiveShell, InteractiveShell]) -> None:
    """A cell that failed later had put another one first, which then lacked a name."""
    dropped_and_back = [("drop", "rnn"), ("run", ("rnn again", 1)), ("undo", None), ("undo", None)]
    check(shells, BLOCKS, [*dropped_and_back, ("run", ("result", 1)), ("run", ("step", 2)), ("run", ("body", 3))])


def test_values_stay_through_edits(shells: tuple[InteractiveShell, InteractiveShell]) -> None:
    bench = start(shells[0])
    for name in ("size", "data", "net", "out", "loss"):
        assert build(bench.shell, name, CELLS[name][0])
    feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}

    def value(name: str) -> np.ndarray[Any, Any]:
        return np.array(fluid.global_scope().find_var(name).get_tensor())

    for edit in (("out", 0), ("net", 1), ("size", 2), ("loss", 1), ("data", 2), ("net", 0)):
        fluid.Executor().run(feed=feed, fetch_list=["loss"])
        kept = {name: value(name) for name in ("h.w_0", "h.b_0", "pred.w_0", "pred.b_0")}
        assert build(bench.shell, edit[0], CELLS[edit[0]][edit[1]])
        bench.before_run(fluid.default_main_program(), fluid.global_scope())
        for name, was in kept.items():
            assert np.array_equal(value(name), was), (edit, name)
