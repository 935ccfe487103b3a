"""The snippets of the Python API design (S3.1 to S3.11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError, OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Operator, Parameter, Program, Variable
from fluidnb.program import layer_calls as naming


def run(program: Program, names: list[str], **feed: Any) -> list[Any]:
    """Run a program in a new scope and fetch."""
    return fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=names, scope=fluid.Scope())


def test_s3_1_program() -> None:
    program = Program()
    assert [program.create_block().idx, program.create_block().idx] == [1, 2]
    assert [block.parent_idx for block in program.blocks] == [-1, 0, 1]
    assert program.current_block().idx == 2
    program.rollback()
    program.rollback()
    assert program.current_block_idx == 0 and program.current_block() is program.global_block()


def test_s3_2_block() -> None:
    program = Program()
    inner = program.create_block()
    assert (inner.create_var(name="v", shape=[1]).block, inner.has_var("v")) == (inner, True)
    x = program.global_block().create_var(name="x", shape=[2, 2])
    program.global_block().append_operator("relu", {"X": x}, {"Out": "y"})
    parameter = inner.create_parameter(name="w", shape=[2, 2], dtype="float32")
    assert parameter.block is program.global_block() and not inner.has_var("w")
    init = {"shape": [2, 2], "dtype": "float32", "value": 1.0}
    program.global_block().prepend_operator("fill_constant", {}, {"Out": parameter}, init)
    assert [op.type for op in program.global_block().ops] == ["fill_constant", "relu"]


def test_s3_3_operator_infers_shapes() -> None:
    block = Program().global_block()
    x, w = block.create_var(name="x", shape=[-1, 13]), block.create_var(name="w", shape=[13, 1])
    out = block.create_var(name="out")
    op = Operator(block, type="mul", inputs={"X": x, "Y": w}, outputs={"Out": out}, attrs={})
    assert out.shape == (-1, 1) and op.type == "mul" and list(block.ops) == [op]


def test_s3_4_variable() -> None:
    block = Program().global_block()
    first, second = Variable(block, shape=[3]), Variable(block, shape=[3])
    assert first.name != second.name and first.dtype == second.dtype == fluid.core.VarDesc.VarType.FP32
    again = block.create_var(name=first.name, shape=[3])
    assert again.desc is first.desc and len(block.vars) == 2
    one = Operator(block, "relu", {"X": second}, {"Out": first})
    assert first.writer is one and first.op is one
    two = Operator(block, "sigmoid", {"X": second}, {"Out": first})
    assert first.writer is two and again.writer is two and second.writer is None


def test_s3_5_parameter() -> None:
    block = Program().create_block()
    parameter = Parameter(block, shape=[13, 1], dtype="float32", name="w", trainable=False)
    assert parameter.persistable and not parameter.trainable and parameter.block.idx == 0
    with pytest.raises(OpValueError, match="shape should not be related with batch-size"):
        Parameter(block, shape=[-1, 1], dtype="float32")


def test_s3_6_create_parameter_uniform() -> None:
    program = Program()
    program.create_parameter(
        name="w", shape=[100, 3], dtype="float32", init_attr={"type": "uniform_random", "min": -1.0, "max": 1.0}
    )
    (value,) = run(program, ["w"])
    assert value.shape == (100, 3) and np.abs(value).max() <= 1 and value.std() == pytest.approx(3**-0.5, rel=0.2)
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    main.create_parameter(
        name="w", shape=[2], dtype="float32", init_attr={"type": "uniform_random", "min": -1.0, "max": 1.0}
    )
    assert len(main.global_block().ops) == 0
    assert [op.type for op in startup.global_block().ops] == ["uniform_random"]


def test_s3_7_create_parameter_load(tmp_path: Path) -> None:
    file, value = tmp_path / "something.npy", np.arange(6, dtype="float32").reshape(2, 3)
    np.save(file, value)
    program = Program()
    init = {"type": "load", "filename": str(file)}
    program.create_parameter(name="w", shape=[2, 3], dtype="float32", init_attr=init)
    assert run(program, ["w"])[0].tobytes() == value.tobytes()
    file.unlink()
    with pytest.raises(FluidError, match=str(file)):
        run(program, ["w"])


def fc_with_functions(input: Any, size: int, act: str | None = None, name: str | None = None) -> Any:
    """The paper's fc layer written with global functions alone."""
    if name is None:
        name = fluid.unique_name.generate("fc")
    block, startup = fluid.default_main_program().current_block(), fluid.default_startup_program().global_block()
    mul_results = []
    for i, x in enumerate(input if isinstance(input, list) else [input]):
        shape = [int(np.prod(x.shape[1:])), size]
        w = block.create_parameter(name=f"{name}.w_{i}", shape=shape, dtype=x.dtype)
        startup.create_var(name=w.name, shape=shape, dtype=x.dtype, persistable=True)
        attrs = {"shape": shape, "dtype": x.dtype, "value": 0.5}
        startup.append_op("fill_constant", {}, {"Out": w.name}, attrs)
        tmp = block.create_var(name=fluid.unique_name.generate(f"{name}.tmp"))
        block.append_op("mul", {"X": x, "Y": w}, {"Out": tmp})
        mul_results.append(tmp)
    out = mul_results[0]
    if len(mul_results) > 1:
        out = block.create_var(name=fluid.unique_name.generate(f"{name}.tmp"))
        block.append_op("sum", {"X": mul_results}, {"Out": out})
    if act is not None:
        result = block.create_var(name=fluid.unique_name.generate(f"{name}.tmp"))
        block.append_op(act, {"X": out}, {"Out": result})
        out = result
    return out


