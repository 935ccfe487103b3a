"""The calls that native code replaces; errors, profiles, Ctrl-C and the check for NaN work as without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet
from fluidnb.runtime import native_calls, native_text, wait_for_native_code
from fluidnb.runtime.native import segment_code
from fluidnb.runtime.native.segment_code import MOST, SegmentCode
from fluidnb.runtime.observers import observers

FEED = {"x": np.linspace(-2, 2, 60, dtype="float32").reshape(4, 15)}


@pytest.fixture(autouse=True)
def require() -> None:
    """Native code from the first run on."""
    fluid.set_flags({"FLAGS_native": "require"})


def code_of(exe: fluid.Executor) -> SegmentCode:
    """The code of the main block's first segment."""
    hot: Any = exe._hot
    found: SegmentCode = hot.root.code
    return found


def names(calls: list[Any]) -> list[list[str]]:
    """The operators of native calls."""
    return [[op.desc.optype for op in call.ops] for call in calls]


def test_a_chain_is_one_loop_without_stores_in_between() -> None:
    out = layers.data("x", [15])
    for _ in range(4):
        out = layers.relu(layers.scale(out, 2.0))
    exe = fluid.Executor()
    exe.run(feed=FEED, fetch_list=[out])
    (call,) = native_calls(fluid.default_main_program())
    assert call.loops == 1 and call.text.count("for (") == 1 and call.text.count("[i] = ") == 1
    assert native_text(fluid.default_main_program()).startswith("native code for scale, relu, scale,")


def test_softmax_computes_row_by_row() -> None:
    out = layers.softmax(layers.data("x", [15]))
    exe = fluid.Executor()
    exe.run(feed=FEED, fetch_list=[out])
    (call,) = native_calls(fluid.default_main_program())
    assert call.loops == 1 and call.text.count("i0++") == 1


def test_bias_and_activation_follow_the_product_at_once() -> None:
    out = layers.fc(layers.data("x", [15]), 3, act="tanh")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[out])
    assert names(native_calls(fluid.default_main_program())) == [["elementwise_add", "tanh"]]


def test_an_optimizer_updates_all_parameters_in_one_call() -> None:
    h = layers.fc(layers.fc(layers.data("x", [15]), 8, act="relu"), 3)
    loss = layers.mean(h)
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[loss])
    last = names(native_calls(fluid.default_main_program()))[-1]
    assert last.count("adam") == 4


def test_a_body_of_a_loop() -> None:
    i, n, total = (layers.fill_constant([1], "float32", value) for value in (0.0, 50.0, 0.0))
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(total + i * i, total)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    exe = fluid.Executor()
    assert exe.run(fetch_list=[total])[0].item() == sum(k * k for k in range(50))
    assert "increment" in native_text(fluid.default_main_program())


def test_an_error_after_native_code_names_its_operator() -> None:
    x = layers.relu(layers.data("x", [15]))
    index = layers.data("index", [1], dtype="int64")
    out = layers.relu(layers.gather(x, index))
    exe = fluid.Executor()
    good = {**FEED, "index": np.zeros((1, 1), "int64")}
    for _ in range(3):
        exe.run(feed=good, fetch_list=[out])
    assert native_calls(fluid.default_main_program())
    with pytest.raises(EnforceNotMet, match="gather"):
        exe.run(feed={**FEED, "index": np.full((1, 1), 99, "int64")}, fetch_list=[out])


def test_observers_see_every_operator() -> None:
    out = layers.relu(layers.scale(layers.data("x", [15]), 2.0))
    exe = fluid.Executor()
    wanted = exe.run(feed=FEED, fetch_list=[out])[0]
    seen: list[str] = []
    observers.append(lambda op, start, end, place: seen.append(op.desc.optype))
    try:
        assert np.array_equal(exe.run(feed=FEED, fetch_list=[out])[0], wanted)
    finally:
        observers.pop()
    assert seen == ["scale", "relu"] and code_of(exe).native


