"""The block design documents' snippets of if-else (S0.1, S0.2, S2.1, S2.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid

ONE = fluid.initializer.Constant(1.0)


def scalar(pd: Any, form: str) -> Any:
    """``if (cond) softmax(x + y) else fc(x)`` over x = 10 and y = 20, as an IfElse or as a Switch."""
    layer = pd.layer
    x, y, cond = pd.minibatch([10]), pd.var(20), pd.var(False)
    if form == "ifelse":
        ie = pd.ifelse()
        with ie.true_block():
            ie.output(layer.softmax(layer.add_scalar(x, y)))
        with ie.false_block():
            ie.output(layer.fc(x, size=1, param_attr=ONE))
        (out,) = ie(cond)
        return out
    out = fluid.layers.fill_constant_batch_size_like(x, [-1, 1], "float32", 0.0)
    switch = fluid.switch()
    with switch.block():
        with switch.case(cond):
            fluid.layers.assign(layer.softmax(layer.add_scalar(x, y)), output=out)
        with switch.default():
            fluid.layers.assign(layer.fc(x, size=1, param_attr=ONE), output=out)
    return out


@pytest.mark.parametrize("form", ["ifelse", "switch"])
def test_s0_1_scalars(form: str) -> None:
    import paddle as pd

    assert pd.evaluate(scalar(pd, form)).tolist() == [[10]]


def test_s0_1_the_left_branch() -> None:
    import paddle as pd

    assert pd.evaluate(pd.layer.softmax(pd.layer.add_scalar(pd.minibatch([10]), pd.var(20)))).tolist() == [[1]]


def old_api(pd: Any, x: Any, y: Any, cond: Any) -> tuple[Any, Any]:
    """The first document's program; gives (out, the rows that the true side sees)."""
    layer, operator = pd.layer, pd.operator
    ie = pd.create_ifelseop(inputs=[x], output_num=1)
    with ie.true_block():
        x = seen = ie.inputs(True, 0)
        z = operator.add(x, y)
        ie.set_output(True, 0, operator.softmax(z))
    with ie.false_block():
        x = ie.inputs(False, 0)
        z = layer.fc(x, param_attr=ONE)
        ie.set_output(False, 0, operator.softmax(z))
    return ie(cond), seen


def test_s0_2_ifelse_old_api() -> None:
    import paddle as pd

    x, y, cond = pd.minibatch([10.0, 12.0]), pd.var(20.0), pd.minibatch([True, False])
    out, seen = old_api(pd, x, y, cond)
    values = pd.evaluate([out, seen])
    assert values[0].tolist() == [[1], [1]] and values[1].tolist() == [[10]]
    assert [op.type for op in out.block.ops].count("split_lod_tensor") == 1


@pytest.mark.parametrize("cond", [True, False])
def test_s0_2_scalars_as_the_document_writes_them(cond: bool) -> None:
    import paddle as pd

    out, seen = old_api(pd, pd.var(10), pd.var(20), pd.var(cond))
    values = pd.evaluate([out, seen])
    assert values[0].tolist() == [1] and values[1].tolist() == ([10] if cond else [])


@pytest.mark.parametrize("cond", [True, False])
def test_s0_2_one_condition_for_a_whole_batch(cond: bool) -> None:
    import paddle as pd

    out, seen = old_api(pd, pd.minibatch([10.0, 12.0]), pd.var(20.0), pd.var(cond))
    values = pd.evaluate([out, seen])
    assert values[0].tolist() == [[1], [1]] and values[1].tolist() == ([[10], [12]] if cond else [])


def new_api(pd: Any) -> tuple[Any, ...]:
    """The second document's program; gives (x, cond, o1, o2)."""
    x = pd.minibatch([10, 20, 30])
    y = pd.var(1)
    z = pd.minibatch([10, 20, 30])
    cond = pd.larger_than(x, 15)
    ie = pd.ifelse()
    with ie.true_block():
        d = pd.layer.add_scalar(x, y)
        ie.output(d, pd.layer.softmax(d))
    with ie.false_block():
        d = pd.layer.fc(z, size=1, param_attr=ONE)
        ie.output(d, d + 1)
    o1, o2 = ie(cond)
    return x, cond, o1, o2


def test_s2_1_scalars() -> None:
    """x = 10, y = 1, z = 10, cond = false: o1 = fc(z), o2 = fc(z) + 1."""
    import paddle as pd

    x, y, z, cond = pd.minibatch([10]), pd.var(1), pd.minibatch([10]), pd.var(False)
    ie = pd.ifelse()
    with ie.true_block():
        d = pd.layer.add_scalar(x, y)
        ie.output(d, pd.layer.softmax(d))
    with ie.false_block():
        d = pd.layer.fc(z, size=1, param_attr=ONE)
        ie.output(d, d + 1)
    assert [v.tolist() for v in pd.evaluate(list(ie(cond)))] == [[[10]], [[11]]]


def test_s2_2_ifelse_new_api() -> None:
    import paddle as pd

    x, cond, o1, o2 = new_api(pd)
    values = pd.evaluate([cond, o1, o2])
    assert [v.tolist() for v in values] == [
        [[False], [True], [True]], [[10], [21], [31]], [[11], [1], [1]],
    ]  # fmt: skip
    program = fluid.default_main_program()
    ops = [op.type for op in program.global_block().ops]
    assert program.num_blocks == 3
    assert ops.count("merge_lod_tensor") == 2 and ops.count("split_lod_tensor") == 2
    split = {op.input("X")[0] for op in program.global_block().ops if op.type == "split_lod_tensor"}
    assert x.name in split and program.global_block().var("fill_constant_0.tmp_0").shape == (1,)
    assert "fill_constant_0.tmp_0" not in split


def test_s2_2_gradients() -> None:
    import paddle as pd

    x, _, o1, _ = new_api(pd)
    weight = fluid.default_main_program().global_block().all_parameters()[0]
    gradients = fluid.gradients(fluid.layers.reduce_sum(o1), [x, weight])
    by_x, by_weight = pd.evaluate(gradients)
    assert by_x.tolist() == [[0], [1], [1]] and np.array(by_weight).tolist() == [[10]]
