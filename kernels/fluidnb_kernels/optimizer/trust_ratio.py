"""lamb, lars_momentum and dpsgd: steps scaled by the norms of parameter and gradient."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, Stream, normal, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.arithmetic import values
from fluidnb_kernels.cuda import THREADS, Function, Source, ctype, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS, apply, of_paddle2
from fluidnb_kernels.optimizer.adam import GUARD, INPUTS, OUTPUTS, POWERS, UPDATES, require_constants, skips
from fluidnb_kernels.optimizer.common import MULTI_PRECISION, PARAM, RATE, optimizer_op, running_mean, scalar, updates
from fluidnb_kernels.optimizer.launch import advance, beta_powers, gradient, one_number
from fluidnb_kernels.rules import agree

#: Blocks at most: each leaves two sums, which every block of the second pass adds up.
_BLOCKS = 1024


CUDA = Source(__file__, "trust_ratio.cu", typed(("lamb_moments lamb_step lars_sizes lars_step dpsgd_step", FLOATS)))


def _launch(b: Binder, name: str, like: Array, blocks: int, *args: Any) -> None:
    b(CUDA[f"{name}<{ctype(like.dtype)}>"], (blocks,), (THREADS,), 0, *args, np.int64(like.size))


def _sums(b: Binder, param: Array) -> tuple[int, Array]:
    """The number of blocks, and the workspace for their sums."""
    blocks = min(_BLOCKS, -(-param.size // THREADS))
    return blocks, b.tmp((2, blocks), wide_dtype(param.dtype))


def _adapts(c: Context) -> bool:
    """Whether lamb applies the ratio; Paddle 2 does not do so without weight decay."""
    return not of_paddle2(c) or c.attr("weight_decay") > 0 or c.attr("always_adapt")


def emit_lamb(b: Binder, powers: tuple[Array, Array], betas: tuple[float, float], epsilon: float, decay: float) -> None:
    """Emit the step of lamb without its powers."""
    param = b["Param"]
    if not param.size:
        return
    dtype, (blocks, partial) = param.dtype, _sums(b, param)
    grad, rate = of_dtype(b, gradient(b), dtype), one_number(b, "LearningRate")
    before = [of_dtype(b, b[slot], dtype) for slot in ("Moment1", "Moment2")]
    after = [writing_as(b, b[slot], dtype) for slot in ("Moment1Out", "Moment2Out")]
    direction, numbers = b.tmp(param.shape, partial.dtype), map(np.float64, (*betas, epsilon, decay))
    _launch(b, "lamb_moments", param, blocks, param, grad, *before, *powers, *after, direction, partial, *numbers)
    sums = np.int32(blocks if _adapts(b) else 0)  # without sums the ratio is 1
    _launch(b, "lamb_step", param, blocks, param, direction, rate, partial, b["ParamOut"], sums)
    for slot, array in zip(("Moment1Out", "Moment2Out"), after, strict=True):
        written_as(b, b[slot], array)


def emit_lars(b: Binder, i: int, rate: Array, decay: float) -> None:
    """Emit the step of lars_momentum for one parameter."""
    param = b.all("Param")[i]
    if not param.size:
        return
    dtype, (blocks, partial) = param.dtype, _sums(b, param)
    grad, velocity = (of_dtype(b, b.all(slot)[i], dtype) for slot in ("Grad", "Velocity"))
    out = b.all("VelocityOut")[i]
    new = writing_as(b, out, dtype)
    numbers = [b.attr("rescale_grad"), b.attr("mu"), b.attr("lars_coeff"), decay, b.attr("epsilon")]
    factor, *others = map(np.float64, numbers)
    _launch(b, "lars_sizes", param, blocks, param, grad, partial, factor)
    step = param, grad, velocity, of_dtype(b, rate, wide_dtype(dtype)), partial, b.all("ParamOut")[i], new
    _launch(b, "lars_step", param, blocks, *step, np.int32(blocks), factor, *others)
    written_as(b, out, new)


def emit_dpsgd(b: Binder, clip: float, noise: float) -> None:
    """Emit the step of dpsgd."""
    param = b["Param"]
    if not param.size:
        return
    blocks, partial = _sums(b, param)
    grad, rate = of_dtype(b, b["Grad"], param.dtype), one_number(b, "LearningRate")
    _launch(b, "lars_sizes", param, blocks, grad, grad, partial, np.float64(1))
    step = CUDA[f"dpsgd_step<{ctype(param.dtype)}>"]
    b(noisy, step, b.rng, noise, blocks, param, grad, rate, partial, b["ParamOut"], np.float64(clip))


def noisy(
    function: Function, stream: Stream, noise: float, blocks: int, param: Array, grad: Array, rate: Array,
    partial: Array, out: Array, clip: Any,
) -> None:  # fmt: skip
    """Launch the step of dpsgd with the number of this run."""
    draw = np.zeros(1)
    normal(stream, draw, 0.0, noise)
    operands = param, grad, rate, partial, out, np.int32(blocks), clip, np.float64(draw[0])
    function((blocks,), (THREADS,), 0, *operands, np.int64(param.size))


def trust(param: Array, direction: Array, out: Array) -> None:
    """Write how much longer the parameter is than the direction; 1 where one of them is zero."""
    a, b = np.sqrt(np.vdot(param, param)), np.sqrt(np.vdot(direction, direction))
    out[...] = a / b if a > 0 and b > 0 else 1


@optimizer_op(
    "lamb",
    UPDATES,
    inputs=INPUTS,
    outputs=OUTPUTS,
    attrs={
        "weight_decay": Attr("float", doc="how much of the parameter is added to the direction"),
        "beta1": Attr("float", 0.9, "exponential decay rate of Moment1"),
        "beta2": Attr("float", 0.999, "exponential decay rate of Moment2"),
        "epsilon": Attr("float", 1e-6, "keeps the divisor from zero"),
        "always_adapt": Attr("bool", False, "whether Paddle 2 applies the ratio without weight decay too"),
        "multi_precision": MULTI_PRECISION,
    },
    cost="12 * Param",
    infer=updates(UPDATES | POWERS),
    alias=POWERS,
    guard=GUARD,
    cuda=FLOATS,
)
def lamb(b: Binder) -> None:
    """r = (m' / (1 - Beta1Pow)) / (√(v' / (1 - Beta2Pow)) + eps) + decay · p; p' = p - lr · |p| / |r| · r.

    The running means m' and v' are those of adam.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1], "Moment1": [0.0], "Moment2": [0.0]}
        >>> x = {**x, "Beta1Pow": [0.9], "Beta2Pow": [0.999]}
        >>> run_op("lamb", x, {"weight_decay": 0.0})["ParamOut"].round(4)
        array([0.9])

    Source: You et al., Large batch optimization for deep learning (ICLR 2020); Fluid's lamb_op.
    """
    if skips(b):
        return
    if b.on_cuda:  # two launches, and one of a single thread that advances the powers
        current, betas = beta_powers(b), (b.attr("beta1"), b.attr("beta2"))
        emit_lamb(b, current, betas, b.attr("epsilon"), b.attr("weight_decay"))
        advance(b, current, betas)
        return
    powers = {"Beta1Pow": b.attr("beta1"), "Beta2Pow": b.attr("beta2")}
    slots = "Param", "Moment1", "Moment2"
    g, p, m, v, *left = values(b, gradient(b), *(b[slot] for slot in slots), *(scalar(b, slot) for slot in powers))
    left1, left2 = (1 - power for power in left)
    m = running_mean(m, g, b.attr("beta1"))
    m.into(b["Moment1Out"])
    v = running_mean(v, g * g, b.attr("beta2"))
    v.into(b["Moment2Out"])
    scale = np.sqrt(v / left2) + b.attr("epsilon")
    direction = m / left1 / scale + p * b.attr("weight_decay")
    rate = scalar(b, "LearningRate")
    if _adapts(b):
        ratio = b.tmp((), b["Param"].dtype)
        b(trust, b["Param"], direction.array, ratio)
        rate = apply(b, np.multiply, ratio, rate)
    (p - direction * rate).into(b["ParamOut"])
    for slot, beta in powers.items():
        if b.wants(slot + "Out"):
            b(np.copyto, b[slot + "Out"], apply(b, np.multiply, b[slot], b.const(beta, b[slot].dtype)))


def _infer(c: Context) -> None:
    c.check_inputs("LearningRate")
    for i, (param, grad) in enumerate(zip(c.all("Param"), c.all("Grad"), strict=True)):
        c.require(
            agree(param.shape, grad.shape), "Param and Grad must have the same shape.",
            expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {tuple(grad.shape)}",
        )  # fmt: skip
        velocity = c.all("Velocity")[i]
        c.require(  # kernels of a device go through both by one number
            agree(velocity.shape, param.shape), "Param and Velocity must have the same shape.",
            expected=f"shape {tuple(param.shape)}, the shape of Param", received=f"shape {tuple(velocity.shape)}",
        )  # fmt: skip
        c.set("ParamOut", param.shape, param.dtype, (), i)
        c.set("VelocityOut", velocity.shape, velocity.dtype, (), i)


def local_rate(param: Array, grad: Array, rate: Array, coeff: float, decay: float, epsilon: float, out: Array) -> None:
    """Write the learning rate of a parameter: the common one without decay, or where a size is zero."""
    p, g = np.sqrt(np.vdot(param, param)), np.sqrt(np.vdot(grad, grad))
    trusted = decay > 0 and p > 0 and g > 0
    out[...] = rate.item() * coeff * p / (g + decay * p + epsilon) if trusted else rate.item()


@op(
    "lars_momentum",
    inputs={
        "Param*: float": "parameters, any shape",
        "Grad*: float": "their gradients, same shapes",
        "Velocity*: float": "their velocities, same shapes",
        "LearningRate*: float[1]": "one number each",
        "MasterParam*?: float32": "copies of float16 parameters",
    },
    outputs={
        "ParamOut*": "the parameters after the step",
        "VelocityOut*": "the velocities after the step",
        "MasterParamOut*?": "their float32 copies after the step",
    },
    attrs={
        "mu": Attr("float", doc="momentum: decay rate of the velocity"),
        "lars_coeff": Attr("float", 0.001, "how far to trust the ratio of sizes"),
        "lars_weight_decay": Attr("floats", [0.0005], "weight decay, one for each parameter or one for all"),
        "epsilon": Attr("float", 0.0, "keeps the divisor from zero"),
        "rescale_grad": Attr("float", 1.0, "factor of the gradient"),
        "multi_precision": Attr("bool", False, "whether MasterParam is used"),
    },
    cost="5 * Param",
    infer=_infer,
    alias={"ParamOut": "Param", "VelocityOut": "Velocity"},
    inplace=True,
    dtype_slot="Param",
    side_effect=True,
    cuda=FLOATS,
)
def lars_momentum(b: Binder) -> None:
    """r = lr · coeff · |p| / (|g| + decay · |p| + eps); v' = mu · v + r · (g + decay · p); p' = p - v'.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = {"Param": [3.0], "Grad": [1.0], "Velocity": [0.0], "LearningRate": [1.0]}
        >>> run_op("lars_momentum", x, {"mu": 0.9, "lars_coeff": 0.5, "lars_weight_decay": [1.0]})["ParamOut"]
        array([1.5])

    Source: You, Gitman, Ginsburg, Large batch training (2017); Fluid's lars_momentum_op.
    """
    if b.on_cuda:  # two launches for each parameter
        decays, rates = _decays(b), b.all("LearningRate")
        for i in range(len(b.all("Param"))):
            emit_lars(b, i, rates[min(i, len(rates) - 1)], decays[min(i, len(decays) - 1)])
        return
    decays = _decays(b)
    for i, (param, grad, velocity) in enumerate(zip(b.all("Param"), b.all("Grad"), b.all("Velocity"), strict=True)):
        dtype, decay = param.dtype, decays[min(i, len(decays) - 1)]
        rates, rate = b.all("LearningRate"), b.tmp((), dtype)
        if b.attr("rescale_grad") != 1.0:
            grad = apply(b, np.multiply, grad, b.const(b.attr("rescale_grad"), dtype))
        common = rates[min(i, len(rates) - 1)]
        b(local_rate, param, grad, common, b.attr("lars_coeff"), decay, b.attr("epsilon"), rate)
        t = apply(b, np.multiply, param, b.const(decay, dtype))
        b(np.add, t, grad, out=t)
        b(np.multiply, t, rate, out=t)
        out = b.all("VelocityOut")[i]
        b(np.add, apply(b, np.multiply, velocity, b.const(b.attr("mu"), dtype)), t, out=out)
        b(np.subtract, param, out, out=b.all("ParamOut")[i])


def _decays(b: Binder) -> list[float]:
    decays = b.attr("lars_weight_decay")
    return decays if isinstance(decays, list) else [decays]  # Fluid wrote one number


def step(param: Array, grad: Array, rate: Array, stream: Stream, clip: float, noise: float, out: Array) -> None:
    """Take a step along the gradient, held to a length, with a random number added."""
    draw = np.zeros(1)
    normal(stream, draw, 0.0, noise)
    length = np.sqrt(np.square(grad, dtype=np.float64).sum())
    scale = max(length / clip, 1.0)
    out[...] = param - rate * (grad / scale + draw[0]).astype(grad.dtype)


@optimizer_op(
    "dpsgd",
    {"ParamOut": "Param"},
    inputs=PARAM | {"Grad: float": "its gradient, same shape"} | RATE,
    attrs={
        "clip": Attr("float", 10.0, "the longest gradient, in the Euclidean norm"),
        "batch_size": Attr("float", 16.0, "how many samples the gradient is of", gt=0),
        "sigma": Attr("float", 1.0, "standard deviation of the noise for one sample"),
        "seed": Attr("int", 0, "0 for the program's"),
    },
    cost="4 * Param",
    inplace=False,
    random=True,
    cuda=FLOATS,
)
def dpsgd(b: Binder) -> None:
    """p' = p - lr · (g / max(1, |g| / clip) + noise / batch_size), one normal number of deviation sigma for all.

    Example:
        >>> from fluidnb.testing import run_op
        >>> rate = {"Param": [1.0], "Grad": [2.0], "LearningRate": [0.1]}
        >>> run_op("dpsgd", rate, {"sigma": 0.0})["ParamOut"]
        array([0.8])

    Source: Abadi and others, "Deep Learning with Differential Privacy" (CCS 2016); Fluid's dpsgd_op.
    """
    if b.on_cuda:  # the gradient's length in one pass, the step in another; the number is the host's
        return emit_dpsgd(b, b.attr("clip"), b.attr("sigma") / b.attr("batch_size"))
    noise = b.attr("sigma") / b.attr("batch_size")
    b(step, b["Param"], b["Grad"], scalar(b, "LearningRate"), b.rng, b.attr("clip"), noise, b["ParamOut"])


@c_code("lamb", file="update.c")
def _lamb_in_c(c: Context) -> dict[str, Constant]:
    require_constants(c)
    numbers = {name.upper(): c.attr(name) for name in ("beta1", "beta2", "epsilon")}
    return {"COUNT": c["Param"].size, **numbers, "DECAY": c.attr("weight_decay"), "ADAPTS": int(_adapts(c))}
