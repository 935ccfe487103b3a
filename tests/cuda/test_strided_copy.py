"""Operators that move elements, on the emulator beyond the cases of their OpTests: every dtype, many dimensions, tiles,
runs that are not aligned, and moves cut in two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.tensor import strided_copy
from tests.cuda.twins import run_twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

Array = Any
DTYPES = [np.uint8, np.float16, ml_dtypes.bfloat16, np.int32, np.float32, np.float64]
HALVES = [np.float16, ml_dtypes.bfloat16]


def both(
    type: str, inputs: Mapping[str, Array | list[Array]], outputs: Mapping[str, int] | Sequence[str] = ("Out",),
    **attrs: Any,
) -> dict[str, list[Array]]:  # fmt: skip
    """Run an operator both ways; gives what numpy wrote."""
    wanted = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, 1)
    scope, ins = Scope(), {}
    for slot, arrays in inputs.items():
        rows = arrays if isinstance(arrays, list) else [arrays]
        ins[slot] = [f"{slot}{i}" for i in range(len(rows))]
        for name, array in zip(ins[slot], rows, strict=True):
            scope.var(name).value = LoDTensor(np.array(array))
    desc = OpDesc(type, ins, {slot: [f"{slot}.out{i}" for i in range(n)] for slot, n in wanted.items()}, attrs)
    check_desc(get_op(type), desc)
    run_twins(desc, scope)
    return {slot: [scope.find_var(name).value.array for name in names] for slot, names in desc.outs.items()}


def some(*shape: int, dtype: Any = np.float32, seed: int = 1) -> Array:
    """Numbers that differ."""
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((40, 70), (1, 0)), ((3, 33, 20), (2, 0, 1)), ((2, 5, 16, 4), (0, 2, 1, 3)), ((2, 3, 2, 3, 2), (4, 2, 0, 3, 1)),
     ((2, 1, 3, 2, 2, 2, 2), (6, 5, 4, 3, 2, 1, 0)), ((2,) * 8, (7, 0, 6, 1, 5, 2, 4, 3))],
    ids=str,
)  # fmt: skip
def test_transpose(shape: tuple[int, ...], axis: tuple[int, ...], dtype: Any) -> None:
    x = some(*shape, dtype=dtype)
    out = both("transpose", {"X": x}, axis=list(axis))["Out"][0]
    assert np.array_equal(out, x.transpose(axis))
    both("transpose_grad", {"X": x, "Out": out, "Out@GRAD": out}, ["X@GRAD"], axis=list(axis))


@pytest.mark.parametrize("shape", [(40, 70), (5, 4, 6), (2,) * 8])
def test_large_moves_are_cut(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strided_copy, "_MOST", 50)
    x = some(*shape)
    assert np.array_equal(both("transpose", {"X": x}, axis=list(range(x.ndim))[::-1])["Out"][0], x.T)
    both("slice", {"Input": x}, axes=[0], starts=[1], ends=[2])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("width", [1, 3, 8, 16])
def test_runs_of_every_width(width: int, dtype: Any) -> None:
    x, y = some(5, width, dtype=dtype), some(5, 16, dtype=dtype, seed=2)
    both("concat", {"X": [x, y]}, axis=1)
    both("split", {"X": np.concatenate([x, y], 1)}, {"Out": 2}, sections=[width, -1], axis=1)
    both("reverse", {"X": x}, axis=[0])
    both("flip", {"X": x}, axis=[0, 1])
    stacked = both("stack", {"X": [x, x + x]}, ["Y"], axis=1)["Y"][0]
    both("stack_grad", {"X": [x, x], "Y@GRAD": stacked}, {"X@GRAD": 2}, axis=1)
    layers = both("unstack", {"X": stacked}, {"Y": 2}, axis=1, num=2)["Y"]
    both("unstack_grad", {"Y@GRAD": layers}, ["X@GRAD"], axis=1, num=2)


def test_slices_with_steps() -> None:
    x = some(7, 9, 5)
    cut = {"axes": [0, 1], "starts": [6, 1], "ends": [0, 9], "strides": [-2, 3]}
    out = both("strided_slice", {"Input": x}, **cut)["Out"][0]
    assert np.array_equal(out, x[6:0:-2, 1:9:3])
    both("strided_slice_grad", {"Input": x, "Out@GRAD": out}, ["Input@GRAD"], **cut)
    cut = {"axes": [0, 2], "starts": [2, 1], "ends": [3, 4], "decrease_axis": [0]}
    out = both("slice", {"Input": x}, **cut)["Out"][0]
    both("slice_grad", {"Input": x, "Out@GRAD": out}, ["Input@GRAD"], **cut)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *HALVES], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(
    ("shape", "times"), [((1,), [5000]), ((3, 1), [70, 130]), ((2, 3, 2, 1, 2), [2, 1, 3, 2, 2]), ((4,), [1])], ids=str
)
def test_expand(shape: tuple[int, ...], times: list[int], dtype: Any) -> None:
    x = some(*shape, dtype=dtype) / np.array(64, dtype)
    out = both("expand", {"X": x}, expand_times=times)["Out"][0]
    assert np.array_equal(out, np.tile(x, times))
    dx = both("expand_grad", {"X": x, "Out@GRAD": out}, ["X@GRAD"], expand_times=times)["X@GRAD"][0]
    assert dx.shape == x.shape


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_borders_of_a_value(dtype: Any) -> None:
    x = some(3, 6, dtype=dtype)
    out = both("pad", {"X": x}, paddings=[1, 0, 2, 5], pad_value=3.0)["Out"][0]
    both("pad_grad", {"Out@GRAD": out}, ["X@GRAD"], paddings=[1, 0, 2, 5])
    piece = both("crop", {"X": out}, offsets=[1, 2], shape=[3, 6])["Out"][0]
    both("crop_grad", {"X": out, "Out@GRAD": piece}, ["X@GRAD"], offsets=[1, 2], shape=[3, 6])
    both("pad_constant_like", {"X": out, "Y": x}, pad_value=2.0)
    both("pad_constant_like_grad", {"Y": x, "Out@GRAD": out}, ["Y@GRAD"])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(
    ("type", "mode", "paddings"),
    [("pad2d", "reflect", [2, 3, 4, 4]), ("pad2d", "edge", [5, 0, 1, 6]), ("pad3d", "reflect", [1, 2, 3, 0, 1, 1]),
     ("pad3d", "replicate", [4, 1, 0, 2, 3, 3]), ("pad3d", "circular", [5, 3, 4, 4, 2, 0])],
)  # fmt: skip
@pytest.mark.parametrize("last", [False, True])
def test_borders_of_the_image(type: str, mode: str, paddings: list[int], last: bool, dtype: Any) -> None:
    plain, turned = ("NCHW", "NHWC") if type == "pad2d" else ("NCDHW", "NDHWC")
    sizes = (4, 5) if type == "pad2d" else (2, 4, 5)
    x = some(*((2, *sizes, 3) if last else (2, 3, *sizes)), dtype=dtype)
    attrs = {"mode": mode, "paddings": paddings, "data_format": turned if last else plain}
    out = both(type, {"X": x}, **attrs)["Out"][0]
    both(type + "_grad", {"X": x, "Out@GRAD": some(*out.shape, dtype=dtype)}, ["X@GRAD"], **attrs)


@pytest.mark.parametrize("sizes", [[1, 7, 2**31 - 1], [2**16 + 1, 3], [2**20 - 1, 641]])
def test_division_by_multiplication_is_exact(sizes: list[int]) -> None:
    numbers = strided_copy._numbers([(1, 0, 0), *((n, 0, 0) for n in sizes)], len(sizes) + 1)
    for d, n in enumerate(sizes):
        size, m, s = int(numbers[d]) & 0xFFFFFFFF, int(numbers[d]) >> 32, int(numbers[5]) >> 5 * d & 31
        assert size == n
        near = [q * n + r for q in (0, 1, 2, 1000, (2**31 - 1) // n - 1) for r in (-1, 0, 1, n - 1)]
        for i in [i for i in near if 0 <= i < 2**31] + [2**31 - 1]:
            assert ((i * m >> 32) + i) >> s == i // n
