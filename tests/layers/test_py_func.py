"""layers.py_func: Python functions in programs, in both walkers, with gradients, in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, OpValueError

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())


def made(name: str, shape: Any = (-1, 3), dtype: str = "float32", lod_level: int = 0) -> Any:
    """A variable for an output."""
    block = fluid.default_main_program().current_block()
    return block.create_var(name=name, shape=list(shape), dtype=dtype, lod_level=lod_level)


@pytest.mark.parametrize("keep", [False, True])
def test_a_model_trains_through_functions(keep: bool) -> None:
    calls: list[str] = []

    def square(x: Any) -> Any:
        calls.append("forward")
        return np.array(x) ** 2

    def slope(x: Any, g: Any) -> Any:
        calls.append("backward")
        return 2 * np.array(x) * np.array(g)

    x = L.data("x", [2])
    h = L.fc(x, 3, bias_attr=False)
    y = made("y")
    assert L.py_func(square, h, y, slope, skip_vars_in_backward_input=y) is y
    loss = L.mean(y)
    fluid.optimizer.SGD(0.1).minimize(loss)
    EXE.run(fluid.default_startup_program())
    (w,) = fluid.default_main_program().global_block().all_parameters()
    rng = np.random.default_rng(0)
    for step, rows in enumerate((1, 4, 1, 4), 1):  # the second pair is replayed
        before = np.array(fluid.global_scope().find_var(w.name).get_tensor())
        fed = rng.uniform(size=(rows, 2)).astype("float32")
        (got,) = EXE.run(feed={"x": fed}, fetch_list=[loss], keep_scopes=keep)
        np.testing.assert_allclose(got, [((fed @ before) ** 2).mean()], rtol=1e-5)
        after = np.array(fluid.global_scope().find_var(w.name).get_tensor())
        expected = before - 0.1 * fed.T @ (2 * (fed @ before) / (3 * rows))
        np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-6)
        assert calls == ["forward", "backward"] * step


def test_shapes_and_lod_follow_what_is_returned() -> None:
    x = L.data("x", [1])
    y = made("y", (-1, 1), lod_level=1)

    def positive(x: Any) -> Any:
        rows = np.array(x)[np.array(x)[:, 0] > 0]
        return fluid.create_lod_tensor(rows, [[1] * len(rows)], fluid.CPUPlace())

    L.py_func(positive, x, y)
    total = L.sequence_pool(y, "sum")
    for fed in ([1, -2, 3], [-1, 5, -1], [4, 4, 4], [1, -2, 3]):
        array = np.array(fed, "float32").reshape(-1, 1)
        (got,) = EXE.run(feed={"x": array}, fetch_list=[total])
        assert got.ravel().tolist() == [v for v in fed if v > 0]


def test_a_function_sees_copies_and_may_return_nothing() -> None:
    x, seen = L.data("x", [2]), []
    L.py_func(lambda t: seen.append(t), x, None)
    for value in (1, 2):
        EXE.run(feed={"x": np.full((1, 2), value, "float32")})
    assert [np.array(t).tolist() for t in seen] == [[[1, 1]], [[2, 2]]]


def test_a_loop_calls_it_in_every_iteration() -> None:
    i, n = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    total = L.fill_constant([1], "float32", 0)
    going = L.less_than(i, n)
    loop = L.While(going)
    with loop.block():
        y = made("y", (1,))
        L.py_func(lambda k: np.array(k).astype("float32") * 10, i, y)
        L.assign(L.elementwise_add(total, y), output=total)
        L.increment(i, in_place=True)
        L.less_than(i, n, cond=going)
    for keep in (False, False, True):
        assert EXE.run(fetch_list=[total], keep_scopes=keep)[0].tolist() == [30]


def test_none_is_a_gradient_of_zeros_and_another_shape_is_refused() -> None:
    x = L.data("x", [3], stop_gradient=False)
    back: list[Any] = [None]
    y = made("y")
    L.py_func(lambda t: np.array(t), x, y, lambda t, out, g: back[0])
    (slope,) = fluid.gradients([y], [x])
    fed = np.ones((2, 3), "float32")
    assert not EXE.run(feed={"x": fed}, fetch_list=[slope])[0].any()
    back[0] = np.ones((1, 3), "float32")
    with pytest.raises(EnforceNotMet, match="another shape for x@GRAD"):
        EXE.run(feed={"x": fed}, fetch_list=[slope])


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_inside_names_the_layer_and_the_next_run_is_whole(keep: bool) -> None:
    x, y = L.data("x", [3]), made("y")
    L.py_func(lambda t: np.array(t) if np.array(t).any() else 1 / 0, x, y)
    with pytest.raises(EnforceNotMet, match=r"py_func calls raised ZeroDivisionError[\s\S]*test_py_func.py"):
        EXE.run(feed={"x": np.zeros((1, 3), "float32")}, fetch_list=[y], keep_scopes=keep)
    assert EXE.run(feed={"x": np.ones((1, 3), "float32")}, fetch_list=[y], keep_scopes=keep)[0].all()


def test_what_makes_no_sense_is_refused() -> None:
    x, y = L.data("x", [3]), made("y")
    before = len(fluid.default_main_program().global_block().ops)
    with pytest.raises(OpTypeError, match="func of py_func must be a function"):
        L.py_func(3, x, y)
    with pytest.raises(OpTypeError, match="backward_func of py_func must be a function"):
        L.py_func(abs, x, y, backward_func="g")
    with pytest.raises(OpTypeError, match="x of py_func must be a Variable"):
        L.py_func(abs, 3, y)
    with pytest.raises(OpValueError, match="Output shapes of py_func must be given"):
        L.py_func(abs, x, fluid.default_main_program().global_block().create_var(name="z", dtype="float32"))
    with pytest.raises(NotFound, match="py_func has no such variable"):
        L.py_func(abs, x, y, skip_vars_in_backward_input=L.data("other", [1]))
    assert len(fluid.default_main_program().global_block().ops) == before
