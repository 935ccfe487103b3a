"""minimize: gradients, clips, decay and updates in their order, and the variables that optimizers keep."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import all_or_nothing
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.program import unique_name

L, O = fluid.layers, fluid.optimizer  # noqa: E741
SHORT = {"SGD": "SGDOptimizer", "Momentum": "MomentumOptimizer", "Adam": "AdamOptimizer"}


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def test_a_failure_leaves_both_programs_as_they_were():
    class Refuses(fluid.regularizer.WeightDecayRegularizer):
        def __call__(self, param, grad, block):
            raise OpValueError("No decay today.")

    loss = linear(regularizer=Refuses())
    programs = fluid.default_main_program(), fluid.default_startup_program()
    before, names = [p.desc.serialize_to_string() for p in programs], dict(unique_name.generator.ids)
    with pytest.raises(OpValueError, match="No decay today"):
        O.Adam(0.1).minimize(loss)
    assert [p.desc.serialize_to_string() for p in programs] == before
    assert unique_name.generator.ids == names
    with all_or_nothing(*programs):  # what fails inside of one that goes on is removed as well
        with pytest.raises(OpValueError, match="No decay today"):
            O.Adam(0.1).minimize(loss)
        assert [p.desc.serialize_to_string() for p in programs] == before


def main():
    return fluid.default_main_program().global_block()


def startup():
    return fluid.default_startup_program().global_block()


def linear(**attr):
    y = L.fc(L.data("x", [13]), 1, param_attr=fluid.ParamAttr(**attr))
    return L.mean(L.square_error_cost(y, L.data("y", [1])))


def types(ops):
    return [op.type for op in ops]


def test_short_names():
    for short, long in SHORT.items():
        assert getattr(O, short) is getattr(O, long)


def test_sgd_of_the_developer_guide():
    result = O.SGD(learning_rate=0.001).minimize(linear())
    ops, pairs = result
    assert types(ops) == ["sgd", "sgd"]
    assert [(p.name, g.name) for p, g in pairs] == [("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD")]
    sgd = ops[1]
    slots = {s: sgd.input(s) for s in ("Param", "Grad", "LearningRate")}
    assert slots == {"Param": ["fc_0.w_0"], "Grad": ["fc_0.w_0@GRAD"], "LearningRate": ["learning_rate_0"]}
    assert sgd.output("ParamOut") == ["fc_0.w_0"]
    assert (sgd.attr("op_role"), sgd.attr("op_role_var")) == (2, ["fc_0.w_0", "fc_0.w_0@GRAD"])
    rate = main().var("learning_rate_0")
    assert rate.persistable and rate.shape == (1,)
    [fill] = [op for op in startup().ops if "learning_rate_0" in op.output_arg_names]
    assert fill.attr("value") == pytest.approx(0.001)


def test_momentum_keeps_a_velocity():
    [op], _ = O.Momentum(0.1, 0.9, use_nesterov=True).minimize(L.mean(L.fc(L.data("x", [3]), 1, bias_attr=False)))
    assert op.input("Velocity") == op.output("VelocityOut") == ["fc_0.w_0_velocity_0"]
    assert op.attr("mu") == pytest.approx(0.9) and op.attr("use_nesterov") is True
    assert startup().var("fc_0.w_0_velocity_0").shape == (3, 1)


def test_adam_writes_the_form_that_advances_its_own_powers():
    [op], _ = O.Adam(0.1, 0.8, 0.99, 1e-6).minimize(L.mean(L.fc(L.data("x", [3]), 1, bias_attr=False)))
    kept = {"Moment1": "moment1", "Moment2": "moment2", "Beta1Pow": "beta1_pow_acc", "Beta2Pow": "beta2_pow_acc"}
    for slot, name in kept.items():
        assert op.input(slot) == op.output(slot + "Out") == [f"fc_0.w_0_{name}_0"]
    values = {o.output("Out")[0]: o.attr("value") for o in startup().ops if o.type == "fill_constant"}
    assert values == pytest.approx({
        "learning_rate_0": 0.1, "fc_0.w_0_moment1_0": 0, "fc_0.w_0_moment2_0": 0, "fc_0.w_0_beta1_pow_acc_0": 0.8,
        "fc_0.w_0_beta2_pow_acc_0": 0.99,
    })  # fmt: skip
    assert [op.attr(n) for n in ("beta1", "beta2", "epsilon")] == pytest.approx([0.8, 0.99, 1e-6])


def test_the_order_is_backward_clip_decay_update():
    with pytest.warns(UserWarning, match="goes before the optimizer"):
        ops, _ = O.SGD(0.1, regularization=fluid.regularizer.L2Decay(0.1)).minimize(
            linear(gradient_clip=fluid.clip.GradientClipByValue(1.0), regularizer=fluid.regularizer.L1Decay(0.5))
        )
    assert types(ops) == ["clip", "scale", "sum", "sign", "scale", "sum", "sgd", "sgd"]
    roles = [op.attr("op_role") for op in main().ops]
    assert roles == sorted(roles, key=lambda r: {0: 0, 256: 0, 257: 1, 1: 1, 2: 2}[r])
    assert all(op.attr("op_role_var")[0] in ("fc_0.w_0", "fc_0.b_0") for op in ops)


def train(optimizer, steps=5, dtype="float64"):
    """The parameters after some steps, and what numpy needs to do the same."""
    x, y = L.data("x", [3], dtype=dtype), L.data("y", [1], dtype=dtype)
    loss = L.mean(L.square_error_cost(L.fc(x, 1), y))
    optimizer().minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    w, b = exe.run(fluid.default_startup_program(), fetch_list=["fc_0.w_0", "fc_0.b_0"])
    rng = np.random.default_rng(0)
    batches = [(rng.normal(size=(8, 3)), rng.normal(size=(8, 1))) for _ in range(steps)]
    for a, t in batches:
        got = exe.run(feed={"x": a, "y": t}, fetch_list=["fc_0.w_0", "fc_0.b_0"])
    return (w, b), batches, got


def gradients(p, a, t):
    e = 2 * (a @ p[0] + p[1] - t) / t.size
    return [a.T @ e, e.sum(0)]


def assert_near(got, want):
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_sgd_agrees_with_numpy():
    p, batches, got = train(lambda: O.SGD(0.1))
    p = list(p)
    for a, t in batches:
        p = [v - 0.1 * g for v, g in zip(p, gradients(p, a, t), strict=True)]
    assert_near(got, p)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_agrees_with_numpy(nesterov):
    p, batches, got = train(lambda: O.Momentum(0.1, 0.5, use_nesterov=nesterov))
    p, v = list(p), [0, 0]
    for a, t in batches:
        for i, g in enumerate(gradients(p, a, t)):
            v[i] = 0.5 * v[i] + g
            p[i] = p[i] - 0.1 * (g + 0.5 * v[i] if nesterov else v[i])
    assert_near(got, p)


def test_adam_agrees_with_numpy():
    p, batches, got = train(lambda: O.Adam(0.1, beta1=0.5, beta2=0.75))
    p, m, s = list(p), [0, 0], [0, 0]
    for k, (a, t) in enumerate(batches, 1):
        for i, g in enumerate(gradients(p, a, t)):
            m[i] = 0.5 * m[i] + 0.5 * g
            s[i] = 0.75 * s[i] + 0.25 * g * g
            p[i] = p[i] - 0.1 * np.sqrt(1 - 0.75**k) / (1 - 0.5**k) * m[i] / (np.sqrt(s[i]) + 1e-8)
    assert_near(got, p)


def test_l2_and_l1_decay_agree_with_numpy():
    decay = {"L2": fluid.regularizer.L2Decay(0.5), "L1": fluid.regularizer.L1Decay(0.5)}
    for name, added in (("L2", lambda v: 0.5 * v), ("L1", lambda v: 0.5 * np.sign(v))):
        with fluid.fresh():
            p, batches, got = train(lambda kind=decay[name]: O.SGD(0.1, regularization=kind))
            p = list(p)
            for a, t in batches:
                p = [v - 0.1 * (g + added(v)) for v, g in zip(p, gradients(p, a, t), strict=True)]
            assert_near(got, p)


def test_a_parameters_own_learning_rate():
    ops, _ = O.SGD(0.1).minimize(linear(learning_rate=0.25))
    assert types(ops) == ["sgd", "scale", "sgd"]
    scaled = ops[1]
    assert (scaled.type, scaled.attr("scale"), scaled.attr("op_role")) == ("scale", 0.25, 16)
    assert ops[-1].input("LearningRate") == scaled.output("Out") and ops[0].input("LearningRate") == ["learning_rate_0"]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((1, 13), "float32"), "y": np.ones((1, 1), "float32")}
    before = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    w, dw = exe.run(feed=feed, fetch_list=["fc_0.w_0", "fc_0.w_0@GRAD"])
    np.testing.assert_allclose(w, before - 0.025 * dw, rtol=1e-5)


def test_the_learning_rate_may_be_a_variable():
    rate = L.create_global_var([1], 0.5, "float32", persistable=True, name="rate")
    ops, _ = O.SGD(rate).minimize(linear())
    assert ops[0].input("LearningRate") == ["rate"]
    sgd = O.SGD(L.scale(rate, 0.5))
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        with pytest.raises(OpValueError, match="variable of another program"):
            sgd.minimize(linear())


@pytest.mark.parametrize("rate", ["0.1", None, True, [0.1]])
def test_a_learning_rate_of_another_type_is_refused(rate):
    with pytest.raises(OpTypeError, match="learning.rate (of SGD must|should) be"):
        O.SGD(rate)


def test_the_same_accumulator_twice_is_refused():
    adam = O.Adam(0.1)
    loss = linear()
    adam.minimize(loss)
    before = [p.desc.serialize_to_string() for p in (fluid.default_main_program(), fluid.default_startup_program())]
    with pytest.raises(OpValueError, match="Accumulator moment1 already exists for parameter fc_0.b_0"):
        adam.minimize(loss)
    after = [p.desc.serialize_to_string() for p in (fluid.default_main_program(), fluid.default_startup_program())]
    assert before == after


def test_after_a_refusal_the_same_optimizer_works():
    x = L.data("x", [3])
    bad, good = L.fc(x, 2), L.mean(L.fc(x, 2))
    adam = O.Adam(0.1)
    with pytest.raises(OpValueError, match="must be one number"):
        adam.minimize(bad)
    main().var("fc_1.w_0").gradient_clip_attr = "none"
    with pytest.raises(OpTypeError, match="clip attribute of fc_1.w_0"):
        adam.minimize(good)
    assert not [n for n in main().vars if "@GRAD" in n or "moment" in n]
    main().var("fc_1.w_0").gradient_clip_attr = None
    assert types(adam.minimize(good)[0]) == ["adam", "adam"]
    assert adam.get_opti_var_name_list()[0] == "learning_rate_0"


def test_nothing_to_optimize():
    x = L.data("x", [3], stop_gradient=False)
    with pytest.raises(OpValueError, match="nothing to optimize"):
        O.SGD(0.1).minimize(L.mean(x))
    with pytest.raises(OpTypeError, match="loss of SGD.minimize must be a Variable"):
        O.SGD(0.1).minimize([1.0])
    loss = L.mean(x)
    with pytest.raises(OpValueError, match="nothing to optimize"):
        O.SGD(0.1).create_optimization_pass(fluid.backward.append_backward(loss), loss)


def test_backward_and_apply_gradients_are_the_two_halves():
    loss = linear()
    sgd = O.SGD(0.1)
    pairs = sgd.backward(loss)
    assert types(sgd.apply_gradients(pairs)) == ["sgd", "sgd"]
    with fluid.fresh():
        loss, again = linear(), O.SGD(0.1)
        ops = again.apply_optimize(loss, fluid.default_startup_program(), again.backward(loss))
        assert types(ops) == ["sgd", "sgd"]


def test_programs_may_be_others_than_the_default_ones():
    program, start = fluid.Program(), fluid.Program()
    with fluid.program_guard(program, start):
        loss = linear()
    O.Adam(0.1).minimize(loss, startup_program=start)
    assert "fc_0.w_0_moment1_0" in program.global_block().vars and "fc_0.w_0_moment1_0" in start.global_block().vars
    assert not main().vars and not startup().vars


def test_parameter_list_and_no_grad_set():
    h = L.fc(L.data("x", [3]), 2, bias_attr=False)
    loss = L.mean(L.fc(h, 1, bias_attr=False))
    ops, pairs = O.SGD(0.1).minimize(loss, parameter_list=["fc_1.w_0"])
    assert [p.name for p, _ in pairs] == ["fc_1.w_0"] and types(ops) == ["sgd"]


def test_a_frozen_parameter_keeps_its_value():
    x = L.data("x", [3])
    h = L.fc(x, 2, bias_attr=False)
    h.param.stop_gradient = True
    O.SGD(0.5).minimize(L.mean(L.fc(h, 1)))
    exe = fluid.Executor(fluid.CPUPlace())
    [before] = exe.run(fluid.default_startup_program(), fetch_list=["fc_0.w_0"])
    after, moved = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=["fc_0.w_0", "fc_1.b_0"])
    np.testing.assert_array_equal(before, after)
    assert moved[0] == -0.5


def test_operators_know_the_line_that_called_minimize():
    ops, _ = O.SGD(0.1).minimize(linear())
    for op in (main().ops[5], ops[0]):
        assert op.where.file == __file__ and "minimize" in op.where.source


def test_a_users_own_optimizer():
    class SignSGD(O.Optimizer):
        def append_optimize_op(self, block, param_and_grad):
            param, grad = param_and_grad
            direction = L.sign(grad)
            step = L.elementwise_mul(direction, self.param_learning_rate(param))
            return block.append_op("elementwise_sub", {"X": param, "Y": step}, {"Out": param})

    ops, _ = SignSGD(0.25).minimize(linear())
    assert types(ops) == ["sign", "elementwise_mul", "elementwise_sub"] * 2
    exe = fluid.Executor(fluid.CPUPlace())
    [before] = exe.run(fluid.default_startup_program(), fetch_list=["fc_0.w_0"])
    feed = {"x": np.ones((2, 13), "float32"), "y": np.full((2, 1), 100, "float32")}
    [after] = exe.run(feed=feed, fetch_list=["fc_0.w_0"])
    np.testing.assert_allclose(after - before, np.full((13, 1), 0.25), rtol=1e-5)
