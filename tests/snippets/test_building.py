"""The developer guide's snippets that build programs (S1.1, S1.2, S1.6, S1.17 to S1.22)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid


def forward() -> tuple[Any, Any, Any]:
    """The guide's linear regression: x, y and the mean cost."""
    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    y_predict = fluid.layers.fc(input=x, size=1, act=None)
    y = fluid.layers.data(name="y", shape=[1], dtype="float32")
    cost = fluid.layers.square_error_cost(input=y_predict, label=y)
    return x, y, fluid.layers.mean(x=cost)


def types(program: Any) -> list[str]:
    """The operator types of a program's global block."""
    return [op.type for op in program.global_block().ops]


def test_s1_1_forward() -> None:
    _, _, avg_cost = forward()
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    assert types(main) == ["mul", "elementwise_add", "elementwise_sub", "square", "mean"]
    variables = main.global_block().vars
    shapes = {name: variables[name].shape for name in ("x", "fc_0.w_0", "fc_0.b_0", "y", avg_cost.name)}
    assert shapes == {"x": (-1, 13), "fc_0.w_0": (13, 1), "fc_0.b_0": (1,), "y": (-1, 1), avg_cost.name: (1,)}
    uniform, fill = sorted(startup.global_block().ops, key=lambda op: op.type, reverse=True)
    assert (uniform.type, fill.type, fill.attr("value")) == ("uniform_random", "fill_constant", 0.0)
    assert -uniform.attr("min") == uniform.attr("max") == pytest.approx(math.sqrt(6 / 14), rel=1e-7)


def test_s1_2_sgd_minimize() -> None:
    _, _, avg_cost = forward()
    before = len(types(fluid.default_main_program()))
    sgd_optimizer = fluid.optimizer.SGD(0.01)
    optimize_ops, params_grads = sgd_optimizer.minimize(avg_cost)
    assert [(p.name, g.name) for p, g in params_grads] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD"),
    ]  # fmt: skip
    assert types(fluid.default_main_program())[before:] == [
        "fill_constant", "mean_grad", "square_grad", "elementwise_sub_grad", "elementwise_add_grad", "mul_grad", "sgd",
        "sgd",
    ]  # fmt: skip
    assert [op.type for op in optimize_ops] == ["sgd", "sgd"]


def test_s1_6_print_program() -> None:
    from paddle.v2.fluid import debuger, framework

    _, _, avg_cost = forward()
    fluid.optimizer.SGD(0.01).minimize(avg_cost)
    text = debuger.pprint_program_codes(framework.default_main_program().desc)
    lines = text.splitlines()
    assert lines[:2] == ["// block-0  parent--1", "// variables"]
    assert "// operators" in lines
    assert "fc_0.tmp_0 = mul(X=x, Y=fc_0.w_0) [{x_num_col_dims=1,y_num_col_dims=1}]" in lines
    assert "_grad(" not in text and "sgd(" not in text
    shown = debuger.pprint_program_codes(framework.default_main_program().desc, show_backward=True)
    assert "mul_grad(" in shown and "sgd(" in shown
    assert debuger.pprint_block_codes(framework.default_main_program().desc.block(0)) == text


def test_s1_17_switch_main_program() -> None:
    from paddle.fluid import framework

    program = framework.Program()
    previous = framework.switch_main_program(program)
    try:
        assert framework.default_main_program() is program
    finally:
        assert framework.switch_main_program(previous) is program
    assert framework.default_main_program() is previous


def test_s1_18_param_attr() -> None:
    from paddle.fluid.clip import GradientClipByValue
    from paddle.fluid.initializer import UniformInitializer
    from paddle.fluid.param_attr import ParamAttr
    from paddle.fluid.regularizer import L1Decay

    x = fluid.layers.data(name="x", shape=[13], dtype="float32")
    with pytest.warns(UserWarning, match="min"):
        w_param_attrs = ParamAttr(
            name=None,
            initializer=UniformInitializer(low=-1.0, high=1.0, seed=0),
            learning_rate=1.0,
            regularizer=L1Decay(1.0),
            trainable=True,
            clip=GradientClipByValue(-1.0, 1.0),
        )
    y_predict = fluid.layers.fc(input=x, size=1, param_attr=w_param_attrs)
    exe = fluid.Executor(fluid.CPUPlace())
    before = len(types(fluid.default_main_program()))
    fluid.optimizer.SGD(0.01).minimize(fluid.layers.mean(y_predict))
    exe.run(fluid.default_startup_program())
    weight = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    assert weight.shape == (13, 1) and np.abs(weight).max() <= 1 and weight.std() > 0.2
    ops = fluid.default_main_program().global_block().ops[before:]
    touching = [op.type for op in ops if any("fc_0.w_0" in n for n in (*op.input_arg_names, *op.output_arg_names))]
    assert touching == ["mul_grad", "clip", "sign", "scale", "sum", "sgd"]
    bias = [op.type for op in ops if any("fc_0.b_0" in n for n in op.output_arg_names)]
    assert bias == ["elementwise_add_grad", "sgd"]


def test_s1_19_create_var() -> None:
    from paddle.fluid.framework import Program

    cur_program = Program()
    cur_block = cur_program.current_block()
    new_var = cur_block.create_var(name="X", shape=[-1, 16, 16], dtype="float32")
    assert new_var.shape == (-1, 16, 16) and cur_block.var("X") is new_var


def guide_loss() -> tuple[Any, Any]:
    """The guide's fc over a (2, 3, 4) input, summed: input and loss."""
    data = fluid.layers.data(name="data", shape=(2, 3, 4))
    out = fluid.layers.fc(input=data, size=128, act=None)
    return data, fluid.layers.reduce_sum(out)


def test_s1_20_append_backward() -> None:
    _, loss = guide_loss()
    pairs = fluid.backward.append_backward(loss=loss)
    assert [(p.name, g.name) for p, g in pairs] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD"),
    ]  # fmt: skip
    assert [g.shape for _, g in pairs] == [(24, 128), (128,)]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    gradients = exe.run(feed={"data": np.ones((5, 2, 3, 4), "float32")}, fetch_list=[g for _, g in pairs])
    assert [set(g.ravel().tolist()) for g in gradients] == [{5.0}, {5.0}]


def test_s1_21_sgd_on_the_loss() -> None:
    _, loss = guide_loss()
    sgd_optimizer = fluid.optimizer.SGD(learning_rate=0.001)
    sgd_optimizer.minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    before = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    exe.run(feed={"data": np.ones((5, 2, 3, 4), "float32")})
    after = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    np.testing.assert_allclose(after, before - 0.005, rtol=0, atol=1e-6)


def test_s1_22_print_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    guide_loss()
    print(fluid.default_main_program())
    text = capsys.readouterr().out
    assert text.startswith("blocks {") and 'type: "reduce_sum"' in text
    assert [line.strip() for line in text.rstrip().splitlines()[-3:]] == ["version {", "version: 0", "}"]
