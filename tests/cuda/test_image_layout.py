"""Images laid out anew, shifted, scaled, put back and unfolded, on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.testing import run_op
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import grid
from fluidnb_kernels.emulator.raw import EmulatorError
from tests.cuda.operands import emulated, numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = np.ndarray[Any, Any]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
ALL = [*FLOATS, np.uint8, np.int64]
name_of: Any = lambda d: np.dtype(d).name  # noqa: E731


def some(*shape: int, dtype: Any = np.float64, seed: int = 1) -> Array:
    """Numbers that differ, whole ones for whole dtypes."""
    return (numbers(*shape, seed=seed) * 50).astype(dtype)


def result(type: str, inputs: dict[str, Array], attrs: dict[str, Any], slot: str = "Out") -> Array:
    """An output of both ways."""
    found = twins(type, inputs, attrs, [slot]).find_var(f"{slot}@out").value.array
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_channels_laid_out_anew(dtype: Any) -> None:
    x = some(2, 8, 6, 4, dtype=dtype)
    for type, attrs in (
        ("pixel_shuffle", {"upscale_factor": 2}), ("pixel_shuffle", {"upscale_factor": 2, "data_format": "NHWC"}),
        ("shuffle_channel", {"group": 4}), ("space_to_depth", {"blocksize": 2}),
    ):  # fmt: skip
        out = result(type, {"X": x}, attrs)
        twins(type + "_grad", {"X": x, "Out@GRAD": some(*out.shape, dtype=dtype)}, attrs, ["X@GRAD"])


@pytest.mark.parametrize("dtype", ALL, ids=name_of)
@pytest.mark.parametrize("shape", [(6, 8, 4, 4), (6, 5, 3, 5), (3, 4, 1, 1)])
def test_images_shifted_in_time(shape: tuple[int, ...], dtype: Any) -> None:
    x = some(*shape, dtype=dtype)
    for layout in ("NCHW", "NHWC"):
        for ratio in (0.25, 0.4, 0.01):
            attrs = {"seg_num": 3, "shift_ratio": ratio, "data_format": layout}
            result("temporal_shift", {"X": x}, attrs)
            twins("temporal_shift_grad", {"Out@GRAD": x}, attrs, ["X@GRAD"])
    result("temporal_shift", {"X": x}, {"seg_num": 1})


@pytest.mark.parametrize("index", [np.int32, np.int64, np.uint8], ids=name_of)
@pytest.mark.parametrize("dtype", ALL, ids=name_of)
def test_elements_put_back(dtype: Any, index: Any) -> None:
    x, attrs = some(2, 3, 4, 4, dtype=dtype), {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max"}
    at = np.random.default_rng(3).integers(0, 20, x.shape).astype(index)  # several for one place: the last one stays
    at[0, 0, 0, 0], x[0, 0, 0, 0] = 63, 7  # the first element alone at its place
    out = result("unpool", {"X": x, "Indices": at}, attrs)
    assert out.shape == (2, 3, 8, 8)
    slopes = {"X": x, "Indices": at, "Out": out, "Out@GRAD": some(*out.shape, dtype=dtype, seed=2)}
    twins("unpool_grad", slopes, attrs, ["X@GRAD"])


@pytest.mark.parametrize("place", [-1, 64])
def test_a_place_outside_stops_the_kernel(place: int) -> None:
    given = {"X": np.ones((1, 1, 4, 4)), "Indices": np.full((1, 1, 4, 4), place)}
    with pytest.raises(EmulatorError, match="trap"):
        emulated("unpool", given, {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max"}, ["Out"])


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5, 7), (2, 300, 1, 2), (0, 3, 2, 2), (1, 2, 40, 50)])
def test_channels_scaled(shape: tuple[int, ...], dtype: Any) -> None:
    for layout, channels in (("AnyLayout", shape[1]), ("NHWC", shape[-1])):
        x, attrs = numbers(*shape).astype(dtype), {"data_layout": layout}
        scale, bias = (numbers(channels, seed=k).astype(dtype) for k in (2, 3))
        result("affine_channel", {"X": x, "Scale": scale, "Bias": bias}, attrs)
        given = {"X": x, "Scale": scale, "Out@GRAD": numbers(*shape, seed=4).astype(dtype)}
        outs = ["X@GRAD", "Scale@GRAD", "Bias@GRAD"]
        for wanted in (outs, outs[:1], outs[1:2], outs[2:]):
            twins("affine_channel_grad", given, attrs, wanted)


UNFOLD = {"kernel_sizes": [3, 2], "strides": [2, 1], "paddings": [1, 0, 2, 1], "dilations": [1, 2]}


@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_windows_as_columns(dtype: Any) -> None:
    x = numbers(2, 3, 7, 6).astype(dtype)
    y = result("unfold", {"X": x}, UNFOLD, "Y")
    twins("unfold_grad", {"X": x, "Y@GRAD": numbers(*y.shape).astype(dtype)}, UNFOLD, ["X@GRAD"])


@pytest.mark.parametrize("real", [None, [[7, 6], [3, 5]], [[14, 11], [4, 12]], [[3, 7], [6, 7]]])
@pytest.mark.parametrize("dtype", FLOATS, ids=name_of)
def test_windows_as_sequences(dtype: Any, real: Any) -> None:
    x, attrs = numbers(2, 3, 7, 6).astype(dtype), {"kernels": [3, 2], "strides": [2, 1], "paddings": [1, 0, 2, 1]}
    given = {"X": x}
    if real is not None:
        given["Y"] = np.array(real, np.float32)
        attrs["out_stride"] = [1, 1] if max(map(max, real)) <= 7 else [2, 2]
    out = result("im2sequence", given, attrs)
    twins("im2sequence_grad", {**given, "Out@GRAD": numbers(*out.shape).astype(dtype)}, attrs, ["X@GRAD"])


def test_threads_go_round_and_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "BLOCKS", 1)
    x = numbers(2, 3, 17, 18)
    result("unfold", {"X": x}, UNFOLD, "Y")
    result("im2sequence", {"X": x}, {"kernels": [3, 3]})
    result("affine_channel", {"X": x, "Scale": numbers(3), "Bias": numbers(3, seed=2)}, {})
    result("temporal_shift", {"X": x}, {"seg_num": 2})
    assert run_op("temporal_shift", {"X": x[:0]}, {"seg_num": 2})["Out"].shape == x[:0].shape
    result("temporal_shift", {"X": x[:0]}, {"seg_num": 2})
    result("unfold", {"X": x[:0]}, UNFOLD, "Y")
