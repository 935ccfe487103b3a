"""Preprocessing: the arrays that the steps of each kind of file give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb.data.dataset.image_files import to_ppm
from fluidnb.data.processing import ProcessingConfig, preprocess
from fluidnb.data.processing.config import Step
from fluidnb.data.processing.resize import resize
from fluidnb.errors import EnforceNotMet, NotBuiltYet, OpValueError

PHOTO = np.random.default_rng(0).integers(0, 256, (30, 40, 3)).astype("uint8")


def run(kind: str, *steps: tuple[str, dict[str, Any]], images: Any = PHOTO) -> dict[str, np.ndarray]:
    """The arrays of steps."""
    return preprocess(ProcessingConfig("inference.yml", kind, tuple(Step(*s) for s in steps), ()), images)


def test_classification() -> None:
    steps = (
        ("ResizeImage", {"resize_short": 15}), ("CropImage", {"size": 12}),
        ("NormalizeImage", {"scale": 1 / 255, "mean": [0.1, 0.2, 0.3], "std": [0.5, 1.0, 2.0], "order": ""}),
        ("ToCHWImage", {}),
    )  # fmt: skip
    found = run("PreProcess", *steps)["image"]
    wanted = resize(PHOTO, 15, 20)[1:13, 4:16] / 255
    for channel, (mean, std) in enumerate(((0.1, 0.5), (0.2, 1.0), (0.3, 2.0))):
        np.testing.assert_allclose(found[0, channel], (wanted[..., channel] - mean) / std, 1e-5, 1e-6)
    assert found.shape == (1, 3, 12, 12) and found.dtype == np.float32
    wide = run("PreProcess", ("ResizeImage", {"size": [8, 6], "interpolation": "bicubic"}))["image"]
    np.testing.assert_array_equal(wide[0, 1], resize(PHOTO, 6, 8, "cubic")[..., 1])
    default = run("PreProcess", ("NormalizeImage", {"scale": "1./255."}))["image"]
    np.testing.assert_allclose(default[0, 2], (PHOTO[..., 2] / 255 - 0.406) / 0.225, 1e-4, 1e-5)


def test_blue_green_red(tmp_path: Path) -> None:
    found = run("PreProcess", ("DecodeImage", {"img_mode": "BGR"}))["image"]
    np.testing.assert_array_equal(found[0], PHOTO[..., ::-1].transpose(2, 0, 1))
    (tmp_path / "photo.ppm").write_bytes(to_ppm(PHOTO))
    np.testing.assert_array_equal(run("PreProcess", images=str(tmp_path / "photo.ppm"))["image"][0, 0], PHOTO[..., 0])


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, (736, 992)),
        ({"limit_side_len": 24, "limit_type": "max"}, (32, 32)),
        ({"limit_side_len": 200, "limit_type": "max"}, (32, 32)),
        ({"limit_side_len": 200, "limit_type": "min"}, (192, 256)),
        ({"resize_long": 130}, (128, 256)),
        ({"image_shape": [50, 70]}, (50, 70)),
        ({"image_shape": [64, 1], "keep_ratio": True}, (64, 96)),
        ({"max_side_limit": 160}, (128, 160)),
    ],
)
def test_sizes_for_text_detection(options: dict[str, Any], size: tuple[int, int]) -> None:
    assert run("PreProcess", ("DetResizeForTest", options))["image"].shape[2:] == size


def test_a_small_image_is_enlarged_before_text_detection() -> None:
    options = {"limit_side_len": 8}
    found = run("PreProcess", ("DetResizeForTest", options), images=PHOTO[:10, :20])["image"]
    assert found.shape[2:] == (32, 32) and found[0, :, 10:].max() == 0 and found[0, 0, 0, 0] == PHOTO[0, 0, 0]


def test_a_line_of_text() -> None:
    line = ("RecResizeImg", {"image_shape": [3, 16, 32]})
    found = run("PreProcess", line)["image"]
    assert found.shape == (1, 3, 16, 32)
    np.testing.assert_allclose(found[0, 0, :, :22], (resize(PHOTO, 16, 22)[..., 0] / 255 - 0.5) / 0.5, 1e-4, 1e-5)
    assert found[..., 22:].max() == found[..., 22:].min() == 0
    assert run("PreProcess", line, images=PHOTO[:5])["image"].shape == (1, 3, 16, 128)
    assert run("PreProcess", line, ("KeepKeys", {}), ("MultiLabelEncode", {}))["image"].shape == (1, 3, 16, 32)


def test_detection() -> None:
    steps = (("Resize", {"target_size": [24, 64], "keep_ratio": False, "interp": 2}),
             ("NormalizeImage", {"mean": [0, 0, 0], "norm_type": "none"}), ("Permute", {}))  # fmt: skip
    found = run("Preprocess", *steps)
    np.testing.assert_allclose(found["image"][0, 0], resize(PHOTO, 24, 64, "cubic")[..., 0] / 255, 1e-6)
    assert found["im_shape"].tolist() == [[24, 64]]
    np.testing.assert_allclose(found["scale_factor"], [[24 / 30, 64 / 40]])
    steps = (("NormalizeImage", {"mean": [1, 2, 3], "std": [4, 5, 6], "is_scale": False}),
             ("Resize", {"target_size": [20, 24], "keep_ratio": True}), ("PadStride", {"stride": 16}))  # fmt: skip
    found = run("Preprocess", *steps, images=[PHOTO, PHOTO])
    assert found["image"].shape == (2, 3, 32, 32) and found["im_shape"].tolist() == [[18, 24]] * 2
    np.testing.assert_allclose(found["scale_factor"], [[0.6, 0.6]] * 2)
    wanted = resize(((PHOTO - [1, 2, 3]) / [4, 5, 6]).astype("float32"), 18, 24)
    np.testing.assert_allclose(found["image"][1, :, :18, :24], wanted.transpose(2, 0, 1), 1e-4, 1e-4)
    assert np.abs(found["image"][0, :, 18:]).max() == np.abs(found["image"][0, :, :, 24:]).max() == 0
    found = run("Preprocess", ("LetterBoxResize", {"target_size": [20, 20]}))
    assert found["image"][0, 0, :2].tolist() == [[127.0] * 20] * 2, "127.5 in an image of whole numbers"
    np.testing.assert_array_equal(found["image"][0, 0, 2:17], resize(PHOTO, 15, 20, "area")[..., 0])
    assert found["im_shape"].tolist() == [[15, 20]] and found["scale_factor"].tolist() == [[0.5, 0.5]]
    assert run("Preprocess", ("Pad", {"size": [32, 40]}))["image"][0, 0, 31, 0] == 114


def test_segmentation() -> None:
    found = run("Deploy", ("Resize", {"target_size": [16, 12]}), ("Normalize", {}))["image"]
    np.testing.assert_allclose(found[0, 2], resize(PHOTO, 12, 16)[..., 2] / 255 * 2 - 1, 1e-4, 1e-5)
    assert run("Deploy", ("Resize", {"target_size": [20, 20], "keep_ratio": True}))["image"].shape[2:] == (15, 20)
    assert run("Deploy", ("ResizeByLong", {"long_size": 20}))["image"].shape[2:] == (15, 20)
    assert run("Deploy", ("ResizeByShort", {"short_size": 15}))["image"].shape[2:] == (15, 20)
    assert run("Deploy", ("Padding", {"target_size": [50, 31]}))["image"][0, 0, 30, 49] == 127


def test_refusals() -> None:
    with pytest.raises(NotBuiltYet, match="the step Resiz, which is not here") as caught:
        run("Preprocess", ("Resiz", {}))
    assert "Resize" in str(caught.value.hint)
    with pytest.raises(EnforceNotMet, match="options do not fit") as caught_too:
        run("Preprocess", ("Resize", {"size": 3}))
    assert "target_size" in str(caught_too.value.received)
    with pytest.raises(EnforceNotMet, match="options do not fit"):
        run("PreProcess", ("NormalizeImage", {"scale": "__import__('os')"}))
    with pytest.raises(OpValueError, match="cannot be cut out"):
        run("PreProcess", ("CropImage", {"size": 31}))
    with pytest.raises(OpValueError, match="one size"):
        run("PreProcess", images=[PHOTO, PHOTO[1:]])
    with pytest.raises(OpValueError, match="red, green and blue"):
        run("PreProcess", images=PHOTO / 255)
    with pytest.raises(OpValueError, match="cannot have this size"):
        run("PreProcess", ("ResizeImage", {"size": 10**9}))
    with pytest.raises(OpValueError, match="does not fit into the padded one"):
        run("Preprocess", ("Pad", {"size": [5, 5]}))
    with pytest.raises(EnforceNotMet, match="cannot be read: No such file"):
        run("PreProcess", images="/no/such/photo.png")
