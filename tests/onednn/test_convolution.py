"""Convolutions and their gradients by oneDNN are those of numpy, whatever their windows; filters may change."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet
from fluidnb.memory import OutOfMemory
from fluidnb.op import get_op
from fluidnb.op.select import library_of
from fluidnb_kernels.onednn import converted_parameters, library


def by_both(fetches: list[Any], feed: dict[str, Any], **how: Any) -> tuple[list[Any], list[Any]]:
    """The results of oneDNN, and those of numpy."""
    exe = fluid.Executor()
    found = [exe.run(feed=feed, fetch_list=fetches, **how) for _ in range(2)][1]
    assert uses_onednn(exe)
    fluid.set_flags({"FLAGS_use_mkldnn": False})
    expected = exe.run(feed=feed, fetch_list=fetches, **how)
    fluid.set_flags({"FLAGS_use_mkldnn": True})
    return found, expected


def uses_onednn(exe: fluid.Executor) -> bool:
    """Whether the last run had a primitive of oneDNN."""
    hot: Any = exe._hot
    return any(isinstance(function, library.Call) for function, _ in hot.root.code.plain.calls)


def assert_agree(found: list[Any], expected: list[Any]) -> None:
    """Arrays differ by rounding only."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-6 * max(np.abs(other).max(), 1e-3))


def small(*shape: int) -> np.ndarray[Any, Any]:
    """Random float32 numbers, the same each time."""
    return np.random.default_rng(3).normal(size=shape).astype("float32")


@given(
    st.integers(1, 5), st.sampled_from([1, 2, 4]), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4),
    st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.integers(5, 9), st.sampled_from(["conv", "transposed"]),
)  # fmt: skip
def test_a_convolution_and_its_gradients(
    n: int, groups: int, inner: int, filters: int, window: int, stride: int, padding: int, dilation: int, size: int,
    kind: str,
) -> None:  # fmt: skip
    assume(kind != "conv" or (window - 1) * dilation < size + 2 * padding)
    with fluid.fresh():
        fluid.default_startup_program().random_seed = 5
        x = layers.data("x", [inner * groups, size, size + 1])
        x.stop_gradient = False
        make = layers.conv2d if kind == "conv" else layers.conv2d_transpose
        out = make(
            x, filters * groups, filter_size=window, stride=stride, padding=padding, dilation=dilation, groups=groups
        )
        if min(out.shape[2:]) < 1:
            return
        fluid.append_backward(layers.mean(layers.square(out)))
        fluid.Executor().run(fluid.default_startup_program())
        (w, *_) = fluid.default_main_program().all_parameters()
        fetches = [out, w.name + "@GRAD", "x@GRAD"]
        assert_agree(*by_both(fetches, {"x": small(n, inner * groups, size, size + 1)}))


def test_volumes() -> None:
    out = layers.conv3d(layers.data("x", [2, 4, 5, 6]), 3, 3, padding=1)
    fluid.Executor().run(fluid.default_startup_program())
    assert_agree(*by_both([out], {"x": small(2, 2, 4, 5, 6)}))


def test_other_dtypes_are_numpys() -> None:
    kinds = [library_of(get_op("conv2d"), dtype, {}) for dtype in ("float32", "float64", "float16")]
    assert kinds == ["MKLDNN", "PLAIN", "PLAIN"]
    fluid.set_flags({"FLAGS_use_mkldnn": False})
    assert library_of(get_op("conv2d"), "float32", {}) == "PLAIN"
    assert library_of(get_op("conv2d"), "float32", {"use_mkldnn": True}) == "MKLDNN"
    out = layers.conv2d(layers.data("x", [3, 8, 8], dtype="float64"), 4, 3)
    fluid.set_flags({"FLAGS_use_mkldnn": True})
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    exe.run(feed={"x": np.ones((4, 3, 8, 8))}, fetch_list=[out])
    assert not uses_onednn(exe)


