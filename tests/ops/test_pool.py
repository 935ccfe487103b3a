"""Pooling."""

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb.values import dtypes
from tests.ops.cases import Differentiable, distinct, family
from tests.ops.images import adaptive_mean, last, pool

X, VOLUME = distinct(2, 2, 5, 6), distinct(1, 2, 3, 4, 3)


def case(x, kind, ksize, *, layout="NCHW", attrs=None, **how):
    """A case whose expected result comes of the plain pooling."""
    out = pool(x, kind, ksize, **how)
    attrs = {"pooling_type": kind, "ksize": ksize, **how, **(attrs or {})}
    if layout in ("NHWC", "NDHWC"):
        return {"inputs": {"X": last(x)}, "attrs": attrs | {"data_format": layout}, "outputs": {"Out": last(out)}}
    return {"inputs": {"X": x}, "attrs": attrs, "outputs": {"Out": out}}


CASES = {
    "apart": {"ksize": [2, 2], "strides": [2, 2]},
    "with_gaps": {"ksize": [1, 2], "strides": [2, 3]},
    "one_element": {"ksize": [1, 1]},
    "one_element_stride": {"ksize": [1, 1], "strides": [2, 3]},
    "overlapping": {"ksize": [3, 2]},
    "padding": {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1]},
    "padding_of_sides": {"ksize": [2, 3], "strides": [2, 1], "paddings": [0, 1, 1, 0]},
    "ceil": {"ksize": [2, 2], "strides": [3, 4], "ceil_mode": True},
    "ceil_and_padding": {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1], "ceil_mode": True},
    "wide": {"ksize": [5, 5], "paddings": [2, 2], "strides": [4, 4]},
    "channels_last": {"ksize": [3, 2], "strides": [2, 2], "paddings": [1, 0], "layout": "NHWC"},
    "whole": {"ksize": [5, 6]},
}

family(
    globals(),
    Differentiable,
    {
        **{f"pool2d/{kind}_{name}": case(X, kind, **how) for kind in ("max", "avg") for name, how in CASES.items()},
        "pool2d/avg_with_the_padding": case(X, "avg", [3, 3], strides=[2, 2], paddings=[1, 1], exclusive=False),
        "pool2d/avg_with_the_padding_ceil": case(
            X, "avg", [3, 3], strides=[3, 3], paddings=[1, 1], exclusive=False, ceil_mode=True
        ),
        "pool2d/max_same": case(
            X, "max", [3, 3], strides=[2, 2], paddings=[1, 1, 0, 1], attrs={"padding_algorithm": "SAME"}
        ),
        "pool2d/avg_valid": case(X, "avg", [3, 3], attrs={"padding_algorithm": "VALID", "paddings": [1, 1]}),
        "pool2d/max_global": {
            "inputs": {"X": X}, "attrs": {"pooling_type": "max", "ksize": [1, 1], "global_pooling": True},
            "outputs": {"Out": X.max((2, 3), keepdims=True)},
        },
        "pool2d/avg_global": {
            "inputs": {"X": X}, "attrs": {"pooling_type": "avg", "ksize": [1, 1], "global_pooling": True},
            "outputs": {"Out": X.mean((2, 3), keepdims=True)},
        },
        "pool2d/avg_adaptive_global": {  # the image's own sizes take the place of ksize
            "inputs": {"X": X},
            "attrs": {"pooling_type": "avg", "ksize": [1, 1], "adaptive": True, "global_pooling": True},
            "outputs": {"Out": X},
        },
        "pool2d/avg_adaptive": {
            "inputs": {"X": X}, "attrs": {"pooling_type": "avg", "ksize": [3, 4], "adaptive": True},
            "outputs": {"Out": adaptive_mean(X, [3, 4])},
        },
        "pool2d/avg_adaptive_channels_last": {
            "inputs": {"X": last(X)},
            "attrs": {"pooling_type": "avg", "ksize": [2, 3], "adaptive": True, "data_format": "NHWC"},
            "outputs": {"Out": last(adaptive_mean(X, [2, 3]))},
        },
        **{  # (5 - 7) / 3 + 1 and (6 - 7) / 7 + 1 windows in C, which truncates
            f"pool2d/{kind}_larger_than_the_image": {
                "inputs": {"X": X}, "attrs": {"pooling_type": kind, "ksize": [7, 7], "strides": [3, 7], **more},
                "outputs": {"Out": getattr(X, function)((2, 3), keepdims=True)},
            }
            for kind, function, more in (("max", "max", {}), ("avg", "mean", {"exclusive": False}))
        },
        "pool2d/longer_than_the_image": {
            "inputs": {"X": X}, "attrs": {"pooling_type": "avg", "ksize": [6, 2], "strides": [2, 2]},
            "outputs": {"Out": X.mean(2, keepdims=True).reshape(2, 2, 1, 3, 2).mean(-1)},
        },
        "pool3d": case(VOLUME, "max", [2, 2, 2], strides=[1, 2, 1]),
        "pool3d/avg": case(VOLUME, "avg", [2, 3, 2], paddings=[1, 0, 1], strides=[2, 1, 1]),
        "pool3d/channels_last": case(VOLUME, "max", [2, 2, 2], layout="NDHWC"),
        "pool3d/avg_adaptive": {
            "inputs": {"X": VOLUME}, "attrs": {"pooling_type": "avg", "ksize": [2, 3, 1], "adaptive": True},
            "outputs": {"Out": adaptive_mean(VOLUME, [2, 3, 1])},
        },
    },
)  # fmt: skip


