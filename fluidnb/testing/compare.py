"""Assertions about values as scopes hold them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.values import LoDTensor, LoDTensorArray
from fluidnb.values.rank_table import LoDRankTable


def assert_close(got: Any, want: Any, rtol: float, atol: float, what: str) -> None:
    """Assert that a result is what was expected, in dtype, shape, LoD and values."""
    if isinstance(want, LoDTensorArray):
        assert len(got) == len(want), f"{what}: {len(got)} elements for {len(want)}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            assert_close(g, w, rtol, atol, f"{what}[{i}]")
        return
    if isinstance(want, LoDRankTable):
        assert got == want, f"{what}: {got} for {want}"
        return
    assert isinstance(got, LoDTensor), f"{what}: a {type(got).__name__} for a tensor"
    have, expected = np.asarray(got), np.asarray(want)
    assert have.dtype == expected.dtype, f"{what}: dtype {have.dtype} for {expected.dtype}"
    assert have.shape == expected.shape, f"{what}: shape {have.shape} for {expected.shape}"
    assert got.lod_ == want.lod_, f"{what}: LoD {got.lod_} for {want.lod_}"
    if expected.dtype.name == "bfloat16":  # numpy does not count it as a float
        have, expected = have.astype(np.float32), expected.astype(np.float32)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(have, expected, rtol, atol, err_msg=what)
    else:
        np.testing.assert_array_equal(have, expected, err_msg=what)


def assert_same(one: Mapping[str, Any], two: Mapping[str, Any], how: str) -> None:
    """Assert that two runs gave the same bits."""
    for name, a in one.items():
        b = two[name]
        if isinstance(a, LoDTensorArray):
            assert_same(dict(enumerate(a)), dict(enumerate(b)), how)  # type: ignore[arg-type]
        elif isinstance(a, LoDTensor) and a.array is not None:
            x, y = np.asarray(a), np.asarray(b)
            same = x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes() and a.lod_ == b.lod_
            assert same, f"{name} {how} is {y!r} for {x!r}"
        elif isinstance(a, LoDRankTable):
            assert a == b, f"{name} {how} is {b} for {a}"
