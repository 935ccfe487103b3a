"""Schedules: their formulas, the counter that they share, and what training, testing and saving do to it."""

import math

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import OpRole
from tests.tools.refused import refused

L = fluid.layers
COUNTER = "@LR_DECAY_COUNTER@"
STEPS = 13


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def executor():
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe


def rates(rate, steps=STEPS):
    exe = executor()
    return [float(exe.run(fetch_list=[rate])[0][0]) for _ in range(steps)]


def polynomial_cycle(k):
    return (0.1 - 0.01) * (1 - k / (4 * max(1, math.ceil(k / 4)))) ** 0.5 + 0.01


FORMULAS = {
    "noam": (lambda: L.noam_decay(16, 5), lambda k: 16**-0.5 * min((k + 1) ** -0.5, (k + 1) * 5**-1.5)),
    "exponential": (lambda: L.exponential_decay(0.1, 4, 0.5), lambda k: 0.1 * 0.5 ** (k / 4)),
    "exponential_stairs": (lambda: L.exponential_decay(0.1, 4, 0.5, True), lambda k: 0.1 * 0.5 ** (k // 4)),
    "natural_exp": (lambda: L.natural_exp_decay(0.1, 3, 0.7), lambda k: 0.1 * math.exp(-0.7 * k / 3)),
    "natural_exp_stairs": (lambda: L.natural_exp_decay(0.1, 3, 0.7, True), lambda k: 0.1 * math.exp(-0.7 * (k // 3))),
    "inverse_time": (lambda: L.inverse_time_decay(0.1, 3, 0.5), lambda k: 0.1 / (1 + 0.5 * k / 3)),
    "inverse_time_stairs": (lambda: L.inverse_time_decay(0.1, 3, 0.5, True), lambda k: 0.1 / (1 + 0.5 * (k // 3))),
    "polynomial": (lambda: L.polynomial_decay(0.1, 6, 0.01, 2.0), lambda k: 0.09 * (1 - min(k, 6) / 6) ** 2 + 0.01),
    "polynomial_cycle": (lambda: L.polynomial_decay(0.1, 4, 0.01, 0.5, cycle=True), polynomial_cycle),
    "cosine": (lambda: L.cosine_decay(0.1, 3, 4), lambda k: 0.05 * (math.cos((k // 3) * math.pi / 4) + 1)),
    "piecewise": (lambda: L.piecewise_decay([3, 7], [0.3, 0.2, 0.1]), lambda k: [0.3, 0.2, 0.1][(k >= 3) + (k >= 7)]),
    "warmup": (
        lambda: L.linear_lr_warmup(L.exponential_decay(0.1, 4, 0.5), 5, 0.01, 0.06),
        lambda k: 0.01 + 0.05 * k / 5 if k < 5 else 0.1 * 0.5 ** (k / 4),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    build, formula = FORMULAS[name]
    np.testing.assert_allclose(rates(build()), [formula(k) for k in range(STEPS)], rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize("name", FORMULAS)
def test_all_operators_belong_to_the_schedule(name):
    rate = FORMULAS[name][0]()
    program = fluid.default_main_program()
    assert {op.attr("op_role") for block in program.blocks for op in block.ops} == {OpRole.LRSched}
    assert program.op_role == OpRole.Forward
    assert rate.shape == (1,) and fluid.core.VarDesc.VarType.FP32 == rate.dtype
    first = program.global_block().ops[0]
    assert (first.type, first.output("Out")) == ("increment", [COUNTER])


def test_arguments_may_be_variables():
    half = L.fill_constant([1], "float32", 0.5)
    np.testing.assert_allclose(rates(L.exponential_decay(half, 1, half), 3), [0.5, 0.25, 0.125])
    with fluid.fresh():
        width = L.fill_constant([1], "float32", 16.0)
        np.testing.assert_allclose(rates(L.noam_decay(width, 5), 2), [0.25 * k * 5**-1.5 for k in (1, 2)], rtol=1e-6)


def test_schedules_share_a_counter():
    a, b = L.exponential_decay(1.0, 1, 0.5), L.inverse_time_decay(1.0, 1, 1.0)
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("increment") == 1
    exe = executor()
    both = [[v.item() for v in exe.run(fetch_list=[a, b])] for _ in range(3)]
    np.testing.assert_allclose(both, [[1, 1], [0.5, 0.5], [0.25, 1 / 3]], rtol=1e-6)


def test_the_startup_program_begins_anew():
    rate = L.exponential_decay(1.0, 1, 0.5)
    assert rates(rate, 3) == rates(rate, 3) == [1.0, 0.5, 0.25]


def test_two_piecewise_rates_are_two():
    a, b = L.piecewise_decay([1], [0.5, 0.25]), L.piecewise_decay([2], [1.0, 2.0])
    assert a.name == "learning_rate" and b.name != a.name
    exe = executor()
    assert [[v.item() for v in exe.run(fetch_list=[a, b])] for _ in range(3)] == [[0.5, 1], [0.25, 1], [0.25, 2]]


def loss_of_a_weight():
    """Its gradient is x."""
    x = L.data("x", [1], append_batch_size=False)
    w = L.create_parameter([1], "float32", name="w", default_initializer=fluid.initializer.Constant(0.0))
    return L.mean(L.elementwise_mul(x, w))


def weights(exe, steps):
    return [float(exe.run(feed={"x": np.ones(1, "float32")}, fetch_list=["w"])[0][0]) for _ in range(steps)]


def test_training_follows_the_rate():
    fluid.optimizer.SGD(L.piecewise_decay([2, 3], [1.0, 0.5, 0.25])).minimize(loss_of_a_weight())
    assert weights(executor(), 5) == [-1, -2, -2.5, -2.75, -3.0]


def test_a_test_program_that_was_cloned_late_does_not_count():
    rate, loss = L.exponential_decay(1.0, 1, 0.5), loss_of_a_weight()
    test = fluid.default_main_program().clone(for_test=True)
    assert "increment" not in [op.type for op in test.global_block().ops]
    fluid.optimizer.SGD(rate).minimize(loss)
    exe, feed = executor(), {"x": np.ones(1, "float32")}
    seen = []
    for _ in range(3):
        assert weights(exe, 1)
        seen.append([exe.run(test, feed=feed, fetch_list=[rate.name])[0].item() for _ in range(4)])
    assert seen == [[1.0] * 4, [0.5] * 4, [0.25] * 4]


def test_a_counter_of_the_users_own_counts_in_a_test_program():
    counter = L.autoincreased_step_counter(begin=5)
    test = fluid.default_main_program().clone(for_test=True)
    exe = executor()
    assert [exe.run(test, fetch_list=[counter.name])[0].item() for _ in range(2)] == [5, 6]


def test_saved_and_loaded_it_goes_on(tmp_path):
    rate = L.exponential_decay(1.0, 1, 0.5)
    fluid.optimizer.SGD(rate).minimize(loss_of_a_weight())
    exe, feed = executor(), {"x": np.ones(1, "float32")}
    for _ in range(3):
        exe.run(feed=feed)
    fluid.io.save_persistables(exe, str(tmp_path))
    straight = exe.run(feed=feed, fetch_list=["w", rate])
    with fluid.scope_guard(fluid.Scope()):
        fluid.io.load_persistables(exe, str(tmp_path))
        resumed = exe.run(feed=feed, fetch_list=["w", rate])
    assert [v.item() for v in resumed] == [v.item() for v in straight] == [-1.875, 0.125]


def test_counters():
    a, b = L.autoincreased_step_counter(), L.autoincreased_step_counter("mine", begin=10, step=5)
    assert L.autoincreased_step_counter() is a and a.name == "@STEP_COUNTER@" and a.persistable
    exe = executor()
    assert [[v.item() for v in exe.run(fetch_list=[a, b])] for _ in range(3)] == [[1, 10], [2, 15], [3, 20]]
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="counter mine already exists with a different step"):
        L.autoincreased_step_counter("mine", step=2)
    assert fluid.default_main_program().desc.serialize_to_string() == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: L.exponential_decay(0.1, 0, 0.5), "decay_steps of a schedule must be above 0"),
        (lambda: L.polynomial_decay(0.1, -3), "decay_steps of a schedule must be above 0"),
        (lambda: L.noam_decay(512, 0), "warmup_steps of a schedule must be above 0"),
        (lambda: L.noam_decay(0, 4000), "d_model of a schedule must be above 0"),
        (lambda: L.cosine_decay(0.1, 10, 0), "epochs of a schedule must be above 0"),
        (lambda: L.linear_lr_warmup(0.1, 0, 0.0, 0.1), "warmup_steps of a schedule must be above 0"),
        (lambda: L.piecewise_decay([1, 2], [0.1, 0.2]), r"len\(values\) - len\(boundaries\) should be 1"),
        (lambda: L.piecewise_decay([], [0.1]), "at least one boundary"),
        (lambda: L.piecewise_decay([2, 1], [0.1, 0.2, 0.3]), "boundaries of piecewise_decay must rise"),
    ],
)
def test_mistakes_leave_nothing(call, message):
    with refused(OpValueError, message):
        call()
    assert not fluid.default_main_program().global_block().ops
    assert not fluid.default_startup_program().global_block().ops


def test_a_number_is_wanted():
    with pytest.raises(OpTypeError, match="decay_steps of inverse_time_decay must be"):
        L.inverse_time_decay(0.1, "100", 0.5)


@pytest.mark.parametrize(("decay", "factor"), [(0.01, 1.0), (1.0, 3.0)])
def test_rates_that_follow_the_sizes_of_parameters_and_gradients(decay, factor):
    """append_LARS: the step of each parameter is as long as its own size says."""
    x, y = np.random.default_rng(2).uniform(-1, 1, (2, 4, 3)).astype("f4")
    start = np.arange(1, 10, dtype="f4").reshape(3, 3) / 10
    attr = fluid.ParamAttr("w", fluid.initializer.NumpyArrayInitializer(start), learning_rate=factor)
    guess = L.fc(L.data("x", [3]), 3, param_attr=attr, bias_attr=False)
    loss = L.reduce_sum(L.square_error_cost(guess, L.data("y", [3])))
    optimizer = fluid.optimizer.SGD(0.5)
    pairs = optimizer.backward(loss)
    L.append_LARS(pairs, 0.5, decay)
    optimizer.apply_gradients(pairs)
    [found] = executor().run(feed={"x": x, "y": y}, fetch_list=["w"])
    slope = 2 * x.T @ (x @ start - y)
    size, steep = np.linalg.norm(start), np.linalg.norm(slope)
    np.testing.assert_allclose(found, start - 0.5 * factor * size / (steep + decay * size) * slope, 1e-5)


def test_lars_without_a_gradient():
    with pytest.raises(OpTypeError, match=r"must be a list of tuples \(a Parameter"):
        L.append_LARS([(L.data("x", [3]), None)], 0.1, 0.1)
