"""%fluid train: means and validation, interrupted runs that are continued, runs that are kept, NaN."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError
from tests.magics.conftest import Session

NET = """%%fluid net
x = layers.data("x", [4])
y = layers.data("y", [1], dtype="int64")
p = layers.fc(layers.dropout(layers.fc(x, 16, act="relu"), 0.3), 2, act="softmax")
loss = layers.mean(layers.cross_entropy(p, y))
acc = layers.accuracy(p, y)
fluid.optimizer.Adam(0.01).minimize(loss)
"""
DATA = """
class Stop:
    at, count = -1, 0
stop = Stop()

def rows():
    draws = np.random.default_rng(1)
    for i in range(40):
        v = draws.normal(size=4).astype("float32")
        yield v, int(v.sum() > 0)

def batches():
    for b in fluid.batch(rows, 8)():
        if stop.count == stop.at:
            stop.at = -1
            raise KeyboardInterrupt
        stop.count += 1
        yield b
"""


@pytest.fixture
def net(session: Session) -> Session:
    """A classifier with dropout, its data, and a reader that can be interrupted before a batch."""
    session.run("%fluid seed 7")
    session.run(NET)
    session.run(DATA)
    return session


def parameters() -> dict[str, bytes]:
    """The values of all variables that last."""
    scope, block = fluid.global_scope(), fluid.default_main_program().global_block()
    names = [name for name, v in block.desc.vars.items() if v.persistable()]
    return {n: np.array(scope.find_var(n).get_tensor()).tobytes() for n in names}


def test_means_of_each_pass_and_of_a_validation(net: Session) -> None:
    shown = net.run("%fluid train batches --passes 3 --watch loss acc --test batches")
    for number in (1, 2, 3):
        assert f"pass {number}  loss 0." in shown
    (run,) = net.bench.runs
    assert [(row.number, row.step) for row in run.state.rows] == [(1, 5), (2, 10), (3, 15)]
    assert [c.share for c in run.state.curves] == [False, True]
    tested = dict(run.state.rows[-1].tests)
    main = fluid.default_main_program()
    values = net.names
    feed = {"x": np.stack([v for v, _ in values["rows"]()]), "y": np.array([[t] for _, t in values["rows"]()])}
    from fluidnb.viz.lessons.backward.examples import forward_part

    test = forward_part(main).clone(for_test=True)
    loss, acc = fluid.Executor().run(test, feed=feed, fetch_list=["loss", "acc"])
    assert tested["loss"] == pytest.approx(float(loss[0]), rel=1e-5)
    assert tested["acc"] == pytest.approx(float(acc[0]))


def test_the_mean_of_a_pass_is_over_all_its_steps(net: Session) -> None:
    net.run("from fluidnb.runtime.last_values import latest_array\nseen = []")
    net.run("def noted():\n    for b in batches():\n        yield b\n        seen.append(latest_array(loss)[0])")
    net.run("%fluid train noted --watch loss")
    assert dict(net.bench.runs[0].state.rows[0].means)["loss"] == pytest.approx(np.mean(net.names["seen"]), rel=1e-6)


def test_a_validation_changes_nothing(net: Session) -> None:
    net.run("%fluid train batches --passes 2 --watch loss acc")
    alone = parameters()
    net.run("%fluid run --startup\n%fluid seed 7")
    net.run("%fluid run --startup")
    net.run("%fluid train batches --passes 2 --watch loss acc")
    before = parameters()
    net.run("%fluid seed 7\n%fluid run --startup")
    net.run("%fluid train batches --passes 2 --watch loss acc --test batches")
    assert parameters() == before != {} and alone.keys() == before.keys()


def test_an_interrupted_run_is_continued_as_if_it_had_not_been(net: Session) -> None:
    net.run("%fluid run --startup")
    net.run("%fluid seed 7\n%fluid run --startup")
    net.run("%fluid train batches --passes 3 --watch loss")
    whole = parameters()
    net.run("%fluid seed 7\n%fluid run --startup")
    net.run("stop.count, stop.at = 0, 7")
    error, _ = net.fail("%fluid train batches --passes 3 --watch loss")
    assert isinstance(error, KeyboardInterrupt)
    assert str(error) == "interrupted at step 7 of 15, parameters kept; train again to continue"
    assert error._render_traceback_()[0].endswith(str(error))  # type: ignore[attr-defined]
    assert "7 of 15 steps  interrupted" in net.run("%fluid runs")
    shown = net.run("%fluid train batches --passes 3 --watch loss")
    assert "run 2 continues after step 7" in shown and "15/15" in shown
    assert parameters() == whole
    assert len(net.bench.runs) == 2 and len(net.bench.runs[-1].state.rows) == 3
    steps = [step for step, _ in net.bench.runs[-1].state.curves[0].points]
    assert steps == sorted(set(steps)) and steps[0] < 7 < steps[-1] == 14


def test_a_run_whose_parameters_were_changed_is_not_continued(net: Session) -> None:
    net.run("stop.at = 3")
    net.fail("%fluid train batches --watch loss")
    net.run("%fluid run --startup")
    assert "continues" not in net.run("%fluid train batches --watch loss")
    assert [run.ended for run in net.bench.runs] == ["interrupted", "done"]


def test_a_new_run_although_one_was_interrupted(net: Session) -> None:
    net.run("stop.at = 3")
    net.fail("%fluid train batches --watch loss")
    assert "continues" not in net.run("%fluid train batches --watch loss --new")


def test_resume_continues_step_and_curve(net: Session) -> None:
    error, _ = net.fail("%fluid train batches --resume")
    assert isinstance(error, OpValueError)
    net.run("%fluid train batches --passes 2 --watch loss --name first")
    shown = net.run("%fluid train batches --passes 1 --watch loss --resume")
    assert "first continues after step 10" in shown and "pass 3  loss" in shown
    (run,) = net.bench.runs
    assert run.state.step == 15 and run.state.curves[0].points[-1][0] == 14 and run.state.curves[0].points[0][0] < 10


def test_runs_are_kept_named_and_dropped(net: Session) -> None:
    assert "no runs yet" in net.run("%fluid runs")
    net.run("%fluid train batches --watch loss --name slow")
    net.run("%fluid train batches --watch loss acc --beside slow")
    shown = net.run("%fluid runs")
    assert "slow" in shown and "run 2" in shown and "5 steps  done" in shown
    error, _ = net.fail("%fluid runs slwo")
    assert isinstance(error, NotFound) and '"slow"' in str(error)
    assert "slow" not in net.run("%fluid runs slow --drop")
    assert [run.name for run in net.bench.runs] == ["run 2"]
    net.fail("%fluid runs --drop")


def test_the_loss_is_watched_where_nothing_else_is(net: Session) -> None:
    assert "loss 0." in net.run("%fluid train batches")


def test_nan_is_reported_when_it_happens(net: Session) -> None:
    net.run("""def bad():
    for i, b in enumerate(batches()):
        print('batch', i)
        yield b if i != 2 else [(v * np.nan, t) for v, t in b]
