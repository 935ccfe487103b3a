"""Normalisation: batch_norm, layer_norm, group_norm."""

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.ops.images import last, normal

X, ROWS = values(3, 4, 2, 3), values(5, 4)
SCALE, BIAS = values(4, low=0.5, high=2.0, seed=1), values(4, seed=2)
MEAN, VARIANCE = values(4, seed=3), values(4, low=0.5, high=2.0, seed=4)
MOMENTUM, REST = np.float64(np.float32(0.9)), 1 - np.float64(np.float32(0.9))
RUNNING = {"Scale": SCALE, "Bias": BIAS, "Mean": MEAN, "Variance": VARIANCE}


def wide(v, ndim, axis=1):
    """A vector over the channels, of a rank."""
    return v.reshape([-1 if i == axis else 1 for i in range(ndim)])


def trained(x, momentum=MOMENTUM, layout="NCHW"):
    """The results of batch_norm in training."""
    around = tuple(i for i in range(x.ndim) if i != 1)
    mean, variance = x.mean(around), x.var(around)
    y = normal(x, around) * wide(SCALE, x.ndim) + wide(BIAS, x.ndim)
    return {
        "Y": last(y) if layout == "NHWC" else y,
        "MeanOut": momentum * MEAN + (1 - momentum) * mean,
        "VarianceOut": momentum * VARIANCE + (1 - momentum) * variance,
        "SavedMean": mean,
        "SavedVariance": 1 / np.sqrt(variance + np.float32(1e-5)),
    }


def by_running(x):
    """The results of batch_norm with the running moments."""
    inverse = 1 / np.sqrt(VARIANCE + np.float32(1e-5))
    y = (x - wide(MEAN, x.ndim)) * wide(inverse * SCALE, x.ndim) + wide(BIAS, x.ndim)
    return {"Y": y, "MeanOut": MEAN, "VarianceOut": VARIANCE, "SavedMean": MEAN, "SavedVariance": inverse}


BATCH = {"grads": ("X", "Scale", "Bias"), "loss": ("Y",)}
ROW = {"loss": ("Y",)}


def layer(x, begin, scale=None, bias=None):
    """A case of layer_norm."""
    axes = tuple(range(begin, x.ndim))
    y = normal(x, axes)
    shape = x.shape[begin:]
    if scale is not None:
        y = y * scale.reshape(shape)
    if bias is not None:
        y = y + bias.reshape(shape)
    given = {"Scale": scale, "Bias": bias}
    return {
        "inputs": {"X": x, **{s: v for s, v in given.items() if v is not None}}, "attrs": {"begin_norm_axis": begin},
        "outputs": {"Y": y, "Mean": x.mean(axes), "Variance": x.var(axes)}, **ROW,
    }  # fmt: skip


def group(x, groups, scale=None, bias=None, layout="NCHW"):
    """A case of group_norm."""
    parts = x.reshape(x.shape[0], groups, -1)
    y = normal(parts, (2,)).reshape(x.shape)
    y = y * (1 if scale is None else wide(scale, x.ndim)) + (0 if bias is None else wide(bias, x.ndim))
    given = {"Scale": scale, "Bias": bias}
    turn = last if layout == "NHWC" else np.asarray
    return {
        "inputs": {"X": turn(x), **{s: v for s, v in given.items() if v is not None}},
        "attrs": {"groups": groups, "data_layout": layout},
        "outputs": {"Y": turn(y), "Mean": parts.mean(2), "Variance": parts.var(2)}, **ROW,
    }  # fmt: skip


