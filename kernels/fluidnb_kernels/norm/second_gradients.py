"""Gradients of the gradients of normalisations: one row for each operator.

With x̂ the normalised values, r one over their deviation and P(v) = v - mean v - x̂ · mean(v · x̂), the gradient is
dX = r · P(h) with h = dY · Scale. P is its own transpose, and x̂ changes by r · P of a change of X.
"""

from collections.abc import Callable, Mapping

from fluidnb.op import Array, Binder, aliases, grad_op, second_grad
from fluidnb.op.grad import GradMaker
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.formulas import Formulas, formulas
from fluidnb_kernels.norm.emit import View, inverse_of


def second_maker(type: str, moments: Mapping[str, str]) -> GradMaker:
    """Maker of the gradient of a normalisation's gradient, with the slots that Paddle's have."""
    reads = {"X": "X", "Scale": "Scale", **moments, "DY": "Y@GRAD"}
    arriving = {"DD" + slot: f"{slot}@GRAD" for slot in ("X", "Scale", "Bias")}
    return second_grad(type + "_grad_grad", reads, arriving, {"DX": "X", "DScale": "Scale", "DDY": "Y@GRAD"})


#: The slots of operators that keep one over the deviations.
SAVED = {"SavedMean": "SavedMean", "SavedVariance": "SavedVariance"}


def define(
    type: str, view: Callable[[Binder], View], mean: str = "SavedMean", spread: str = "SavedVariance",
    inverted: bool = True,
) -> None:  # fmt: skip
    """Register the gradient of a normalisation's gradient; ``inverted`` as for `normalise`."""

    name = type + "_grad_grad"

    @grad_op(name, infer=aliases({"DX": "X", "DScale": "Scale", "DDY": "DY"}), dtype_slot="X", cuda=FLOATS)
    def grad_grad(b: Binder) -> None:
        """DDY = Scale · r · P(DDX) + DDScale · x̂ + DDBias; DScale = Σ DY · r · P(DDX); DX by what x̂ and r do to dX."""
        f, v = formulas(b, b.on_cuda, b["X"]), view(b)
        saved = f.read(b[spread])
        r = (saved if inverted else inverse_of(b, saved, b.attr("epsilon", 1e-5))).reshape(v.moments)
        centred = f.sub(f.read(b["X"], v.shape), f.read(b[mean], v.moments))
        _emit(b, f, v, f.mul(centred, r), r)


def _emit(b: Binder, f: Formulas, v: View, hat: Array, r: Array) -> None:
    """Emit the three results from x̂ and r."""
    factor = v.factors
    g = f.read(b["DY"], v.shape)
    scale, dds, ddb = (None if b[s] is None else f.read(b[s], factor) for s in ("Scale", "DDScale", "DDBias"))
    ddx = None if b["DDX"] is None else f.read(b["DDX"], v.shape)

    def projected(x: Array) -> Array:
        if v.fixed:
            return f.mul(x, r)
        x = f.sub(f.sub(x, f.mean(x, v.axes)), f.mul(hat, f.mean(f.mul(x, hat), v.axes)))
        return f.mul(x, r)

    pushed = None if ddx is None else projected(ddx)
    if b.wants("DDY"):
        first = pushed if pushed is None or scale is None else f.mul(pushed, scale)
        f.write(b["DDY"], f.sum_of([first, None if dds is None else f.mul(hat, dds), ddb], v.shape))
    if b.wants("DScale"):
        f.write(b["DScale"], f.zeros(factor) if pushed is None else f.total(f.mul(g, pushed), v.shared))
    if not b.wants("DX"):
        return
    inner, last = None if dds is None else f.mul(g, dds), None
    if ddx is not None and not v.fixed:
        h = g if scale is None else f.mul(g, scale)
        mixed = f.add(f.mul(ddx, f.mean(f.mul(h, hat), v.axes)), f.mul(h, f.mean(f.mul(ddx, hat), v.axes)))
        inner = f.sub(f.zeros((1,)) if inner is None else inner, f.mul(mixed, r))
        last = f.mul(hat, f.mul(f.mean(f.mul(ddx, projected(h)), v.axes), r))
    dx = f.zeros(v.shape) if inner is None else projected(inner)
    f.write(b["DX"], dx if last is None else f.sub(dx, last))
