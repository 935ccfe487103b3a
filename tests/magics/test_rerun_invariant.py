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
from fluidnb_magics.workbench import Workbench

#: Texts of each cell: the first is how it starts, the others are edits.
TEXTS: dict[str, tuple[str, ...]] = {
    "size": ("size = 3", "size = 4", "size = 3  # the same"),
    "data": (
        "x = layers.data('x', shape=[4])\ny = layers.data('y', shape=[1])",
        "x = layers.data('x', shape=[5])\ny = layers.data('y', shape=[1])",
        "y = layers.data('y', shape=[1])\nx = layers.data('x', shape=[4])\nextra = layers.relu(x)",
    ),
    "net": (
        "h = layers.fc(x, size, act='relu')",
        "h = layers.fc(x, size)\nh = layers.tanh(h)",
        "layers.fc(x, 2)\nh = layers.fc(x, size)",
        "h = layers.fc(x, size, akt='oops')",
    ),
    "again": ("x = layers.relu(x)", "x = layers.sigmoid(x)", "pass"),
    "out": ("pred = layers.fc(h, 1)", "h = layers.fc(h, 2)\npred = layers.fc(h, 1) + 1.0"),
    "loop": (
        "i = layers.fill_constant([1], 'int64', 0)\nn = layers.fill_constant([1], 'int64', 3)\n"
        "more = layers.less_than(i, n)\nwith layers.While(more).block():\n    i = layers.increment(i, 1)\n"
        "    more = layers.less_than(i, n, cond=more)",
        "i = n = None",
    ),
    "loss": (
        "loss = layers.mean(layers.square_error_cost(pred, y))\nfluid.optimizer.SGD(0.1).minimize(loss);",
        "loss = layers.mean(layers.square_error_cost(pred, y))\nfluid.optimizer.Adam(0.1).minimize(loss);",
        "loss = layers.mean(pred)",
    ),
    "test": ("test_program = fluid.default_main_program().clone()", "test_program = None"),
}
ACTIONS = st.one_of(
    st.tuples(st.just("run"), st.sampled_from([(n, i) for n, texts in TEXTS.items() for i in range(len(texts))])),
    st.tuples(st.just("run"), st.sampled_from([(n, i) for n, texts in TEXTS.items() for i in range(len(texts))])),
    st.tuples(st.just("drop"), st.sampled_from(sorted(TEXTS))),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=3)),
    st.tuples(st.just("undo"), st.none()),
)


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


def build(shell: InteractiveShell, name: str, which: int) -> bool:
    """Run one of a cell's texts; whether it succeeded."""
    return typed(shell, f"%%fluid {name}\n{TEXTS[name][which]}", name)


def apply(bench: Workbench, action: str, what: Any) -> None:
    """One thing that a user does; errors are the user's to see, and leave everything as it was."""
    before = state()
    if action == "run":
        fine = build(bench.shell, *what)
    elif action == "drop":
        fine = typed(bench.shell, f"%fluid drop {what}")
    elif action == "undo":
        fine = typed(bench.shell, "%fluid undo")
    else:
        bench.drop_deleted(what)
        fine = True
    assert fine or state() == before


@pytest.mark.timeout(3600)
@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(ACTIONS, min_size=3, max_size=14))
def test_like_a_fresh_run(shells: tuple[InteractiveShell, InteractiveShell], actions: list[tuple[str, Any]]) -> None:
    with fluid.fresh():
        bench = start(shells[0])
        for name in TEXTS:
            assert build(bench.shell, name, 0)
        for action, what in actions:
            apply(bench, action, what)
        left = [f.task.source for f in bench.cells if not f.stale]
        names = {n: bench.shell.user_ns[n] for n in ("size",) if n in bench.shell.user_ns}
        got = state()
        with fluid.fresh():
            again = start(shells[1])
            for each in left:
                again.run_cell(each)
            assert state() == got
            if any(c.name == "size" for c in left):
                assert again.shell.user_ns["size"] == names["size"]


def test_values_stay_through_edits(shells: tuple[InteractiveShell, InteractiveShell]) -> None:
    bench = start(shells[0])
    for name in ("size", "data", "net", "out", "loss"):
        assert build(bench.shell, name, 0)
    feed = {"x": np.ones((2, 4), "float32"), "y": np.ones((2, 1), "float32")}

    def value(name: str) -> np.ndarray[Any, Any]:
        return np.array(fluid.global_scope().find_var(name).get_tensor())

    for edit in (("out", 0), ("net", 1), ("size", 2), ("loss", 1), ("data", 2), ("net", 0)):
        fluid.Executor().run(feed=feed, fetch_list=["loss"])
        kept = {name: value(name) for name in ("h.w_0", "h.b_0", "pred.w_0", "pred.b_0")}
        assert build(bench.shell, *edit)
        bench.before_run(fluid.default_main_program(), fluid.global_scope())
        for name, was in kept.items():
            assert np.array_equal(value(name), was), (edit, name)
