"""The state of an optimizer: loading it, and a counter of steps of the user's own."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L, O = fluid.layers, fluid.optimizer  # noqa: E741


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def linear():
    y = L.fc(L.data("x", [3]), 1, bias_attr=False, param_attr=fluid.initializer.Constant(0.5))
    return L.mean(L.square_error_cost(y, L.data("y", [1])))


def values(names):
    return {n: np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names}


def train(exe, steps):
    rng = np.random.default_rng(steps)
    for _ in range(steps):
        exe.run(feed={"x": rng.normal(size=(4, 3)).astype("float32"), "y": np.ones((4, 1), "float32")})


@pytest.mark.parametrize("optimizer", [lambda: O.Momentum(0.1, 0.9), lambda: O.Adam(0.1)])
def test_load_goes_on_where_it_was(optimizer):
    opt, exe = optimizer(), fluid.Executor(fluid.CPUPlace())
    opt.minimize(linear())
    exe.run(fluid.default_startup_program())
    train(exe, 3)
    names = opt.get_opti_var_name_list()
    kept, [weight] = values(names), values(["fc_0.w_0"]).values()
    train(exe, 5)
    want = values([*names, "fc_0.w_0"])
    exe.run(fluid.default_startup_program())
    fluid.global_scope().find_var("fc_0.w_0").get_tensor().set(weight, fluid.CPUPlace())
    opt.load({**kept, "something_else": np.ones(3)})
    train(exe, 5)
    for name, array in values([*names, "fc_0.w_0"]).items():
        np.testing.assert_array_equal(array, want[name], err_msg=name)


def test_load_refuses_what_does_not_fit_and_changes_nothing():
    opt, exe = O.Momentum(0.1, 0.9), fluid.Executor(fluid.CPUPlace())
    with pytest.raises(OpValueError, match="keeps no variables that could be loaded yet"):
        opt.load({})
    opt.minimize(linear())
    exe.run(fluid.default_startup_program())
    before = values(opt.get_opti_var_name_list())
    rate, velocity = np.ones(1), np.ones((3, 1))
    with pytest.raises(OpValueError, match='no value for fc_0.w_0_velocity_0(.|\n)*Did you mean "fc_0.w_0_velocity"'):
        opt.load({"learning_rate_0": rate, "fc_0.w_0_velocity": velocity})
    with pytest.raises(OpValueError, match="value for fc_0.w_0_velocity_0 has another shape"):
        opt.load({"learning_rate_0": rate, "fc_0.w_0_velocity_0": velocity.T})
    for name, array in values(before).items():
        np.testing.assert_array_equal(array, before[name])


def test_load_leaves_a_schedule_alone():
    opt, exe = O.SGD(L.exponential_decay(0.1, 10, 0.5)), fluid.Executor(fluid.CPUPlace())
    opt.minimize(linear())
    exe.run(fluid.default_startup_program())
    with pytest.raises(OpValueError, match="keeps no variables that could be loaded yet"):
        opt.load({})


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("make", [lambda s: O.SGD(0.1, global_step=s), lambda s: O.Momentum(0.1, 0.9, global_step=s),
                                  lambda s: O.Adam(0.1, global_step=s)])  # fmt: skip
def test_global_step_counts_steps(make, dtype):
    counter = L.create_global_var([1], 0, dtype, persistable=True, name="steps")
    loss = linear()
    test = fluid.default_main_program().clone(for_test=True)
    ops, _ = make(counter).minimize(loss)
    assert (ops[-1].type, ops[-1].attr("op_role")) == ("increment", 2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    train(exe, 4)
    exe.run(test, feed={"x": np.ones((1, 3), "float32"), "y": np.ones((1, 1), "float32")})
    assert values(["steps"])["steps"] == [4] and values(["steps"])["steps"].dtype == dtype


def test_global_step_is_a_variable():
    with pytest.raises(OpTypeError, match="global_step of SGD must be a Variable"):
        O.SGD(0.1, global_step=0)