family(
    globals(),
    Differentiable,
    {
        "batch_norm": {"inputs": {"X": X, **RUNNING}, "outputs": trained(X), **BATCH},
        "batch_norm/rows": {"inputs": {"X": ROWS, **RUNNING}, "outputs": trained(ROWS), **BATCH},
        "batch_norm/volume": {
            "inputs": {"X": values(2, 4, 2, 1, 3), **RUNNING}, "outputs": trained(values(2, 4, 2, 1, 3)), **BATCH,
        },
        "batch_norm/channels_last": {
            "inputs": {"X": last(X), **RUNNING}, "attrs": {"data_layout": "NHWC"},
            "outputs": trained(X, layout="NHWC"), **BATCH,
        },
        "batch_norm/momentum": {
            "inputs": {"X": X, **RUNNING}, "attrs": {"momentum": 0.5}, "outputs": trained(X, 0.5), **BATCH,
        },
        "batch_norm/running": {
            "inputs": {"X": X, **RUNNING}, "attrs": {"use_global_stats": True}, "outputs": by_running(X), **BATCH,
        },
        "batch_norm/test_that_trains": {
            "inputs": {"X": X, **RUNNING}, "attrs": {"is_test": True, "trainable_statistics": True},
            "outputs": trained(X), **BATCH,
        },
        "layer_norm": layer(ROWS, 1),
        "layer_norm/scale_and_bias": layer(ROWS, 1, SCALE, BIAS),
        "layer_norm/scale": layer(X, 2, values(6, seed=5)),
        "layer_norm/bias": layer(X, 3, None, values(3, seed=6)),
        "layer_norm/images": layer(X, 1, values(24, seed=7), values(24, seed=8)),
        "group_norm": group(X, 2, SCALE, BIAS),
        "group_norm/plain": group(X, 2),
        "group_norm/one_group": group(X, 1, SCALE),
        "group_norm/each_channel": group(X, 4, None, BIAS),
        "group_norm/channels_last": group(X, 2, SCALE, BIAS, "NHWC"),
        "group_norm/rows": group(ROWS, 2, SCALE, BIAS),
    },
)  # fmt: skip
family(
    globals(),
    Forward,
    {
        "batch_norm/test": {"inputs": {"X": X, **RUNNING}, "attrs": {"is_test": True}, "outputs": by_running(X)},
        "batch_norm/momentum_of_a_variable": {
            "inputs": {"X": X, **RUNNING, "MomentumTensor": np.array([0.25])}, "outputs": trained(X, 0.25),
        },
    },
)  # fmt: skip


def test_half_precision_is_normalised_in_the_precision_of_the_moments():
    x = (100 + X).astype("float16")
    running = {slot: v.astype("float32") for slot, v in RUNNING.items()}
    got = run_op("batch_norm", {"X": x, **running})
    assert got["Y"].dtype == np.float16 and got["MeanOut"].dtype == np.float32
    expected = normal(x.astype("float64"), (0, 2, 3)) * wide(SCALE, 4) + wide(BIAS, 4)
    assert np.allclose(got["Y"], expected, atol=5e-3)


def test_running_moments_move_in_place():
    """MeanOut is Mean, as layers.batch_norm has it."""
    from fluidnb.program import Program
    from fluidnb.runtime import Executor, Scope
    from fluidnb.values import CPUPlace

    program, scope = Program(), Scope()
    block = program.global_block()
    block.create_var(name="x", shape=[-1, 4], dtype="float64")
    for name, value in (("scale", SCALE), ("bias", BIAS), ("mean", MEAN), ("variance", VARIANCE)):
        block.create_var(name=name, shape=[4], dtype="float64", persistable=True)
        scope.var(name).get_tensor().set(value.copy(), CPUPlace())
    for name in ("y", "saved_mean", "saved_variance"):
        block.create_var(name=name, dtype="float64")
    block.append_op(
        type="batch_norm",
        inputs={"X": "x", "Scale": "scale", "Bias": "bias", "Mean": "mean", "Variance": "variance"},
        outputs={"Y": "y", "MeanOut": "mean", "VarianceOut": "variance", "SavedMean": "saved_mean",
                 "SavedVariance": "saved_variance"},
    )  # fmt: skip
    exe = Executor(CPUPlace())
    mean, variance = MEAN, VARIANCE
    for keep in (False, False, True):
        exe.run(program, feed={"x": ROWS}, fetch_list=["y"], scope=scope, keep_scopes=keep)
        mean, variance = MOMENTUM * mean + REST * ROWS.mean(0), MOMENTUM * variance + REST * ROWS.var(0)
        assert np.allclose(scope.find_var("mean").get_tensor(), mean)
        assert np.allclose(scope.find_var("variance").get_tensor(), variance)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "error", "message"),
    [
        ("batch_norm", {"X": X[0, 0, 0], **RUNNING}, {}, RuleError, "2 to 5 dimensions"),
        ("batch_norm", {"X": values(3, 5), **RUNNING}, {}, RuleError, "one element for each channel"),
        ("batch_norm", {"X": X, **RUNNING}, {"data_layout": "NHWC"}, RuleError, "the channels are axis 3"),
        ("batch_norm", {"X": X, **RUNNING}, {"epsilon": 0.1}, OpValueError, "'epsilon' should be between"),
        ("batch_norm", {"X": X, **RUNNING}, {"fuse_with_relu": True}, OpValueError, "fuse_with_relu must be False"),
        ("layer_norm", {"X": ROWS}, {"begin_norm_axis": 2}, RuleError, "less than the dimensions of X"),
        ("layer_norm", {"X": ROWS, "Scale": values(5)}, {}, RuleError, "for each element of a row"),
        ("group_norm", {"X": X}, {"groups": 3}, RuleError, "must divide the number of channels"),
        ("group_norm", {"X": X}, {"groups": 0}, OpValueError, "greater than zero"),
        ("group_norm", {"X": X, "Bias": values(2)}, {"groups": 2}, RuleError, "one element for each channel"),
    ],
)
def test_what_does_not_fit_is_refused(op, inputs, attrs, error, message):
    with pytest.raises(error) as caught:
        run_op(op, inputs, attrs)
    assert message in str(caught.value)


