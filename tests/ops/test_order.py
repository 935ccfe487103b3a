"""top_k, top_k_v2 and argsort over long rows: equal elements in order, NaN behind all numbers."""

import numpy as np
import pytest

from fluidnb.testing import run_op
from fluidnb_kernels.tensor import order

RNG = np.random.default_rng(0)
ROWS = {
    "numbers": RNG.standard_normal((7, 1000)),
    "equal ones": np.round(RNG.standard_normal((7, 1000)) * 5),
    "some equal ones": np.where(np.arange(7)[:, None] % 2, RNG.standard_normal((7, 1000)), 1.0),
    "mostly NaN": np.where(RNG.random((7, 1000)) < 0.99, np.nan, RNG.standard_normal((7, 1000))),
    "NaN and infinity": RNG.choice([np.nan, np.inf, -np.inf, 0.0, 1.0], (7, 1000)),
    "integers": RNG.integers(-1 << 62, 1 << 62, (7, 1000)),
    "small integers": RNG.integers(-3, 3, (7, 1000)).astype("int32"),
}


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [2, 9, 240, 700])
@pytest.mark.parametrize("kind", ROWS)
def test_the_first_elements_of_a_stable_sort(kind: str, k: int, largest: bool) -> None:
    x = ROWS[kind]
    key = x if not largest else ~x if x.dtype.kind == "i" else -x
    at = key.argsort(-1, kind="stable")[:, :k]
    got = run_op("top_k_v2", {"X": x}, {"k": k, "largest": largest}, outputs=["Out", "Indices"])
    np.testing.assert_array_equal(got["Indices"], at)
    np.testing.assert_array_equal(got["Out"], np.take_along_axis(x, at, -1))


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", ROWS)
def test_argsort_is_stable(kind: str, axis: int, descending: bool) -> None:
    x = ROWS[kind]
    got = run_op("argsort", {"X": x}, {"axis": axis, "descending": descending}, outputs=["Out", "Indices"])
    at = x.argsort(axis, kind="stable")
    if descending:
        at = x.shape[axis] - 1 - np.flip(np.flip(x, axis).argsort(axis, kind="stable"), axis)
    np.testing.assert_array_equal(got["Indices"], at)
    np.testing.assert_array_equal(got["Out"], np.take_along_axis(x, at, axis))


def test_rows_without_equal_elements_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    x = RNG.permutation(100_000).reshape(10, 10_000).astype("float32")
    sizes = []
    sort = np.ndarray.argsort

    class Watched(np.ndarray):
        def argsort(self, *args, **kw):
            sizes.append(self.size)
            return sort(self, *args, **kw)

    np.testing.assert_array_equal(order._smallest(x.view(Watched), 4), x.argsort(-1)[:, :4])
    assert sizes == [40]
