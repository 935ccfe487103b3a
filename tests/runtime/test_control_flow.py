"""Loops and branches inside each other, written as raw programs, in both walkers: the same values, the same scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.framework import BlockGuard
from fluidnb.layers.control_flow import ConditionalBlock, While
from fluidnb.values import LoDTensorArray

EXE = fluid.Executor(fluid.CPUPlace())
L = fluid.layers


def number(value: float, dtype: str = "int64") -> Any:
    """A variable of one element."""
    return L.fill_constant([1], dtype, value)


@contextmanager
def loop(i: Any, n: Any) -> Iterator[None]:
    """while i < n: …; i += 1."""
    cond = L.less_than(i, n)
    with While(cond).block():
        yield
        L.increment(i)
        L.less_than(i, n, cond=cond)


def both(fetch: list[Any], **feed: Any) -> list[Any]:
    """The fetched values, the same bits from the replay (bound, and found again) and the machine."""
    feed = {name: np.asarray(value) for name, value in feed.items()}
    runs = [EXE.run(feed=feed, fetch_list=fetch, keep_scopes=machine) for machine in (False, False, True)]
    for other in runs[1:]:
        assert [x.tobytes() for x in other] == [x.tobytes() for x in runs[0]]
        assert [x.dtype for x in other] == [x.dtype for x in runs[0]]
    return [x.tolist() for x in runs[0]]


def data(name: str, dtype: str = "int64") -> Any:
    """A fed variable of one element."""
    return L.data(name, shape=[1], dtype=dtype, append_batch_size=False)


def test_a_loop_in_a_loop() -> None:
    rows, columns, total = data("rows"), data("columns"), number(0)
    r = number(0)
    with loop(r, rows):
        c = number(0)
        with loop(c, columns):
            L.sums([total, L.elementwise_mul(r, c)], out=total)
    for n, m in ((3, 4), (0, 4), (3, 0), (1, 1), (5, 7), (3, 4)):
        expected = sum(i * j for i in range(n) for j in range(m))
        assert both([total], rows=[n], columns=[m]) == [[expected]]


def test_a_branch_in_a_loop() -> None:
    n, small, large, i = data("n"), number(0), number(0), number(0)
    limit, before_limit = number(3), number(2)
    with loop(i, n):
        with ConditionalBlock([L.less_than(i, limit)], is_scalar_condition=True).block():
            L.increment(small)
        with ConditionalBlock([L.less_than(before_limit, i)], is_scalar_condition=True).block():
            L.sums([large, i], out=large)
    for count in (0, 1, 3, 4, 8, 1):
        values = both([small, large], n=[count])
        assert values == [[min(count, 3)], [sum(range(3, count))]]


def test_a_loop_in_a_branch() -> None:
    n, i, taken = data("n"), number(0), data("taken", "bool")
    total = number(0)
    with ConditionalBlock([taken], is_scalar_condition=True).block():
        with loop(i, n):
            L.sums([total, i], out=total)
    for holds in (True, False, True):
        assert both([total], n=[5], taken=[holds]) == [[10 if holds else 0]]


def test_euclid() -> None:
    a, b = data("a"), data("b")
    x, y = L.assign(a), L.assign(b)
    zero = number(0)
    cond = L.less_than(zero, y)
    with While(cond).block():
        rest = x % y
        L.assign(y, output=x)
        L.assign(rest, output=y)
        L.less_than(zero, y, cond=cond)
    for one, other in ((48, 18), (17, 5), (7, 0), (0, 7), (1071, 462)):
        assert both([x], a=[one], b=[other]) == [[np.gcd(one, other)]]


def test_values_that_change_their_shape() -> None:
    n, i = data("n"), number(0)
    grown = L.data("start", shape=[1])
    held = L.array_write(grown, number(0))
    with loop(i, n):
        now = L.array_read(held, i)
        L.array_write(L.concat([now, now], axis=0), L.increment(L.assign(i)), array=held)
    last = L.array_read(held, n)
    for count in (0, 1, 4, 2):
        start = np.array([[1.5]], "float32")
        assert both([last], n=[count], start=start) == [[[1.5]] * 2**count]
        (array,) = EXE.run(feed={"n": np.array([count]), "start": start}, fetch_list=[held])
        assert isinstance(array, LoDTensorArray) and [len(t) for t in array] == [2**k for k in range(count + 1)]


def test_batches_of_changing_size_go_through_a_loop() -> None:
    x, n, i = L.data("x", shape=[2]), number(3), number(0)
    total = L.scale(x, scale=0.0)
    with loop(i, n):
        L.sums([total, x], out=total)
    for rows in (1, 4, 0, 2, 4):
        batch = np.arange(2 * rows, dtype="float32").reshape(rows, 2)
        assert both([total], x=batch) == [(3 * batch).tolist()]


def test_local_names_of_a_block_hide_those_outside() -> None:
    x, i = number(7, "float32"), number(0)
    out = number(0, "float32")
    with loop(i, number(3)):
        block = fluid.default_main_program().current_block()
        block.create_var(name=x.name, shape=[1], dtype="float32")
        block.append_op("scale", {"X": i.name}, {"Out": "as_float"}, {"scale": 1.0})
        block.append_op("cast", {"X": i.name}, {"Out": x.name}, {"in_dtype": "int64", "out_dtype": "float32"})
        L.sums([out, block.var(x.name)], out=out)
    assert both([x, out]) == [[7], [3]]


def test_kept_scopes_of_a_loop_in_a_loop_can_be_walked() -> None:
    r, total = number(0), number(0)
    with loop(r, number(2)):
        c = number(0)
        outer_only = L.scale(r, scale=10.0)
        with loop(c, number(3)):
            inside = L.elementwise_add(r, c)
            L.sums([total, inside], out=total)
    scope = fluid.Scope()
    EXE.run(scope=scope, keep_scopes=True)
    (run,) = scope.kids
    assert [k.block_index for k in run.kids] == [1, 1] and all(k.parent is run for k in run.kids)

    def value(inner: Any, name: str) -> int:
        return int(np.array(inner.find_var(name).get_tensor())[0])

    assert [[value(step, inside.name) for step in row.kids] for row in run.kids] == [[0, 1, 2], [1, 2, 3]]
    assert [value(row, outer_only.name) for row in run.kids] == [0, 10]
    assert value(run.kids[1].kids[2], total.name) == value(run, total.name) == 9
    assert inside.name not in run.vars and scope.vars == {}
    steps = fluid.default_main_program().global_block().ops[-1].output("StepScopes")[0]
    assert list(run.find_var(steps).value) == run.kids


def test_nothing_of_a_loop_outlives_an_ordinary_run() -> None:
    i, x = number(0), L.create_global_var([1], 1.0, "float32", persistable=True, name="x")
    EXE.run(fluid.default_startup_program())
    with loop(i, number(3)):
        L.scale(x, scale=2.0)
        fluid.default_main_program().current_block().append_op("scale", {"X": x}, {"Out": x}, {"scale": 2.0})
    for machine, expected in ((False, 8), (True, 64), (False, 512)):
        EXE.run(keep_scopes=machine)
        fluid.global_scope().drop_kids()
        assert np.array(fluid.global_scope().find_var("x").get_tensor()).tolist() == [expected]
        assert fluid.global_scope().local_var_names() == ["x"]


def test_random_numbers_differ_by_iteration_and_agree_in_both_walkers() -> None:
    i, drawn = number(0), None
    with loop(i, number(4)):
        noise = L.uniform_random([3], min=0.0, max=1.0)
        drawn = L.array_write(noise, i, array=drawn) if drawn is not None else _outer_array(noise, i)
    fluid.default_main_program().random_seed = 5
    draws = []
    for machine in (False, True):
        scope = fluid.Scope()
        for _ in range(2):
            (array,) = EXE.run(fetch_list=["drawn"], scope=scope, keep_scopes=machine)
            draws.append([np.array(t).tobytes() for t in array])
    assert draws[0] == draws[2] and draws[1] == draws[3]
    assert len({d for run in draws for d in run}) == 8


def _outer_array(value: Any, i: Any) -> Any:
    block = fluid.default_main_program().global_block()
    array = block.create_var(name="drawn", type=fluid.core.VarDesc.VarType.LOD_TENSOR_ARRAY, dtype="float32")
    return L.array_write(value, i, array=array)


def test_a_raw_block_may_be_shared_by_two_operators() -> None:
    flag, total = data("flag", "bool"), number(0)
    block = fluid.default_main_program().global_block()
    with BlockGuard(fluid.default_main_program()) as body:
        L.increment(total)
    for k in range(2):
        taken = block.create_var(name=f"taken{k}", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
        block.append_op(
            "conditional_block", {"Cond": flag, "Input": total}, {"Out": total, "Scope": taken},
            {"sub_block": body, "is_scalar_condition": True},
        )  # fmt: skip
    assert both([total], flag=[True]) == [[2]] and both([total], flag=[False]) == [[0]]
