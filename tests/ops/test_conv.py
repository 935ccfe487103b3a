"""Convolutions and their transposes."""

import ml_dtypes
import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb.values import dtypes
from fluidnb_kernels.conv import host_products
from tests.ops.cases import Differentiable, family, values
from tests.ops.images import conv, last, transposed

X, W = values(2, 3, 5, 4), values(4, 3, 3, 2, seed=1)
G, V = values(2, 4, 5, 6, seed=2), values(6, 2, 3, 3, seed=3)  # two groups


def case(x, w, *, result=conv, layout="NCHW", attrs=None, **how):
    """A case whose expected result comes of the plain convolution."""
    out = result(x, w, **how)
    attrs = {**{k: v for k, v in how.items() if k != "extra"}, **(attrs or {})}
    if layout in ("NHWC", "NDHWC"):
        return {"inputs": {"Input": last(x), "Filter": w}, "attrs": attrs | {"data_format": layout},
                "outputs": {"Output": last(out)}}  # fmt: skip
    return {"inputs": {"Input": x, "Filter": w}, "attrs": attrs, "outputs": {"Output": out}}


family(
    globals(),
    Differentiable,
    {
        "conv2d": case(X, W),
        "conv2d/stride": case(X, W, strides=[2, 1]),
        "conv2d/padding": case(X, W, paddings=[1, 2]),
        "conv2d/padding_of_sides": case(X, W, paddings=[0, 1, 2, 1]),
        "conv2d/padding_that_no_window_reaches": case(X, W, paddings=[0, 1], strides=[3, 3]),
        "conv2d/dilation": case(X, W, dilations=[2, 2], paddings=[1, 0]),
        "conv2d/everything": case(X, W, strides=[2, 3], paddings=[1, 2], dilations=[2, 1]),
        "conv2d/groups": case(G, V, groups=2, paddings=[1, 1]),
        "conv2d/one_element": case(X, values(4, 3, 1, 1)),
        "conv2d/one_element_stride": case(X, values(4, 3, 1, 1), strides=[2, 2]),
        "conv2d/one_image": case(X[:1].copy(), W, paddings=[1, 1]),
        "conv2d/one_channel_one_filter": case(values(1, 1, 3, 3), values(1, 1, 1, 1)),
        "conv2d/channels_last": case(X, W, layout="NHWC", paddings=[1, 1], strides=[2, 1]),
        "conv2d/channels_last_one_element": case(X, values(4, 3, 1, 1), layout="NHWC"),
        "conv2d/same": case(X, W, strides=[2, 2], paddings=[1, 1, 0, 0], attrs={"padding_algorithm": "SAME"}),
        "conv2d/same_forgets_dilation": case(
            X, values(4, 3, 3, 3), paddings=[1, 1], attrs={"padding_algorithm": "SAME", "dilations": [2, 2]}
        ),
        "conv2d/valid": case(X, W, attrs={"padding_algorithm": "VALID", "paddings": [2, 2]}),
        **{  # one window, of which the image lacks the last row and column: C truncates (5 - 6) / 2
            f"conv2d/larger_than_the_image{how}": case(
                X, values(4, 3, 6, 5), strides=[2, 3], paddings=[0, 1, 0, 1], attrs={"paddings": [0, 0]}, layout=layout
            )
            for how, layout in (("", "NCHW"), ("_channels_last", "NHWC"))
        },
        "conv2d/dilated_beyond_the_image": case(
            X, values(4, 3, 3, 2), strides=[3, 2], dilations=[3, 4], paddings=[0, 2, 0, 1], attrs={"paddings": [0, 0]}
        ),
        "depthwise_conv2d/larger_than_the_image": case(
            X, values(3, 1, 6, 5), groups=3, strides=[2, 3], paddings=[0, 1, 0, 1], attrs={"paddings": [0, 0]}
        ),
        "depthwise_conv2d": case(X, values(3, 1, 3, 3), groups=3, paddings=[1, 1]),
        "depthwise_conv2d/two_filters_each": case(X, values(6, 1, 2, 2), groups=3, strides=[2, 2]),
        "conv3d": case(values(2, 2, 3, 4, 3), values(3, 2, 2, 3, 1)),
        "conv3d/everything": case(
            values(1, 2, 3, 4, 3), values(2, 1, 2, 3, 2), strides=[1, 2, 1], paddings=[1, 0, 1], dilations=[2, 1, 1],
            groups=2,
        ),
        "conv3d/channels_last": case(values(2, 2, 3, 2, 3), values(2, 2, 2, 2, 2), layout="NDHWC"),
        "conv2d_transpose": case(X, values(3, 2, 3, 2, seed=4), result=transposed),
        "conv2d_transpose/stride": case(X, values(3, 2, 3, 3), result=transposed, strides=[2, 3], paddings=[1, 1]),
        "conv2d_transpose/dilation": case(X, values(3, 2, 2, 2), result=transposed, dilations=[2, 1], paddings=[0, 1]),
        "conv2d_transpose/groups": case(G, values(4, 3, 2, 2), result=transposed, groups=2, strides=[2, 2]),
        "conv2d_transpose/one_element": case(X, values(3, 2, 1, 1), result=transposed),
        "conv2d_transpose/more": case(
            X, values(3, 2, 3, 3), result=transposed, strides=[2, 2], extra=[1, 0], attrs={"output_padding": [1, 0]}
        ),
        "conv2d_transpose/size": case(
            X, values(3, 2, 3, 3), result=transposed, strides=[2, 2], extra=[0, 1], attrs={"output_size": [11, 10]}
        ),
        "conv2d_transpose/channels_last": case(X, values(3, 2, 3, 3), result=transposed, layout="NHWC"),
        "conv2d_transpose/valid": case(
            X, values(3, 2, 3, 3), result=transposed, attrs={"padding_algorithm": "VALID", "paddings": [1, 1]}
        ),
        "conv2d_transpose/same": case(
            X, values(3, 2, 3, 3), result=transposed, strides=[2, 2], paddings=[1, 1, 0, 1],
            attrs={"padding_algorithm": "SAME", "dilations": [2, 2]},
        ),
        "depthwise_conv2d_transpose": case(X, values(3, 1, 3, 3), result=transposed, groups=3, strides=[2, 2]),
        "conv3d_transpose": case(values(1, 2, 2, 3, 2), values(2, 2, 2, 2, 2), result=transposed, strides=[2, 1, 1]),
    },
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_half_precision_is_summed_in_single_precision(dtype, layout):
    half = dtypes.np_dtype(dtype)
    x, w = values(2, 64, 5, 5, low=0.5).astype(half), values(3, 64, 3, 3, low=0.5).astype(half)
    given = {"Input": last(x) if layout == "NHWC" else x, "Filter": w}
    out = run_op("conv2d", given, {"data_format": layout})["Output"]
    exact = conv(x.astype("float64"), w.astype("float64"))
    assert out.dtype == half
    assert np.allclose((last(exact) if layout == "NHWC" else exact).astype(half).astype("float64"),
                       out.astype("float64"), rtol=2 * float(ml_dtypes.finfo(half).eps))  # fmt: skip
    operands = {**given, "Output@GRAD": np.ones_like(out)}
    got = run_op("conv2d_grad", operands, {"data_format": layout}, outputs=["Input@GRAD", "Filter@GRAD"])
    assert got["Input@GRAD"].dtype == got["Filter@GRAD"].dtype == half
    exact = conv(x.astype("float64").swapaxes(0, 1), np.ones((3, 2, 3, 3))).swapaxes(0, 1)
    assert np.allclose(got["Filter@GRAD"].astype("float64"), exact, rtol=2 * float(ml_dtypes.finfo(half).eps))


@pytest.mark.parametrize("columns", [1, 500, 1500])
@pytest.mark.parametrize("op", ["conv2d", "conv2d_transpose"])
def test_columns_may_be_made_in_parts(monkeypatch, op, columns):
    """Parts of a few images, and parts of a few rows of one image."""
    monkeypatch.setattr(host_products, "COLUMNS", columns)
    test = OpTest()
    test.op_type = op
    test.inputs = {"Input": G, "Filter": V if op == "conv2d" else values(4, 2, 2, 3)}
    test.attrs = {"groups": 2, "strides": [2, 1], "paddings": [1, 2]}
    expected = {"conv2d": conv, "conv2d_transpose": transposed}[op](*test.inputs.values(), **test.attrs)
    test.outputs = {"Output": expected}
    test.check_output()
    test.check_grad(["Input", "Filter"])


def test_no_images_give_no_results_and_no_gradient():
    none = np.zeros((0, 3, 5, 4))
    assert run_op("conv2d", {"Input": none, "Filter": W})["Output"].shape == (0, 4, 3, 3)
    operands = {"Input": none, "Filter": W, "Output@GRAD": np.zeros((0, 4, 3, 3))}
    got = run_op("conv2d_grad", operands, outputs=["Input@GRAD", "Filter@GRAD"])
    assert got["Input@GRAD"].shape == none.shape and not got["Filter@GRAD"].any()


@pytest.mark.parametrize(
    ("op", "x", "w", "attrs", "message"),
    [
        ("conv2d", (3, 5, 4), (4, 3, 3, 2), {}, "must be a 4-D tensor"),
        ("conv2d", (2, 3, 5, 4), (4, 3, 3), {}, "as many dimensions"),
        ("conv2d", (2, 2, 5, 4), (4, 3, 3, 2), {}, "filter channels * groups"),
        ("conv2d", (2, 6, 5, 4), (5, 3, 3, 2), {"groups": 2}, "divided by groups"),
        ("conv2d", (2, 3, 2, 4), (4, 3, 3, 2), {}, "larger than the padded image"),
        ("conv2d", (2, 3, 5, 4), (4, 3, 3, 2), {"strides": [1]}, "one number for each axis"),
        ("conv2d", (2, 3, 5, 4), (4, 3, 3, 2), {"paddings": [1, 1, 1]}, "one number for each axis"),
        ("conv2d_transpose", (2, 2, 5, 4), (3, 3, 3, 2), {}, "that of its filter"),
        ("conv2d_transpose", (2, 3, 5, 4), (3, 3, 3, 2), {"groups": 2}, "divided by groups"),
        ("conv2d_transpose", (2, 3, 5, 4), (3, 3, 3, 2), {"output_size": [9, 5]}, "out of reach"),
        ("conv2d_transpose", (2, 3, 5, 4), (3, 3, 3, 2), {"output_size": [7]}, "one number for each axis"),
        ("conv2d_transpose", (2, 3, 1, 4), (3, 3, 1, 2), {"paddings": [1, 0]}, "would be empty"),
    ],
)
def test_what_does_not_fit_is_refused(op, x, w, attrs, message):
    with pytest.raises(RuleError) as error:
        run_op(op, {"Input": np.zeros(x), "Filter": np.zeros(w)}, attrs)
    assert message in str(error.value)


def test_input_and_filter_have_one_dtype():
    with pytest.raises(RuleError) as error:
        run_op("conv2d", {"Input": np.zeros((1, 1, 2, 2), "float32"), "Filter": np.zeros((1, 1, 2, 2))})
    assert "one dtype" in str(error.value) and "layers.cast" in str(error.value)