def test_a_constant_channel_gives_the_bias_and_no_gradient():
    test = OpTest()
    test.op_type, test.inputs = "batch_norm", {"X": np.ones((3, 4)), **RUNNING}
    test.outputs = {"Y": np.broadcast_to(BIAS, (3, 4)).copy()}
    test.check_output()
    saved = run_op("batch_norm", test.inputs)
    operands = {"X": np.ones((3, 4)), "Scale": SCALE, "Bias": BIAS, "Y@GRAD": np.ones((3, 4)),
                "SavedMean": saved["SavedMean"], "SavedVariance": saved["SavedVariance"]}  # fmt: skip
    got = run_op("batch_norm_grad", operands, outputs=["X@GRAD", "Scale@GRAD", "Bias@GRAD"])
    assert not got["X@GRAD"].any() and not got["Scale@GRAD"].any() and np.array_equal(got["Bias@GRAD"], [3.0] * 4)


@pytest.mark.parametrize("layer", ["batch_norm", "layer_norm"])
def test_the_largest_epsilon_is_taken(layer):
    """The attribute is a float32, and that of 0.001 is a bit larger than 0.001; one that is larger yet is refused."""
    import fluidnb as fluid

    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.layers.data("x", [4])
        made = getattr(fluid.layers, layer)(x, epsilon=1e-3)
        assert made.op.attr("epsilon") == np.float32(1e-3)
        again = fluid.Program.parse_from_string(fluid.default_main_program().desc.serialize_to_string())
        assert again.global_block().ops[-1].attr("epsilon") == np.float32(1e-3)
        with pytest.raises(OpValueError, match="should be between 0.0 and 0.001"):
            getattr(fluid.layers, layer)(x, epsilon=float(np.nextafter(np.float32(1e-3), np.float32(1))))


@pytest.mark.parametrize("x", [np.array([[1.0, -2.0]]), np.array([[[[3.0]], [[4.0]]]])])
def test_batch_norm_leaves_one_element_of_each_channel_as_it_is(x):
    two = np.array([2.0, 3.0])
    given = {"X": x, "Scale": two, "Bias": two, "Mean": two, "Variance": two}
    got = run_op("batch_norm", given)
    np.testing.assert_array_equal(got["Y"], x)
    np.testing.assert_array_equal(got["MeanOut"], two)
    np.testing.assert_array_equal(got["VarianceOut"], two)
    slopes = run_op("batch_norm_grad", {
        "X": x, "Scale": two, "Bias": two, "SavedMean": two, "SavedVariance": two, "Y@GRAD": 5 * x,
    }, outputs=["X@GRAD", "Scale@GRAD", "Bias@GRAD"])  # fmt: skip
    np.testing.assert_array_equal(slopes["X@GRAD"], 5 * x)
    assert not slopes["Scale@GRAD"].any() and not slopes["Bias@GRAD"].any()
