"""The plan lists copies between device and host, and changes of dtype and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers, op
from fluidnb.op import same
from fluidnb.runtime.program_state import program_state

X = {"x": np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)}


def _plan(fetch: list[Any]) -> str:
    """The text of the plan that ran for some fetches."""
    plans = program_state(fluid.default_main_program().desc).lowered_programs.values()
    names = tuple(v.name for v in fetch)
    return "\n".join(p.describe() for p in plans if p.fetches == names and p.place.kind == "cuda")


def _as_on_the_host(place: Any, feed: dict[str, Any], fetch: list[Any]) -> None:
    exe = fluid.Executor(place)
    want = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=fetch)
    for keep in (False, False, True):
        for one, other in zip(exe.run(feed=feed, fetch_list=fetch, keep_scopes=keep), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def _half(x: Any) -> Any:
    return np.asarray(x) * np.float32(0.5)


def test_an_operator_of_the_host_in_the_middle(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[4])
    hidden = layers.scale(x, scale=2.0)
    out = fluid.default_main_program().current_block().create_var(name="halves", shape=[-1, 4], dtype="float32")
    layers.py_func(_half, hidden, out)
    square = layers.matmul(out, out, transpose_x=True)
    whole = layers.elementwise_add(square, layers.assign(np.eye(4, dtype="float32")))
    root = _cholesky(whole)
    total = layers.reduce_sum(layers.cast(root, "float64"))
    _as_on_the_host(cuda, X, [total])
    assert _plan([total]).splitlines() == [
        "block 0",
        "  0 scale",
        "  1 py_func  [place cuda -> cpu]",
        "  2 matmul",
        "  3 assign_value",
        "  4 elementwise_add",
        "  5 cholesky  [place cuda -> cpu]",
        "  6 cast",
        "  7 reduce_sum",
    ]


def _cholesky(x: Any) -> Any:
    block = fluid.default_main_program().current_block()
    out = block.create_var(name="root", shape=[4, 4], dtype="float32")
    block.append_op("cholesky", inputs={"X": x}, outputs={"Out": out})
    return out


def test_inside_loops_and_branches_too(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[4])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 2)
    total = layers.scale(x, scale=1.0)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        out = fluid.default_main_program().current_block().create_var(name="halves", shape=[-1, 4], dtype="float32")
        layers.py_func(_half, total, out)
        layers.assign(layers.relu(out), total)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    _as_on_the_host(cuda, X, [total])
    lines = _plan([total]).splitlines()
    inside = lines[lines.index("block 1") + 1 :]
    assert inside[0] == "  0 py_func  [place cuda -> cpu]"
    assert inside[1:3] == ["  1 relu", "  2 assign"]
    assert not [line for line in lines[: lines.index("block 1")] if "place" in line]


@pytest.fixture
def twice() -> Any:
    """An operator that has no kernel for devices, and on the host one with channels last, in double precision."""

    @op.op("twice", inputs={"X": "images"}, outputs={"Out": "twice as bright"}, infer=same())
    def plain(b: Any) -> None:
        b(np.multiply, b["X"], b.const(2, b["X"].dtype), out=b["Out"])

    seen = []

    @op.kernel("twice", layout="NHWC", dtypes=["float64"], library="LAST")
    def last(b: Any) -> None:
        seen.append((b["X"].shape, str(b["X"].dtype)))
        b(np.multiply, b["X"], b.const(2, b["X"].dtype), out=b["Out"])

    yield seen
    op.remove_op("twice")


def test_layouts_and_dtypes(cuda: fluid.CUDAPlace, twice: list[Any]) -> None:
    image = layers.data("image", shape=[3, 2, 5])
    before = layers.relu(image)
    block = fluid.default_main_program().current_block()
    bright = block.create_var(name="bright")
    block.append_op("twice", inputs={"X": before}, outputs={"Out": bright})
    after = layers.scale(bright, scale=0.25)
    feed = {"image": np.linspace(-1, 1, 60, dtype="float32").reshape(2, 3, 2, 5)}
    _as_on_the_host(cuda, feed, [after])
    assert "  1 twice  [place cuda -> cpu]" in _plan([after])
    with op.prefer("twice", library="LAST", data_type="float64"):
        _as_on_the_host(cuda, feed, [after])
        assert twice[-1] == ((2, 2, 5, 3), "float64")
        assert "  1 twice  [dtype float32 -> float64]  [layout NCHW -> NHWC]  [place cuda -> cpu]" in _plan([after])


def test_metrics_of_a_training(cuda: fluid.CUDAPlace) -> None:
    """Counted on the host, from what a device has computed; its state stays with the user's scope."""
    x, y = layers.data("x", shape=[4]), layers.data("y", shape=[1], dtype="int64")
    chance = layers.fc(x, 2, act="softmax", param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.1)))
    auc = layers.auc(chance, y)[0]
    loss = layers.mean(layers.cross_entropy(chance, y))
    fluid.optimizer.SGD(0.5).minimize(loss)
    feed, got = X | {"y": np.array([[0], [1], [1]])}, []
    for place in (fluid.CPUPlace(), cuda):
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(place)
            exe.run(fluid.default_startup_program())
            got.append([exe.run(feed=feed, fetch_list=[loss, auc]) for _ in range(3)])
    for one, other in zip(*got, strict=True):
        np.testing.assert_allclose(np.concatenate(one, None), np.concatenate(other, None), rtol=1e-5)
    marked = [line.split()[1] for line in _plan([loss, auc]).splitlines() if "[place cuda -> cpu]" in line]
    assert set(marked) == {"auc"}
