"""The widgets over scopes, memory and time without a page: what they read, when, and that they cost nothing unseen."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.debug.debugger import Debugger
from fluidnb.runtime.observers import after_run, over
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray
from fluidnb_magics.session.selection import Chosen
from fluidnb_magics.widgets.live_widget import LiveWidget, Pace
from fluidnb_magics.widgets.memory_explorer import MemoryExplorer
from fluidnb_magics.widgets.scope_explorer import ScopeExplorer
from fluidnb_magics.widgets.timeline_explorer import TimelineExplorer
from tests.magics.conftest import Session
from tests.magics.test_cells import LOOP
from tests.magics.test_memory import DATA, FEED, NET

RUN = f"%fluid run {FEED} --fetch loss"


@pytest.fixture
def trained(session: Session) -> Session:
    """A regression that has run once."""
    session.run(DATA)
    session.run(NET)
    session.run(RUN)
    return session


class Clock:
    """A clock that a test winds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def explorer(session: Session, **traits: Any) -> ScopeExplorer:
    return ScopeExplorer(session.bench, fluid.global_scope(), **traits)


def wind(face: LiveWidget) -> Clock:
    """Give a widget a clock of the test's."""
    clock = Clock()
    face._pace = Pace(clock)
    return clock


def run(count: int = 1) -> None:
    main = fluid.default_main_program()
    feed = {"x": np.ones((8, 13), "float32"), "y": np.ones((8, 1), "float32")}
    exe = fluid.Executor()
    for _ in range(count):
        exe.run(main, feed=feed, fetch_list=["loss"])


def test_updates_come_at_most_ten_times_a_second_and_take_a_small_part_of_the_time() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.timed(lambda: None)
    clock.now = 0.09
    assert not pace.due()
    clock.now = 0.1
    assert pace.due()

    def slow() -> None:
        clock.now += 0.3

    pace.timed(slow)
    clock.now = 6.3
    assert not pace.due()
    clock.now = 6.5
    assert pace.due()


def test_a_mistake_of_who_looks_does_not_reach_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    def look(program: Any, scope: Any) -> None:
        raise ValueError("looked badly")

    after_run.append(look)
    try:
        over(None, None)
    finally:
        after_run.remove(look)
    assert "looked badly" in capsys.readouterr().err


def test_a_widget_that_cannot_look_does_so_once(trained: Session, capsys: pytest.CaptureFixture[str]) -> None:
    face = explorer(trained)
    clock = wind(face)

    def broken() -> None:
        raise ValueError("cannot look")

    face.refresh = broken  # type: ignore[method-assign]
    clock.now = 1.0
    run()
    clock.now = 2.0
    run()
    assert capsys.readouterr().err.count("ValueError: cannot look") == 1
    face.close()


def test_scopes_are_read_as_rows_come_into_view(trained: Session) -> None:
    face = explorer(trained)
    assert set(face.outline["names"]) >= {"net.fc_0.w_0", "net.fc_0.b_0"}
    face.do_see(["|net.fc_0.w_0"])
    row = face.rows["rows"]["|net.fc_0.w_0"]
    assert list(face.rows["rows"]) == ["|net.fc_0.w_0"]
    assert row["facts"] == "float32[13, 1]" and "±" in row["statistics"] and sum(row["histogram"]) == 13
    assert len(row["line"]) == 13 and not row["changed"]
    face.close()


def test_values_that_changed_are_marked_until_the_next_update(trained: Session) -> None:
    face = explorer(trained)
    clock = wind(face)
    face.do_see(["|net.fc_0.w_0", "|learning_rate_0"])
    clock.now = 1.0
    run()
    changed = {key: row["changed"] for key, row in face.rows["rows"].items()}
    assert changed == {"|net.fc_0.w_0": True, "|learning_rate_0": False}
    assert face.state == "after 1 run"
    face.update()
    assert not face.rows["rows"]["|net.fc_0.w_0"]["changed"]
    face.close()


