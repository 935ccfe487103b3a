"""Programs give the same on CUDAPlace as on CPUPlace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb_kernels.cuda_emulator_backend.streams import Graph


def _mlp() -> Any:
    x, y = layers.data("x", shape=[6]), layers.data("y", shape=[1], dtype="int64")
    hidden = layers.fc(layers.dropout(layers.fc(x, 8, act="relu"), 0.3, seed=3), 5, act="tanh")
    loss = layers.mean(layers.cross_entropy(layers.fc(hidden, 4, act="softmax"), y))
    fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


def _mlp_feed(r: np.random.Generator) -> dict[str, Any]:
    return {"x": r.normal(size=(7, 6)).astype("float32"), "y": r.integers(0, 4, (7, 1))}


def _images() -> Any:
    x, y = layers.data("x", shape=[2, 8, 8]), layers.data("y", shape=[1], dtype="int64")
    image = layers.pool2d(layers.batch_norm(layers.conv2d(x, 3, 3, padding=1), act="relu"), 2, "max", 2)
    loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(image, 4), y))
    fluid.optimizer.Momentum(0.05, 0.9).minimize(loss)
    return loss


def _images_feed(r: np.random.Generator) -> dict[str, Any]:
    return {"x": r.normal(size=(4, 2, 8, 8)).astype("float32"), "y": r.integers(0, 4, (4, 1))}


def _words() -> Any:
    x, y = layers.data("x", shape=[1], dtype="int64", lod_level=1), layers.data("y", shape=[1], dtype="int64")
    words = layers.embedding(x, [10, 4], is_sparse=True)
    hidden, _ = layers.dynamic_lstm(layers.fc(words, 12), 12, use_peepholes=True)
    pooled = layers.concat([layers.sequence_pool(hidden, how) for how in ("max", "last", "sum")], axis=1)
    loss = layers.mean(layers.cross_entropy(layers.fc(pooled, 3, act="softmax"), y))
    fluid.optimizer.SGD(0.1).minimize(loss)
    return loss


def _words_feed(r: np.random.Generator) -> dict[str, Any]:
    lengths = [3, 1, 4]
    return {"x": (r.integers(0, 10, (8, 1)), [lengths]), "y": r.integers(0, 3, (3, 1))}


def _loop() -> Any:
    x = layers.data("x", shape=[3])
    i, n = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    total = layers.fc(x, 3)
    more = layers.less_than(i, n)
    with layers.While(more).block():
        layers.assign(layers.scale(total, scale=1.5), total)
        layers.increment(i)
        layers.less_than(i, n, cond=more)
    return layers.mean(total)


def _loop_feed(r: np.random.Generator) -> dict[str, Any]:
    return {"x": r.normal(size=(2, 3)).astype("float32")}


CASES = {
    "mlp": (_mlp, _mlp_feed), "images": (_images, _images_feed), "words": (_words, _words_feed),
    "loop": (_loop, _loop_feed),
}  # fmt: skip


def _losses(place: Any, loss: Any, feed: Callable[[np.random.Generator], dict[str, Any]]) -> list[float]:
    exe, r = fluid.Executor(place), np.random.default_rng(5)
    with fluid.scope_guard(fluid.Scope()):
        exe.run(fluid.default_startup_program())
        return [float(exe.run(feed=feed(r), fetch_list=[loss])[0].reshape(-1)[0]) for _ in range(3)]


@pytest.mark.parametrize("name", CASES)
def test_training_gives_the_same_numbers(name: str, cuda: fluid.CUDAPlace) -> None:
    build, feed = CASES[name]
    fluid.default_startup_program().random_seed = fluid.default_main_program().random_seed = 11
    loss = build()
    want = _losses(fluid.CPUPlace(), loss, feed)
    np.testing.assert_allclose(_losses(cuda, loss, feed), want, rtol=2e-4, atol=1e-5)


def test_sparse_gradients_are_decayed(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[1], dtype="int64")
    fluid.default_startup_program().random_seed = 3
    loss = layers.mean(layers.embedding(x, [5, 2], is_sparse=True))
    fluid.optimizer.SGD(1.0, regularization=fluid.regularizer.L2Decay(0.1)).minimize(loss)
    fluid.default_main_program().random_seed = 3
    got = []
    for place in (fluid.CPUPlace(), cuda):
        with fluid.scope_guard(fluid.Scope()):
            exe = fluid.Executor(place)
            exe.run(fluid.default_startup_program())
            for _ in range(2):
                exe.run(feed={"x": np.array([[1], [4], [1]])}, fetch_list=[loss])
            got.append(np.array(fluid.global_scope().find_var("embedding_0.w_0").get_tensor()))
    np.testing.assert_allclose(got[1], got[0], rtol=1e-5)


def test_kernels_in_a_row_are_launched_as_a_graph(cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    launched, launch = [], Graph.launch
    monkeypatch.setattr(Graph, "launch", lambda graph, stream=None: (launched.append(graph), launch(graph, stream)))
    x = layers.data("x", shape=[3])
    out = x
    for _ in range(6):
        out = layers.relu(layers.scale(out, scale=1.5))
    exe = fluid.Executor(cuda)
    for number in range(4):
        (got,) = exe.run(feed={"x": np.full((2, 3), number, "float32")}, fetch_list=[out])
        np.testing.assert_allclose(got, np.full((2, 3), number * 1.5**6, "float32"), rtol=1e-6)
    assert len(launched) == 3
    assert len(set(launched)) == 1


def test_tensors_of_a_device_are_fed_and_fetched(cuda: fluid.CUDAPlace) -> None:
    x = layers.data("x", shape=[2])
    out = layers.scale(x, scale=2.0)
    tensor = fluid.LoDTensor()
    tensor.set(np.ones((3, 2), "float32"), cuda)
    assert "CUDAPlace(0)" in repr(tensor)
    for place in (cuda, fluid.CPUPlace()):
        (got,) = fluid.Executor(place).run(feed={"x": tensor}, fetch_list=[out])
        np.testing.assert_array_equal(got, np.full((3, 2), 2.0, "float32"))


def test_memory_goes_back_to_the_pool(cuda: fluid.CUDAPlace) -> None:
    def held() -> int:
        spans = [span for chunk in fluid.memory.arena_map(cuda) for span in chunk.spans]
        return sum(span.size for span in spans if span.tag == "held by a test")

    tensor = fluid.LoDTensor()
    tensor.set(np.ones(1000, "float32"), cuda)
    fluid.memory.tag(tensor.array, "held by a test")
    assert held() == 4096
    view = tensor.array[10:]
    del tensor
    assert held() == 4096
    del view
    assert held() == 0


def test_a_device_that_is_not_there_is_told(cuda: fluid.CUDAPlace) -> None:
    with pytest.raises(fluid.core.EnforceNotMet, match="no CUDA device 3 here") as told:
        fluid.Executor(fluid.CUDAPlace(3))
    assert "a number from 0 to 0" in str(told.value)


def test_too_much_is_refused_with_the_largest_holders(cuda: fluid.CUDAPlace) -> None:
    tensor = fluid.LoDTensor()
    tensor.set(np.ones(1 << 20, "float32"), cuda)
    fluid.memory.tag(tensor.array, "weights")
    with pytest.raises(MemoryError, match="CUDAPlace") as told:
        fluid.values.DeviceContext.get(cuda).empty((1 << 40,), "float32")
    assert "weights" in str(told.value)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_term_of_a_sum_without_elements_is_left_out(place: int, cuda: fluid.CUDAPlace) -> None:
    terms = [np.full((3, 7), i + 1, "float32") for i in range(2)]
    terms.insert(place, np.zeros((0,), "float32"))
    names = [f"x{i}" for i in range(3)]
    block = fluid.default_main_program().global_block()
    for name, term in zip(names, terms, strict=True):
        layers.data(name, list(term.shape), append_batch_size=False)
    out = block.create_var(name="out", shape=[3, 7], dtype="float32")
    block.append_op("sum", {"X": names}, {"Out": out})
    (got,) = fluid.Executor(cuda).run(feed=dict(zip(names, terms, strict=True)), fetch_list=[out])
    np.testing.assert_array_equal(got, np.full((3, 7), 3, "float32"))
