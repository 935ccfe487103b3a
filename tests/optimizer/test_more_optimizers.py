"""Every optimizer trains: its steps beside numpy's, its names, and sparse gradients that give what dense ones do."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.values import SelectedRows

L, O = fluid.layers, fluid.optimizer  # noqa: E741
SHORT = ["Adadelta", "Adagrad", "Adamax", "DecayedAdagrad", "Ftrl", "Lamb", "LarsMomentum", "RMSProp"]
STEPS = 3
RATE = float(np.float32(0.1))
X = np.random.default_rng(0).normal(size=(STEPS, 4, 3))
FIRST = np.array([[0.5], [-1.0], [0.25]])


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def f32(x):
    return float(np.float32(x))


def grad(w, x):
    """That of mean(square(x · w))."""
    y = x @ w
    return x.T @ (2 * y / y.size)


def adagrad(w, g, s, t, decay=None):
    s["m"] = s.get("m", 0) + g * g if decay is None else decay * s.get("m", 0) + (1 - decay) * g * g
    return w - RATE * g / (np.sqrt(s["m"]) + f32(1e-6))


def adadelta(w, g, s, t, rho=f32(0.95), eps=f32(1e-6)):  # noqa: B008
    s["a"] = rho * s.get("a", 0) + (1 - rho) * g * g
    step = np.sqrt((s.get("u", 0) + eps) / (s["a"] + eps)) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * step * step
    return w - RATE * step


def adamax(w, g, s, t, b1=f32(0.9), b2=f32(0.999)):  # noqa: B008
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["n"] = np.maximum(b2 * s.get("n", 0) + f32(1e-8), np.abs(g))
    return w - RATE / (1 - b1 ** (t + 1)) * s["m"] / s["n"]


def rmsprop(w, g, s, t, centered=False, rho=f32(0.95)):  # noqa: B008
    s["s"] = rho * s.get("s", 0) + (1 - rho) * g * g
    s["a"] = rho * s.get("a", 0) + (1 - rho) * g if centered else 0
    s["v"] = 0.5 * s.get("v", 0) + RATE * g / np.sqrt(s["s"] - s["a"] ** 2 + f32(1e-6))
    return w - s["v"]


def ftrl(w, g, s, t, l1=0.25, l2=0.5):
    before = s.get("s", np.zeros_like(g))
    s["s"] = before + g * g
    s["z"] = s.get("z", 0) + g - (np.sqrt(s["s"]) - np.sqrt(before)) / RATE * w
    z = s["z"]
    return np.where(np.abs(z) > l1, (np.sign(z) * l1 - z) / (np.sqrt(s["s"]) / RATE + 2 * l2), 0)


def lamb(w, g, s, t, b1=f32(0.9), b2=f32(0.999)):  # noqa: B008
    s["m"], s["v"] = b1 * s.get("m", 0) + (1 - b1) * g, b2 * s.get("v", 0) + (1 - b2) * g * g
    r = s["m"] / (1 - b1 ** (t + 1)) / (np.sqrt(s["v"] / (1 - b2 ** (t + 1))) + f32(1e-6)) + 0.25 * w
    return w - RATE * np.linalg.norm(w) / np.linalg.norm(r) * r


def lars(w, g, s, t, decay=0.25):
    size = np.linalg.norm(w)
    rate = RATE * f32(0.001) * size / (np.linalg.norm(g) + decay * size)
    s["v"] = 0.5 * s.get("v", 0) + rate * (g + decay * w)
    return w - s["v"]


CASES = {
    "adagrad": (lambda: O.Adagrad(0.1), adagrad),
    "decayed_adagrad": (
        lambda: O.DecayedAdagrad(0.1, decay=0.75), lambda w, g, s, t: adagrad(w, g, s, t, decay=0.75),
    ),
    "adadelta": (lambda: O.Adadelta(0.1), adadelta),
    "adamax": (lambda: O.Adamax(0.1), adamax),
    "rmsprop": (lambda: O.RMSProp(0.1, momentum=0.5), rmsprop),
    "rmsprop_centered": (
        lambda: O.RMSProp(0.1, momentum=0.5, centered=True), lambda w, g, s, t: rmsprop(w, g, s, t, centered=True),
    ),
    "ftrl": (lambda: O.Ftrl(0.1, l1=0.25, l2=0.5), ftrl),
    "lamb": (lambda: O.Lamb(0.1, lamb_weight_decay=0.25), lamb),
    "lars_momentum": (lambda: O.LarsMomentum(0.1, 0.5, lars_weight_decay=0.25), lars),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_three_steps_beside_numpy(name):
    make, step = CASES[name]
    x = L.data("x", [3], dtype="float64")
    start = fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(FIRST))
    loss = L.mean(L.square(L.fc(x, 1, param_attr=start, bias_attr=False)))
    make().minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    w, state = FIRST, {}
    for t in range(STEPS):
        exe.run(feed={"x": X[t]}, fetch_list=[loss])
        w = step(w, grad(w, X[t]), state, t)
        have = np.array(fluid.global_scope().find_var("w").get_tensor())
        np.testing.assert_allclose(have, w, rtol=1e-5, atol=1e-7, err_msg=f"step {t}")


def test_adagrad_starts_where_it_is_told():
    loss = L.mean(L.fc(L.data("x", [3]), 1, bias_attr=False))
    O.Adagrad(0.1, initial_accumulator_value=0.5).minimize(loss)
    fills = {n: op.attr("value") for op in fluid.default_startup_program().global_block().ops
             for n in op.output_arg_names if "moment" in n}  # fmt: skip
    assert fills == {"fc_0.w_0_moment_0": 0.5}


def test_short_names():
    for short in SHORT:
        assert getattr(O, short) is getattr(O, short + "Optimizer")


@pytest.mark.parametrize("short", ["Adagrad", "Adamax", "Ftrl", "RMSProp", "Lamb", "LarsMomentum", "Adadelta"])
def test_a_step_counter_goes_on(short):
    step = L.create_global_var([1], 0.0, "float32", persistable=True, name="step")
    loss = L.mean(L.fc(L.data("x", [3]), 1, bias_attr=False))
    more = {"momentum": 0.9} if short == "LarsMomentum" else {}
    getattr(O, short)(learning_rate=0.1, global_step=step, **more).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    for _ in range(2):
        (got,) = exe.run(feed={"x": np.ones((1, 3), "float32")}, fetch_list=[step])
    assert got == 2


OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.5),
    "sgd_decay": lambda: O.SGD(0.5, regularization=fluid.regularizer.L2Decay(0.1)),
    "sgd_l1": lambda: O.SGD(0.5, regularization=fluid.regularizer.L1Decay(0.1)),
    "momentum": lambda: O.Momentum(0.1, 0.9),
    "adam": lambda: O.Adam(0.1),
    "adagrad": lambda: O.Adagrad(0.1),
    "rmsprop": lambda: O.RMSProp(0.1),
}
CLIPS = {
    "none": lambda: None,
    "value": lambda: fluid.clip.GradientClipByValue(0.05),
    "norm": lambda: fluid.clip.GradientClipByNorm(0.1),
    "global": lambda: fluid.clip.GradientClipByGlobalNorm(0.1),
}


def train(is_sparse, optimizer, clip):
    """Two layers that share a table; gives the table after three steps."""
    first = np.arange(18, dtype="float32").reshape(6, 3) / 10
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        start = fluid.initializer.NumpyArrayInitializer(first)
        table = fluid.ParamAttr(name="table", initializer=start, gradient_clip=clip())
        left, right = (
            L.embedding(L.data(n, [1], dtype="int64"), [6, 3], is_sparse=is_sparse, padding_idx=5, param_attr=table)
            for n in ("left", "right")
        )
        loss = L.mean(L.square(left + right))
        optimizer().minimize(loss)
        gradient = fluid.default_main_program().global_block().var("table@GRAD")
        kinds = fluid.core.VarDesc.VarType
        assert gradient.type == (kinds.SELECTED_ROWS if is_sparse else kinds.LOD_TENSOR)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for t in range(STEPS):
            exe.run(feed={"left": np.array([[1], [4], [1], [5]]), "right": np.array([[t], [2], [1], [t]])})
        return np.array(fluid.global_scope().find_var("table").get_tensor())


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_sparse_gradient_trains_as_a_dense_one(optimizer, clip):
    if clip != "none" and optimizer not in ("sgd", "adam"):
        clip = "global"
    sparse, dense = (train(kind, OPTIMIZERS[optimizer], CLIPS[clip]) for kind in (True, False))
    np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-6)
    assert optimizer != "sgd" or (dense[5] == np.array([1.5, 1.6, 1.7], "float32")).all()


def test_a_sparse_gradient_can_be_fetched_and_survives_the_next_run():
    y = L.embedding(L.data("ids", [1], dtype="int64"), [6, 3], is_sparse=True, param_attr="table")
    O.SGD(0.5).minimize(L.mean(y))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    (first,) = exe.run(feed={"ids": np.array([[1], [4]])}, fetch_list=["table@GRAD"])
    exe.run(feed={"ids": np.array([[0], [0]])}, fetch_list=["table@GRAD"])
    assert isinstance(first, SelectedRows) and first.rows() == [1, 4]