def test_training_is_numpys() -> None:
    def losses(on: bool) -> list[float]:
        fluid.set_flags({"FLAGS_use_mkldnn": on})
        with fluid.fresh():
            fluid.default_startup_program().random_seed = 7
            x, label = layers.data("x", [1, 12, 12]), layers.data("label", [1], dtype="int64")
            hidden = layers.conv2d(x, 6, 3, padding=1, bias_attr=False)
            hidden = layers.batch_norm(hidden, act="relu")
            hidden = layers.pool2d(layers.conv2d(hidden, 8, 3, act="relu"), 2, pool_stride=2)
            loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(hidden, 5), label))
            fluid.optimizer.Adam(0.01).minimize(loss)
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            feed = {"x": small(10, 1, 12, 12), "label": np.arange(10)[:, None] % 5}
            return [exe.run(feed=feed, fetch_list=[loss])[0].item() for _ in range(20)]

    found, expected = losses(True), losses(False)
    assert expected[-1] < expected[0] / 2
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def _filter_of_ones() -> tuple[fluid.Executor, Any, Any]:
    out = layers.conv2d(layers.data("x", [1, 4, 4]), 1, 3, param_attr=fluid.ParamAttr("w"), bias_attr=False)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    tensor = fluid.global_scope().find_var("w").get_tensor()
    tensor.set(np.ones((1, 1, 3, 3), "float32"), fluid.CPUPlace())
    return exe, out, tensor


def test_a_filter_that_is_changed_in_any_way_is_seen() -> None:
    exe, out, tensor = _filter_of_ones()

    def sums(n: int = 1) -> float:
        return float(exe.run(feed={"x": np.ones((n, 1, 4, 4), "float32")}, fetch_list=[out])[0][0, 0, 0, 0])

    assert [sums(), sums()] == [9, 9]
    tensor.set(np.full((1, 1, 3, 3), 2, "float32"), fluid.CPUPlace())
    assert [sums(), sums(3)] == [18, 18]
    np.asarray(tensor)[0, 0, 1, 1] = 5  # the very memory
    assert [sums(3), sums()] == [21, 21]
    np.asarray(tensor)[...] = 0
    assert sums() == 0


def test_a_constant_filter_is_converted_once_for_each_binding() -> None:
    fluid.set_flags({"FLAGS_constant_filters": True})
    exe, out, tensor = _filter_of_ones()

    def sums(n: int = 1) -> float:
        return float(exe.run(feed={"x": np.ones((n, 1, 4, 4), "float32")}, fetch_list=[out])[0][0, 0, 0, 0])

    assert sums() == 9
    tensor.set(np.full((1, 1, 3, 3), 2, "float32"), fluid.CPUPlace())
    assert [sums(), sums(3), sums()] == [9, 18, 18]
    tensor.set(np.full((1, 1, 3, 3), 3, "float32"), fluid.CPUPlace())
    fluid.set_flags({"FLAGS_constant_filters": False})
    assert sums() == 27


def test_a_filter_that_its_program_writes_is_not_constant() -> None:
    fluid.set_flags({"FLAGS_constant_filters": True})
    exe, out, tensor = _filter_of_ones()
    fluid.optimizer.SGD(0.5).minimize(layers.reduce_sum(out))
    exe.run(fluid.default_startup_program())
    tensor.set(np.ones((1, 1, 3, 3), "float32"), fluid.CPUPlace())
    feed = {"x": np.ones((1, 1, 4, 4), "float32")}
    first, second = (float(exe.run(feed=feed, fetch_list=[out])[0][0, 0, 0, 0]) for _ in range(2))
    assert (first, second) == (9.0, 9.0 - 9 * 4 * 0.5)


def test_filters_in_another_order_of_memory_are_told_apart() -> None:
    fluid.set_flags({"FLAGS_constant_filters": True})
    image = layers.data("x", [16, 9, 9])
    for _ in range(2):
        image = layers.conv2d(image, 16, 3, bias_attr=False)
    fluid.Executor().run(fluid.default_startup_program())
    for parameter in fluid.default_main_program().all_parameters():
        tensor = fluid.global_scope().find_var(parameter.name).get_tensor()
        tensor.array = np.asfortranarray(tensor.array)
    assert_agree(*by_both([image], {"x": small(2, 16, 9, 9)}))


