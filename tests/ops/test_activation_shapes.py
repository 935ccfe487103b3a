"""Activations with attributes: pieces of lines, smooth bends, inverse functions."""

import math

import numpy as np
import pytest

from fluidnb import layers
from fluidnb.backward import gradients
from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.program import Program, program_guard
from fluidnb.runtime import Executor, Scope
from fluidnb.testing import OpTest, run_op
from fluidnb.values import VarType
from tests.ops.cases import Differentiable, distinct, family, values
from tests.tools.refused import refused

BOTH = distinct(3, 4, step=0.17)  # no element on a corner of any function below
INSIDE = values(3, 4, low=-0.9, high=0.9)
POSITIVE = values(2, 3, low=0.3, high=3.0)


def logistic(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x)


def f32(x):
    """A float attribute as it is stored: in float32."""
    return float(np.float32(x))


def elu(x, alpha):
    return np.where(x > 0, x, alpha * np.expm1(x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


#: type -> X, attributes, function
FUNCTIONS = {
    "tan": (INSIDE, {}, np.tan),
    "acos": (INSIDE, {}, np.arccos),
    "asin": (INSIDE, {}, np.arcsin),
    "atan": (BOTH, {}, np.arctan),
    "sinh": (BOTH, {}, np.sinh),
    "cosh": (BOTH, {}, np.cosh),
    "log1p": (POSITIVE, {}, np.log1p),
    "expm1": (BOTH, {}, np.expm1),
    "log2": (POSITIVE, {}, np.log2),
    "log10": (POSITIVE, {}, np.log10),
    "brelu": (BOTH, {"t_min": -0.5, "t_max": 0.4}, lambda x: np.clip(x, -0.5, f32(0.4))),
    "relu6": (BOTH, {"threshold": 0.75}, lambda x: np.clip(x, 0, 0.75)),
    "leaky_relu": (BOTH, {"alpha": 0.25}, lambda x: np.where(x > 0, x, 0.25 * x)),
    "leaky_relu/steep": (BOTH, {"alpha": 2.0}, lambda x: np.where(x > 0, x, 2.0 * x)),
    "hard_sigmoid": (BOTH, {"slope": 0.75, "offset": 0.5}, lambda x: np.clip(0.75 * x + 0.5, 0, 1)),
    "hard_shrink": (BOTH, {"threshold": 0.5}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (BOTH, {"lambda": 0.5}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "thresholded_relu": (BOTH, {"threshold": 0.5}, lambda x: np.where(x > 0.5, x, 0)),
    "hard_swish": (5 * BOTH, {}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "logsigmoid": (BOTH, {}, lambda x: -np.log1p(np.exp(-x))),
    "softplus": (BOTH, {"beta": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    "softplus/line": (BOTH, {"threshold": 0.5}, lambda x: np.where(x > 0.5, x, np.log1p(np.exp(x)))),
    "soft_relu": (BOTH, {"threshold": 40.0}, lambda x: np.log1p(np.exp(x))),
    "softsign": (BOTH, {}, lambda x: x / (1 + np.abs(x))),
    "stanh": (BOTH, {"scale_a": 0.5, "scale_b": 1.5}, lambda x: 1.5 * np.tanh(0.5 * x)),
    "tanh_shrink": (BOTH, {}, lambda x: x - np.tanh(x)),
    "swish": (BOTH, {"beta": 1.5}, lambda x: x * logistic(1.5 * x)),
    "silu": (BOTH, {}, lambda x: x * logistic(x)),
    "elu": (BOTH, {"alpha": 0.5}, lambda x: elu(x, 0.5)),
    "celu": (BOTH, {"alpha": 0.5}, lambda x: np.maximum(x, 0) + 0.5 * np.expm1(np.minimum(x, 0) / 0.5)),
    "selu": (BOTH, {"scale": 1.25, "alpha": 1.5}, lambda x: 1.25 * elu(x, 1.5)),
    "mish": (BOTH, {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "mish/line": (BOTH, {"threshold": 0.5}, lambda x: x * np.tanh(np.where(x > 0.5, x, np.log1p(np.exp(x))))),
    "erf": (BOTH, {}, erf),
    "gelu": (BOTH, {}, lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
    "gelu/tanh": (BOTH, {"approximate": True}, gelu_tanh),
    "pow": (POSITIVE, {"factor": 2.5}, lambda x: x**2.5),
    "pow/square": (BOTH, {"factor": 2.0}, np.square),
    "pow/nothing": (BOTH, {"factor": 0.0}, np.ones_like),
}
family(
    globals(),
    Differentiable,
    {name: {"inputs": {"X": x}, "attrs": a, "outputs": {"Out": f(x)}} for name, (x, a, f) in FUNCTIONS.items()},
)

X = distinct(2, 6, 1, 2)
SLOPE, CHANNELS, EACH = np.array([0.25]), values(6, seed=1), values(6, 1, 2, seed=2)


def prelu(alpha):
    return np.where(X > 0, X, alpha * X)


def largest(x, groups):
    n, c, *rest = x.shape
    return x.reshape(n, c // groups, groups, *rest).max(2)


def log_softmax(x, axis):
    return x - np.log(np.exp(x).sum(axis, keepdims=True))


family(
    globals(),
    Differentiable,
    {
        "prelu": {"inputs": {"X": X, "Alpha": SLOPE}, "outputs": {"Out": prelu(0.25)}},
        "prelu/channel": {
            "inputs": {"X": X, "Alpha": CHANNELS}, "attrs": {"mode": "channel"},
            "outputs": {"Out": prelu(CHANNELS.reshape(6, 1, 1))},
        },
        "prelu/element": {
            "inputs": {"X": X, "Alpha": EACH}, "attrs": {"mode": "element"}, "outputs": {"Out": prelu(EACH)},
        },
        "maxout": {"inputs": {"X": X}, "attrs": {"groups": 3}, "outputs": {"Out": largest(X, 3)}},
        "maxout/last": {
            "inputs": {"X": X}, "attrs": {"groups": 2, "axis": -1}, "outputs": {"Out": X.max(-1, keepdims=True)},
        },
        "log_softmax": {"inputs": {"X": X[0]}, "outputs": {"Out": log_softmax(X[0], -1)}},
        "log_softmax/axis": {
            "inputs": {"X": X[0]}, "attrs": {"axis": 0}, "outputs": {"Out": log_softmax(X[0], 0)},
        },
        "log_softmax/scalar": {"inputs": {"X": np.array(0.7)}, "outputs": {"Out": np.array(0.0)}},
        "softmax/scalar": {"inputs": {"X": np.array(0.7)}, "outputs": {"Out": np.array(1.0)}},
    },
)  # fmt: skip


#: type -> attributes, corners, the gradient there; measured in Paddle 2.6.2
CORNERS = {
    "relu": ({}, [0.0, -0.0], [0, 0]),
    "abs": ({}, [0.0], [0]),
    "brelu": ({"t_min": -1.0, "t_max": 2.0}, [-1.0, 2.0], [0, 0]),
    "relu6": ({"threshold": 6.0}, [0.0, 6.0], [0, 0]),
    "leaky_relu": ({"alpha": 0.25}, [-1.0, -0.0, 0.0, 1.0], [0.25, 1, 1, 1]),
    "hard_sigmoid": ({"slope": 0.25, "offset": 0.5}, [-2.0, 2.0], [0, 0]),
    "hard_shrink": ({"threshold": 0.5}, [-0.5, 0.5], [0, 0]),
    "softshrink": ({"lambda": 0.5}, [-0.5, 0.5], [0, 0]),
    "thresholded_relu": ({"threshold": 1.0}, [1.0], [0]),
    "hard_swish": ({"threshold": 6.0, "scale": 6.0, "offset": 3.0}, [-3.0, 3.0], [0, 1]),
    "elu": ({"alpha": 0.5}, [0.0], [0.5]),
    "celu": ({"alpha": 0.5}, [0.0], [1]),
    "clip": ({"min": -1.0, "max": 2.0}, [-1.0, 2.0], [0, 0]),
}


@pytest.mark.parametrize("op", CORNERS)
def test_the_gradient_at_a_corner(op):
    attrs, x, want = CORNERS[op]
    out = run_op(op, {"X": x}, attrs)["Out"]
    given = {"X": x, "Out": out, "Out@GRAD": np.ones(len(x))}
    assert run_op(f"{op}_grad", given, attrs, outputs=["X@GRAD"])["X@GRAD"].tolist() == want


def test_large_numbers_do_not_overflow():
    x = np.array([-1000.0, 1000.0])
    for op, want in (("softplus", [0, 1000]), ("logsigmoid", [-1000, 0]), ("elu", [-1, 1000]), ("silu", [0, 1000])):
        assert run_op(op, {"X": x})["Out"].tolist() == want, op


def test_the_factor_of_pow_as_a_variable():
    got = run_op("pow", {"X": [2.0, 3.0], "FactorTensor": np.array([3.0], "float32")}, {"factor": 7.0})
    assert got["Out"].tolist() == [8, 27]


def test_whole_numbers_have_powers():
    assert run_op("pow", {"X": np.array([2, 3])}, {"factor": 3.0})["Out"].tolist() == [8, 27]


@pytest.mark.parametrize(
    ("op", "attrs", "here", "there"),
    [
        ("swish", {"beta": 3.0}, lambda x: x * logistic(3 * x), lambda x: x * logistic(x)),
        ("relu6", {"threshold": 0.25}, lambda x: np.clip(x, 0, 0.25), lambda x: np.clip(x, 0, 6)),
        ("hard_swish", {"threshold": 2.0, "scale": 4.0, "offset": 1.0}, lambda x: x * np.clip(x + 1, 0, 2) / 4,
         lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ],
)  # fmt: skip
def test_a_program_of_paddle_2_does_not_look_at_some_attributes(op, attrs, here, there):
    program = Program()
    block = program.global_block()
    x, y = (block.create_var(name=name, shape=[3], dtype="float64", stop_gradient=False) for name in "xy")
    block.append_op(type=op, inputs={"X": [x]}, outputs={"Out": [y]}, attrs=attrs)
    with program_guard(program):
        (dx,) = gradients([y], [x])
    x, h = np.array([0.5, -0.75, 7.0]), 1e-6
    for version, function in ((0, here), (2006002, there)):
        program.desc.pb.version.version = version
        program = Program.parse_from_string(program.desc.serialize_to_string())
        got, slope = Executor().run(program, feed={"x": x}, fetch_list=["y", dx.name], scope=Scope())
        np.testing.assert_allclose(got, function(x))
        np.testing.assert_allclose(slope, (function(x + h) - function(x - h)) / (2 * h), atol=1e-6)


def test_activations_of_whole_numbers_are_refused():
    with pytest.raises(EnforceNotMet, match="does not have kernel"):
        run_op("softsign", {"X": np.array([1, 2])})


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("prelu", {"X": X, "Alpha": np.ones(2)}, {}, "does not fit mode 'all'"),
        ("prelu", {"X": X, "Alpha": np.ones(5)}, {"mode": "channel"}, "does not fit mode 'channel'"),
        ("maxout", {"X": X}, {"groups": 4}, "should be a multiple of groups"),
        ("maxout", {"X": X}, {"groups": 2, "axis": 4}, "must name a dimension"),
        ("log_softmax", {"X": X}, {"axis": 4}, "must name a dimension"),
    ],
)
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, inputs, attrs)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_mish_stays_1_for_large_numbers(dtype):
    x = np.array([30, 100, 1e4, 1e8], dtype)
    np.testing.assert_array_equal(run_op("mish", {"X": x})["Out"], x)
    got = run_op("mish_grad", {"X": x, "Out@GRAD": np.ones_like(x)}, {"threshold": 20.0}, outputs=["X@GRAD"])
    np.testing.assert_allclose(got["X@GRAD"], 1, atol=1e-8)


def test_leaky_relu_without_slope_takes_infinite_numbers():
    got = run_op("leaky_relu", {"X": [np.inf, -np.inf, 1.0, -1.0]}, {"alpha": 0.0})["Out"]
    assert got.tolist() == [np.inf, -np.inf, 1, 0]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("type", ["exp", "expm1", "log", "log2", "log10", "log1p"])
def test_floats_of_integers(type: str, dtype: str) -> None:
    test = OpTest()
    test.op_type, test.inputs = type, {"X": np.array([[1, 2], [9, 30]], dtype)}
    test.outputs = {"Out": getattr(np, type)(test.inputs["X"].astype("float32"))}
    test.check_output()
    assert run_op(type, test.inputs)["Out"].dtype == "float32"


@pytest.mark.parametrize("type", ["sqrt", "sigmoid", "sin"])
def test_other_functions_take_no_integers(type: str) -> None:
    with pytest.raises(EnforceNotMet, match="does not have kernel for"):
        run_op(type, {"X": np.array([1, 2])})


def test_no_gradient_reaches_integers() -> None:
    main = Program()
    with program_guard(main, Program()):
        x = layers.data("x", [2], dtype="int64", stop_gradient=False)
        y = layers.exp(x)
        loss = layers.reduce_sum(y * layers.data("w", [2], stop_gradient=False))
        assert y.dtype == VarType.FP32 and [v and v.name for v in gradients([loss], [y])] == ["exp_0.tmp_0@GRAD"]
        with pytest.raises(OpValueError, match="x cannot have a gradient"):
            gradients([loss], [x])
