"""Whole programs as text, to the letter. FLUIDNB_UPDATE_GOLDEN=1 writes the files in tests/golden/programs anew."""

import os
from pathlib import Path

import pytest

import fluidnb as fluid

FOLDER = Path(__file__).parents[1] / "golden" / "programs"
L = fluid.layers


def fit_a_line():
    x, y = L.data("x", [13]), L.data("y", [1])
    loss = L.mean(x=L.square_error_cost(input=L.fc(x, size=1), label=y))
    fluid.optimizer.SGD(learning_rate=0.001).minimize(loss)


def digits():
    image, label = L.data("image", [64]), L.data("label", [1], dtype="int64")
    hidden = L.fc(image, 32, act="relu")
    predict = L.fc(hidden, 10, act="softmax")
    loss = L.mean(L.cross_entropy(input=predict, label=label))
    L.accuracy(input=predict, label=label)
    fluid.optimizer.Adam(0.01).minimize(loss)


def fan_out():
    """A shared weight, a variable with three readers, clipping and decay."""
    x = L.data("x", [4])
    h = L.fc(x, 4, param_attr="w", bias_attr=False, act="tanh")
    g = L.fc(h, 4, param_attr="w", bias_attr=False)
    h.set_error_clip(fluid.clip.ErrorClipByValue(max=1.0))
    loss = L.mean(L.sums([L.elementwise_mul(h, h), g]))
    fluid.clip.set_gradient_clip(fluid.clip.GradientClipByGlobalNorm(1.0))
    fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01)).minimize(loss)


def counting():
    """A loop and a branch."""
    i, n = L.zeros([1], "int64"), L.fill_constant([1], "int64", 10)
    total = L.zeros([1], "float32")
    cond = L.less_than(i, n)
    with L.While(cond).block():
        L.increment(total, 0.5)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    with L.ConditionalBlock([L.greater_than(total, L.ones([1], "float32"))], is_scalar_condition=True).block():
        L.assign(L.ones([1], "float32"), output=total)


@pytest.mark.parametrize("build", [fit_a_line, digits, fan_out, counting])
def test_program_as_text(build):
    with fluid.fresh():
        build()
        main, startup = fluid.default_main_program(), fluid.default_startup_program()
        text = f"main\n{main._to_readable_code()}startup\n{startup._to_readable_code()}"
    path = FOLDER / f"{build.__name__}.txt"
    if os.environ.get("FLUIDNB_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
