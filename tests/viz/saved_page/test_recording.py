"""The recorded steps of a session: positions, values, what is left out, and that the session stays where it is."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.debug import Session
from fluidnb.errors import OpValueError
from fluidnb.viz.saved_page.budget import newest, pack
from fluidnb.viz.saved_page.page import read_page
from fluidnb.viz.saved_page.recording import MOST, Recording, read_recording, sampled
from tests.viz.saved_page.programs import COLUMN, PLANTED, ROW, large, lstm_training


def data_of(text: str, name: str) -> Any:
    """A part of a page's data."""
    found = re.search(rf'id="data-{name}">([^<]*)<', text)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def state(recording: Recording, k: int) -> dict[str, Any]:
    """The variables that are visible at a step, as a reader of the page finds them."""
    values: dict[tuple[int, str], int] = {}
    for step in recording.steps[: k + 1]:
        values |= {(scope, name): value for scope, name, value in step.wrote}
    shown = {}
    for number in recording.steps[k].scopes:
        shown |= {name: recording.values[v] for (scope, name), v in values.items() if scope == number and v >= 0}
    return shown


def same(recording: Recording, session: Session) -> None:
    """Every step of a recording has the values that the session has there."""
    for k, step in enumerate(recording.steps):
        if k and step.position.at == recording.steps[k - 1].position.at:
            continue  # the beginning of a run; the session goes to the end of the one before
        session.go(step.position.at)
        shown = state(recording, k)
        assert set(shown) == set(session.names())
        for name, value in shown.items():
            if value.array is not None and value.size <= MOST:
                assert np.array_equal(value.array, np.asarray(session[name]), equal_nan=value.array.dtype.kind == "f")


def test_each_step_has_the_values_of_the_session() -> None:
    session = lstm_training(2)
    session.back(3)
    recording = read_recording(session)
    assert recording.steps[recording.here].position.at == session.snapshot.at == session.snapshot.reached - 3
    ends = recording.steps[0].position.runs[1]
    expected = [*range(ends + 1), *range(ends, session.snapshot.reached + 1)]
    assert [step.position.at for step in recording.steps] == expected
    assert [step.position.reason for step in recording.steps[ends : ends + 2]] == ["after 1 step", "entry"]
    assert state(recording, ends)["x"].line != state(recording, ends + 1)["x"].line
    same(recording, session)


def test_loops_have_a_scope_for_each_iteration() -> None:
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.scale(layers.increment(i, 1), 2)
        layers.less_than(i, n, cond=more)
    session = Session(fluid.default_main_program(), {})
    session.continue_()
    recording = read_recording(session)
    assert {len(step.scopes) for step in recording.steps} == {2, 3}
    assert len({step.scopes for step in recording.steps}) == 4  # outside, and three iterations
    same(recording, session)


def test_the_session_stays_where_it_is_with_its_edits() -> None:
    session = lstm_training(1)
    session.restart()
    session.step(4)
    session.edit("y", np.full((3, 1), 7, "float32"))
    session.step(2)
    seen: list[int] = []
    session.observe(lambda snapshot: seen.append(snapshot.at))
    before, values = session.snapshot, {name: session[name] for name in session.names()}
    recording = read_recording(session)
    assert session.snapshot is before and seen == [before.at]
    assert all(np.array_equal(session[name], value) for name, value in values.items() if isinstance(value, np.ndarray))
    assert recording.here == 7
    y = state(recording, 5)["y"].array
    assert y is not None and (y == 7).all() and not (state(recording, 4)["y"].array == 7).any()
    session.back(3)
    assert not (np.asarray(session["y"]) == 7).any()


def test_the_first_nan_is_marked_where_it_was_planted() -> None:
    recording = read_recording(lstm_training())
    bad = [
        k for k, step in enumerate(recording.steps)
        if any(recording.values[v].line.bad for _, name, v in step.wrote if name in step.position.wrote)
    ]  # fmt: skip
    first = recording.steps[bad[0]].position
    assert first.runs[PLANTED] + 1 == first.at and first.wrote == ("fc_0.tmp_0",)
    x = state(recording, bad[0])["x"].array
    assert x is not None and np.argwhere(np.isnan(x)).tolist() == [[ROW, COLUMN]]


def test_the_last_steps_alone() -> None:
    session = lstm_training(2)
    whole, last = read_recording(session), read_recording(session, 10)
    cut = newest(whole, 11)
    assert len(last.steps) == len(cut.steps) == 11
    for k in (0, 5, 10):
        shown = [state(last, k), state(cut, k), state(whole, k + len(whole.steps) - 11)]
        a, b, c = ({name: value.line for name, value in values.items()} for values in shown)
        assert a == b == c


def test_large_tensors_are_thinned_evenly_and_keep_their_statistics() -> None:
    recording = read_recording(large(1, 2, 200))
    value = recording.values[-1]
    assert value.size == 40_000 and value.line.facts == "float32[200, 200]"
    assert value.array is not None and value.array.size <= MOST and [k[0] for k in value.kept] == [0, 0]
    assert [k[-1] for k in value.kept] == [199, 199]
    fewer = sampled(value, 100)
    assert fewer.array is not None and fewer.array.size <= 100 and fewer.line == value.line
    assert all(set(a) <= set(b) for a, b in zip(fewer.kept, value.kept, strict=True))
    row, column = (list(b).index(a[1]) for a, b in zip(fewer.kept, value.kept, strict=True))
    assert fewer.array[1, 1] == value.array[row, column]


def test_a_file_keeps_to_its_limit_and_says_how(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = large(100, 200, 100)
    for limit in (2_000_000, 400_000, 250_000):
        path = session.save(tmp_path / "x.html", max_bytes=limit)
        size = path.stat().st_size
        assert size <= limit
        shown = capsys.readouterr().out
        assert f"{path}: {size / 1e6:.1f} MB" in shown or f"{path}: {size / 1e3:.0f} KB" in shown
        counts = re.search(r"200 operators, (?:the last )?(\d+) steps.*; (\d+) of \d+ values thinned", shown)
        assert counts is not None
        data = data_of(path.read_text(), "steps")
        assert sum("kept" in value for value in data["values"]) == int(counts[2])
        assert all(value["line"]["statistics"] for value in data["values"])
        first, last = data["steps"][0]["position"]["at"], data["steps"][-1]["position"]["at"]
        assert last == 100 and last - first == int(counts[1])


def test_too_small_a_limit_is_refused() -> None:
    session = lstm_training(1)
    with pytest.raises(OpValueError, match="does not fit"):
        session.save("x.html", max_bytes=1000)
    with pytest.raises(OpValueError, match="does not fit"):
        pack(read_recording(session), 100)
    with pytest.raises(OpValueError, match="does not fit") as refused:
        read_page(session, max_bytes=5000)
    enough = re.search(r"=(\d+)", str(refused.value.hint))
    assert enough is not None
    assert len(read_page(session, max_bytes=int(enough[1])).text) <= int(enough[1])