def test_a_maximum_has_windows_of_ksize_also_with_adaptive():
    """What Paddle's kernel does; its layer for adaptive maxima takes another operator."""
    test = OpTest()
    test.op_type, test.inputs = "pool2d", {"X": X}
    test.attrs = {"pooling_type": "max", "ksize": [2, 3], "adaptive": True}
    test.outputs = {"Out": pool(X[:, :, :3, :5], "max", [2, 3])}
    test.check_output()
    test.check_grad("X")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_half_precision(dtype, kind):
    half = dtypes.np_dtype(dtype)
    x = (X - X.max() - 1).astype(half)  # all below 0, so that padding with 0 would show
    out = run_op("pool2d", {"X": x}, {"pooling_type": kind, "ksize": [3, 3], "paddings": [1, 1]})["Out"]
    assert out.dtype == half
    expected = pool(x.astype("float64"), kind, [3, 3], paddings=[1, 1])
    assert np.allclose(out.astype("float64"), expected, rtol=0.0 if kind == "max" else 0.02)


@pytest.mark.parametrize("ksize", [[2, 2], [4, 4]])
@pytest.mark.parametrize("low", [0.0, -2.0])
def test_the_first_of_several_largest_takes_the_gradient(ksize, low):
    """Row by row, for windows that are computed together and for one that is the whole image."""
    x = np.full((1, 1, 4, 4), low)
    x[0, 0, 0, 1] = x[0, 0, 1, 0] = x[0, 0, 3, 3] = 1.0
    attrs = {"pooling_type": "max", "ksize": ksize, "strides": ksize}
    out = run_op("pool2d", {"X": x}, attrs)["Out"]
    operands = {"X": x, "Out": out, "Out@GRAD": np.arange(1.0, 1 + out.size).reshape(out.shape)}
    got = run_op("pool2d_grad", operands, attrs, outputs=["X@GRAD"])["X@GRAD"][0, 0]
    expected = np.zeros((4, 4))
    expected[0, 1] = 1.0
    if ksize == [2, 2]:
        expected[0, 2], expected[2, 0], expected[3, 3] = 2.0, 3.0, 4.0
    assert np.array_equal(got, expected)


@pytest.mark.parametrize("ksize", [[2, 2], [10, 10]])
def test_a_window_in_the_padding_alone_is_empty(ksize):
    """Windows that are computed together, and one after the other."""
    image = distinct(1, 1, 2, 2)
    attrs = {"ksize": ksize, "strides": [k + 1 for k in ksize], "paddings": [k // 2 for k in ksize], "ceil_mode": True}
    out = run_op("pool2d", {"X": image}, {"pooling_type": "max", **attrs})["Out"]
    mean = run_op("pool2d", {"X": image}, {"pooling_type": "avg", **attrs})["Out"]
    assert out.shape == (1, 1, 2, 2) and out[0, 0, 1, 1] == np.finfo("float32").min and np.isnan(mean[0, 0, 1, 1])
    operands = {"X": image, "Out": out, "Out@GRAD": np.ones_like(out)}
    for kind in ("max", "avg"):
        got = run_op("pool2d_grad", operands, {"pooling_type": kind, **attrs}, outputs=["X@GRAD"])["X@GRAD"]
        assert np.isfinite(got).all() and got.any()


def test_an_image_of_one_size_and_windows_of_another():
    for attrs, message in (
        ({"ksize": [6, 2]}, "larger than the padded image"),
        ({"ksize": [2]}, "one number for each axis"),
        ({"ksize": [2, 2], "strides": [1, 1, 1]}, "one number for each axis"),
    ):
        with pytest.raises(RuleError) as error:
            run_op("pool2d", {"X": X}, {"pooling_type": "max", **attrs})
        assert message in str(error.value)
    with pytest.raises(RuleError, match="4-D"):
        run_op("pool2d", {"X": VOLUME}, {"pooling_type": "max", "ksize": [2, 2]})
    with pytest.raises(OpValueError, match="enum"):
        run_op("pool2d", {"X": X}, {"pooling_type": "sum", "ksize": [2, 2]})
