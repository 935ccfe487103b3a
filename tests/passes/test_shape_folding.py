"""fold_shapes: arithmetic on shapes becomes attributes, and the results stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.passes.shape_folding import fold_shapes

layers = fluid.layers
PIR = Path(__file__).parents[1] / "golden" / "pir"


def reshaped(x: Any, numbers: list[Any]) -> Any:
    """``x`` in a shape of variables."""
    block = fluid.default_main_program().global_block()
    out, seen = (block.create_var(name=n, dtype="float32") for n in ("out", "xshape"))
    block.append_op("reshape2", {"X": x, "ShapeTensor": numbers}, {"Out": out, "XShape": seen}, {"shape": [-1, -1]})
    return out


def test_every_formula(programs: Any) -> None:
    x = layers.data("x", [6, 4])
    sizes = layers.shape(x)
    n, m = (layers.slice(sizes, [0], [i], [i + 1]) for i in (0, 1))
    two = layers.scale(layers.fill_constant([1], "int64", 1), 1.7, bias=1.2)  # 1 · 1 + 1: whole numbers
    half = layers.cast(layers.elementwise_floordiv(layers.cast(m, "int64"), two), "int32")
    both = layers.concat([n, half])
    one = layers.slice(layers.stack([both, both]), [0, 1], [1, 1], [2, 2])
    twice = layers.elementwise_mul(layers.reshape(one, [1]), layers.fill_constant([1], "int32", 8))
    out = reshaped(x, [n, layers.assign(twice)])
    main = fluid.default_main_program()
    folded = fold_shapes(main, {"x": (5, 6, 4)})
    assert folded.global_block().ops[-1].attr("shape") == [5, 24]
    assert not folded.global_block().ops[-1].input("ShapeTensor")
    assert main.global_block().ops[-1].input("ShapeTensor")  # the program itself stays
    assert [op.type for op in folded.prune([out.name]).global_block().ops] == ["reshape2"]
    feed = {"x": np.arange(120, dtype="float32").reshape(5, 6, 4)}
    exe = fluid.Executor(fluid.CPUPlace())
    by_folded = exe.run(folded, feed=feed, fetch_list=["out"])[0]
    np.testing.assert_array_equal(by_folded, exe.run(main, feed=feed, fetch_list=[out])[0])


def test_numbers_that_depend_on_values_stay(programs: Any) -> None:
    x, count = layers.data("x", [6]), layers.data("count", [1], dtype="int32", append_batch_size=False)
    reshaped(x, [count, layers.fill_constant([1], "int32", -1)])
    folded = fold_shapes(fluid.default_main_program(), {"x": (4, 6)})
    assert folded.global_block().ops[-1].input("ShapeTensor")


@pytest.mark.parametrize("model", ["3.0/lstm_recogniser", "3.3/simple_rnn", "3.3/zero_d", "3.3/branches"])
def test_recorded_models_give_the_same(model: str) -> None:
    opened = fluid.open(str(PIR / model))
    sizes = {v.name: tuple(2 if n < 0 else n for n in v.shape) for v in opened.feeds}
    rng = np.random.RandomState(0)
    feed = {name: np.asarray(rng.rand(*shape), "float32") for name, shape in sizes.items()}
    if "lengths" in feed:
        feed["lengths"] = np.array([2, 1], "int32")
    expected = opened.run(feed)
    folded = fold_shapes(opened.program, sizes)
    assert all(-1 not in folded.global_block().var(v.name).shape for v in opened.fetches)
    opened.program = folded
    for a, b in zip(opened.run(feed), expected, strict=True):
        np.testing.assert_array_equal(a, b)