@naming.layer
def fc_with_helper(
    input: Any,
    size: int,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Any:
    """The paper's fc layer written with LayerHelper."""
    helper = LayerHelper(locals())  # pass all parameters to LayerHelper
    mul_results = []
    for ipt, _ in helper.iter_multiple_input_and_param():
        w = helper.create_parameter(shape=[*ipt.shape[1:], size], dtype=ipt.dtype)
        tmp = helper.create_tmp_variable()
        helper.append_op("mul", {"X": ipt, "Y": w}, {"Out": tmp})
        mul_results.append(tmp)
    pre_bias = helper.add_sum(mul_results)
    pre_activation = helper.add_bias(pre_bias)
    return helper.add_activation(pre_activation)


def half() -> Any:
    """A parameter of halves."""
    return fluid.ParamAttr(initializer=fluid.initializer.Constant(0.5))


@pytest.mark.parametrize("widths", [[4], [4, 3]])
@pytest.mark.parametrize("act", [None, "tanh"])
def test_s3_8_and_s3_9_own_fc_layers(widths: list[int], act: str | None) -> None:
    inputs = [fluid.layers.data(f"x{i}", shape=[n]) for i, n in enumerate(widths)]
    given = inputs if len(inputs) > 1 else inputs[0]
    results = [
        fluid.layers.fc(given, 5, param_attr=half(), bias_attr=False, act=act),
        fc_with_functions(given, 5, act=act),
        fc_with_helper(given, 5, param_attr=half(), bias_attr=False, act=act),
    ]
    ours, functions, helper = (r.name for r in results)
    assert results[2].name.startswith("fc_with_helper_0.tmp_") and len(results[2].params) == len(widths)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.default_rng(1)
    feed = {f"x{i}": rng.normal(size=(6, n)).astype("float32") for i, n in enumerate(widths)}
    values = exe.run(feed=feed, fetch_list=[ours, functions, helper])
    expected = sum(x.sum(1, keepdims=True) / 2 for x in feed.values()) * np.ones((1, 5))
    np.testing.assert_allclose(values[0], np.tanh(expected) if act else expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=0, atol=1e-6)


def test_s3_10_add_activation() -> None:
    x = fluid.layers.data("x", shape=[3])
    assert LayerHelper("layer", act=None).add_activation(x) is x
    assert LayerHelper("layer").add_activation(x) is x
    made = LayerHelper("layer", act="sigmoid").add_activation(x)
    assert made.op.type == "sigmoid" and made.op.input("X") == ["x"]


def hidden_layer(**kwargs: Any) -> tuple[Any, Any]:
    """A hidden layer and a loss over it, with SGD behind."""
    data = fluid.layers.data("data", shape=[3])
    hidden = fluid.layers.fc(data, size=2, **kwargs)
    loss = fluid.layers.mean(fluid.layers.fc(hidden, size=1))
    return hidden, loss


def test_s3_11_param_and_grad_of_a_layer() -> None:
    hidden, loss = hidden_layer()
    with pytest.raises(OpValueError, match="call optimizer.minimize or append_backward first"):
        hidden.param.grad  # noqa: B018
    fluid.optimizer.SGD(0.1).minimize(loss)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    feed = {"data": np.ones((4, 3), "float32")}
    value, gradient = executor.run(feed=feed, fetch_list=[hidden.param, hidden.param.grad])
    assert value.shape == gradient.shape == hidden.param.shape == (3, 2)
    assert [p.name for p in hidden.params] == ["fc_0.w_0", "fc_0.b_0"]


@pytest.mark.parametrize("how", ["stop_gradient", "trainable"])
def test_s3_11_a_frozen_parameter(how: str) -> None:
    attr = fluid.ParamAttr(trainable=False) if how == "trainable" else None
    hidden, loss = hidden_layer(param_attr=attr)
    if how == "stop_gradient":
        hidden.param.stop_gradient = True
    _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    assert hidden.param.name not in [p.name for p, _ in pairs] and len(pairs) == 3
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    scope = fluid.global_scope()
    before = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in hidden.params}
    executor.run(feed={"data": np.ones((4, 3), "float32")})
    after = {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in hidden.params}
    weight, bias = (p.name for p in hidden.params)
    assert after[weight].tobytes() == before[weight].tobytes() and after[bias].tobytes() != before[bias].tobytes()
