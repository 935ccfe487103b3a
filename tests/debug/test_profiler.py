"""The profiler: its table, its timeline, its words."""

import json

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import profiler
from fluidnb.errors import OpValueError
from tests.runtime.programs import counting


def model():
    x = fluid.layers.data("x", [8])
    loss = fluid.layers.mean(fluid.layers.fc(x, 4, act="relu"))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((5, 8), "float32")}
    return lambda: exe.run(feed=feed, fetch_list=[loss])


def test_every_operator_that_runs_is_counted(tmp_path, capsys):
    step = model()
    step()
    path = tmp_path / "timeline"
    with profiler.profiler("CPU", "total", str(path)):
        for _ in range(3):
            step()
    out = capsys.readouterr().out
    assert "Event" in out and "Calls" in out and "Ratio" in out
    calls = {line.split()[0]: int(line.split()[1]) for line in out.splitlines()[2:]}
    assert calls["sgd"] == 6 and calls["mul"] == 3 and calls["relu_grad"] == 3
    totals = [float(line.split()[2]) for line in out.splitlines()[2:]]
    assert totals == sorted(totals, reverse=True)
    trace = json.loads(path.read_text())["traceEvents"]
    assert sum(calls.values()) == len(trace) and all(e["dur"] >= 0 and e["ph"] == "X" for e in trace)
    assert any("test_profiler.py" in e["args"]["cell"] for e in trace)


def test_loops_are_seen_iteration_by_iteration(capsys):
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.ones((1, 2), "float32")}
    program = counting(4)
    for run in range(2):  # bound in the first run, the bare loop in the second
        with profiler.profiler("All", None, None) as profile:
            exe.run(program, feed=feed, fetch_list=["total"])
        assert sum(e.type == "increment" and e.block == 1 for e in profile.events) == 4, run
        by_block = {r.event: r for r in profile.rows(by="block")}
        assert set(by_block) == {"block 0", "block 1"}
        inside = sum(e.end - e.start for e in profile.events if e.block == 1)
        (loop,) = (e for e in profile.events if e.type == "while")
        assert loop.end - loop.start >= inside
    capsys.readouterr()


def test_nothing_is_timed_outside():
    step = model()
    profiler.reset_profiler()
    step()
    assert profiler._current.events == []


@pytest.mark.parametrize("by", ["type", "op", "block", "cell"])
def test_shares_add_up(by, capsys):
    step = model()
    with profiler.profiler("CPU", None, None) as profile:
        step()
    capsys.readouterr()
    assert sum(r.ratio for r in profile.rows(by=by)) == pytest.approx(1)


@pytest.mark.parametrize("wrong", [lambda: profiler.start_profiler("TPU"), lambda: profiler.stop_profiler("longest")])
def test_other_words_are_refused(wrong):
    with pytest.raises(OpValueError):
        wrong()


def test_a_wrong_key_is_refused_before_anything_runs():
    with pytest.raises(OpValueError, match="longest"), profiler.profiler("CPU", "longest"):
        raise AssertionError("the body must not run")


def test_the_profiler_of_cuda_is_refused_with_what_to_use() -> None:
    from fluidnb.errors import NotBuiltYet

    with pytest.raises(NotBuiltYet, match="CUDA's profiler[\\s\\S]*fluid.profiler.profiler times every operator"):
        fluid.profiler.cuda_profiler("trace.txt")
    assert bool(fluid.core.get_cuda_device_count()) == fluid.core.is_compiled_with_cuda()