def test_the_check_for_nan_names_the_operator() -> None:
    out = layers.relu(layers.log(layers.data("x", [15])))
    exe = fluid.Executor()
    exe.run(feed=FEED, fetch_list=[out])
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    try:
        with pytest.raises(EnforceNotMet, match="Operator log output"):
            exe.run(feed=FEED, fetch_list=[out])
    finally:
        fluid.set_flags({"FLAGS_check_nan_inf": False})


def test_operators_with_a_common_call_are_one_unit() -> None:
    """Ctrl-C stops between units: never between two calls of one operator."""
    h = layers.fc(layers.softmax(layers.data("x", [15])), 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[h])
    code = code_of(exe).best
    assert len(code.calls) == len(code.ops) == len(code.units)
    for op in {id(op): op for op in code.ops}.values():
        assert len({id(unit) for o, unit in zip(code.ops, code.units, strict=True) if o is op}) == 1


def test_off_takes_effect_in_the_next_run() -> None:
    out = layers.relu(layers.data("x", [15]))
    exe = fluid.Executor()
    exe.run(feed=FEED, fetch_list=[out])
    code = code_of(exe)
    code.best = code.best._replace(calls=[(lambda: pytest.fail("native code ran"), ())])
    fluid.set_flags({"FLAGS_native": "off"})
    assert np.array_equal(exe.run(feed=FEED, fetch_list=[out])[0], np.maximum(FEED["x"], 0))


def test_two_batch_sizes_share_the_compiled_code() -> None:
    out = layers.sigmoid(layers.relu(layers.data("x", [15])))
    exe = fluid.Executor()
    texts = []
    for rows in (3, 7):
        exe.run(feed={"x": np.ones((rows, 15), "float32")}, fetch_list=[out])
        texts.append(code_of(exe).native[0].text)
    assert texts[0] == texts[1]


def test_layers_alike_share_a_function_of_few_calls() -> None:
    out = layers.data("x", [15])
    for _ in range(200):
        out = layers.relu(layers.scale(out, 1.01))
    exe = fluid.Executor()
    wanted = FEED["x"]
    for _ in range(200):
        wanted = np.maximum(wanted * np.float32(1.01), 0)
    assert np.array_equal(exe.run(feed=FEED, fetch_list=[out])[0], wanted)
    calls = native_calls(fluid.default_main_program())
    assert sum(call.replaced for call in calls) == 400 and max(call.replaced for call in calls) <= MOST + 1
    assert len({call.text for call in calls}) <= 3 < len(calls)


@pytest.mark.parametrize("batch", [1, 8])
def test_a_convolution_of_each_channel_and_what_is_around_are_one_call(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_code, "LONG", 0.0)
    image = layers.data("image", [6, 20, 34])
    y = image * 2.0
    for stride in (1, 2, 1):
        y = layers.conv2d(y, 6, 3, stride=stride, padding=1, groups=6, bias_attr=False)
        y = layers.relu6(layers.batch_norm(y, is_test=True))
    feed = {"image": np.random.default_rng(2).uniform(-3, 3, (batch, 6, 20, 34)).astype("float32")}
    main, exe = fluid.default_main_program(), fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.set_flags({"FLAGS_native": "off"})
    (wanted,) = exe.run(main, feed, [y])
    fluid.set_flags({"FLAGS_native": "auto"})
    for _ in range(segment_code.OFTEN + 1):
        (before,) = exe.run(main, feed, [y])
    assert before.tobytes() == wanted.tobytes()
    assert wait_for_native_code()
    (got,) = exe.run(main, feed, [y])
    assert got.tobytes() == wanted.tobytes()
    (call,) = fluid.runtime.native_calls(main)
    assert call.times == 1 and {"conv2d", "batch_norm", "relu6"} <= {op.desc.optype for op in call.ops}
    # A channel at a time is padded, summed and normalised.
    assert 0 < call.text.count("for (int64_t o0 = 0;") <= 4
