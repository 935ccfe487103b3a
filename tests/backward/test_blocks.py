"""Backward through while, conditional_block and recurrent: each rule of `fluidnb.backward.blocks` by itself.

Gradients are compared with central differences in float64, in both walkers, and over several runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.backward import append_backward
from fluidnb.errors import OpValueError
from fluidnb.layers.control_flow import ConditionalBlock, IfElse, StaticRNN, Switch, While

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
GOLDEN = Path(__file__).parents[1] / "golden" / "programs"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with fluid.fresh():
        yield


def data(name: str = "x", shape: tuple[int, ...] = (3,), dtype: str = "float64") -> Any:
    """A fed variable; a float one gets a gradient."""
    return L.data(name, list(shape), dtype=dtype, append_batch_size=False, stop_gradient=dtype != "float64")


def number(value: int) -> Any:
    return L.fill_constant([1], "int64", value)


@contextmanager
def loop(n: Any) -> Iterator[Any]:
    """for i in range(n), n a number or a variable."""
    i, end = number(0), number(n) if isinstance(n, int) else n
    cond = L.less_than(i, end)
    with While(cond).block():
        yield i
        L.increment(i)
        L.less_than(i, end, cond=cond)


def when(condition: Any) -> Any:
    """The body of a scalar branch."""
    return ConditionalBlock([condition], is_scalar_condition=True).block()


def ops(block: int) -> list[str]:
    return [op.type for op in fluid.default_main_program().block(block).ops]


def scope_of(**parameters: Any) -> fluid.Scope:
    scope = fluid.Scope()
    for name, value in parameters.items():
        scope.var(name).get_tensor().set(np.asarray(value), fluid.CPUPlace())
    return scope


def run(fetch: list[Any], feed: dict[str, Any], **parameters: Any) -> list[Any]:
    """The fetched values, the same bits from both walkers."""
    scope, feed = scope_of(**parameters), {n: np.asarray(a) for n, a in feed.items()}
    results = [EXE.run(feed=feed, fetch_list=fetch, scope=scope, keep_scopes=machine) for machine in (False, True)]
    for one, other in zip(*results, strict=True):
        assert (one.shape, one.tobytes()) == (other.shape, other.tobytes())
    return list(results[0])


X = np.array([0.3, -0.7, 0.9])


def check(loss: Any, *others: dict[str, Any], parameters: dict[str, Any] | None = None, **feed: Any) -> None:
    """Every gradient of the program is what central differences say, for each of several feeds.

    Args:
        loss: the loss; append_backward is called here.
        others: what further runs feed instead.
        parameters: values of persistable variables.
        feed: what the first run feeds; x is added.
    """
    given = parameters or {}
    names = {p.name: g.name for p, g in append_backward(loss)}
    if fluid.default_main_program().global_block().has_var("x@GRAD"):
        names["x"] = "x@GRAD"
    for changed in ({}, *others):
        values: dict[str, Any] = {"x": X, **feed, **changed}
        found = dict(zip(names, run(list(names.values()), values, **given), strict=True))
        for name in names:
            moved = {n: np.array(v, "float64") for n, v in {**given, "x": values["x"]}.items()}
            slopes = np.zeros_like(moved[name])
            for index in np.ndindex(*slopes.shape):
                sides = []
                for step in (1e-6, -1e-6):
                    kept = moved[name][index]
                    moved[name][index] += step
                    scope = scope_of(**{n: moved[n] for n in given})
                    sides.append(EXE.run(feed={**values, "x": moved["x"]}, fetch_list=[loss], scope=scope)[0].item())
                    moved[name][index] = kept
                slopes[index] = (sides[0] - sides[1]) / 2e-6
            np.testing.assert_allclose(found[name], slopes, rtol=1e-6, atol=1e-8, err_msg=f"{name} at {changed}")


# ---- branches


def test_a_gradient_passes_a_branch_that_is_not_taken() -> None:
    y = L.square(data())
    with when(data("flag", (1,), "bool")):
        L.assign(L.scale(y, 3.0), output=y)
    check(L.reduce_sum(y), {"flag": [False]}, {"flag": [True]}, flag=np.array([True]))
    assert ops(2) == ["assign", "scale"]


def test_a_branch_that_overwrites_cuts_what_came_before() -> None:
    x = data()
    y = L.square(x)
    with when(data("flag", (1,), "bool")):
        L.assign(L.tanh(x), output=y)
    check(L.reduce_sum(y), {"flag": np.array([False])}, flag=np.array([True]))


def test_both_sides_of_a_switch() -> None:
    x, y = data(), L.scale(data(), 1.0)
    zero = L.fill_constant([1], "float64", 0.0)
    total = L.reshape(L.reduce_sum(x), [1])
    with Switch() as switch:
        with switch.case(L.less_than(total, zero)):
            L.assign(L.square(x), output=y)
        with switch.default():
            L.assign(L.tanh(x), output=y)
    check(L.reduce_sum(y), {"x": -X}, {"x": X})


def test_rows_that_decide_and_are_read_count_once() -> None:
    x = data("x", (3, 1))
    ie = IfElse(L.less_than(x, L.fill_constant([3, 1], "float64", 0.0)))
    with ie.true_block():
        ie.output(L.square(ie.input(x)))
    with ie.false_block():
        ie.output(L.tanh(ie.input(x)))
    column = X.reshape(3, 1)
    check(L.reduce_sum(ie()[0]), {"x": abs(column)}, {"x": -abs(column)}, {"x": column}, x=column)


# ---- what a loop carries


@pytest.mark.parametrize("used", [True, False], ids=["used after the loop", "not used"])
def test_a_value_that_a_loop_carries(used: bool) -> None:
    x = data()
    h, total = L.assign(x), L.scale(x, 0.0)
    with loop(data("n", (1,), "int64")):
        L.assign(L.tanh(L.sums([h, L.scale(x, 0.5)])), output=h)
        L.sums([total, h], out=total)
    loss = L.reduce_sum(L.sums([total, L.square(L.assign(h))]) if used else total)
    check(loss, {"n": np.array([0])}, {"n": np.array([1])}, {"n": np.array([4])}, n=np.array([3]))


def test_a_value_that_is_read_before_it_is_overwritten_is_copied() -> None:
    x = data()
    h = L.assign(x)
    with loop(data("n", (1,), "int64")):
        L.assign(L.elementwise_mul(h, h), output=h)
    loss = L.reduce_sum(h)
    check(loss, {"n": np.array([0])}, {"n": np.array([1])}, n=np.array([3]))
    body = fluid.default_main_program().block(1)
    assert [op.type for op in body.ops][:2] == ["assign", "elementwise_mul"]
    assert body.ops[0].output("Out") == [h.name + "@SAVED"] and body.ops[0].attr("op_role") == 0
    gradient = next(op for op in fluid.default_main_program().block(2).ops if op.type == "elementwise_mul_grad")
    assert gradient.input("X") == gradient.input("Y") == [h.name + "@SAVED"]


def test_each_value_of_a_variable_has_one_copy() -> None:
    x = data()
    h = L.assign(x)
    with loop(3):
        u = L.elementwise_mul(L.square(h), x)
        L.assign(L.scale(u, 0.5), output=h)
        L.assign(L.elementwise_add(L.square(h), L.tanh(x)), output=h)
    check(L.reduce_sum(h))
    made = [v for v in fluid.default_main_program().block(1).vars if "@SAVED" in v]
    assert len(made) == 2


def test_a_value_that_an_inner_loop_reads_and_the_outer_one_overwrites() -> None:
    x = data()
    h, total = L.assign(x), L.scale(x, 0.0)
    with loop(2):
        with loop(2):
            L.sums([total, L.elementwise_mul(h, x)], out=total)
        L.assign(L.tanh(L.elementwise_mul(h, total)), output=h)
    check(L.reduce_sum(L.sums([h, total])))


def test_in_the_global_block_such_a_value_is_an_error() -> None:
    h = L.assign(data())
    y = L.square(h)
    with loop(2):
        L.assign(L.scale(h, 0.5), output=h)
    loss = L.reduce_sum(L.sums([y, h]))
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError) as caught:
        append_backward(loss)
    said = str(caught.value)
    assert f"The gradient of square needs {h.name} as square saw it, but while overwrites it." in said
    assert "op 1 (square) in block 0" in said and "(while) in block 0" in said and "hint:" in said
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_a_loop_and_a_branch_that_carry_the_same_value() -> None:
    x, flag = data(), data("flag", (1,), "bool")
    h = L.assign(x)
    with when(flag):
        with loop(2):
            u = L.tanh(h)
            L.assign(L.scale(u, 2.0), output=h)
            L.sums([h, L.tanh(h)], out=h)
        with when(flag):
            L.sums([h, L.square(L.scale(h, 0.5))], out=h)
    check(L.reduce_sum(L.sums([h, L.assign(x)])), {"flag": np.array([False])}, flag=np.array([True]))


def test_a_value_that_is_used_before_and_after_an_inner_block() -> None:
    """The gradients from both sides meet under a second name, which the inner block must not take for its own."""
    x, flag, off = data(), data("flag", (1,), "bool"), data("off", (1,), "bool")
    h, total = L.assign(x), L.scale(x, 1.0)
    with when(flag):
        with loop(2):
            with when(flag):
                L.sums([total, L.elementwise_mul(h, x)], out=total)
            L.assign(L.tanh(x), output=h)
            L.sums([total, L.sigmoid(h)], out=total)
        with when(off):
            L.sums([total, L.tanh(h)], out=total)
    feed = {"flag": np.array([True]), "off": np.array([False])}
    check(L.reduce_sum(L.sums([total, h])), {"off": np.array([True])}, **feed)


# ---- arrays


def test_an_element_that_is_read_several_times_gets_the_sum() -> None:
    x, zero = data(), number(0)
    array = L.array_write(L.square(x), zero)
    total = L.array_read(array, zero)
    with loop(data("n", (1,), "int64")):
        L.sums([total, L.tanh(L.array_read(array, zero)), L.array_read(array, zero)], out=total)
    check(L.reduce_sum(total), {"n": np.array([0])}, n=np.array([3]))


def test_an_element_that_is_overwritten_keeps_its_gradient_to_itself() -> None:
    x, zero = data(), number(0)
    array = L.array_write(L.square(x), zero)
    early = L.array_read(array, zero)
    with loop(3):
        L.array_write(L.scale(L.tanh(L.array_read(array, zero)), 2.0), zero, array=array)
    check(L.reduce_sum(L.sums([early, L.array_read(array, zero)])))


def test_an_array_written_before_inside_and_after() -> None:
    x, i, n = data(), number(0), data("n", (1,), "int64")
    array = L.array_write(x, i)
    with loop(n) as k:
        L.array_write(L.tanh(L.sums([L.array_read(array, k), x])), L.increment(L.assign(k)), array=array)
    L.array_write(L.square(L.array_read(array, n)), i, array=array)
    check(L.reduce_sum(L.sums([L.array_read(array, i), L.array_read(array, n)])), {"n": np.array([3])}, n=np.array([1]))


def test_an_array_of_an_outer_iteration() -> None:
    x, total = data(), L.scale(data(), 0.0)
    with loop(2) as r:
        start = number(0)
        array = L.array_write(L.scale(x, 0.5), start)
        with loop(data("n", (1,), "int64")) as k:
            L.array_write(L.tanh(L.sums([L.array_read(array, k), x])), L.increment(L.assign(k)), array=array)
        L.sums([total, L.elementwise_mul(L.array_read(array, r), x)], out=total)
    check(L.reduce_sum(total), {"n": np.array([1])}, {"n": np.array([3])}, n=np.array([2]))


def test_an_array_that_a_step_net_reads() -> None:
    x, one = data("x", (2, 3)), number(1)
    array = L.array_write(L.reduce_sum(x, dim=0), one)
    rnn = StaticRNN()
    with rnn.step():
        rnn.output(L.elementwise_mul(rnn.step_input(x), L.array_read(array, one)))
    outside = L.elementwise_add(L.square(x), L.array_read(array, one))
    check(L.reduce_sum(L.sums([rnn(), outside])), x=np.stack([X, X**2]))


# ---- counters


def test_counters_show_their_last_value_when_backward_is_over() -> None:
    x, total, n = data(), L.scale(data(), 0.0), data("n", (1,), "int64")
    array = L.array_write(x, number(0))
    i, cond = number(0), None
    cond = L.less_than(i, n)
    with While(cond).block():
        L.sums([total, L.array_read(array, i)], out=total)
        L.increment(i)
        L.array_write(L.tanh(total), i, array=array)
        L.less_than(i, n, cond=cond)
    check(L.reduce_sum(total), {"n": np.array([3])}, n=np.array([2]))
    for count in (1, 4, 0):
        assert run([i], {"x": X, "n": np.array([count])})[0].tolist() == [count]


def test_a_counter_that_is_also_set_is_copied_instead_of_counted_back() -> None:
    x, place, total = data(), number(0), L.scale(data(), 0.0)
    array = L.array_write(L.square(x), number(0))
    for k in range(1, 3):
        L.array_write(L.scale(x, k), number(k), array=array)
    two, zero = number(2), number(0)
    with loop(5):
        L.sums([total, L.tanh(L.array_read(array, place))], out=total)
        L.array_write(L.scale(total, 0.5), place, array=array)
        L.increment(place)
        with when(L.greater_than(place, two)):
            L.assign(zero, output=place)
    check(L.reduce_sum(total))
    assert run([place], {"x": X})[0].tolist() == [2]


def test_a_counter_in_a_branch_is_counted_back_where_it_counted() -> None:
    x, place, total = data(), number(0), L.scale(data(), 0.0)
    array = L.array_write(L.square(x), place)
    for k in range(1, 3):
        L.array_write(L.scale(x, k), number(k), array=array)
    with loop(4) as i:
        L.sums([total, L.tanh(L.array_read(array, place))], out=total)
        L.array_write(L.scale(total, 0.5), place, array=array)
        with when(L.less_than(number(1), i)):
            L.increment(place)
    check(L.reduce_sum(total))
    assert run([place], {"x": X})[0].tolist() == [2]


# ---- parameters


def test_a_parameter_inside_and_outside() -> None:
    w = L.create_parameter([3, 3], "float64", name="w")
    x = data("x", (1, 3))
    h = L.assign(L.tanh(L.mul(x, w)))
    with loop(data("n", (1,), "int64")):
        L.assign(L.tanh(L.mul(h, w)), output=h)
    value = np.linspace(-1, 1, 9).reshape(3, 3)
    loss = L.reduce_sum(L.mul(L.assign(h), w))
    check(loss, {"n": np.array([0])}, x=X.reshape(1, 3), n=np.array([2]), parameters={"w": value})


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_of_an_embedding_inside_a_loop(sparse: bool) -> None:
    ids, total = L.data("ids", [4, 1], dtype="int64", append_batch_size=False), L.fill_constant([3], "float64", 0.0)
    total.stop_gradient = False
    attr = fluid.ParamAttr(name="table")
    with loop(2) as i:
        word = L.gather(ids, i)
        L.sums([total, L.reshape(L.embedding(word, [5, 3], is_sparse=sparse, param_attr=attr, dtype="float64"), [3])],
               out=total)  # fmt: skip
    outside = L.reduce_sum(L.embedding(ids, [5, 3], is_sparse=sparse, param_attr=attr, dtype="float64"))
    loss = L.elementwise_add(L.reduce_sum(L.square(L.assign(total))), outside)
    [(_, gradient)] = append_backward(loss)
    table, words = np.linspace(-1, 1, 15).reshape(5, 3), np.array([[1], [1], [4], [0]])
    for keep in (False, True):
        feed = {"ids": words}
        scope = scope_of(table=table)
        (found,) = EXE.run(feed=feed, fetch_list=[gradient], scope=scope, keep_scopes=keep, return_numpy=False)
        dense = np.zeros_like(table)
        if hasattr(found, "rows_"):
            np.add.at(dense, np.asarray(found.rows_), np.asarray(found.value))
        else:
            dense += np.asarray(found)
        expected = np.zeros_like(table)
        np.add.at(expected, words[:, 0], 1.0)
        expected[1] += 2 * 2 * (table[1] + table[1])
        np.testing.assert_allclose(dense, expected, rtol=1e-6)


# ---- blocks inside blocks


def test_a_loop_in_a_branch_and_a_branch_in_a_loop() -> None:
    x, y, flag = data(), L.scale(data(), 0.7), data("flag", (1,), "bool")
    with when(flag), loop(2):
        L.assign(L.tanh(L.sums([y, x])), output=y)
    with loop(3) as i, when(L.less_than(i, number(2))):
        L.assign(L.sums([L.scale(y, 0.5), x]), output=y)
    check(L.reduce_sum(y), {"flag": np.array([False])}, flag=np.array([True]))


def test_a_step_net_in_a_step_net() -> None:
    x, start = data("x", (2, 2, 3)), L.fill_constant([3], "float64", 0.1)
    rows = StaticRNN()
    with rows.step():
        row, before = rows.step_input(x), rows.memory(init=start)
        cells = StaticRNN()
        with cells.step():
            cell, held = cells.step_input(row), cells.memory(init=before)
            new = L.tanh(L.sums([cell, held, before]))
            cells.update_memory(held, new)
            cells.output(new)
        last = L.reduce_sum(cells(), dim=0)
        rows.update_memory(before, last)
        rows.output(last)
    check(L.reduce_sum(L.square(rows())), x=np.linspace(-1, 1, 12).reshape(2, 2, 3))


def test_a_step_net_that_runs_backwards() -> None:
    x = data("x", (3, 2))
    start = L.fill_constant([2], "float64", 0.5)
    rnn = StaticRNN()
    with rnn.step():
        word, before = rnn.step_input(x), rnn.memory(init=start)
        new = L.tanh(L.elementwise_mul(L.sums([word, before]), word))
        rnn.update_memory(before, new)
        rnn.output(new)
    recurrent = next(op for op in fluid.default_main_program().global_block().ops if op.type == "recurrent")
    recurrent.desc.set_attr("reverse", True)
    out, weights = rnn(), np.array([[1.0], [2.0], [3.0]])
    loss = L.reduce_sum(L.elementwise_mul(out, L.assign(np.repeat(weights, 2, axis=1))))
    values = np.linspace(-1, 1, 6).reshape(3, 2)
    check(loss, x=values)
    h, expected = np.full(2, 0.5), np.zeros((3, 2))
    for t in (2, 1, 0):
        expected[t] = h = np.tanh((values[t] + h) * values[t])
    np.testing.assert_allclose(run([out], {"x": values})[0], expected)


def test_what_a_step_net_reads_beside_the_way() -> None:
    x, aside = data("x", (2, 3)), L.scale(data("x", (2, 3)), 2.0)
    rnn = StaticRNN()
    with rnn.step():
        L.square(L.reduce_sum(aside))  # nothing uses it
        rnn.output(L.tanh(rnn.step_input(x)))
    check(L.reduce_sum(L.sums([rnn(), aside])), x=np.stack([X, X**2]))


# ---- what is asked for


def test_a_second_backward_through_the_same_loop() -> None:
    x = data()
    h = L.assign(x)
    with loop(3):
        L.assign(L.elementwise_mul(h, L.scale(x, 2.0)), output=h)
    first, second = L.reduce_sum(h), L.reduce_sum(L.tanh(h))
    [one] = fluid.gradients(first, x)
    [two] = fluid.gradients(second, x)
    assert one.name != two.name
    a, b = run([one, two], {"x": X})
    np.testing.assert_allclose(a, 4 * 8 * X**3)
    np.testing.assert_allclose(b, 4 * 8 * X**3 * (1 - np.tanh(8 * X**4) ** 2))


def test_no_grad_set_and_stop_gradient_inside() -> None:
    def build(stop: bool) -> tuple[Any, Any]:
        x = data()
        total = L.scale(x, 0.0)
        with loop(3):
            u = L.square(x)
            u.stop_gradient = stop
            L.sums([total, L.elementwise_mul(u, x)], out=total)
        return L.reduce_sum(total), u

    loss, u = build(False)
    append_backward(loss, no_grad_set=[u])
    assert np.allclose(run(["x@GRAD"], {"x": X})[0], 3 * X**2)
    with fluid.fresh():
        loss, _ = build(True)
        append_backward(loss)
        assert np.allclose(run(["x@GRAD"], {"x": X})[0], 3 * X**2)
        assert "square_grad" not in ops(2)


def test_gradients_with_respect_to_what_is_no_parameter() -> None:
    x, y = data(), L.data("y", [3], dtype="float64", append_batch_size=False)
    h = L.assign(x)
    with loop(2):
        L.assign(L.elementwise_mul(h, y), output=h)
    dx, dy = fluid.gradients(h, [x, y])
    a, b = run([dx, dy], {"x": X, "y": X + 2})
    np.testing.assert_allclose(a, (X + 2) ** 2)
    np.testing.assert_allclose(b, 2 * X * (X + 2))


def test_an_operator_without_gradient_inside_a_loop() -> None:
    x = L.data("x", [3, 4], append_batch_size=False, stop_gradient=False)
    label, total = L.data("label", [3, 1], dtype="int64", append_batch_size=False), L.zeros([1], "float32")
    total.stop_gradient = False
    with loop(2):
        accuracy = L.accuracy(x, label)
        accuracy.stop_gradient = False
        L.sums([total, accuracy], out=total)
    loss = L.scale(total, 2.0)
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError) as caught:
        append_backward(loss)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("accuracy has no gradient, and it is on the way from the loss to ")
    assert lines[1] == "  op:       op 1 (accuracy) in block 1"
    assert any(line.startswith("  at:       test_blocks.py:") for line in lines)
    assert fluid.default_main_program().desc.serialize_to_string() == before


# ---- whole programs


def while_backward() -> None:
    """An array carries values from iteration to iteration; a value that is carried is copied."""
    x, i, n = L.data("x", [3]), number(0), number(3)
    h = L.fc(x, 3, param_attr="w", bias_attr=False)
    array = L.array_write(h, i)
    cond = L.less_than(i, n)
    with While(cond).block():
        L.assign(L.elementwise_mul(h, L.array_read(array, i)), output=h)
        L.increment(i)
        L.array_write(h, i, array=array)
        L.less_than(i, n, cond=cond)
    append_backward(L.mean(L.array_read(array, i)))


def branch_backward() -> None:
    """A branch that rewrites a result."""
    x, flag = L.data("x", [3]), L.data("flag", [1], dtype="bool", append_batch_size=False)
    y = L.fc(x, 2, param_attr="w", bias_attr=False)
    with when(flag):
        L.assign(L.tanh(y), output=y)
    append_backward(L.mean(y))


def recurrent_backward() -> None:
    """A step net with a memory."""
    x = L.data("x", [4, 2, 3], append_batch_size=False)
    rnn = StaticRNN()
    with rnn.step():
        word, before = rnn.step_input(x), rnn.memory(shape=[-1, 3], batch_ref=x)
        hidden = L.fc(L.sums([word, before]), 3, param_attr="w", bias_attr=False, act="tanh")
        rnn.update_memory(before, hidden)
        rnn.output(hidden)
    append_backward(L.mean(rnn()))


@pytest.mark.parametrize("inside", [False, True])
def test_gradient_through_a_number_added_in_place(inside: bool) -> None:
    y = L.scale(data(), 3.0)
    before, element = L.square(y), L.reduce_sum(y, keep_dim=True)
    if inside:
        with loop(2):
            L.increment(element, 0.5)
            L.assign(L.square(element), element)
    else:
        L.increment(L.increment(element))
    check(L.mean(L.elementwise_add(before, L.square(element))))


def test_no_gradient_through_a_number_added_to_a_new_variable() -> None:
    """As Fluid."""
    y = L.increment(L.reduce_sum(data(), keep_dim=True), in_place=False)
    assert fluid.gradients(y, fluid.default_main_program().global_block().var("x")) == [None]


@pytest.mark.parametrize("build", [while_backward, branch_backward, recurrent_backward])
def test_program_as_text(build: Any) -> None:
    build()
    text = f"main\n{fluid.default_main_program()._to_readable_code()}"
    path = GOLDEN / f"{build.__name__}.txt"
    if os.environ.get("FLUIDNB_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
