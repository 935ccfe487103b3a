"""Variables that a block inside gives another shape or LoD: both walkers agree, whatever the run before left behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.layers.control_flow import ConditionalBlock, While

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


def both(fetch: list[Any], scope: fluid.Scope | None = None, **feed: Any) -> list[np.ndarray]:
    """The fetched values, the same bits from both walkers."""
    scope = scope or fluid.Scope()
    runs = [EXE.run(feed=feed, fetch_list=fetch, scope=scope, keep_scopes=machine) for machine in (False, True)]
    for one, other in zip(*runs, strict=True):
        assert (one.shape, one.tobytes()) == (other.shape, other.tobytes())
    return list(runs[0])


def flag() -> Any:
    return L.data("flag", [1], dtype="bool", append_batch_size=False)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("constant", [True, False])
def test_a_branch_that_changes_a_shape_is_taken_or_not(first: bool, constant: bool) -> None:
    x = L.data("x", [3], append_batch_size=False)
    y = L.fill_constant([4], "float32", 1.0) if constant else L.concat([x, x], axis=0)
    with ConditionalBlock([flag()], is_scalar_condition=True).block():
        L.assign(L.scale(x, 5.0), output=y)
    scopes = fluid.Scope(), fluid.Scope()
    otherwise = [1.0] * 4 if constant else [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]
    for k, taken in enumerate((first, not first, not first, first, first, not first)):
        for scope in scopes[: 1 + k % 2]:
            (found,) = both([y], scope, x=np.array([1, 2, 4], "float32"), flag=np.array([taken]))
            assert found.tolist() == ([5.0, 10.0, 20.0] if taken else otherwise)


def grown(n: Any) -> Any:
    """x, n times put behind itself."""
    x, i = L.data("x", [-1], append_batch_size=False, stop_gradient=False), L.zeros([1], "int64")
    y = L.assign(x)
    cond = L.less_than(i, n)
    with While(cond).block():
        L.assign(L.concat([y, L.square(y)], axis=0), output=y)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    return y


def test_a_value_that_grows_from_iteration_to_iteration() -> None:
    y = grown(L.data("n", [1], dtype="int64", append_batch_size=False))
    total = L.reduce_sum(y)
    append_backward(total)
    for count, length in ((2, 1), (0, 3), (3, 1), (3, 2), (1, 2), (2, 1)):
        x = np.linspace(0.4, 0.9, length).astype("float32")
        expected, slope = x, np.ones_like(x)
        for _ in range(count):
            slope = np.concatenate([slope, 2 * expected * slope])
            expected = np.concatenate([expected, expected**2])
        found, grad = both([y, "x@GRAD"], x=x, n=np.array([count]))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        np.testing.assert_allclose(grad, slope.reshape(-1, length).sum(axis=0), rtol=1e-5)


def test_a_value_that_grows_in_some_iterations_of_an_inner_loop() -> None:
    n, limit = L.data("n", [1], dtype="int64", append_batch_size=False), L.fill_constant([1], "int64", 2)
    x, i, sizes = L.data("x", [-1], append_batch_size=False), L.zeros([1], "int64"), L.zeros([1], "float32")
    cond = L.less_than(i, n)
    with While(cond).block():
        y, j = L.scale(x, 1.0), L.zeros([1], "int64")
        more = L.less_than(j, n)
        with While(more).block():
            with ConditionalBlock([L.less_than(j, limit)], is_scalar_condition=True).block():
                L.assign(L.concat([y, x], axis=0), output=y)
            L.increment(j)
            L.less_than(j, n, cond=more)
        L.sums([sizes, L.reduce_sum(y)], out=sizes)
        L.increment(i)
        L.less_than(i, n, cond=cond)
    for count in (3, 1, 0, 2, 3):
        (found,) = both([sizes], x=np.ones(2, "float32"), n=np.array([count]))
        assert found.tolist() == [2.0 * (1 + min(count, 2)) * count]


def test_a_branch_that_changes_a_lod() -> None:
    x, long = L.data("x", [1], lod_level=1), L.data("long", [1], lod_level=1)
    y = L.assign(x)
    with ConditionalBlock([flag()], is_scalar_condition=True).block():
        L.assign(long, output=y)
    pooled = L.sequence_pool(y, "sum")
    values = np.arange(4, dtype="float32").reshape(4, 1)
    scope = fluid.Scope()
    feed = {"x": (values, [[1, 3]]), "long": (values, [[2, 2]])}
    for taken in (True, False, False, True):
        feeds = {n: fluid.create_lod_tensor(a, lod, fluid.CPUPlace()) for n, (a, lod) in feed.items()}
        (found,) = both([pooled], scope, flag=np.array([taken]), **feeds)
        assert found.tolist() == ([[1.0], [5.0]] if taken else [[0.0], [6.0]])
