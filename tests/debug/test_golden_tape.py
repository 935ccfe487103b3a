"""Forwards, back to the beginning, forwards again: the same bits for every recorded program and model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.debug.debugger import Debugger
from fluidnb.values import LoDTensorArray
from tests.debug.programs import held
from tests.ops.goldens import Case, cases
from tests.paddle.programs_control_flow import PROGRAMS, SHAPE, trained
from tests.runtime.test_models import FOLDER, MODELS, arrays, train
from tests.tools.sampling import sample


def as_bytes(value: Any) -> Any:
    """A fetched value, comparable."""
    if isinstance(value, LoDTensorArray | list):
        return [as_bytes(v) for v in value]
    return np.asarray(value).tobytes()


@pytest.mark.parametrize("budget", [1 << 20, 1 << 30], ids=["1MB", "1GB"])
@pytest.mark.parametrize("name", sample(MODELS, 7))
def test_a_model_goes_back_over_all_its_training(name: str, budget: int) -> None:
    folder = FOLDER / name
    meta, feeds = json.loads((folder / "meta.json").read_text()), arrays(folder / "feeds.npz")
    program = fluid.Program.parse_from_string((folder / "main.pb").read_bytes())
    scope, exe = fluid.Scope(), fluid.Executor()
    for key, array in arrays(folder / "init_params.npz").items():
        scope.var(key).get_tensor().set(array)
    before, seen = held(scope), []
    with fluid.debug(program, budget=budget) as d:
        for step in range(min(meta["steps"], 3)):
            feed = {}
            for key in meta["feeds"]:
                feed[key] = fluid.LoDTensor()
                feed[key].set(feeds[f"{step}/{key}"])
                feed[key].set_lod(meta["feed_lod"][step].get(key, []))
            got = exe.run(program, feed, meta["fetches"], scope=scope, return_numpy=False)
            seen.append([np.array(v).tobytes() for v in got])
    assert seen == train(name, keep_scopes=False)[0][: len(seen)]
    end, at = held(scope), d.snapshot.at
    assert d.snapshot.kept <= budget
    d.back(5)
    d.go(0)
    assert held(scope) == before and not d.snapshot.can_back
    assert (d.continue_().at, held(scope)) == (at, end)
    assert [as_bytes(v) for v in d.do(Debugger.results, False)] == seen[-1]
    d.close()


@pytest.mark.parametrize("case", sample(cases(), 60), ids=lambda case: case.id)
def test_a_recorded_operator_goes_back_step_by_step(case: Case) -> None:
    program = fluid.Program.parse_from_string(case.program)
    fetches = [row["var"] for row in case.fetches]
    d = fluid.debug(program, case.feed(), fetches, fluid.Scope())
    spots = [d.snapshot.frames]
    while d.step().state != "done":
        spots.append(d.snapshot.frames)
    first = [as_bytes(v) for v in d.do(Debugger.results, False)]
    for spot in reversed(spots):
        assert d.back().frames == spot
    d.continue_()
    assert [as_bytes(v) for v in d.do(Debugger.results, False)] == first
    d.close()


@pytest.mark.parametrize("budget", [1, 1 << 20], ids=["1B", "1MB"])
@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_loops_branches_and_rnns_go_back_over_three_steps_of_training(build: Any, budget: int) -> None:
    main, startup, loss = trained(build)
    scopes, exe, rng = [fluid.Scope(), fluid.Scope()], fluid.Executor(), np.random.default_rng(1)
    for scope in scopes:
        exe.run(startup, scope=scope)
    before, feeds = held(scopes[0]), [{"x": rng.standard_normal(SHAPE, np.float32)} for _ in range(3)]
    plain = [exe.run(main, feed, [loss], scope=scopes[1])[0].tobytes() for feed in feeds]
    with fluid.debug(main, budget=budget) as d:
        walked = [exe.run(main, feed, [loss], scope=scopes[0])[0].tobytes() for feed in feeds]
    assert (walked, held(scopes[0])) == (plain, held(scopes[1]))
    end, at = held(scopes[0]), d.snapshot.at
    d.back(10)
    d.go(d.inspect(lambda debugger: debugger.tape.forgotten))
    assert budget == 1 or held(scopes[0]) == before
    assert (d.continue_().at, held(scopes[0])) == (at, end)
    assert d.results[0].tobytes() == plain[-1]
    d.close()
