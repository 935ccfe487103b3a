"""lrn, data_norm and spectral_norm on the emulator beyond the cases of their OpTests."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

DTYPES = ("float32", "float16", "bfloat16")
SUMMARIES = ("BatchSize", "BatchSum", "BatchSquareSum")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "n"), [((2, 7, 3, 5), 5), ((2, 3, 2, 2), 4), ((1, 1, 1, 300), 3), ((0, 3, 2, 2), 5)])
def test_lrn(shape: tuple[int, ...], n: int, dtype: str) -> None:
    for layout in ("NCHW", "NHWC"):
        attrs = {"n": n, "k": 1.5, "alpha": 0.25, "beta": 0.5, "data_format": layout}
        given = {"X": numbers(*shape).astype(np_dtype(dtype))}
        scope = twins("lrn", given, attrs, ["Out", "MidOut"])
        given |= {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in ("Out", "MidOut")}
        given["Out@GRAD"] = numbers(*shape, seed=2).astype(np_dtype(dtype))
        twins("lrn_grad", given, attrs, ["X@GRAD"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [-1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(40, 36), (700, 3), (2, 300), (0, 3)])
def test_data_norm(rows: int, columns: int, width: int, dtype: str) -> None:
    t = np_dtype(dtype)
    x = numbers(rows, columns).astype(t)
    x[::3, ::3] = 0
    x[: rows // 2, :3] = 0
    seen = {slot: numbers(columns, seed=i, low=1, high=2).astype(t) for i, slot in enumerate(SUMMARIES)}
    shifts = {slot: numbers(columns, seed=i).astype(t) for i, slot in enumerate(("scale_w", "bias"), 4)}
    for more, enabled in (({}, False), (shifts, True)):
        attrs = {"slot_dim": width, "enable_scale_and_shift": enabled, "epsilon": 0.125}
        scope = twins("data_norm", {"X": x, **seen, **more}, attrs, ["Y", "Means", "Scales"])
        found = {slot: np.asarray(scope.find_var(f"{slot}@out").value) for slot in ("Means", "Scales")}
        given = {"X": x, "Y@GRAD": numbers(rows, columns, seed=9).astype(t), **found, **more}
        outs = [f"{slot}@GRAD" for slot in ("X", *SUMMARIES, *more)]
        twins("data_norm_grad", given, attrs, outs)
        twins("data_norm_grad", given, attrs, outs[1:])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_spectral_norm(steps: int, dtype: str) -> None:
    t = np_dtype(dtype)
    for shape, axis in (((4, 70), 0), ((3, 5, 2, 2), 1), ((3, 5, 2), -1)):
        sizes = {"Weight": shape, "U": shape[axis : axis + 1 or None], "V": (int(np.prod(shape)) // shape[axis],)}
        given = {slot: numbers(*size, low=0.5).astype(t) for slot, size in sizes.items()}
        attrs = {"dim": axis, "power_iters": steps, "eps": 0.125}
        twins("spectral_norm", given, attrs, ["Out"])
        grad = {"Out@GRAD": numbers(*shape, seed=2).astype(t)}
        twins("spectral_norm_grad", {**given, **grad}, attrs, ["Weight@GRAD"])
