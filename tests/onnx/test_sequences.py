"""Programs on sequences as ONNX models of padded batches with lengths: onnxruntime beside our executor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import fluidnb as fluid
from fluidnb import layers, nets
from fluidnb.cli import main
from fluidnb.errors import NotBuiltYet

#: Lengths of sequences; padded batches are longer than the longest by one step.
LENGTHS = ([3, 1, 4], [2], [5, 5], [1, 6, 2, 3])
WITH_EMPTY = [2, 0, 3]


def rows(name: str, width: int = 4) -> Any:
    """A feed with sequences of rows."""
    return layers.data(name, [width], lod_level=1)


def split(x: Any) -> Any:
    """One number for each row."""
    return layers.fc(x, 1)


CASES: dict[str, Callable[[], Any]] = {
    **{f"pool.{kind}": lambda kind=kind: layers.sequence_pool(layers.fc(rows("x"), 3, act="tanh"), kind)
       for kind in ("sum", "average", "sqrt", "max", "last", "first")},
    "softmax": lambda: layers.sequence_pool(
        layers.elementwise_mul(rows("x"), layers.sequence_softmax(split(rows("x"))), axis=0), "sum"),
    "rows": lambda: layers.scale(layers.relu(layers.fc(rows("x"), 5)), 2.0, bias=0.5),
    "same": lambda: rows("x"),
    "reverse": lambda: layers.sequence_reverse(rows("x")),
    "conv": lambda: layers.sequence_conv(rows("x"), 5, 3, act="relu"),
    "conv.long": lambda: layers.sequence_conv(rows("x"), 5, 4),
    "expand": lambda: layers.elementwise_add(
        rows("x"), layers.sequence_expand(layers.sequence_pool(rows("x"), "max"), rows("x"))),
    "expand_as": lambda: layers.sequence_expand_as(layers.sequence_pool(rows("x"), "last"), rows("x")),
    "gru": lambda: layers.dynamic_gru(layers.fc(rows("x"), 15), 5),
    "gru.reverse": lambda: layers.dynamic_gru(layers.fc(rows("x"), 15), 5, is_reverse=True),
    "gru.origin": lambda: layers.dynamic_gru(
        layers.fc(rows("x"), 15), 5, origin_mode=True, candidate_activation="relu"),
    "gru.first": lambda: layers.dynamic_gru(
        layers.fc(rows("x"), 12), 4, h_0=layers.sequence_pool(rows("x"), "first")),
    "lstm": lambda: layers.dynamic_lstm(layers.fc(rows("x"), 20), 20, use_peepholes=False)[0],
    "lstm.peepholes": lambda: layers.dynamic_lstm(layers.fc(rows("x"), 20), 20)[0],
    "lstm.reverse": lambda: layers.dynamic_lstm(
        layers.fc(rows("x"), 20), 20, is_reverse=True, cell_activation="relu")[0],
    "lstm.first": lambda: layers.dynamic_lstm(
        layers.fc(rows("x"), 16), 16, h_0=layers.sequence_pool(rows("x"), "first"),
        c_0=layers.sequence_pool(rows("x"), "sum"))[0],
    "batch_size": lambda: layers.elementwise_add(
        layers.sequence_pool(rows("x"), "sum"),
        layers.fill_constant_batch_size_like(rows("x"), [-1, 4], "float32", 3.0)),
}  # fmt: skip




def saved(build: Callable[[], Any], folder: Path) -> Path:
    """An inference model with random parameters, biases included."""
    rng, scope = np.random.default_rng(1), fluid.Scope()
    with fluid.fresh(), fluid.scope_guard(scope):
        made = build()
        targets = list(made) if isinstance(made, tuple) else [made]
        program = fluid.default_main_program()
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for var in program.list_vars():
            if var.persistable and var.name not in ("feed", "fetch"):
                value = rng.standard_normal(var.shape).astype("float32") * 0.4
                scope.var(var.name).get_tensor().set(value, fluid.CPUPlace())
        feeds = [v.name for v in program.list_vars() if v.is_data]
        fluid.io.save_inference_model(str(folder), feeds, targets, exe, program)
    return folder


def padded(packed: Any, lengths: list[int], time: int, garbage: float) -> Any:
    """Rows of sequences as a batch; behind the end of each there is garbage."""
    batch = np.full((len(lengths), time, *packed.shape[1:]), garbage, packed.dtype)
    start = 0
    for i, n in enumerate(lengths):
        batch[i, :n] = packed[start : start + n]
        start += n
    return batch


def check(folder: Path, lengths: list[int], opset: int = 17, ids: int = 0) -> None:
    """Compares onnxruntime with the executor on sequences of some lengths."""
    model, rng = fluid.open(str(folder)), np.random.default_rng(sum(lengths))
    (path,) = model.save(str(folder), to="onnx", name=f"m{opset}", opset=opset)
    onnx.checker.check_model(path, full_check=True)
    ours, theirs, time = {}, {}, max(lengths) + 1
    for var in model.feeds:
        n = sum(lengths)
        value = rng.integers(0, ids, (n, 1)) if ids else rng.standard_normal((n, *var.shape[1:])).astype("float32")
        ours[var.name] = fluid.create_lod_tensor(value, [lengths], fluid.CPUPlace())
        theirs[var.name] = padded(value, lengths, time, ids - 1 if ids else 7.5)
        theirs[f"{var.name}.lengths"] = np.array(lengths, "int64")
    with fluid.scope_guard(model.scope):
        wanted = model.executor.run(model.program, feed=ours, fetch_list=model.fetches, return_numpy=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    found = dict(zip([out.name for out in session.get_outputs()], session.run(None, theirs), strict=True))
    for var, value in zip(model.fetches, wanted, strict=True):
        array, got = np.asarray(value), found.pop(var.name, None)
        if got is None:  # a feed that is a result too
            got = found.pop(f"{var.name}_")
        if value.lod():
            array = padded(array, lengths, time, 0)
            assert found.pop(f"{var.name}.lengths", found.pop(f"{var.name}.lengths_", None)).tolist() == lengths
        assert got.shape == array.shape and got.dtype == array.dtype
        np.testing.assert_allclose(got, array, rtol=1e-4, atol=1e-5)
    assert not found


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_agrees(name: str, tmp_path: Path) -> None:
    folder = saved(CASES[name], tmp_path)
    for lengths in LENGTHS:
        check(folder, lengths)


@pytest.mark.parametrize(
    "name", ["pool.sum", "pool.max", "pool.first", "pool.last", "pool.average", "conv", "lstm", "gru"]
)
def test_sequences_without_rows(name: str, tmp_path: Path) -> None:
    folder = saved(CASES[name], tmp_path)
    for lengths in (WITH_EMPTY, [0, 2], [3, 0]):
        check(folder, lengths)


@pytest.mark.parametrize("opset", [13, 20, onnx.defs.onnx_opset_version() - 1])
def test_every_opset(opset: int, tmp_path: Path) -> None:
    for name in ("softmax", "lstm", "expand"):
        check(saved(CASES[name], tmp_path / name), [3, 1, 4], opset)


def embedded() -> Any:
    """Words as rows."""
    return layers.embedding(layers.data("words", [1], dtype="int64", lod_level=1), [50, 8])


def by_lstm() -> Any:
    """A classifier of texts."""
    hidden, _ = layers.dynamic_lstm(layers.fc(embedded(), 24), 24)
    return layers.fc(layers.sequence_pool(hidden, "max"), 2, act="softmax")


def by_gru() -> Any:
    """The same with a gated recurrent unit."""
    hidden = layers.dynamic_gru(layers.fc(embedded(), 18), 6)
    return layers.fc(layers.sequence_pool(hidden, "max"), 2, act="softmax")


def stacked() -> Any:
    """Three layers of LSTM, one of them backwards, each of which reads two inputs."""
    first = layers.fc(embedded(), 24)
    inputs = [first, layers.dynamic_lstm(first, 24)[0]]
    for backwards in (True, False):
        first = layers.fc(inputs, 24)
        inputs = [first, layers.dynamic_lstm(first, 24, is_reverse=backwards)[0]]
    return layers.fc([layers.sequence_pool(each, "max") for each in inputs], 2, act="softmax")


def convolutions() -> Any:
    """Convolutions of two sizes over a text."""
    x = embedded()
    parts = [nets.sequence_conv_pool(x, 6, size, act="tanh", pool_type="sqrt") for size in (3, 4)]
    return layers.fc(parts, 2, act="softmax")


def tagged() -> Any:
    """A class for each word, by a recurrent layer in each direction."""
    x = embedded()
    both = [layers.dynamic_gru(layers.fc(x, 12), 4, is_reverse=backwards) for backwards in (False, True)]
    return layers.fc(layers.concat(both, axis=1), 7, act="softmax")


def attended() -> Any:
    """A mean of states, weighted by their likeness to the last one."""
    states = layers.dynamic_gru(layers.fc(embedded(), 12), 4)
    last = layers.sequence_expand(layers.sequence_pool(states, "last"), states)
    scores = layers.fc(layers.concat([states, last], axis=1), 1, act="tanh", bias_attr=False)
    shares = layers.reshape(layers.sequence_softmax(scores), [-1])
    return layers.sequence_pool(layers.elementwise_mul(states, shares, axis=0), "sum")


def over_all_rows() -> Any:
    """Numbers of the rows of all sequences."""
    x = layers.layer_norm(embedded())
    return layers.sequence_pool(x, "average"), layers.mean(x), layers.reduce_sum(layers.square(x))


@pytest.mark.parametrize("build", [by_lstm, by_gru, stacked, convolutions, tagged, attended, over_all_rows])
def test_networks_over_texts(build: Callable[[], Any], tmp_path: Path) -> None:
    folder = saved(build, tmp_path)
    for lengths in LENGTHS:
        check(folder, lengths, ids=50)


@pytest.mark.parametrize("build", [by_lstm, by_gru])
def test_a_command_converts_a_classifier_of_texts(build: Callable[[], Any], tmp_path: Path) -> None:
    assert main(["convert", str(saved(build, tmp_path / "saved")), "-o", str(tmp_path / "x.onnx")]) == 0
    model = onnx.load(tmp_path / "x.onnx")
    assert [each.name for each in model.graph.input] == ["words", "words.lengths"]
    sizes = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    assert sizes == ["batch", "words_time", 1]


def test_what_cannot_be_written_is_listed(tmp_path: Path) -> None:
    def build() -> Any:
        x, texts = rows("x"), layers.data("texts", [4], lod_level=2)
        hidden, cell = layers.dynamic_lstm(layers.fc(x, 16), 16)
        one = layers.sequence_enumerate(layers.data("words", [1], dtype="int64", lod_level=1), 2)
        return hidden, cell, one, layers.sequence_pool(texts, "sum")

    model = fluid.open(str(saved(build, tmp_path)))
    with pytest.raises(NotBuiltYet) as caught:
        model.save(str(tmp_path), to="onnx")
    said = str(caught.value)
    for each in ("1 feed of 2 levels of sequences", "1 lstm with other results than Hidden", "1 sequence_enumerate"):
        assert each in said
