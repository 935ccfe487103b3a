"""Layout transforms and copies between places."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluidnb.errors import EnforceNotMet
from fluidnb.op.transform import LAYOUT_COPIES, copy_between, layout_shape

shapes = st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(1, 4), st.integers(1, 4))


@given(shapes, st.sampled_from(["NHWC", "nChw8c"]))
def test_there_and_back_is_the_same(shape, layout):
    there, back = LAYOUT_COPIES[layout]
    x = np.random.default_rng(0).random(shape)
    middle, again = np.full(layout_shape(shape, layout), np.nan), np.empty(shape)
    there(x, middle)
    assert not np.isnan(middle).any()
    back(middle, again)
    assert np.array_equal(x, again)


def test_nhwc_is_a_transpose():
    x = np.arange(24.0).reshape(1, 2, 3, 4)
    out = np.empty((1, 3, 4, 2))
    LAYOUT_COPIES["NHWC"][0](x, out)
    assert np.array_equal(out, x.transpose(0, 2, 3, 1))


def test_only_4d_tensors_change_layout():
    assert layout_shape((3, 4), "NHWC") == (3, 4)


def test_an_unknown_way_is_named():
    with pytest.raises(EnforceNotMet, match="from nowhere to cpu"):
        copy_between("nowhere", "cpu")
