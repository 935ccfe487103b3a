"""A convolution takes in what is computed of its result element by element; whoever looks sees each operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet
from fluidnb.layer_helper import LayerHelper
from fluidnb.runtime.native.segment_code import nothing
from tests.onednn.test_convolution import assert_agree, by_both, small

_TWO = {
    "add": layers.elementwise_add, "mul": layers.elementwise_mul, "sub": layers.elementwise_sub,
    "div": layers.elementwise_div, "max": layers.elementwise_max,
}  # fmt: skip


def joined(exe: fluid.Executor) -> list[str]:
    """The types of the operators that are left to calls of their own."""
    hot: Any = exe._hot
    calls, ops, _ = hot.root.code.joined
    left = [op.desc.optype for (function, _), op in zip(calls, ops, strict=True) if function is not nothing]
    return list(dict.fromkeys(left))


def run(fetches: list[Any], feed: dict[str, Any]) -> tuple[fluid.Executor, list[Any]]:
    """Two runs: the executor and the results of the second."""
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe, [exe.run(feed=feed, fetch_list=fetches) for _ in range(2)][1]


def test_bias_and_activation_are_steps() -> None:
    out = layers.pool2d(layers.conv2d(layers.data("x", [8, 9, 9]), 16, 3, act="relu6"), 2)
    exe, _ = run([out], {"x": small(2, 8, 9, 9)})
    assert joined(exe) == ["conv2d", "pool2d"]
    assert_agree(*by_both([out], {"x": small(2, 8, 9, 9)}))


def test_a_block_of_a_residual_network() -> None:
    x = layers.data("x", [8, 9, 9])
    main = layers.batch_norm(layers.conv2d(x, 8, 3, padding=1, bias_attr=False), act="relu", is_test=True)
    main = layers.batch_norm(layers.conv2d(main, 8, 3, padding=1, bias_attr=False), is_test=True)
    short = layers.batch_norm(layers.conv2d(x, 8, 1, bias_attr=False), is_test=True)
    out = layers.pool2d(layers.elementwise_add(main, short, act="relu"), 3)
    exe, _ = run([out], {"x": small(2, 8, 9, 9)})
    assert not {"elementwise_add", "relu"} & set(joined(exe))
    assert_agree(*by_both([out], {"x": small(2, 8, 9, 9)}))


def test_what_is_fetched_or_read_later_is_kept() -> None:
    middle = layers.conv2d(layers.data("x", [8, 9, 9]), 8, 3, bias_attr=False)
    out = layers.relu(middle)
    exe, (_, values) = run([out, middle], {"x": small(2, 8, 9, 9)})
    assert values.min() < 0
    again = layers.elementwise_add(layers.scale(out, 2.0), middle)
    assert_agree(*by_both([out, middle, again], {"x": small(2, 8, 9, 9)}))


@pytest.mark.parametrize("order", ["first", "last", "both"])
@pytest.mark.parametrize("kind", ["add", "mul", "sub", "div", "max"])
def test_functions_of_two(kind: str, order: str) -> None:
    x = layers.data("x", [4, 6, 6])
    doubled = layers.scale(x, 2.0)
    middle = layers.conv2d(x, 4, 3, padding=1, bias_attr=False)
    two = {"first": (middle, doubled), "last": (doubled, middle), "both": (middle, middle)}[order]
    out = layers.tanh(_TWO[kind](*two))
    fluid.Executor().run(fluid.default_startup_program())
    assert_agree(*by_both([out], {"x": small(2, 4, 6, 6)}))


def test_a_sum_that_is_written_over_its_operand() -> None:
    x = layers.data("x", [64, 9, 9])
    total = layers.scale(x, 2.0)
    middle = layers.conv2d(x, 64, 3, padding=1, bias_attr=False)
    block = fluid.default_main_program().global_block()
    block.append_op("elementwise_add", {"X": [middle], "Y": [total]}, {"Out": [total]})
    out = layers.tanh(total)
    fluid.Executor().run(fluid.default_startup_program())
    assert_agree(*by_both([out], {"x": small(2, 64, 9, 9)}))


def test_the_debugger_and_a_profile_see_each_operator(capsys: pytest.CaptureFixture[str]) -> None:
    x = layers.data("x", [8, 9, 9])
    hidden = layers.conv2d(x, 8, 3, bias_attr=False)
    out = layers.relu(layers.scale(hidden, 3.0))
    exe, (plain,) = run([out], {"x": small(2, 8, 9, 9)})
    stepped = exe.interpret(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
    stepped.step()
    assert stepped.value(hidden.name).array.min() < 0
    np.testing.assert_allclose(stepped.run().fetch()[0], plain, rtol=1e-5, atol=1e-6)
    with fluid.profiler.profiler("CPU"):
        (watched,) = exe.run(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
    np.testing.assert_allclose(watched, plain, rtol=1e-5, atol=1e-6)
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("conv2d", "scale", "relu"))


def test_the_check_for_nan_names_the_operator() -> None:
    hidden = layers.conv2d(layers.data("x", [1, 5, 5]), 4, 3, bias_attr=False)
    out = layers.relu(layers.elementwise_div(hidden, layers.fill_constant([4], "float32", 0.0), axis=1))
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    with pytest.raises(EnforceNotMet, match="elementwise_div"):
        exe.run(feed={"x": small(1, 1, 5, 5)}, fetch_list=[out])


@pytest.mark.parametrize("native", ["off", "require"])
def test_beside_native_code(native: str) -> None:
    fluid.set_flags({"FLAGS_native": native})
    hidden = layers.conv2d(layers.data("x", [8, 9, 9]), 8, 3, act="relu")
    out = layers.elementwise_mul(layers.sigmoid(hidden), layers.tanh(hidden))
    fluid.Executor().run(fluid.default_startup_program())
    assert_agree(*by_both([out], {"x": small(2, 8, 9, 9)}))


def hard_swish(x: Any) -> Any:
    """The operator, which has no layer."""
    helper = LayerHelper("hard_swish")
    out = helper.create_variable_for_type_inference("float32")
    helper.append_op("hard_swish", {"X": [x]}, {"Out": [out]})
    return out


def test_hard_swish_reads_the_result_twice() -> None:
    x = layers.data("x", [8, 9, 9])
    hidden = layers.batch_norm(layers.conv2d(x, 8, 3, padding=1, bias_attr=False), is_test=True)
    out = layers.pool2d(layers.elementwise_add(hard_swish(hidden), x), 2)
    exe, _ = run([out], {"x": 8 * small(2, 8, 9, 9)})
    assert not {"hard_swish", "elementwise_add"} & set(joined(exe))
    assert_agree(*by_both([out], {"x": 8 * small(2, 8, 9, 9)}))


def test_native_code_across_calls_that_are_gone() -> None:
    fluid.set_flags({"FLAGS_native": "require"})
    x = layers.data("x", [8, 9, 9])
    for _ in range(4):
        hidden = layers.batch_norm(layers.sigmoid(x), act="relu", is_test=True)
        hidden = layers.batch_norm(layers.conv2d(hidden, 8, 1, bias_attr=False), act="relu", is_test=True)
        x = layers.concat([x, layers.conv2d(hidden, 4, 3, padding=1, bias_attr=False)], axis=1)
    out = layers.pool2d(layers.batch_norm(x, act="relu", is_test=True), pool_type="avg", global_pooling=True)
    exe, _ = run([out], {"x": small(2, 8, 9, 9)})
    hot: Any = exe._hot
    code = hot.root.code
    assert any(function is nothing for function, _ in code.joined.calls)
    assert all(function is not nothing for function, _ in code.best.calls)
    assert_agree(*by_both([out], {"x": small(2, 8, 9, 9)}))


_STEPS = (
    "relu", "relu6", "hard_swish", "scale", "bias", "bn", "add", "mul", "conv", "other", "pool", "sub", "max", "same",
)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
def test_random_networks(steps: list[tuple[str, int, int]]) -> None:
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 2
        x = layers.data("x", [4, 6, 6])
        before = layers.scale(x, 2.0)
        values = [layers.conv2d(x, 4, 3, padding=1, bias_attr=False), before, x]
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.insert(0, _applied(kind, a, b))
        del values[6:]
        out = layers.reduce_sum(layers.concat([layers.tanh(v) for v in values], axis=1), dim=[2, 3])
        fluid.Executor().run(fluid.default_startup_program())
        assert_agree(*by_both([out], {"x": small(2, 4, 6, 6)}))


def _applied(kind: str, a: Any, b: Any) -> Any:
    if kind == "conv":
        return layers.conv2d(a, 4, 3, padding=1, bias_attr=False)
    if kind == "other":
        return layers.conv2d(layers.elementwise_add(a, b), 4, 1)
    if kind == "pool":
        return layers.pool2d(a, 3, pool_padding=1, pool_type="avg")
    if kind == "bn":
        return layers.batch_norm(a, is_test=True)
    if kind == "hard_swish":
        return hard_swish(a)
    if kind == "bias":
        return layers.elementwise_add(a, layers.fill_constant([4], "float32", 0.5), axis=1)
    if kind == "scale":
        return layers.scale(a, -0.5, bias=0.25)
    if kind == "same":
        return layers.elementwise_add(a, a)
    if kind in _TWO:
        return _TWO[kind](a, b)
    return layers.relu6(a) if kind == "relu6" else layers.relu(a)


def test_every_batch_size_has_its_steps() -> None:
    out = layers.conv2d(layers.data("x", [8, 9, 9]), 16, 3, act="relu")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for n in (2, 3, 4, 9, 5, 7, 6, 8):
        for _ in range(2):
            exe.run(feed={"x": small(n, 8, 9, 9)}, fetch_list=[out])
        assert joined(exe) == ["conv2d"], n