def test_runs_between_two_updates_are_counted_only(trained: Session) -> None:
    face = explorer(trained)
    clock = wind(face)
    face.update()
    shown = face.rows
    run(5)
    assert face.rows is shown and face.runs == 5
    clock.now = 1.0
    run()
    assert face.rows is not shown and face.state == "after 6 runs"
    assert face.growth["bytes"][-1][0] == 6
    trained.run("pass")  # what the last runs of a cell changed is shown when it is over
    run(3)
    trained.run("pass")
    assert face.state == "after 9 runs"
    face.close()


def test_nothing_is_looked_at_while_no_page_shows_it(trained: Session) -> None:
    before = list(after_run)
    face = explorer(trained)
    face.do_look("a")
    face.do_look("b")
    face.do_leave("a")
    assert len(after_run) == len(before) + 1
    face.do_leave("b")
    assert after_run == before
    shown = face.rows
    run()
    trained.run("pass")
    assert face.rows is shown
    face.do_look("c")
    assert face.rows is not shown
    face.close()
    assert after_run == before


def test_a_tensor_is_looked_at_page_by_page(trained: Session) -> None:
    scope = fluid.Scope()
    big = np.arange(2000 * 3000, dtype="float32").reshape(2000, 3000)
    scope.var("big").value = LoDTensor(big)
    face = ScopeExplorer(trained.bench, scope)
    face.do_open("|big")
    found = face.opened
    assert found["size"] == [2000, 3000] and found["pictures"]["plane"]["url"].startswith("data:image/png")
    face.do_view(None, [], 1990, 2995, 50, 50)
    assert len(face.opened["cells"]) == 10 and face.opened["cells"][0] == [
        f"{v:.5g}" for v in big[1990, 2995:].tolist()
    ]
    face.do_view([1, 0], [], 7, 3, 2, 1)
    assert face.opened["axes"] == (1, 0) and face.opened["cells"] == [[f"{big[3, 7]:.5g}"], [f"{big[3, 8]:.5g}"]]
    with pytest.raises(fluid.errors.OpValueError, match="two different axes"):
        face.do_view([0, 5], [], 0, 0, 2, 2)
    face.update()
    assert face.opened["axes"] == (1, 0), "a request that was refused leaves the view as it was"
    face.do_shut()
    assert face.opened == {}
    face.close()


def test_images_batches_and_lists(trained: Session) -> None:
    scope = fluid.Scope()
    scope.var("image").value = LoDTensor(np.random.rand(4, 3, 16, 16).astype("float32"))
    scope.var("batch").value = LoDTensor(np.zeros((6, 2), "float32"), ((0, 2, 3), (0, 2, 5, 6)))
    scope.var("list").value = LoDTensorArray([LoDTensor(np.full((2, 2), float(i), "float32")) for i in range(3)])
    rows = SelectedRows([1, 5], 10, LoDTensor(np.ones((2, 4), "float32")))
    scope.var("rows").value = rows
    scope.var("nothing")
    face = ScopeExplorer(trained.bench, scope)
    assert face.rows["rows"]["|batch"]["lod"].count("inline-block") == 5
    assert face.rows["rows"]["|nothing"]["facts"] == "nothing yet"
    face.do_open("|image")
    assert face.opened["pictures"].keys() == {"plane", "image"} and face.opened["shape"] == [4, 3, 16, 16]
    face.do_view(None, [2, 1], 0, 0, 4, 4)
    assert face.opened["at"][:2] == [2, 1]
    face.do_open("|list", 2)
    assert face.opened["parts"] == 3 and face.opened["cells"][0] == ["2", "2"]
    face.do_open("|rows")
    assert face.opened["parts"] == 2 and face.opened["size"] == [2, 4]
    face.do_open("|nothing")
    assert "cells" not in face.opened
    scope.erase("nothing")
    face.update()
    assert face.opened["gone"]
    face.close()


def test_mean_and_deviation_are_remembered_for_what_was_seen(trained: Session) -> None:
    face = explorer(trained, opened="net.fc_0.w_0")
    clock = wind(face)
    for i in range(1, 4):
        clock.now = float(i)
        run(2)
    clock.now = 10.0
    run()
    steps = [step for step, _, _ in face.opened["history"]]
    assert steps[0] == 0 and steps[-1] == 7 and steps == sorted(steps)
    held = np.asarray(fluid.global_scope().find_var("net.fc_0.w_0").value)
    assert face.opened["history"][-1][1] == pytest.approx(float(held.mean()))
    face.close()


