"""Files that are no ONNX models, and models that cannot be converted: a clear error, and nothing outside is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, FluidError, NotBuiltYet, OpValueError


def model(
    *nodes: Any, constants: tuple[Any, ...] = (), opset: int = 18, outs: tuple[str, ...] = ("y",)
) -> onnx.ModelProto:
    """A model of x [2, 3]."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value("x", TensorProto.FLOAT, [2, 3])],
        [value(n, TensorProto.FLOAT, None) for n in outs],
        list(constants),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)])


def relu(source: str = "x", into: str = "y", **more: Any) -> Any:
    return helper.make_node("Relu", [source], [into], **more)


def external(location: str) -> onnx.ModelProto:
    """A model whose weights are in another file."""
    weights = onnx.numpy_helper.from_array(np.ones((3, 4), "float32"), "w")
    onnx.external_data_helper.set_external_data(weights, location)
    weights.ClearField("raw_data")
    return model(helper.make_node("MatMul", ["x", "w"], ["y"]), constants=(weights,))


DAMAGED: dict[str, tuple[Callable[[], onnx.ModelProto | bytes], str]] = {
    "no message": (lambda: b"\x00\x01 no model", "Wire format was corrupt"),
    "an empty file": (lambda: b"", "it has no graph"),
    "cut off": (lambda: model(relu()).SerializeToString()[:-20], "Wire format was corrupt"),
    "a cycle": (lambda: model(relu("z", "y"), relu("y", "z")), "must be topologically sorted"),
    "a name that nothing writes": (lambda: model(relu("nowhere")), "must be topologically sorted"),
    "a name that is written twice": (lambda: model(relu(), relu()), "'y' has been used as output names multiple times"),
    "an operator that is not ONNX's": (
        lambda: model(helper.make_node("Rleu", ["x"], ["y"])),
        "No Op registered for Rleu",
    ),
    "an attribute that is missing": (
        lambda: model(helper.make_node("Cast", ["x"], ["y"])),
        "Required attribute 'to' is missing",
    ),
    "a constant without a value": (
        lambda: model(helper.make_node("Constant", [], ["y"])),
        "Node y (Constant) has no value",
    ),
    "a hidden size that is not that of the weights": (
        lambda: model(
            helper.make_node("RNN", ["x", "w", "r"], ["y"], name="rnn", hidden_size=1 << 31),
            constants=(
                onnx.numpy_helper.from_array(np.ones((1, 2, 3), "float32"), "w"),
                onnx.numpy_helper.from_array(np.ones((1, 2, 2), "float32"), "r"),
            ),
        ),
        "The weights of node rnn (RNN) do not fit its hidden_size",
    ),
    "a name that is not UTF-8": (
        lambda: model(relu(name="node")).SerializeToString().replace(b"node", b"n\xff\xffe"),
        "names that are not UTF-8",
    ),
    "external data that is missing": (lambda: external("weights.bin"), "weights.bin"),
    "external data above the folder": (lambda: external("../secret.bin"), "../secret.bin"),
    "external data of the system": (lambda: external("/etc/passwd"), "absolute path"),
    "a shape that does not fit": (
        lambda: model(
            helper.make_node("Reshape", ["x", "s"], ["y"]),
            constants=(onnx.numpy_helper.from_array(np.array([7, 7]), "s"),),
        ),
        "Node y (Reshape) cannot be converted. The size of X must be that of Attr(shape)",
    ),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_file_is_refused(what: str, tmp_path: Path) -> None:
    make, headline = DAMAGED[what]
    made = make()
    (tmp_path / "secret.bin").write_bytes(np.ones((3, 4), "float32").tobytes())
    folder = tmp_path / "inside"
    folder.mkdir()
    path = folder / "model.onnx"
    path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    with pytest.raises(FluidError) as raised:
        fluid.open(str(path))
    text = str(raised.value)
    assert headline in text and ("hint:" in text or raised.value.hint)


def test_external_data_of_the_folder_is_read(tmp_path: Path) -> None:
    weights = onnx.numpy_helper.from_array(np.full((3, 4), 2.0, "float32"), "w")
    onnx.save(
        model(helper.make_node("MatMul", ["x", "w"], ["y"]), constants=(weights,)),
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    assert (tmp_path / "weights.bin").exists()
    (y,) = fluid.open(str(tmp_path / "model.onnx")).run({"x": np.ones((2, 3), "float32")})
    assert y.tolist() == [[6.0] * 4] * 2


def test_nodes_without_a_counterpart_are_listed_and_drawn(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mine", ["x"], ["a"], domain="mine"),
        helper.make_node("Mine", ["a"], ["b"], domain="mine"),
        helper.make_node("Det", ["b"], ["c"]),
        relu("c"),
    ]
    onnx.save(model(*nodes), tmp_path / "model.onnx")
    opened = fluid.open(str(tmp_path / "model.onnx"))
    assert opened.unconverted == {"mine.Mine": 2, "Det": 1}
    assert [op.type for op in opened.program.global_block().ops] == [
        "feed",
        "mine.Mine",
        "mine.Mine",
        "Det",
        "relu",
        "fetch",
    ]
    assert "2 mine.Mine" in str(opened)
    with pytest.raises(FluidError, match=r"mine\.Mine"):
        opened.run({"x": np.ones((2, 3), "float32")})


def test_blocks_read_names_from_outside(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    branches = {
        f"{key}_branch": helper.make_graph(
            [helper.make_node(kind, ["outer", "x"], [key])], key, [], [value(key, TensorProto.FLOAT, None)]
        )
        for key, kind in (("then", "Add"), ("else", "Mul"))
    }
    nodes = [
        relu("x", "outer"),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["test"]),
        helper.make_node("If", ["test"], ["y"], **branches),
    ]
    zero = onnx.numpy_helper.from_array(np.float32(0), "zero")
    onnx.save(model(*nodes, constants=(zero,)), tmp_path / "model.onnx")
    opened = fluid.open(str(tmp_path / "model.onnx"))
    for x in (np.ones((2, 3), "float32"), -np.ones((2, 3), "float32")):
        (y,) = opened.run({"x": x})
        assert y.tolist() == (np.maximum(x, 0) + x if x.max() > 0 else np.maximum(x, 0) * x).tolist()


def test_functions_of_the_model_are_inlined(tmp_path: Path) -> None:
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    made = model(helper.make_node("Twice", ["x"], ["y"], domain="mine"))
    made.functions.append(twice)
    onnx.save(made, tmp_path / "model.onnx")
    (y,) = fluid.open(str(tmp_path / "model.onnx")).run({"x": np.ones((2, 3), "float32")})
    assert y.tolist() == [[2.0] * 3] * 2


def saved(result: Any, folder: Path) -> Any:
    """A program as an opened model."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(folder), ["x"], [result], exe)
    return fluid.open(str(folder))


def test_what_onnx_does_not_have_is_listed(tmp_path: Path) -> None:
    x = fluid.layers.data("x", [4, 4])
    y = fluid.layers.cos_sim(x, x)
    opened = saved(fluid.layers.cos_sim(y, y), tmp_path / "model")
    with pytest.raises(NotBuiltYet, match="2 cos_sim"):
        opened.save(str(tmp_path), to="onnx")
    assert not (tmp_path / "inference.onnx").exists(), "nothing is half written"


def test_another_opset_or_format_is_refused(tmp_path: Path) -> None:
    opened = saved(fluid.layers.relu(fluid.layers.data("x", [4])), tmp_path / "model")
    with pytest.raises(OpValueError, match="There is no opset 12"):
        opened.save(str(tmp_path), to="onnx", opset=12)
    with pytest.raises(OpValueError, match="There is no format onx"):
        opened.save(str(tmp_path), to="onx")
    with pytest.raises(EnforceNotMet, match="There is no model"):
        fluid.open(str(tmp_path / "absent.onnx"))


def test_a_loop_collects_results(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Mul", ["next", "next"], ["each"]),
            helper.make_node("Identity", ["cond"], ["again"]),
        ],
        "body",
        [
            value("turn", TensorProto.INT64, []),
            value("cond", TensorProto.BOOL, []),
            value("state", TensorProto.FLOAT, None),
        ],
        [value("again", TensorProto.BOOL, []), *(value(n, TensorProto.FLOAT, None) for n in ("next", "each"))],
    )
    constants = (
        onnx.numpy_helper.from_array(np.int64(3), "count"),
        onnx.numpy_helper.from_array(np.bool_(True), "yes"),
    )
    loop = helper.make_node("Loop", ["count", "yes", "x"], ["last", "y"], body=body)
    made = model(loop, helper.make_node("ReduceSum", ["last"], ["total"]), constants=constants, outs=("y", "total"))
    onnx.save(made, tmp_path / "model.onnx")
    x = np.arange(6, dtype="float32").reshape(2, 3)
    y, total = fluid.open(str(tmp_path / "model.onnx")).run({"x": x})
    np.testing.assert_array_equal(y, [((k + 2) * x) ** 2 for k in range(3)])
    assert total.item() == (4 * x).sum()


def test_a_state_that_grows_is_refused(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["state", "state"], ["next"], axis=0),
            helper.make_node("Identity", ["cond"], ["again"]),
        ],
        "body",
        [
            value("turn", TensorProto.INT64, []),
            value("cond", TensorProto.BOOL, []),
            value("state", TensorProto.FLOAT, None),
        ],
        [value("again", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, None)],
    )
    constants = (
        onnx.numpy_helper.from_array(np.int64(3), "count"),
        onnx.numpy_helper.from_array(np.bool_(True), "yes"),
    )
    onnx.save(
        model(helper.make_node("Loop", ["count", "yes", "x"], ["y"], body=body), constants=constants),
        tmp_path / "model.onnx",
    )
    opened = fluid.open(str(tmp_path / "model.onnx"))
    assert opened.unconverted == {"Loop with a state whose shape changes": 1}


def test_a_fraction_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    x = fluid.layers.data("x", [4], dtype="int64")
    opened = saved(fluid.layers.scale(x, 0.5), tmp_path / "model")
    with pytest.raises(NotBuiltYet, match=r"scale with 0\.5 and dtype int64"):
        opened.save(str(tmp_path), to="onnx")


@pytest.mark.parametrize("layer", ["cumsum", "argsort", "argmax"])
def test_an_axis_of_a_number_without_dimensions_is_refused(layer: str, tmp_path: Path) -> None:
    out = getattr(fluid.layers, layer)(fluid.layers.data("x", [], append_batch_size=False), axis=0)
    opened = saved(out[0] if layer == "argsort" else out, tmp_path / "model")
    with pytest.raises(NotBuiltYet, match="with an input without dimensions"):
        opened.save(str(tmp_path), to="onnx")
