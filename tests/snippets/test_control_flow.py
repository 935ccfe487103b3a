"""The developer guide's snippets of control flow (S1.4, S1.5, S1.11, S1.12)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError, OpTypeError, OpValueError

layers = fluid.layers


@pytest.mark.parametrize(
    ("value", "limit", "printed"), [(10, 10, "Case 1"), (11, 10, "Case 2"), (-1, 10, "Case 1"), (-1, -5, "Case 3")]
)
def test_s1_4_switch(value: int, limit: int, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    import paddle.v2.fluid as fluid

    a = fluid.Var(value)
    b = fluid.Var(0)
    switch = fluid.switch()
    with switch.block():
        with switch.case(fluid.less_equal(a, limit)):
            fluid.print("Case 1")
        with switch.case(fluid.larger(a, 0)):
            fluid.print("Case 2")
        with switch.default():
            fluid.print("Case 3")
    assert fluid.Executor(fluid.CPUPlace()).run() == [] and b.shape == (1,)
    assert capsys.readouterr().out == printed + "\n"


def loop() -> tuple[Any, Any]:
    """The guide's loop, completed: total = d0 + d1 + d2; gives (total, the array of sums)."""
    d0, d1, d2 = [layers.data(f"d{k}", shape=[10], append_batch_size=False, dtype="float32") for k in range(3)]
    i = layers.zeros(shape=[1], dtype="int64")
    i.stop_gradient = True
    init = layers.zeros(shape=[10], dtype="float32")
    mem = layers.array_write(init, i=i)
    data_array = layers.array_write(x=d0, i=i)
    for d in (d1, d2):
        i = layers.increment(i)
        layers.array_write(d, i, array=data_array)
    i = layers.zeros(shape=[1], dtype="int64")
    array_len = layers.fill_constant(shape=[1], dtype="int64", value=3)
    cond = layers.less_than(x=i, y=array_len)
    while_op = layers.While(cond=cond)
    with while_op.block():
        d = layers.array_read(array=data_array, i=i)
        prev = layers.array_read(array=mem, i=i)
        result = layers.sums([d, prev])
        i = layers.increment(x=i, in_place=True)
        layers.array_write(result, i=i, array=mem)
        layers.less_than(x=i, y=array_len, cond=cond)
    return layers.array_read(array=mem, i=i), mem


#: k · arange(10) for k = 1, 2, 3
FEED = {f"d{k}": (k + 1) * np.arange(10, dtype="float32") for k in range(3)}


def test_s1_5_while() -> None:
    total, _ = loop()
    scope = fluid.Scope()
    executor = fluid.Executor(fluid.CPUPlace())
    (value,) = executor.run(feed=FEED, fetch_list=[total], scope=scope, keep_scopes=True)
    assert value.tolist() == (6 * np.arange(10)).tolist()
    (run,) = scope.kids
    assert len(run.kids) == 3 and all(step.parent is run and step.block_index == 1 for step in run.kids)
    reads = [np.array(step.find_var("array_read_0.tmp_0").get_tensor()) for step in run.kids]
    assert [read.tolist() for read in reads] == [FEED[f"d{k}"].tolist() for k in range(3)]


def test_s1_5_while_backward() -> None:
    total, _ = loop()
    block = fluid.default_main_program().global_block()
    for k in range(3):
        block.var(f"d{k}").stop_gradient = False
    fluid.backward.append_backward(layers.mean(total))
    gradients = fluid.Executor(fluid.CPUPlace()).run(feed=FEED, fetch_list=[f"d{k}@GRAD" for k in range(3)])
    for gradient in gradients:
        np.testing.assert_allclose(gradient, np.full(10, 0.1), rtol=1e-6)


def test_s1_5_what_the_guide_writes_into() -> None:
    """The guide writes the result into ``d``, which is what was read from the array."""
    _, mem = loop()
    i = layers.zeros(shape=[1], dtype="int64")
    d = layers.array_read(array=mem, i=i)
    with pytest.raises(ValueError, match="array of array_write must be an array of tensors") as caught:
        layers.array_write(d, i=i, array=d)
    assert "expected: a LoDTensorArray" in str(caught.value) and "received: LOD_TENSOR\n" in str(caught.value)


def test_s1_11_the_condition_has_one_element() -> None:
    several = layers.less_than(layers.zeros([2], "float32"), layers.ones([2], "float32"))
    with pytest.raises(OpTypeError, match="condition should be a bool scalar"):
        layers.While(several)
    program = fluid.Program()
    block, body = program.global_block(), program.create_block()
    block.create_var(name="cond", shape=[-1], dtype="bool", is_data=True)
    body.append_op("logical_not", {"X": "cond"}, {"Out": "cond"})
    steps = block.create_var(name="steps", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
    block.append_op("while", {"Condition": "cond"}, {"Out": "cond", "StepScopes": steps}, {"sub_block": body})
    with pytest.raises(EnforceNotMet, match="The condition of while must have one element") as caught:
        fluid.Executor(fluid.CPUPlace()).run(program, feed={"cond": np.ones(2, "bool")})
    assert caught.value.received == "shape [2]"


def test_s1_11_a_condition_that_is_missing_is_named() -> None:
    program = fluid.Program()
    block, body = program.global_block(), program.create_block()
    steps = block.create_var(name="steps", type=fluid.core.VarDesc.VarType.STEP_SCOPES)
    with pytest.raises(OpValueError, match="Condition"):
        block.append_op("while", {}, {"StepScopes": steps}, {"sub_block": body})
    with pytest.raises(FluidError, match="while reads more in slot Condition"):
        block.append_op("while", {"Condition": "more"}, {"StepScopes": steps}, {"sub_block": body})


def test_s1_12_lod_tensor_array() -> None:
    tensor = fluid.LoDTensor()
    tensor.set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    arr = fluid.LoDTensorArray()
    arr.append(tensor)
    assert len(arr) == 1 and np.array(arr[0]).tolist() == np.ones((2, 3)).tolist()