def test_kept_scopes_and_their_iterations(session: Session) -> None:
    face = explorer(session)
    session.run(LOOP)
    session.run("%fluid run --keep --fetch i")
    titles = [kid["title"] for kid in face.outline["kids"]]
    assert titles == ["block 0"]
    inner = face.outline["kids"][0]["kids"]
    assert [kid["title"] for kid in inner] == [f"block 1, iteration {i}" for i in range(len(inner))] and len(inner) > 1
    face.do_open(f"0|{face.outline['kids'][0]['names'][0]}")
    assert face.opened["scope"] == "global scope › block 0"
    face.close()


def test_a_debug_session_is_followed(trained: Session) -> None:
    face = explorer(trained)
    trained.run(f"%fluid debug {FEED} --fetch loss")
    assert face.outline["kids"], "the scope of the paused run is there"
    trained.run("%fluid step 2")
    session = trained.bench.session
    assert session is not None and face.session is session
    session.do(Debugger.step, 1)  # as a button does: no cell runs
    assert face.state.endswith(f"debug session paused at step {session.snapshot.at}")
    trained.run("%fluid debug off")
    assert face.outline["kids"] == [] and "debug" not in face.state
    face.close()


def test_what_is_selected_is_selected_everywhere(trained: Session) -> None:
    program = fluid.default_main_program()
    scopes, memory = explorer(trained), MemoryExplorer(trained.bench, program)
    scopes.do_open("|net.fc_0.w_0")
    assert trained.bench.selection.chosen == Chosen(program, variable="net.fc_0.w_0")
    assert memory.picked_things == {"name": "net.fc_0.w_0", "ops": []}
    memory.do_pick(0, 0, "")
    op = program.desc.blocks[0].ops[0]
    assert scopes.picked_names["names"] == [*op.output_arg_names(), *op.input_arg_names()]
    memory.do_pick(0, 0, "net.fc_0.b_0")
    assert scopes.picked_names == {"names": ["net.fc_0.b_0"], "all": True}
    late = MemoryExplorer(trained.bench, program)
    assert late.picked_things == memory.picked_things, "what was selected before is selected in a new one"
    late.close()
    trained.bench.selection.choose(Chosen(program, ops=((0, 999), (7, 0))))
    assert scopes.picked_names["names"] == []
    trained.bench.selection.choose(Chosen(fluid.Program(), variable="net.fc_0.b_0"))
    assert memory.picked_things == {}
    scopes.close()
    memory.close()


def test_memory_before_and_after_the_first_run_and_after_a_change(session: Session) -> None:
    session.run(DATA)
    session.run(NET)
    face = MemoryExplorer(session.bench, fluid.default_main_program())
    assert face.state == "this program has not run yet" and face.arenas == []
    session.run(RUN)
    arena = face.arenas[0]
    assert arena["starts"][-1] == len(arena["live"]) and max(arena["live"]) == arena["peak"] and face.state == ""
    assert any("net.fc_0.w_0@GRAD" in buffer[0] for buffer in arena["buffers"])
    pool = face.pools[0]
    assert pool["holders"] and "used, peak" in pool["words"] and pool["place"] == "CPUPlace" and not pool["device"]
    again = face.arenas
    run(3)
    face.update()
    assert face.arenas is again, "an arena is read again only when it is another one"
    session.run("%%fluid more\nextra = layers.relu(loss)")
    assert face.state == "the program was changed since it ran"
    session.run(f"%fluid run {FEED} --fetch extra")
    assert face.state == "" and len(face.arenas[0]["steps"]) > len(arena["steps"])
    steps = [point[0] for point in face.pools[0]["points"]]
    assert steps == sorted(set(steps))
    face.close()


