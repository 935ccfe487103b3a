"""A hint, followed literally, makes the call succeed: a row is a mistake, its hint, and the call as the hint says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import FluidError

Array = np.ndarray[Any, Any]
ONES = np.ones((2, 4), "float32")


def run(feed: dict[str, Any], *fetch: Any) -> list[Array]:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=list(fetch))


def plain(name: str, *shape: int) -> Any:
    return layers.data(name, list(shape), append_batch_size=False)


def classifier(y: Array) -> Any:
    x, label = layers.data("x", [4]), layers.data("y", [1], dtype="int64")
    loss = layers.mean(layers.cross_entropy(layers.fc(x, 3, act="softmax"), label))
    return run({"x": ONES, "y": y}, loss)


def batch(shape: list[int]) -> Any:
    return run({"x": np.ones((32, 4), "float32")}, layers.fc(layers.data("x", shape), 3))


def gradient(minimize: bool) -> Any:
    loss = layers.mean(layers.fc(layers.data("x", [4]), 3, param_attr="w"))
    if minimize:
        fluid.append_backward(loss)
    return run({"x": ONES}, "w@GRAD")


def row(x: Array) -> Any:
    return run({"x": x}, layers.fc(layers.data("x", [4]), 3))


def started(startup: bool) -> Any:
    exe, h = fluid.Executor(fluid.CPUPlace()), layers.fc(layers.data("x", [4]), 3)
    if startup:
        exe.run(fluid.default_startup_program())
    return exe.run(feed={"x": ONES}, fetch_list=[h])


def foreign(inside: bool) -> Any:
    program = fluid.Program()
    with fluid.program_guard(program):
        x = layers.data("x", [4])
        if inside:
            return layers.fc(x, 3)
    return layers.fc(x, 3)


Call = Callable[[], Any]
CASES: dict[str, tuple[Call, str, Call]] = {
    "labels of shape (n,)": (
        lambda: classifier(np.array([0, 1])), "feed y.reshape(-1, 1).",
        lambda: classifier(np.array([0, 1]).reshape(-1, 1)),
    ),
    "the batch in the shape": (
        lambda: batch([32, 4]), 'declare layers.data("x", shape=[4])', lambda: batch([4]),
    ),
    "one row": (lambda: row(ONES[0]), "feed x[None]", lambda: row(ONES[0][None])),
    "another width": (
        lambda: run({"x": np.ones((2, 3, 5), "float32")}, layers.scale(layers.data("x", [3, 4]), 2.0)),
        'layers.data("x", shape=[3, 5])',
        lambda: run({"x": np.ones((2, 3, 5), "float32")}, layers.scale(layers.data("x", shape=[3, 5]), 2.0)),
    ),
    "a gradient that is not there yet": (
        lambda: gradient(False), "fluid.append_backward(loss)", lambda: gradient(True)
    ),
    "no startup": (lambda: started(False), "exe.run(fluid.default_startup_program())", lambda: started(True)),
    "reshape": (
        lambda: layers.reshape(plain("x", 2, 4), [-1, 3]), "shape=[-1] has 8",
        lambda: layers.reshape(plain("x", 2, 4), [-1]),
    ),
    "reshape, last size": (
        lambda: layers.reshape(plain("x", 2, 4), [4, 3]), "shape=[4, -1] has 8",
        lambda: layers.reshape(plain("x", 2, 4), [4, -1]),
    ),
    "concat along the wrong axis": (
        lambda: layers.concat([plain("x", 2, 4), plain("y", 3, 4)], axis=1), "axis=0 joins them.",
        lambda: layers.concat([plain("x", 2, 4), plain("y", 3, 4)], axis=0),
    ),
    "broadcasting": (
        lambda: layers.elementwise_add(plain("x", 2, 4), plain("y", 2)), "axis=0 begins",
        lambda: layers.elementwise_add(plain("x", 2, 4), plain("y", 2), axis=0),
    ),
    "fc of one axis": (
        lambda: layers.fc(plain("x", 4), 3), "layers.reshape(x, [1, 4])",
        lambda: layers.fc(layers.reshape(plain("x", 4), [1, 4]), 3),
    ),
    "an argument in short": (
        lambda: fluid.optimizer.Adam(lr=0.1), 'Did you mean "learning_rate"?',  # type: ignore[call-arg]
        lambda: fluid.optimizer.Adam(learning_rate=0.1),
    ),
    "a negative size": (
        lambda: layers.data("x", [-4]), "write shape=[-1].", lambda: layers.data("x", shape=[-1])
    ),
    "a number of the host": (
        lambda: fluid.CPUPlace(0), "write CPUPlace().", lambda: fluid.CPUPlace()
    ),
    "a variable of another program": (
        lambda: foreign(False), "inside that program's fluid.program_guard", lambda: foreign(True)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_hint_followed_literally_works(name: str) -> None:
    wrong, hint, right = CASES[name]
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        with pytest.raises(FluidError) as error:
            wrong()
        assert hint in str(error.value)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        right()
