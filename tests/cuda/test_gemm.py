"""Products of matrices on the emulator beside numpy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluidnb_kernels import emulator
from fluidnb_kernels.cuda.gemm import launch
from fluidnb_kernels.emulator.raw import ORDERS
from tests.cuda.operands import numbers

_SIZES = st.sampled_from([1, 3, 16, 17, 64, 70])


@given(_SIZES, _SIZES, _SIZES, st.booleans(), st.booleans(), st.sampled_from([0, 1, 3]), st.sampled_from(ORDERS))
@settings(max_examples=25, deadline=None)
def test_products_are_those_of_numpy(m, n, k, tx, ty, batch, order):
    lead = (batch,) if batch else ()
    x, y, before = numbers(*lead, m, k), numbers(k, n, seed=2), numbers(*lead, m, n, seed=3)
    out = before.copy()
    given_x = np.ascontiguousarray(x.swapaxes(-1, -2)) if tx else x
    given_y = np.ascontiguousarray(y.T) if ty else y
    with emulator.running(order):
        launch(given_x, given_y, out, tx, ty, 0.5, 2.0)
    np.testing.assert_allclose(out, 0.5 * (x @ y) + 2 * before, rtol=1e-12, atol=1e-12)


def test_columns_cut_out_of_wider_matrices_and_what_is_not_read():
    x, y = numbers(5, 9).astype("float32"), numbers(7, 8).astype("float32")
    out = np.full((5, 6), np.nan, "float32")
    launch(x[:, 2:9], y[:, 1:4], out[:, 3:], False, False, 1.0, 0.0)
    np.testing.assert_allclose(out[:, 3:], x[:, 2:9] @ y[:, 1:4], rtol=1e-5)
    assert np.isnan(out[:, :3]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_added_up_in_float(dtype):
    from fluidnb.values.dtypes import np_dtype

    x, y = numbers(4, 300).astype(np_dtype(dtype)), numbers(300, 2).astype(np_dtype(dtype))
    out = np.zeros((4, 2), np_dtype(dtype))
    launch(x, y, out, False, False, 1.0, 0.0)
    want = x.astype("float32") @ y.astype("float32")
    np.testing.assert_allclose(out.astype("float32"), want.astype(out.dtype).astype("float32"), rtol=1e-2, atol=1e-3)
