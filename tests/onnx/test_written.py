"""Layers that are written as ONNX, and files of large models: read back, they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.errors import EnforceNotMet, NotBuiltYet
from fluidnb.onnx import reader
from fluidnb.runtime.opened_model import OpenedModel


def opened(folder: Path, build: Callable[[], Any]) -> OpenedModel:
    """A saved model of what a function builds."""
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        out = build()
        exe = fluid.Executor(fluid.CPUPlace())
        fluid.default_startup_program().random_seed = 3
        exe.run(fluid.default_startup_program())
        program = fluid.default_main_program()
        feeds = [v.name for v in program.list_vars() if v.is_data]
        fluid.io.save_inference_model(str(folder), feeds, [out], exe, program)
    return fluid.open(str(folder))


def appended(type: str, shape: tuple[int, ...], inputs: dict[str, Any], output: str = "Out", **attrs: Any) -> Any:
    """The result of an operator that has no layer."""
    block = fluid.default_main_program().global_block()
    out = block.create_var(name="out", shape=shape, dtype="float32")
    block.append_op(type=type, inputs=inputs, outputs={output: [out]}, attrs=attrs)
    return out


def resized(type: str, sizes: list[int], **attrs: Any) -> Callable[[], Any]:
    """Builds an image in another size."""

    def build() -> Any:
        return appended(type, (-1, 2, *[-1] * len(sizes)), {"X": [layers.data("x", [2, *sizes])]}, **attrs)

    return build


def deformed(masked: bool) -> Callable[[], Any]:
    """Builds a deformable convolution in two groups."""

    def build() -> Any:
        x, offset, mask = layers.data("x", [4, 6, 5]), layers.data("offset", [16, 4, 3]), layers.data("mask", [8, 4, 3])
        filters = layers.create_parameter([6, 2, 2, 2], "float32")
        inputs = {"Input": [x], "Offset": [offset], "Filter": [filters]} | ({"Mask": [mask]} if masked else {})
        return appended(
            "deformable_conv" if masked else "deformable_conv_v1", (-1, 6, 4, 3), inputs, "Output", strides=[2, 2],
            paddings=[1, 1], dilations=[1, 1], groups=2, deformable_groups=2,
        )  # fmt: skip

    return build


CASES = {
    "line": resized("linear_interp_v2", [5], out_w=8, align_corners=False, align_mode=0),
    "line.corners": resized("linear_interp_v2", [5], out_w=9, align_corners=True),
    "line.scale": resized("linear_interp_v2", [5], scale=[2.0], align_corners=False, align_mode=1),
    "volume": resized("trilinear_interp_v2", [3, 4, 5], out_d=5, out_h=4, out_w=9, align_corners=False, align_mode=0),
    "volume.corners": resized("trilinear_interp_v2", [3, 4, 5], out_d=5, out_h=7, out_w=9, align_corners=True),
    "volume.scale": resized("trilinear_interp_v2", [3, 4, 5], scale=[2.0, 1.0, 3.0], align_corners=False, align_mode=0),
    "backwards": lambda: layers.data("x", [4])[:, ::-2],
    "backwards.part": lambda: appended(
        "strided_slice", (-1, 3), {"Input": [layers.data("x", [4])]}, axes=[1], starts=[9], ends=[-9], strides=[-1]
    ),
    "backwards.set": lambda: appended(
        "set_value", (2, 4), {
            "Input": [layers.data("x", [2, 4], append_batch_size=False)],
            "ValueTensor": [layers.fill_constant([1], "float32", 7.0)],
        }, axes=[1], starts=[2], ends=[-1], steps=[-1],
    ),  # fmt: skip
    "deformable_conv": deformed(True),
    "deformable_conv_v1": deformed(False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_is_written_and_read_back(name: str, tmp_path: Path) -> None:
    model, rng = opened(tmp_path / "model", CASES[name]), np.random.default_rng(4)
    given = {v.name: rng.standard_normal((2, *v.shape[1:])).astype("float32") for v in model.feeds}
    (wanted,) = model.run(given)
    (path,) = model.save(str(tmp_path), to="onnx", name="written", opset=19)
    onnx.checker.check_model(path, full_check=True)
    (by_reference,) = onnx.reference.ReferenceEvaluator(path).run(None, given)
    again = fluid.open(path)
    (read_back,) = again.run({v.name: given[v.name] for v in again.feeds})
    for found in (by_reference, read_back):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("type", ["exp", "log", "log1p", "expm1", "log2", "log10"])
def test_functions_of_integers(type: str, tmp_path: Path) -> None:
    x = np.array([[1, 2, 7]])
    model = opened(tmp_path / "model", lambda: appended(type, (-1, 3), {"X": [layers.data("x", [3], dtype="int64")]}))
    (wanted,) = model.run({"x": x})
    (path,) = model.save(str(tmp_path), to="onnx", name="written")
    onnx.checker.check_model(path, full_check=True)
    (found,) = onnx.reference.ReferenceEvaluator(path).run(None, {"x": x})
    assert found.dtype == wanted.dtype == "float32"
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_deformable_convolutions_need_opset_19(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltYet, match="deformable_conv with opset 19 or later"):
        opened(tmp_path / "model", deformed(True)).save(str(tmp_path), to="onnx")


def wide() -> Any:
    """A network with parameters of 4,800 and 24 bytes, and others."""
    return layers.fc(layers.fc(layers.data("x", [20]), 60, act="relu"), 6)


def test_large_models_have_a_second_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(tmp_path / "model", wide)
    (small,) = model.save(str(tmp_path), to="onnx", name="small")
    monkeypatch.setattr(reader, "LIMIT", 2000)
    files = model.save(str(tmp_path / "new"), to="onnx", name="large")
    assert [Path(file).name for file in files] == ["large.onnx", "large.onnx.data"]
    data = Path(files[1])
    assert data.stat().st_size == 20 * 60 * 4 + 60 * 6 * 4 and Path(files[0]).stat().st_size < 2000
    x = np.random.default_rng(0).standard_normal((3, 20)).astype("float32")
    (wanted,) = model.run(x)
    for limit in (2000, 1 << 20):  # tensors are read one by one, and with the model
        monkeypatch.setattr(reader, "LIMIT", limit)
        for path in (small, files[0]):
            np.testing.assert_array_equal(fluid.open(path).run(x)[0], wanted)
    (found,) = onnx.reference.ReferenceEvaluator(files[0]).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    content = data.read_bytes()
    for limit in (2000, 1 << 20):
        monkeypatch.setattr(reader, "LIMIT", limit)
        data.write_bytes(content[:-8])
        with pytest.raises(EnforceNotMet, match="is no valid ONNX model|cannot be read"):
            fluid.open(files[0])
        data.unlink()
        with pytest.raises(EnforceNotMet, match="is no valid ONNX model"):
            fluid.open(files[0])


def test_a_product_of_two_vectors_has_an_axis(tmp_path: Path) -> None:
    def build() -> Any:
        x, y = (layers.data(name, [4], append_batch_size=False) for name in "xy")
        return layers.matmul(x, y, alpha=2.0)

    model, given = opened(tmp_path / "model", build), {"x": np.arange(4, dtype="float32"), "y": np.ones(4, "float32")}
    (path,) = model.save(str(tmp_path), to="onnx", name="written")
    onnx.checker.check_model(path, full_check=True)
    (found,) = onnx.reference.ReferenceEvaluator(path).run(None, given)
    np.testing.assert_array_equal(found, model.run(given)[0], strict=True)


@pytest.mark.parametrize(
    ("rank", "sizes", "k", "stride", "pad", "refused"),
    [(2, (5, 5), 2, 2, 1, True), (3, (5, 5, 5), 2, 2, 1, True), (2, (-1, 5), 2, 2, 1, True),
     (2, (4, 4), 2, 2, 1, False), (2, (6, 6), 3, 2, 0, False), (2, (-1, -1), 3, 2, 1, False)],
)  # fmt: skip
def test_windows_behind_the_image(
    rank: int, sizes: tuple[int, ...], k: int, stride: int, pad: int, refused: bool, tmp_path: Path
) -> None:
    pool = layers.pool2d if rank == 2 else layers.pool3d
    model = opened(
        tmp_path / "model", lambda: pool(layers.data("x", [-1, 1, *sizes]), k, "max", stride, pad, ceil_mode=True)
    )
    if refused:
        with pytest.raises(NotBuiltYet, match="ceil_mode with a window that is behind the image"):
            model.save(str(tmp_path), to="onnx")
        return
    (path,) = model.save(str(tmp_path), to="onnx", name="written")
    x = np.random.default_rng(4).standard_normal((1, 1, *(abs(n) * 6 if n < 0 else n for n in sizes)), "float32")
    (found,) = onnx.reference.ReferenceEvaluator(path).run(None, {"x": x})
    np.testing.assert_array_equal(found, model.run({"x": x})[0])
