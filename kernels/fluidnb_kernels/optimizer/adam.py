"""adam, adamw and adamax: steps along a running mean of the gradient, over its size."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, get_op, kernel, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import SelectedRows
from fluidnb.values.copies import on_host
from fluidnb_kernels import verbs
from fluidnb_kernels.arithmetic import Operand
from fluidnb_kernels.emit import FLOATS, apply, of_paddle2
from fluidnb_kernels.optimizer import launch
from fluidnb_kernels.optimizer.common import (
    GRAD,
    MULTI_PRECISION,
    PARAM,
    RATE,
    optimizer_op,
    running_mean,
    scalar,
    step_formula,
    updates,
)
from fluidnb_kernels.rows.values import merged, value_array

#: The slots of optimizers with two moments and the powers of two decay rates.
UPDATES = {"ParamOut": "Param", "Moment1Out": "Moment1", "Moment2Out": "Moment2"}
INPUTS = PARAM | GRAD | RATE | {
    "Moment1: float": "running mean of the gradient",
    "Moment2: float": "running mean of its square",
    "Beta1Pow: float[1]": "beta1 to the power of the step",
    "Beta2Pow: float[1]": "beta2 to the power of the step",
    "MasterParam?: float32": "copy of a float16 parameter",
    "SkipUpdate?: bool[1]": "whether everything stays as it is",
}  # fmt: skip
OUTPUTS = {
    "Beta1PowOut?": "Beta1Pow for the next step; without it a scale operator advances Beta1Pow",
    "Beta2PowOut?": "Beta2Pow for the next step",
    "MasterParamOut?": "its float32 copy after the step",
}
POWERS = {"Beta1PowOut": "Beta1Pow", "Beta2PowOut": "Beta2Pow"}


#: Inputs that stand for attributes.
_AS_VARIABLES = {"beta1": "Beta1Tensor", "beta2": "Beta2Tensor", "epsilon": "EpsilonTensor"}
GUARD = values_of("SkipUpdate", *_AS_VARIABLES.values())


def skips(b: Binder) -> bool:
    """Whether SkipUpdate is true; then emits copies of what is another variable."""
    if not b.has("SkipUpdate") or not on_host(b["SkipUpdate"]).any():
        return False
    for out, source in (UPDATES | POWERS).items():
        if b.wants(out) and b[out] is not b[source]:
            verbs.copy(b, b[out], b[source])
    return True


def require_constants(c: Context) -> None:
    """Requires that no inputs stand for attributes, for code in which attributes are constants."""
    for slot in filter(c.has, GUARD.slots):
        c.fail(
            f"{c.definition.type} reads Input({slot}), and its numbers are fixed in C.",
            expected="numbers as attributes", received=c.name(slot),
        )  # fmt: skip


def _numbers(b: Binder) -> tuple[float, float, float]:
    """beta1, beta2 and epsilon: variables where they are given, else attributes."""
    beta1, beta2, epsilon = (
        float(on_host(b[slot]).reshape(-1)[0]) if b.has(slot) else b.attr(name) for name, slot in _AS_VARIABLES.items()
    )
    return beta1, beta2, epsilon


def _early(b: Binder) -> bool:
    """Whether powers are advanced before they are read: Paddle 2 does so in place, for sparse gradients."""
    known = b.is_rows("Grad") and of_paddle2(b) and not b.attr("use_global_beta_pow")
    return known and b.outputs.get("Beta1PowOut") == b.inputs["Beta1Pow"]


def step_lazily(
    grad: SelectedRows, kept: tuple[Array, Array, Array], shares: tuple[Array, ...], step: Array, epsilon: Array
) -> None:
    """Take a step in the rows that have a gradient, and leave all others and their moments alone."""
    rows, g = merged(grad.rows_, value_array(grad))
    param, m, v = kept
    beta1, rest1, beta2, rest2 = shares
    m[rows] = m[rows] * beta1 + g * rest1
    v[rows] = v[rows] * beta2 + g * g * rest2
    param[rows] -= m[rows] / (np.sqrt(v[rows]) + epsilon) * step


@optimizer_op(
    "adam",
    UPDATES,
    inputs=INPUTS | {
        "Beta1Tensor?: float[1]": "beta1 as a variable",
        "Beta2Tensor?: float[1]": "beta2 as a variable",
        "EpsilonTensor?: float[1]": "epsilon as a variable",
    },
    outputs=OUTPUTS,
    attrs={
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment1"),
        "beta2": Attr("float", 0.999, "exponential decay rate of Moment2"),
        "epsilon": Attr("float", 1e-8, "keeps the divisor from zero"),
        "lazy_mode": Attr("bool", False, "whether rows without gradient are left alone"),
        "min_row_size_to_use_multithread": Attr("long", 1000, "accepted, without effect"),
        "multi_precision": MULTI_PRECISION,
        "use_global_beta_pow": Attr("bool", False, "whether the powers stay; another operator advances them"),
    },
    cost="8 * Param",
    infer=updates(UPDATES | POWERS),
    alias=POWERS, guard=GUARD, cuda=FLOATS,
)  # fmt: skip
def adam(b: Binder) -> None:
    """m' = b1 m + (1 - b1) g; v' = b2 v + (1 - b2) g²; p' = p - lr c2 / c1 · m' / (sqrt(v') + eps c2).

    Here c1 = 1 - Beta1Pow and c2 = sqrt(1 - Beta2Pow) undo the bias of the first steps.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("adam", {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment1": [0.0], "Moment2": [0.0],
        ...                 "Beta1Pow": [0.9], "Beta2Pow": [0.999]})["ParamOut"].round(4)
        array([0.9])

    Source: Kingma and Ba, "Adam" (ICLR 2015), in the efficient order of its section 2; Fluid's adam_op.
    """
    if skips(b):
        return None
    if b.on_cuda:  # one launch, and one of a single thread that advances the powers
        return emit_step_on_cuda(b)
    return emit_step(b, b["Param"], scalar(b, "LearningRate"))


def emit_step(b: Binder, param: Array, rate: Array) -> None:
    """Emit the step of `adam` and of its relatives."""
    m, v = b["Moment1"], b["Moment2"]
    dtype, numbers, shared = param.dtype, _numbers(b), b.attr("use_global_beta_pow")
    beta1, beta2 = map(dtype.type, numbers[:2])
    b1, b2, one = b.const(float(beta1), dtype), b.const(float(beta2), dtype), b.const(1, dtype)
    rest1, rest2 = b.const(float(dtype.type(1) - beta1), dtype), b.const(float(dtype.type(1) - beta2), dtype)
    power1, power2 = scalar(b, "Beta1Pow"), scalar(b, "Beta2Pow")
    gap, c1, c2, epsilon, step, next1, next2 = (b.tmp((), dtype) for _ in range(7))
    # the scalars first, so that the large calls stay neighbours; none in place, which numpy does slowly for one element
    b(np.multiply, power1, b1, out=next1)
    b(np.multiply, power2, b2, out=next2)
    if _early(b):
        power1, power2 = next1, next2
    b(np.subtract, one, power2, out=gap)
    b(np.sqrt, gap, out=c2)
    b(np.multiply, c2, b.const(numbers[2], dtype), out=epsilon)
    b(np.multiply, c2, rate, out=gap)
    b(np.subtract, one, power1, out=c1)
    b(np.divide, gap, c1, out=step)
    for slot, value in (("Beta1PowOut", next1), ("Beta2PowOut", next2)):
        if b.wants(slot) and not (shared and b[slot] is b[slot[:-3]]):
            b(np.copyto, b[slot], b[slot[:-3]] if shared else value)
    if b.attr("lazy_mode") and b.is_rows("Grad"):
        for slot, old in (("Param", param), ("Moment1", m), ("Moment2", v)):
            if b[slot + "Out"] is not old:
                b(np.copyto, b[slot + "Out"], old)
        kept = (b["ParamOut"], b["Moment1Out"], b["Moment2Out"])
        b(step_lazily, b["Grad"], kept, (b1, rest1, b2, rest2), step, epsilon)
        return
    grad, t, u = launch.gradient(b), b.like(param), b.like(param)
    b(np.multiply, m, b1, out=t)
    b(np.multiply, grad, rest1, out=u)
    b(np.add, t, u, out=b["Moment1Out"])
    b(np.multiply, grad, grad, out=u)
    b(np.multiply, u, rest2, out=t)
    b(np.multiply, v, b2, out=u)
    b(np.add, u, t, out=b["Moment2Out"])
    b(np.sqrt, b["Moment2Out"], out=t)
    b(np.add, t, epsilon, out=t)
    b(np.divide, b["Moment1Out"], t, out=u)
    b(np.multiply, u, step, out=t)
    b(np.subtract, param, t, out=b["ParamOut"])


def emit_step_on_cuda(b: Binder, decay: float = 0.0, ratio: float = 1.0) -> None:
    """Emit launches for the step of `adam` and of its relatives."""
    beta1, beta2, epsilon = _numbers(b)
    betas = beta1, beta2
    powers, slots = launch.beta_powers(b), ("Moment1", "Moment2")
    early, shared = _early(b), b.attr("use_global_beta_pow")
    used = launch.advance(b, powers, betas) if early else powers
    if b.attr("lazy_mode") and b.is_rows("Grad"):
        launch.emit_decay(b, decay, ratio)
        for slot in slots:
            launch.copied(b, b[slot], b[slot + "Out"])
        launch.emit_sparse_update(b, "adam", [b[slot + "Out"] for slot in slots], (*betas, epsilon, 0, ratio), used)
    else:
        states = [(b[slot], b[slot + "Out"]) for slot in slots]
        launch.emit_update(b, "adam", states, (*betas, epsilon, -decay, ratio), used)
    if not early:
        launch.advance(b, powers, (1.0, 1.0) if shared else betas)


_ADAM = get_op("adam")


@op(
    "adamw",
    inputs={s.key: s.phrase for s in _ADAM.inputs.values()},
    outputs={s.key: s.phrase for s in _ADAM.outputs.values()},
    attrs={
        **_ADAM.attrs,
        "lr_ratio": Attr("float", 1.0, "factor of the learning rate"),
        "coeff": Attr("float", 0.01, "weight decay"),
        "with_decay": Attr("bool", False, "whether there is weight decay"),
    },
    cost="9 * Param",
    infer=_ADAM.infer,
    alias=_ADAM.alias,
    guard=GUARD,
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
    cuda=FLOATS,
)
def adamw(b: Binder) -> None:
    """p' = the step of adam from p · (1 - lr · coeff), with lr = lr_ratio · LearningRate.

    Example:
        >>> from fluidnb.testing import run_op
        >>> state = {"Moment1": [0.0], "Moment2": [0.0], "Beta1Pow": [0.9], "Beta2Pow": [0.999]}
        >>> step = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], **state}
        >>> run_op("adamw", step, {"with_decay": True, "coeff": 0.5})["ParamOut"].round(4)
        array([0.85])

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (ICLR 2019); Paddle's adamw_op.
    """
    if skips(b):
        return None
    if b.on_cuda:
        return emit_step_on_cuda(b, b.attr("coeff") if b.attr("with_decay") else 0.0, b.attr("lr_ratio"))
    param, rate = b["Param"], scalar(b, "LearningRate")
    if b.attr("lr_ratio") != 1:
        rate = apply(b, np.multiply, rate, b.const(b.attr("lr_ratio"), rate.dtype))
    if b.attr("with_decay"):
        share = apply(b, np.multiply, rate, b.const(-b.attr("coeff"), rate.dtype))
        param = apply(b, np.multiply, param, apply(b, np.add, share, b.const(1, share.dtype)))
    return emit_step(b, param, rate)


@optimizer_op(
    "adamax",
    {"ParamOut": "Param", "MomentOut": "Moment", "InfNormOut": "InfNorm"},
    inputs=PARAM | GRAD | RATE | {
        "Moment: float": "running mean of the gradient",
        "InfNorm: float": "the largest gradient, fading",
        "Beta1Pow: float[1]": "beta1 to the power of the step; a scale operator advances it",
    },
    attrs={
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment"),
        "beta2": Attr("float", 0.999, "how much of InfNorm stays"),
        "epsilon": Attr("float", 1e-8, "keeps the divisor from zero"),
    },
    master=True,
    cost="6 * Param",
)  # fmt: skip
@step_formula("Param Grad LearningRate Beta1Pow Moment InfNorm", "MomentOut InfNormOut ParamOut")
def adamax(p: Operand, g: Operand, rate: Operand, power: Operand, m: Operand, norm: Operand) -> Iterator[Operand]:
    """m' = b1 m + (1 - b1) g; n' = max(b2 n + eps, |g|); p' = p - lr / (1 - Beta1Pow) · m' / n'.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment": [0.0], "InfNorm": [0.0]}
        >>> run_op("adamax", {**x, "Beta1Pow": [0.9]})["ParamOut"].round(4)
        array([0.9])

    Source: Kingma and Ba, "Adam" (ICLR 2015), section 7.1; Fluid's adamax_op.
    """
    m = running_mean(m, g, p.attr("beta1"))
    yield m
    step = rate / (1 - power)
    norm = np.maximum(norm * p.attr("beta2") + p.attr("epsilon"), abs(g))
    yield norm
    yield p - m / norm * step


@kernel("adamax", place="cuda", dtypes=FLOATS)
def adamax_on_cuda(b: Binder) -> None:
    states = [(b[slot], b[slot + "Out"]) for slot in ("Moment", "InfNorm")]
    power = launch.one_number(b, "Beta1Pow")
    launch.emit_update(b, "adamax", states, (b.attr("beta1"), b.attr("beta2"), b.attr("epsilon")), (power, power))


@c_code("adam", "adamw", function="adam", file="update.c")
@c_code("adamax", file="update.c")
def _adam_in_c(c: Context) -> dict[str, Constant]:
    require_constants(c)
    decay = c.attr("coeff", 0.0) if c.attr("with_decay", False) else 0.0
    numbers = {name.upper(): c.attr(name) for name in ("beta1", "beta2", "epsilon")}
    advances = int(not c.attr("use_global_beta_pow", False))
    rest = {"DECAY": decay, "RATIO": c.attr("lr_ratio", 1.0), "ADVANCES": advances}
    return {"COUNT": c["Param"].size, **numbers, **rest}