""")
    shown = net.run("%fluid train bad --watch loss acc")
    assert "loss is nan since step 3 (pass 1)" in shown
    assert shown.index("loss is nan") < shown.index("batch 3"), "only at the end"
    assert shown.count("loss is nan") == 2, "at once, and at the end"


def test_the_operator_behind_a_nan_is_found_as_the_report_says(net: Session) -> None:
    net.run("def bad():\n    for b in batches():\n        yield [(v * np.nan, t) for v, t in b]")
    shown = net.run("%fluid train bad --watch loss")
    assert "since step 1 (pass 1)\n%fluid reset --params and %fluid nan on, then train again" in shown
    net.run("%fluid reset --params")
    assert "every run stops at the first operator" in net.run("%fluid nan on")
    try:
        error, text = net.fail("%fluid train bad --watch loss")
    finally:
        assert "runs do not check" in net.run("%fluid nan off")
    assert isinstance(error, EnforceNotMet) and error.op is not None and "NAN/Inf" in text


def test_an_endless_loop_names_its_operator_and_iteration(session: Session) -> None:
    session.run("""%%fluid loop
x = layers.data("x", [1])
i, n = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 10**12)
more = layers.less_than(i, n)
with layers.While(more).block():
    layers.increment(i)
    layers.less_than(i, n, cond=more)
""")
    session.run("import threading, os, signal, time\nfrom fluidnb.runtime.interrupt import runs, _patient")
    session.run("""def press():
    # The loop is the last call of the run: before it, while operators are bound, an interrupt is in no iteration.
    in_loop = lambda: _patient and any(not left.__length_hint__() for run in [*runs] for left, *_ in run.stack[:1])
    for ready in (in_loop, lambda: _patient[-1]._requested):
        while not ready(): time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()""")
    error, _ = session.fail("%fluid train [{'x':np.ones((1,1),'float32')}] --watch i")
    text = "\n".join(error._render_traceback_())  # type: ignore[attr-defined]
    assert "interrupted at step 0 of 1, parameters kept" in text
    assert "of while (op 3 in block 0), cell loop, line 5" in text and "In iteration " in text


def test_trackers_get_the_watched_values_of_each_step(net: Session) -> None:
    net.run("import fluidnb as fluid\nclass Last(fluid.tracking.Tracker):\n    seen = []\n"
            "    def step(self, step):\n        self.seen.append((step.number, *step.values))\n"
            "    def end(self, how):\n        print(how)")  # fmt: skip
    shown = net.run("%fluid train batches --passes 2 --watch acc --track Last() --track 'fluid.tracking.Table()'")
    assert "done" in shown
    assert net.names["Last"].seen == [(i, "acc") for i in range(10)]


def test_a_refused_training_leaves_the_runs_as_they_were(net: Session) -> None:
    net.run("%fluid train batches --watch loss --name good")
    before = net.run("%fluid runs")
    for line in ("[1,2] --name good", "[1,2] --resume", "batches --name good --track 5", "[1,2]"):
        error, _ = net.fail(f"%fluid train {line}")
        assert net.run("%fluid runs") == before, line
    assert "continues after step 5" in net.run("%fluid train batches --resume --watch loss")


@pytest.mark.parametrize("line", ["lambda:5", "lambda:5 --batch 2", "batches --test lambda:5"])
def test_a_reader_that_gives_no_batches(net: Session, line: str) -> None:
    error, _ = net.fail(f"%fluid train {line}")
    assert isinstance(error, OpTypeError) and "A reader must return" in str(error)
