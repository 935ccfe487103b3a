"""moving_average_abs_max_scale: how large a tensor's elements are, averaged over the runs so far."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, aliases, default_grad, grad_op, op
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import ctype, of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.axis_reduction import fold
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.math.norms import CUDA
from fluidnb_kernels.reduce import reduction_kernels
from fluidnb_kernels.tensor.strided_copy import move

_SLOPE = "stright_throuth_estimator_grad"  # as Paddle spells it


def _infer(c: Context) -> None:
    x, test = c["X"], c.attr("is_test")
    c.set("Out", x.shape, x.dtype, c.lod("X"))
    states = ("InAccum", "InState")
    c.require(
        test or all(c.has(s) for s in states), "moving_average_abs_max_scale continues from InAccum and InState.",
        expected="both, unless is_test", received=", ".join(s for s in states if c.has(s)) or "none",
    )  # fmt: skip
    c.check_inputs()
    if test and c.runtime:
        return  # the scale stays as training left it
    for slot in ("OutScale", "OutState", "OutAccum"):
        c.set(slot, (1,), x.dtype)


def average(
    x: Array, accum: Array, state: Array, rate: Array, new_accum: Array, new_state: Array, scale: Array
) -> None:
    """Write the next average; sums of maxima and weights may be updated in place."""
    new_accum[...] = rate * accum.reshape(-1) + np.maximum.reduce(np.absolute(x), None, initial=0)
    new_state[...] = rate * state.reshape(-1) + 1
    np.divide(new_accum, new_state, scale)


@op(
    "moving_average_abs_max_scale",
    inputs={
        "X": "any shape", "InAccum?: float[1]": "maxima so far, the last one counting most",
        "InState?: float[1]": "what they count",
    },
    outputs={
        "Out?": "X", "OutScale": "[1]: the average", "OutState?": "[1]: InState after this run",
        "OutAccum?": "[1]: InAccum after this run",
    },
    attrs={
        "moving_rate": Attr("float", 0.9, "exponential decay rate of the average"),
        "is_test": Attr("bool", False, "leave the average as it is"),
    },
    cost="X",
    infer=_infer,
    grad=default_grad("Out@GRAD", wrt=["X"], type=_SLOPE),
    dtypes=FLOATS,
    dtype_slot="X", cuda=FLOATS,
)  # fmt: skip
def moving_average_abs_max_scale(b: Binder) -> None:
    """OutAccum = rate · InAccum + max |X|; OutState = rate · InState + 1; OutScale = OutAccum / OutState; Out = X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> inputs = {"X": [1.0, -3.0], "InAccum": [2.0], "InState": [1.0]}
        >>> run_op("moving_average_abs_max_scale", inputs, {"moving_rate": 0.5})["OutScale"].round(3)
        array([2.667])

    Source: Jacob et al., "Quantization and Training of Neural Networks" (CVPR 2018); Fluid's
    moving_average_abs_max_scale_op.
    """
    x = b["X"]
    if b.on_cuda:  # a fold finds the largest size; one thread does the rest
        if b.wants("Out"):
            move(b, b["Out"], x)
        if b.attr("is_test"):
            return
        wide, slots = wide_dtype(x.dtype), ("OutAccum", "OutState", "OutScale")
        largest = b.tmp((1,), wide)
        fold(b, reduction_kernels.CUDA, reduction_kernels.LARGEST_SIZE, x, range(x.ndim), largest)
        before = [of_dtype(b, b[slot], wide) for slot in ("InAccum", "InState")]
        after = [writing_as(b, b[slot], wide) if b.wants(slot) else b.tmp((1,), wide) for slot in slots]
        b(CUDA[f"moving<{ctype(wide)}>"], (1,), (1,), 0, largest, *before, *after, np.float64(b.attr("moving_rate")))
        for slot, given in zip(slots, after, strict=True):
            if b.wants(slot):
                written_as(b, b[slot], given)
        return
    if b.wants("Out"):
        b(np.copyto, b["Out"], x)
    if b.attr("is_test"):
        return
    rate = b.const(b.attr("moving_rate"), x.dtype)
    outs = [b[s] if b.wants(s) else b.tmp((1,), x.dtype) for s in ("OutAccum", "OutState", "OutScale")]
    b(average, x, b["InAccum"], b["InState"], rate, *outs)


@grad_op(_SLOPE, infer=aliases({"X@GRAD": "Out@GRAD"}), cuda=True)
def straight_through(b: Binder) -> None:
    """dX = dOut."""
    verbs.copy(b, b["X@GRAD"], b["Out@GRAD"])
