"""Launches of steps whose length follows the sizes of whole tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Binder, Stream, normal
from fluidnb_kernels.cuda import THREADS, Function, Source, ctype, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.optimizer.launch import gradient, one_number

#: Blocks at most: each leaves two sums, which every block of the second pass adds up.
_BLOCKS = 1024


CUDA = Source(__file__, "trust_ratio.cu", typed(("lamb_moments lamb_step lars_sizes lars_step dpsgd_step", FLOATS)))


def _launch(b: Binder, name: str, like: Array, blocks: int, *args: Any) -> None:
    b(CUDA[f"{name}<{ctype(like.dtype)}>"], (blocks,), (THREADS,), 0, *args, np.int64(like.size))


def _sums(b: Binder, param: Array) -> tuple[int, Array]:
    """The number of blocks, and the workspace for their sums."""
    blocks = min(_BLOCKS, -(-param.size // THREADS))
    return blocks, b.tmp((2, blocks), wide_dtype(param.dtype))


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
    _launch(b, "lamb_step", param, blocks, param, direction, rate, partial, b["ParamOut"], np.int32(blocks))
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