def test_a_profile_in_columns(trained: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TimelineExplorer] = []
    monkeypatch.setattr("fluidnb_magics.commands.profile.show_widget", lambda shell, face: made.append(face))
    trained.run(f"%fluid profile --live {FEED} --fetch loss --steps 3")
    (face,) = made
    data = face.timeline
    count = len(data["start"])
    assert count == 3 * len(data["ops"]) == len(data["own"]) and len(data["runs"]) == 3
    assert all(a <= b for a, b in zip(data["start"], data["end"], strict=True))
    first = data["ops"][0]
    op = fluid.default_main_program().desc.blocks[first[2]].ops[first[3]]
    assert first[0] == op.optype and first[6] == [*op.output_arg_names(), *op.input_arg_names()]
    assert "<svg" in face.html() and face.lines()


def test_a_profile_follows_what_trains_and_needs_no_feed(trained: Session) -> None:
    from fluidnb.runtime.observers import observers

    before = list(observers)
    assert "no run yet" in trained.run("%fluid profile --live")
    face = TimelineExplorer(trained.bench, fluid.default_main_program())
    clock = wind(face)
    assert face.timeline["start"] == [] and face.state == "no run yet: the next one is shown"
    fluid.Executor().run(fluid.Program())
    assert face.timeline["start"] == []
    clock.now = 1.0
    run()
    first = face.timeline
    types = [row[0] for row in first["ops"]]
    assert types[0] == "mul" and types[-1] == "sgd" and len(types) == len(first["start"]) > 8
    assert face.state == "run 1 since this was opened"
    run(3)
    assert face.timeline is first and observers == before, "one run is recorded, until the next update"
    clock.now = 2.0
    run()
    assert face.state == "run 2 since this was opened" and face.timeline is not first
    face.close()
    assert observers == before


def test_a_profile_changes_no_parameter(trained: Session) -> None:
    def held() -> bytes:
        return np.array(fluid.global_scope().find_var("net.fc_0.w_0").get_tensor()).tobytes()

    before = held()
    trained.run(f"%fluid profile {FEED} --fetch loss --steps 3")
    trained.run(f"%fluid memory --growth 3 {FEED} --fetch loss")
    assert held() == before
    trained.run(RUN)
    assert held() != before


def test_in_a_terminal_the_text_faces_are_shown_once(trained: Session) -> None:
    before = list(after_run)
    assert "net.fc_0.w_0" in trained.run("%fluid scope --live")
    assert "block 0  arena" in trained.run("%fluid memory --live")
    assert "timeline" in trained.run(f"%fluid profile --live {FEED}")
    assert after_run == before


def test_a_variable_has_a_preview(trained: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(
        "fluidnb_magics.commands.scope.show", lambda shell, lines, html=None: shown.append(html() if html else "")
    )
    trained.run("%fluid scope net.fc_0.w_0")
    assert "<polyline" in shown[0] and "<rect" in shown[0] and "float32[13, 1]" in shown[0]


def test_a_scope_of_thousands_is_shown_in_part(trained: Session) -> None:
    scope = fluid.Scope()
    for i in range(5000):
        scope.var(f"v{i:04}").value = LoDTensor(np.full(4, float(i), "float32"))
    face = ScopeExplorer(trained.bench, scope)
    assert len(face.outline["names"]) == 5000 and len(face.rows["rows"]) < 100
    assert "4,900 more variables" in face.html()
    bundle = face._repr_mimebundle_()[0]
    assert "4,900 more variables" in bundle["text/plain"] and "application/vnd.jupyter.widget-view+json" in bundle
    face.close()


def test_widgets_keep_no_scope_and_no_program(trained: Session) -> None:
    scope, program = fluid.Scope(), fluid.Program()
    seen = weakref.ref(scope), weakref.ref(program)
    faces = [ScopeExplorer(trained.bench, scope), MemoryExplorer(trained.bench, program)]
    del scope, program
    gc.collect()
    assert [ref() for ref in seen] == [None, None]
    for face in faces:
        face.update()
        assert face.state.endswith("is gone") and face.html() is not None
        face.close()


def test_unloading_ends_them(trained: Session) -> None:
    before = list(after_run)
    face = explorer(trained)
    assert after_run != before
    trained.run("%unload_ext fluidnb")
    assert after_run == before and face.comm is None