def test_runs_with_any_batch_size_share_a_converted_filter() -> None:
    gc.collect()
    before = len(converted_parameters._converted)
    out = layers.conv2d(layers.data("x", [16, 9, 9]), 16, 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for n in (1, 2, 3, 8):
        exe.run(feed={"x": small(n, 16, 9, 9)}, fetch_list=[out])
    assert len(converted_parameters._converted) == before + 1


def test_threads_compute_side_by_side() -> None:
    out = layers.conv2d(layers.data("x", [8, 9, 9]), 16, 3, act="relu")
    main, startup = fluid.default_main_program(), fluid.default_startup_program()
    problems: list[str] = []

    def work(k: int) -> None:
        scope, exe, x = fluid.Scope(), fluid.Executor(), small(2, 8, 9, 9) * (k + 1)
        exe.run(startup, scope=scope)
        first = exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope)[0]
        for _ in range(50):
            if not np.array_equal(exe.run(main, feed={"x": x}, fetch_list=[out], scope=scope)[0], first):
                problems.append(f"thread {k}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


_FORK = """
import os, signal, numpy as np, fluidnb as fluid
out = fluid.layers.pool2d(fluid.layers.conv2d(fluid.layers.data("x", [16, 32, 32]), 32, 3, act="relu"), 3)
exe, x = fluid.Executor(), np.ones((4, 16, 32, 32), "float32")
exe.run(fluid.default_startup_program())
run = lambda: exe.run(feed={"x": x}, fetch_list=[out])[0]
before = [run() for _ in range(2)][1]
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(0 if np.allclose(run(), before, rtol=1e-5) else 1)
print(os.waitpid(child, 0)[1], np.array_equal(run(), before))
"""


def test_a_forked_process_computes_too() -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "2", "FLAGS_use_mkldnn": "1"}
    done = subprocess.run([sys.executable, "-c", _FORK], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("0 True\n", 0), done.stderr


def test_nan_and_infinity_pass_through() -> None:
    x = layers.data("x", [1, 3, 3])
    out = layers.relu(layers.conv2d(x, 1, 1, param_attr=fluid.initializer.Constant(1.0), bias_attr=False))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    image = np.array([[[[np.nan, np.inf, -np.inf], [1, -1, 0], [2, 3, 4]]]], "float32")
    got = exe.run(feed={"x": image}, fetch_list=[out])[0]
    np.testing.assert_array_equal(got.ravel()[1:], [np.inf, 0, 1, 0, 0, 2, 3, 4])
    assert uses_onednn(exe)


def test_the_check_finds_a_nan_that_is_lost_later() -> None:
    out = layers.pool2d(layers.conv2d(layers.data("x", [1, 3, 3]), 1, 1, act="relu", bias_attr=False), 3)
    exe, image = fluid.Executor(), np.full((1, 1, 3, 3), np.nan, "float32")
    exe.run(fluid.default_startup_program())
    assert np.isfinite(exe.run(feed={"x": image}, fetch_list=[out])[0]).all()
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    with pytest.raises(EnforceNotMet, match="conv2d"):
        exe.run(feed={"x": image}, fetch_list=[out])


def test_absent_it_says_so_once_and_numpy_computes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "path", lambda: None)
    with caplog.at_level(logging.WARNING, "fluidnb"):
        fluid.set_flags({"FLAGS_use_mkldnn": True})
    assert caplog.messages == [
        "FLAGS_use_mkldnn has no effect: pip install 'fluidnb[onednn]' installs oneDNN, for Linux on x86-64."
    ]


def test_a_library_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "libdnnl.so.3"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(library, "path", lambda: broken)
    with pytest.raises(EnforceNotMet, match=r"oneDNN cannot be loaded\.") as caught:
        library._api.__wrapped__()
    assert "FLAGS_use_mkldnn=0" in str(caught.value)


def test_layouts_that_it_has_nothing_for() -> None:
    layout = library.Layout.of((2, 3), (12, 4))
    with pytest.raises(NotImplementedError):
        library.Primitive("convolution_forward", 64, 1, layout.handle, layout.handle, None, layout.handle, *4 * [None])


def test_too_little_memory_for_onednn_names_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    out = layers.conv2d(layers.data("x", [8, 9, 9]), 16, 3)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for clear in library.clear_caches:
        clear()
    monkeypatch.setattr(library._api(), "dnnl_primitive_create", lambda *_: 1)
    with pytest.raises(OutOfMemory, match=r"(?s)oneDNN.*op:.*conv2d.*FLAGS_use_mkldnn=0"):
        exe.run(feed={"x": small(2, 8, 9, 9)}, fetch_list=[out])
