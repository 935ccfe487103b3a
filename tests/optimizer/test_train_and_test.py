"""Training and test programs side by side: they share parameters by name, and testing changes nothing."""

import warnings

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet

L = fluid.layers
rng = np.random.default_rng(0)
FEED = {"x": rng.normal(size=(6, 4)).astype("float32"), "y": rng.normal(size=(6, 1)).astype("float32")}


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def network():
    """A loss behind batch normalisation and dropout."""
    x, y = L.data("x", [4]), L.data("y", [1])
    h = L.dropout(L.batch_norm(L.fc(x, 8, act="relu")), 0.5)
    return L.mean(L.square_error_cost(L.fc(h, 1), y))


def minimize(loss):
    fluid.optimizer.Momentum(L.exponential_decay(0.1, 10, 0.5), 0.9).minimize(loss)


def started():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def held():
    """Everything that outlives a run, by name."""
    scope = fluid.global_scope()
    return {n: np.array(scope.find_var(n).get_tensor()).tobytes() for n in scope.local_var_names()}


def test_a_test_run_changes_nothing():
    loss = network()
    test = fluid.default_main_program().clone(for_test=True)
    minimize(loss)
    exe = started()
    exe.run(feed=FEED)
    before = held()
    losses = [exe.run(test, feed=FEED, fetch_list=[loss.name])[0].item() for _ in range(3)]
    assert len(set(losses)) == 1  # no dropout, no batch moments
    assert held() == before and {"@LR_DECAY_COUNTER@", "batch_norm_0.w_1"} < set(before)
    exe.run(feed=FEED)
    assert all(held()[name] != value for name, value in before.items())


def test_a_test_run_sees_what_training_did():
    loss = network()
    test = fluid.default_main_program().clone(for_test=True)
    minimize(loss)
    exe = started()
    losses = []
    for _ in range(60):
        exe.run(feed=FEED)
        losses.append(exe.run(test, feed=FEED, fetch_list=[loss])[0].item())  # the training program's handle will do
    assert losses[-1] < 0.5 * losses[0]


def test_alternating_is_like_training_alone():
    def train(testing):
        with fluid.fresh() as (main, startup):
            fluid.seed(5)
            loss = network()
            test = main.clone(for_test=True)
            minimize(loss)
            exe = started()
            for _ in range(5):
                exe.run(feed=FEED)
                if testing:
                    exe.run(test, feed={"x": FEED["x"][:3], "y": FEED["y"][:3]}, fetch_list=[loss.name])
            return held()

    assert train(True) == train(False)


def test_a_clone_after_minimize_warns_that_it_trains():
    loss = network()
    minimize(loss)
    with pytest.warns(UserWarning, match="running the clone trains on the test data. Clone before") as caught:
        clone = fluid.default_main_program().clone(for_test=True)
    assert caught[0].filename == __file__
    exe = started()
    before = held()
    exe.run(clone, feed=FEED)
    assert held()["fc_0.w_0"] != before["fc_0.w_0"]  # as the warning says


@pytest.mark.parametrize(
    "make",
    [
        lambda main, loss: main.prune([loss]).clone(for_test=True),
        lambda main, loss: main.inference_optimize().prune([loss]),
        lambda main, loss: fluid.io.get_inference_program([loss], main),
    ],
    ids=["prune_clone", "optimize_prune", "get_inference_program"],
)
def test_after_minimize_pruning_makes_a_test_program(make):
    loss = network()
    early = fluid.default_main_program().clone(for_test=True)
    minimize(loss)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test = make(fluid.default_main_program(), loss)
    assert [op.type for op in test.global_block().ops] == [op.type for op in early.global_block().ops]
    exe = started()
    exe.run(feed=FEED)
    before = held()
    assert exe.run(test, feed=FEED, fetch_list=[loss.name]) == exe.run(early, feed=FEED, fetch_list=[loss.name])
    assert held() == before


def test_a_plain_clone_after_minimize_trains_on():
    loss = network()
    minimize(loss)
    clone = fluid.default_main_program().clone()
    exe = started()
    before = held()
    exe.run(clone, feed=FEED)
    assert held()["fc_0.w_0"] != before["fc_0.w_0"]


def build(guarded):
    """A training program and a test program from the same function."""
    main, startup, test = fluid.Program(), fluid.Program(), fluid.Program()

    def make(program, first):
        with fluid.program_guard(program, startup if first else fluid.Program()):
            loss = network()
            if first:
                fluid.optimizer.SGD(0.1).minimize(loss)
            return loss

    if guarded:
        with fluid.unique_name.guard():
            make(main, True)
        with fluid.unique_name.guard():
            return main, startup, test, make(test, False)
    make(main, True)
    return main, startup, test, make(test, False)


def test_two_programs_of_one_function_share_under_a_name_guard():
    main, startup, test, loss = build(guarded=True)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    exe.run(main, feed=FEED)
    before = held()
    first = exe.run(test, feed=FEED, fetch_list=[loss])[0].item()
    assert held().keys() == before.keys()
    exe.run(main, feed=FEED)
    assert exe.run(test, feed=FEED, fetch_list=[loss])[0].item() != first


def test_without_a_guard_the_error_says_why_nothing_is_shared():
    main, startup, test, loss = build(guarded=False)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(startup)
    exe.run(main, feed=FEED)
    before = held()
    with pytest.raises(EnforceNotMet, match="fc_2.w_0 has no value yet") as caught:
        exe.run(test, feed=FEED, fetch_list=[loss])
    assert caught.value.hint == (
        "programs share parameters by name, and fc_0.w_0 of the same shape has a value: clone the program that has it, "
        "clone(for_test=True), or build this one under unique_name.guard()."
    )
    assert held() == before


def test_a_forgotten_startup_program_is_still_called_that():
    loss = network()
    with pytest.raises(EnforceNotMet, match="run the startup program first"):
        fluid.Executor(fluid.CPUPlace()).run(feed=FEED, fetch_list=[loss])
