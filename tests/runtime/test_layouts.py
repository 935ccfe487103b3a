"""Kernels of one operator in other layouts, precisions and libraries: chosen on request, fed through transforms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import op
from fluidnb.op import Attr, same
from fluidnb.runtime import LoweredProgram
from fluidnb.runtime.program_state import program_state

seen: list[tuple[str, tuple[int, ...], str]] = []


def weigh(x: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], out: np.ndarray[Any, Any], layout: str) -> None:
    """Out = X times the weight of its channel; weights are shaped for the layout."""
    seen.append((layout, x.shape, str(x.dtype)))
    np.multiply(x, weights, out)


def plain(b: op.Binder) -> None:
    """Channels on axis 1."""
    x = b["X"]
    weights = np.arange(1, x.shape[1] + 1, dtype=x.dtype)
    b(weigh, x, weights.reshape(1, -1, *[1] * (x.ndim - 2)), b["Out"], "NCHW")


def channels_last(b: op.Binder) -> None:
    """Channels on the last axis."""
    x = b["X"]
    b(weigh, x, np.arange(1, x.shape[-1] + 1, dtype=x.dtype), b["Out"], "NHWC")


def blocked(b: op.Binder) -> None:
    """Channels in blocks of 8 on the last axis."""
    x = b["X"]
    weights = np.arange(1, x.shape[1] * 8 + 1, dtype=x.dtype).reshape(1, -1, 1, 1, 8)
    b(weigh, x, weights, b["Out"], "nChw8c")


@pytest.fixture(autouse=True)
def operator() -> Iterator[None]:
    """An operator with a kernel for each of three layouts."""
    seen.clear()
    attrs = {"use_mkldnn": Attr("bool", False, "whether the blocked kernel runs")}
    op.op("weigh_channels", inputs={"X": "NCHW"}, outputs={"Out": "weighed"}, attrs=attrs, infer=same())(plain)
    op.kernel("weigh_channels", layout="NHWC", library="LAST")(channels_last)
    op.kernel("weigh_channels", layout="nChw8c", library="MKLDNN")(blocked)
    yield
    op.remove_op("weigh_channels")


def program(channels: int = 11, **attrs: Any) -> tuple[Any, dict[str, Any]]:
    """relu, the operator, and their sum: the result's name and a feed."""
    x = fluid.layers.data("x", shape=[channels, 3, 4])
    h = fluid.layers.relu(x)
    fluid.default_main_program().global_block().append_op("weigh_channels", {"X": h}, {"Out": "out"}, attrs)
    y = fluid.layers.scale(fluid.default_main_program().global_block().var("out"), scale=0.5)
    return y, {"x": np.random.default_rng(channels).normal(size=(2, channels, 3, 4)).astype("float32")}


def plan_of(fetch: Any) -> str:
    """The text of the plan that ran last for a fetch."""

    plans: list[LoweredProgram] = list(program_state(fluid.default_main_program().desc).lowered_programs.values())
    return next(p for p in reversed(plans) if p.fetches == (fetch.name,)).describe()


def expected(feed: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The result of every kernel."""
    x = feed["x"]
    return np.maximum(x, 0) * np.arange(1, x.shape[1] + 1, dtype=x.dtype).reshape(-1, 1, 1) * np.float32(0.5)


@pytest.mark.parametrize("machine", [False, True])
@pytest.mark.parametrize("channels", [1, 8, 11, 16])
@pytest.mark.parametrize(
    ("library", "layout", "mark"),
    [
        ("", "NCHW", "1 weigh_channels\n"),
        ("LAST", "NHWC", "1 weigh_channels  [layout NCHW -> NHWC]\n"),
        ("MKLDNN", "nChw8c", "1 weigh_channels  [layout NCHW -> nChw8c]\n"),
    ],
)
def test_a_library_brings_its_layout(library: str, layout: str, mark: str, channels: int, machine: bool) -> None:
    y, feed = program(channels)
    exe = fluid.Executor(fluid.CPUPlace())
    wish: AbstractContextManager[None] = op.prefer("weigh_channels", library=library) if library else nullcontext()
    with wish:
        for _ in range(2):  # bound, and found again
            (got,) = exe.run(feed=feed, fetch_list=[y], keep_scopes=machine)
            assert got.tobytes() == expected(feed).tobytes()
        exe.run(feed=feed, fetch_list=[y])
        assert mark in plan_of(y)
    shapes = {
        "NCHW": (2, channels, 3, 4), "NHWC": (2, 3, 4, channels), "nChw8c": (2, -(-channels // 8), 3, 4, 8),
    }  # fmt: skip
    assert set(seen) == {(layout, shapes[layout], "float32")}


def test_an_attribute_asks_for_the_library_too() -> None:
    y, feed = program(use_mkldnn=True)
    (got,) = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[y])
    assert got.tobytes() == expected(feed).tobytes() and seen[0][0] == "nChw8c"
    assert "[layout NCHW -> nChw8c]" in plan_of(y)


def test_the_choice_ends_with_its_with() -> None:
    y, feed = program()
    exe = fluid.Executor(fluid.CPUPlace())
    with op.prefer("weigh_channels", library="LAST"):
        exe.run(feed=feed, fetch_list=[y])
    exe.run(feed=feed, fetch_list=[y])
    assert [layout for layout, _, _ in seen] == ["NHWC", "NCHW"]
    assert "layout" not in plan_of(y)


def test_several_transforms_come_in_order() -> None:
    y, feed = program()
    with op.prefer("weigh_channels", library="LAST", data_type="float64"):
        (got,) = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[y])
        assert "[dtype float32 -> float64]  [layout NCHW -> NHWC]" in plan_of(y)
    assert seen == [("NHWC", (2, 3, 4, 11), "float64")]
    np.testing.assert_allclose(got, expected(feed), rtol=1e-6)


def test_half_precision_on_request() -> None:
    y, feed = program()
    with pytest.warns(UserWarning, match="3 digits are kept"), op.prefer("weigh_channels", data_type="float16"):
        (got,) = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[y])
    assert seen == [("NCHW", (2, 11, 3, 4), "float16")] and got.dtype == np.float32
    np.testing.assert_allclose(got, expected(feed), rtol=2e-3)
    assert got.tobytes() != expected(feed).tobytes()


def test_what_is_not_4d_keeps_its_shape() -> None:
    x = fluid.layers.data("x", shape=[5])
    fluid.default_main_program().global_block().append_op("weigh_channels", {"X": x}, {"Out": "out"})
    feed = {"x": np.ones((2, 5), "float32")}
    with op.prefer("weigh_channels", library="LAST"):
        (got,) = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=["out"])
    assert got.tolist() == [[1, 2, 3, 4, 5]] * 2


def test_a_library_that_nobody_registered_is_named() -> None:
    y, feed = program()
    with op.prefer("weigh_channels", library="CUDNN"):
        with pytest.raises(fluid.core.EnforceNotMet, match=r"have kernel for .*library_type\[CUDNN\]") as caught:
            fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[y])
    assert "layout[nChw8c]:place[cpu]:library_type[MKLDNN]" in str(caught.value)
