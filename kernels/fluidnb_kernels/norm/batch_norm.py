"""batch_norm: each channel normalised over a batch, with running moments for the test."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, kernel, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import allocate, ctype, each, settle, wide_dtype
from fluidnb_kernels.emit import FLOATS, apply
from fluidnb_kernels.norm.emit import LARGEST_EPSILON, View, emit_affine, emit_inverse, emit_moments, emit_norm_grad
from fluidnb_kernels.norm.launch import BIAS, CUDA, FIXED, SCALE, Channels, vector
from fluidnb_kernels.norm.second_gradients import SAVED, define, second_maker
from fluidnb_kernels.rules import same_shape, vectors
from fluidnb_kernels.sliding import CHANNEL_LAST, LAYOUTS


def _channel(c: Context) -> int:
    """The axis of the channels."""
    x = c["X"]
    return x.ndim - 1 if c.attr("data_layout", "NCHW") in CHANNEL_LAST else 1


def uses_running(c: Context) -> bool:
    """Whether the running moments normalise, not those of the batch."""
    test = c.attr("is_test", False) and not c.attr("trainable_statistics", False)
    return bool(test or c.attr("use_global_stats", False))


def _alone(c: Context) -> bool:
    """Whether training has one element of each channel: Paddle leaves it and the running moments as they are."""
    return c["X"].size == c["X"].shape[_channel(c)] and not uses_running(c)


def _view(b: Binder) -> View:
    axes = tuple(i for i in range(b["X"].ndim) if i != _channel(b))
    return View(b["X"].shape, axes, axes, uses_running(b))


def _infer(c: Context) -> None:
    x, layout = c["X"], c.attr("data_layout")
    c.require(
        2 <= x.ndim <= 5, "The input of batch_norm must have 2 to 5 dimensions.",
        expected="[batch, channels] or an image", received=list(x.shape),
    )  # fmt: skip
    hint = f"data_layout is {layout}: the channels are axis {_channel(c)} of X."
    vectors(c, ("Scale", "Bias", "Mean", "Variance"), x.shape[_channel(c)], hint=hint)
    c.check_inputs("MomentumTensor")
    c.set("Y", x.shape, x.dtype, c.lod("X"))
    mean = c["Mean"]
    for slot in ("MeanOut", "VarianceOut", "SavedMean", "SavedVariance"):
        c.set(slot, mean.shape, mean.dtype)
    c.set("ReserveSpace", (0,), x.dtype)


def _check_epsilon(value: float) -> str | None:
    return None if 0 <= value <= LARGEST_EPSILON else "'epsilon' should be between 0.0 and 0.001."


@op(
    "batch_norm",
    inputs={
        "X: float[n, c, …]": "[n, …, c] with data_layout NHWC",
        "Scale?: float[c]": "1 where it is left out",
        "Bias?: float[c]": "0 where it is left out",
        "Mean: float[c]": "running means",
        "Variance: float[c]": "running variances",
        "MomentumTensor?: float[1]": "replaces momentum",
    },
    outputs={
        "Y": "X normalised",
        "MeanOut": "Mean after the step, as a rule the same variable",
        "VarianceOut": "Variance after the step, as a rule the same variable",
        "SavedMean~": "[c] the means that were used",
        "SavedVariance~": "[c] one over the standard deviations that were used",
        "ReserveSpace?": "nothing; other libraries keep notes there",
    },
    attrs={
        "is_test": Attr("bool", False, "normalise with the running moments and leave them alone"),
        "momentum": Attr("float", 0.9, "momentum of the running mean and variance"),
        "epsilon": Attr("float", 1e-5, "keeps the divisor from zero", check=_check_epsilon),
        "data_layout": Attr("string", "NCHW", "where the channels are", enum=LAYOUTS),
        "use_global_stats": Attr("bool", False, "use the running moments in training too"),
        "trainable_statistics": Attr("bool", False, "use the moments of the batch although is_test is set"),
        "fuse_with_relu": Attr("bool", False, "ignored (compatibility); must be False"),
    },
    check=lambda a: "batch_norm does not apply relu: fuse_with_relu must be False." if a["fuse_with_relu"] else None,
    cost="4 * X",
    infer=_infer,
    grad=default_grad(
        "X", "Scale", "Bias", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace", "Y@GRAD",
        wrt=["X", "Scale", "Bias"],
    ),
    alias={"MeanOut": "Mean", "VarianceOut": "Variance"},
    dtype_slot="X",
)  # fmt: skip
def batch_norm(b: Binder) -> None:
    """Y = (X - mean) / sqrt(variance + epsilon) · Scale + Bias, for each channel.

    In training mean and (biased) variance are those of the batch, and the running ones move:
    MeanOut = momentum · Mean + (1 - momentum) · mean. In a test the running ones are used and stay.
    Training with one element of each channel gives Y = X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> one, zero = np.ones(1), np.zeros(1)
        >>> got = run_op("batch_norm", {"X": np.array([[1.0], [3.0]]), "Scale": one, "Bias": zero,
        ...                             "Mean": zero, "Variance": one})
        >>> got["Y"].ravel().round(3), got["MeanOut"].round(3)
        (array([-1.,  1.]), array([0.2]))

    Source: Ioffe and Szegedy, "Batch Normalization" (ICML 2015); Fluid's batch_norm_op.
    """
    x, y, mean, variance = b["X"], b["Y"], b["Mean"], b["Variance"]
    v, dtype = _view(b), mean.dtype
    saved = [b[s] if b[s] is not None else b.tmp(mean.shape, dtype) for s in ("SavedMean", "SavedVariance")]
    used, inverse = (a.reshape(v.moments) for a in saved)
    scale, bias = v.factor(b, "Scale"), v.factor(b, "Bias")
    if v.fixed or _alone(b):
        b(np.copyto, saved[0], mean)
        emit_inverse(b, variance.reshape(v.moments), b.attr("epsilon"), inverse)
        for slot, old in (("MeanOut", mean), ("VarianceOut", variance)):
            if b[slot] is not None:
                b(np.copyto, b[slot], old)
        return _emit_fixed(b, x, used, inverse, scale, bias, y) if v.fixed else b(np.copyto, y, x)
    spread, centred = b.tmp(v.moments, dtype), b.like(x, dtype)
    emit_moments(b, x, v.axes, used, spread, centred)
    _move(b, mean, saved[0], b["MeanOut"])
    _move(b, variance, spread.reshape(mean.shape), b["VarianceOut"])
    emit_inverse(b, spread, b.attr("epsilon"), inverse)
    emit_affine(b, centred, inverse, scale, bias, y)


def _emit_fixed(
    b: Binder, x: Array, mean: Array, inverse: Array, scale: Array | None, bias: Array | None, y: Array
) -> None:
    """Emit y = x · factor + shift, with both of each channel: two functions of an image where others take three.

    Real Paddle computes it so on CPUs.
    """
    factor = inverse if scale is None else apply(b, np.multiply, inverse, scale)
    shift = apply(b, np.multiply, mean, factor)
    if bias is not None:
        shift = apply(b, np.subtract, bias, shift)
    # What is of each channel comes first: native code goes through the image once then.
    scaled = y if y.dtype == factor.dtype else b.like(x, factor.dtype)
    b(np.multiply, x, factor, out=scaled)
    b(np.subtract if bias is None else np.add, scaled, shift, out=y)


def _move(b: Binder, old: Array, new: Array, out: Array | None) -> None:
    """Emit out = momentum · old + (1 - momentum) · new."""
    if out is None:
        return
    dtype = old.dtype
    given, t, u = b["MomentumTensor"], b.tmp(old.shape, dtype), b.tmp(old.shape, dtype)
    if given is None:
        momentum = dtype.type(b.attr("momentum"))
        stays, comes = b.const(float(momentum), dtype), b.const(float(dtype.type(1) - momentum), dtype)
    else:
        stays, comes = given.reshape(()), b.tmp((), dtype)
        b(np.subtract, b.const(1, dtype), stays, out=comes)
    b(np.multiply, old, stays, out=t)
    b(np.multiply, new, comes, out=u)
    b(np.add, t, u, out=out)


def _grad_infer(c: Context) -> None:
    x = c["X"]
    c.require(
        2 <= x.ndim <= 5, "The input of batch_norm_grad must have 2 to 5 dimensions.",
        expected="[batch, channels] or an image", received=list(x.shape),
    )  # fmt: skip
    vectors(c, ("Scale", "Bias", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"), x.shape[_channel(c)])
    same_shape(c, "X", "Y@GRAD")
    for slot in ("X", "Scale", "Bias"):
        v = c["Scale"] if c[slot] is None else c[slot]
        c.set(slot + "@GRAD", v.shape, v.dtype, c.lod(slot))


@grad_op(
    "batch_norm_grad", infer=_grad_infer, dtype_slot="X",
    grad=second_maker("batch_norm", SAVED | {"Mean": "MeanOut", "Variance": "VarianceOut"}), cuda=FLOATS,
)  # fmt: skip
def batch_norm_grad(b: Binder) -> None:
    """dScale = Σ dY · x̂; dBias = Σ dY; dX = Scale / σ · (dY - mean dY - x̂ · mean(dY · x̂)).

    Where the running moments were used they are constants: dX = Scale / σ · dY.
    """
    if _alone(b):
        for slot in ("X@GRAD", "Scale@GRAD", "Bias@GRAD"):
            if b[slot] is not None:
                verbs.fill(b, b[slot])
        return None if b["X@GRAD"] is None else verbs.copy(b, b["X@GRAD"], b["Y@GRAD"])
    if b.on_cuda:  # sums in parts, sums together, then X, which needs none where the running moments were used
        x, g, dx, scale, view = b["X"], b["Y@GRAD"], b["X@GRAD"], vector(b, "Scale", b["X"]), _channels(b)
        mean, inverse = vector(b, "SavedMean", x), vector(b, "SavedVariance", x)
        fixed, slopes = uses_running(b), (mean, mean)
        if not fixed or b["Scale@GRAD"] is not None or b["Bias@GRAD"] is not None:
            slopes = view.slopes(b, x, g, mean, inverse)
        if dx is not None:
            flags = np.int32(SCALE * (scale is not None) | FIXED * fixed)
            view.launch(b, "channel_grad", x, x, g, mean, inverse, mean if scale is None else scale, *slopes, dx, flags)
        return None
    x, g, mean, dx, v = b["X"], b["Y@GRAD"], b["SavedMean"], b["X@GRAD"], _view(b)
    inverse = b["SavedVariance"].reshape(v.moments)
    scale, dscale, dbias = (v.factor(b, slot) for slot in ("Scale", "Scale@GRAD", "Bias@GRAD"))
    centred = b.like(x, mean.dtype)
    b(np.subtract, x, mean.reshape(v.moments), out=centred)
    emit_norm_grad(b, centred, inverse, scale, g, v.axes, v.axes, None if v.fixed else dx, dscale, dbias)
    if v.fixed and dx is not None:
        b(np.multiply, g, inverse if scale is None else apply(b, np.multiply, inverse, scale), out=dx)
    return None


define("batch_norm", _view)


def _channels(b: Binder) -> Channels:
    """X as launches see it."""
    shape, axis = b["X"].shape, _channel(b)
    return Channels(product(shape[:axis]), shape[axis], product(shape[axis + 1 :]))


@c_code("batch_norm", "batch_norm_grad")
def _batch_norm_in_c(c: Context) -> dict[str, Constant]:
    shape, axis = c["X"].shape, _channel(c)
    sizes = zip(("OUTER", "C", "INNER"), (product(shape[:axis]), shape[axis], product(shape[axis + 1 :])), strict=True)
    numbers = {"EPSILON": c.attr("epsilon"), "MOMENTUM": c.attr("momentum")}
    return {**dict(sizes), **numbers, "FIXED": uses_running(c), "ALONE": _alone(c)}


@kernel("batch_norm", place="cuda", dtypes=FLOATS)
def batch_norm_on_cuda(b: Binder) -> None:
    """Moments in parts, moments together with the running ones, then X; a test needs no parts."""
    x, slots, view = b["X"], ("SavedMean", "SavedVariance", "MeanOut", "VarianceOut"), _channels(b)
    outs = [allocate(b, slot, (view.channels,), wide_dtype(x.dtype)) for slot in slots]
    running, epsilon = [vector(b, "Mean", x), vector(b, "Variance", x)], np.float64(b.attr("epsilon"))
    wide = ctype(outs[0].dtype)
    if uses_running(b) or _alone(b):
        each(b, CUDA, f"running_moments<{wide}>", view.channels, *running, *outs, epsilon)
    else:
        stays = vector(b, "MomentumTensor", x)
        if stays is None:
            stays = b.tmp((1,), outs[0].dtype)
            b(CUDA[f"number<{wide}>"], (1,), (1,), 0, stays, np.float64(b.attr("momentum")))
        numbers = np.int32(view.parts), epsilon
        found = view.moments(b, x)
        each(b, CUDA, f"batch_moments<{wide}>", view.channels, *found, *running, stays, *outs, *numbers)
    scale, bias = vector(b, "Scale", x), vector(b, "Bias", x)
    flags = np.int32(SCALE * (scale is not None) | BIAS * (bias is not None))
    factors = [outs[0] if v is None else v for v in (scale, bias)]
    if _alone(b):
        verbs.copy(b, b["Y"], x)
    else:
        view.launch(b, "channel_norm", x, x, *outs[:2], *factors, b["Y"], flags)
    for slot, out in zip(slots, outs, strict=True):
        settle(b, slot, out)
