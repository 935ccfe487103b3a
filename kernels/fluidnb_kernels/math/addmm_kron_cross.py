"""addmm, mv, kron and cross: products of two tensors in other ways than matmul's."""

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, broadcast_dim, default_grad, grad_op, kernel, like_forward, op
from fluidnb_kernels.cuda import ctype, each, lines_along, of_dtype, wide_dtype, writing_as, written_as
from fluidnb_kernels.elementwise import launch as elementwise
from fluidnb_kernels.elementwise.broadcast import aligned, summed
from fluidnb_kernels.emit import FLOATS, apply, reading, writing, written
from fluidnb_kernels.math import matrix_products
from fluidnb_kernels.math.matmul import gemm
from fluidnb_kernels.math.matrix_products import Side, multiplied
from fluidnb_kernels.math.same_shape import scaled
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS
from fluidnb_kernels.rules import checked, fits, one_axis, same_shape
from fluidnb_kernels.tensor import strided_copy


def _addmm_infer(c: Context) -> None:
    c.check_inputs("X", "Y")
    extra, out = c["Input"], (c["X"].shape[0], c["Y"].shape[1])
    sizes = zip(extra.shape[::-1], out[::-1], strict=False)
    fits = 1 <= extra.ndim <= 2 and all(n in (1, -1, m) or m == -1 for n, m in sizes)
    c.require(
        fits, "Input(Input) of addmm cannot be added to the product of X and Y.",
        expected=f"{list(out)}, or 1 in their place", received=list(extra.shape),
    )  # fmt: skip
    c.set("Out", out, c["X"].dtype)


def _times(b: Binder, name: str, x: Array) -> Array:
    """Emit a factor that an attribute gives times an array; the array itself where it is 1."""
    factor = b.attr(name, 1.0)
    return x if factor == 1 else apply(b, np.multiply, x, b.const(factor, x.dtype))


@op(
    "addmm",
    inputs={"Input: float[m, n]": "sizes of 1 are repeated", "X: float[m, k]": "", "Y: float[k, n]": ""},
    outputs={"Out": "[m, n]"},
    attrs={"Alpha": Attr("float", 1.0, "factor of the product"), "Beta": Attr("float", 1.0, "factor of Input")},
    cost="Out * X[1:] + 2 * Out",
    infer=_addmm_infer,
    grad=default_grad("Input", "X", "Y", "Out@GRAD"),
    dtype_slot="X",
    cuda=FLOATS,
)
def addmm(b: Binder) -> None:
    """Out = Beta · Input + Alpha · X · Y.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("addmm", {"Input": [[1.0]], "X": [[1.0, 2.0]], "Y": [[3.0], [4.0]]}, {"Alpha": 2.0})["Out"]
        array([[23.]])

    Source: Paddle's addmm_op.
    """
    if b.on_cuda:  # Input is laid out as Out, and the product added to it
        out, extra = b["Out"], b["Input"]
        strided_copy.move(b, out, extra, of=strided_copy.layout_of(extra, aligned(out.shape, extra.shape, -1)[1]))
        return multiplied(b, Side(b["X"]), Side(b["Y"]), out, b.attr("Alpha"), b.attr("Beta"))
    out = b["Out"]
    product = b.tmp(out.shape, out.dtype)
    gemm(b, b["X"], b["Y"], product)
    b(np.add, _times(b, "Beta", b["Input"]), _times(b, "Alpha", product), out=out)


@grad_op("addmm_grad", dtype_slot="X")
def addmm_grad(b: Binder) -> None:
    """dInput = Beta · dOut, summed where it was repeated; dX = Alpha · dOut · Yᵀ; dY = Alpha · Xᵀ · dOut."""
    g = b["Out@GRAD"]
    scaled = _times(b, "Alpha", g)
    if b.wants("X@GRAD"):
        gemm(b, scaled, b["Y"].T, b["X@GRAD"])
    if b.wants("Y@GRAD"):
        gemm(b, b["X"].T, scaled, b["Y@GRAD"])
    if b.wants("Input@GRAD"):
        to = b["Input@GRAD"]
        shape = (1,) * (2 - to.ndim) + to.shape
        axes = tuple(i for i in range(2) if shape[i] != g.shape[i])
        if axes:
            total = b.tmp(shape, g.dtype)
            b(np.add.reduce, g, axes, None, total, True)
            g = total
        b(np.copyto, to, _times(b, "Beta", g).reshape(to.shape))


@op(
    "mv",
    inputs={"X: float[m, n]": "", "Vec: any[n]": ""},
    outputs={"Out": "[m]"},
    cost="X",
    infer=checked(lambda c: c.set("Out", c["X"].shape[:1], c["X"].dtype)),
    grad=default_grad("X", "Vec", "Out@GRAD"),
    cuda=FLOATS,
)
def mv(b: Binder) -> None:
    """Out = X · Vec.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mv", {"X": [[1.0, 2.0], [3.0, 4.0]], "Vec": [1.0, 10.0]})["Out"]
        array([21., 43.])

    Source: Paddle's mv_op.
    """
    if b.on_cuda:
        return multiplied(b, Side(b["X"]), _down(b["Vec"]), b["Out"].reshape(b["Out"].size, 1))
    b(np.dot, b["X"], b["Vec"], b["Out"])


@grad_op("mv_grad", cuda=FLOATS)
def mv_grad(b: Binder) -> None:
    """dX = dOut · Vecᵀ; dVec = Xᵀ · dOut."""
    if b.on_cuda:
        g, to = b["Out@GRAD"], b["Vec@GRAD"]
        if b.wants("X@GRAD"):
            multiplied(b, _down(g), _down(b["Vec"]).turned, b["X@GRAD"])
        if to is not None:
            multiplied(b, Side(b["X"], True), _down(g), to.reshape(to.size, 1))
        return
    g = b["Out@GRAD"]
    if b.wants("X@GRAD"):
        b(np.multiply, g.reshape(-1, 1), b["Vec"], out=b["X@GRAD"])
    if b.wants("Vec@GRAD"):
        b(np.dot, b["X"].T, g, b["Vec@GRAD"])


def _apart(c: Context) -> tuple[list[int], list[int], list[int]]:
    """Sizes of X, Y and Out of kron with a dimension for X and one for Y where Out has one."""
    x, y = c["X"].shape, c["Y"].shape
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    pairs = list(zip(x, y, strict=True))
    return [n for m, _ in pairs for n in (m, 1)], [n for _, m in pairs for n in (1, m)], [n for p in pairs for n in p]


def _kron_infer(c: Context) -> None:
    whole = _apart(c)[2]
    c.set("Out", [-1 if -1 in (m, n) else m * n for m, n in zip(whole[::2], whole[1::2], strict=True)], c["X"].dtype)


@op(
    "kron",
    inputs={"X": "at least one dimension", "Y": "at least one dimension"},
    outputs={"Out": "the sizes of X times those of Y, aligned at the last one"},
    cost="Out",
    infer=_kron_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
    cuda=NUMBERS,
)
def kron(b: Binder) -> None:
    """Out = Kronecker's product: each element of X replaced by itself times Y.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("kron", {"X": [1.0, 10.0], "Y": [1.0, 2.0]})["Out"]
        array([ 1.,  2., 10., 20.])

    Source: Paddle's kron_op.
    """
    if b.on_cuda:
        return elementwise.binary(b, elementwise.CUDA, "f::mul", b["X"], b["Y"], b["Out"], _kron_shapes(b))
    sx, sy, so = _apart(b)
    out = writing(b, b["Out"], so)
    b(np.multiply, reading(b, b["X"], sx), reading(b, b["Y"], sy), out=out)
    written(b, b["Out"], out)


@grad_op("kron_grad", cuda=FLOATS)
def kron_grad(b: Binder) -> None:
    """dX = the sum of dOut · Y over each copy of Y; dY = the sum of dOut · X over all copies."""
    if b.on_cuda:
        g = b["Out@GRAD"]
        return elementwise.slopes(b, "mul", (b["X"], b["Y"], g, g), (b["X@GRAD"], b["Y@GRAD"]), _kron_shapes(b))
    sx, sy, so = _apart(b)
    g = reading(b, b["Out@GRAD"], so)
    for slot, other, shape, mine in (("X", "Y", sy, sx), ("Y", "X", sx, sy)):
        if b.wants(slot + "@GRAD"):
            to = writing(b, b[slot + "@GRAD"], mine)
            axes = tuple(range(slot == "X", len(so), 2))
            b(np.add.reduce, apply(b, np.multiply, g, reading(b, b[other], shape)), axes, None, to, True)
            written(b, b[slot + "@GRAD"], to)


def _cross_axis(c: Context) -> int:
    """The dimension of size 3 of the vectors."""
    shape, axis = c["X"].shape, c.attr("dim", 9)
    if axis == 9:
        found = [i for want in (3, -1) for i, n in enumerate(shape) if n == want]
        c.require(found, "No dimension of Input(X) of cross has the size 3.", expected="a 3", received=list(shape))
        return found[0]
    axis = one_axis(c, axis, len(shape), "dim")
    c.require(
        shape[axis] in (3, -1), "cross multiplies vectors of three numbers.", expected="3 along Attr(dim)",
        received=f"{shape[axis]} along {axis}",
    )  # fmt: skip
    return axis


def _cross_infer(c: Context) -> None:
    same_shape(c, "X", "Y")
    shape = tuple(broadcast_dim(m, n) for m, n in zip(c["X"].shape, c["Y"].shape, strict=True))
    _cross_axis(c)
    c.set("Out", shape, c["X"].dtype, c.lod("X"))


def _cross(b: Binder, x: Array, y: Array, out: Array) -> None:
    """Emit out = x × y, where it is wanted."""
    if out is None:
        return
    axis = _cross_axis(b)
    if b.on_cuda:
        lines, _, inner = lines_along(x.shape, axis)
        each(b, matrix_products.CUDA, f"cross<{ctype(out.dtype)}>", lines, x, y, out, np.int64(inner))
        return

    def part(a: Array, i: int) -> Array:
        return a[(slice(None),) * axis + (slice(i % 3, i % 3 + 1),)]

    for i in range(3):
        plus = apply(b, np.multiply, part(x, i + 1), part(y, i + 2))
        b(np.subtract, plus, apply(b, np.multiply, part(x, i + 2), part(y, i + 1)), out=part(out, i))


@op(
    "cross",
    inputs={"X: float": "size 3 along dim", "Y": "the same shape"},
    outputs={"Out": "the same shape"},
    attrs={"dim": Attr("int", 9, "the dimension of the vectors; 9 takes the first one of size 3")},
    cost="2 * Out",
    infer=_cross_infer,
    grad=default_grad("X", "Y", "Out@GRAD"),
    cuda=NUMBERS,
)
def cross(b: Binder) -> None:
    """Out = X × Y, the vector at right angles to both.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("cross", {"X": [1.0, 0.0, 0.0], "Y": [0.0, 1.0, 0.0]})["Out"]
        array([0., 0., 1.])

    Source: Paddle's cross_op.
    """
    _cross(b, b["X"], b["Y"], b["Out"])


def _cross_infer_grad(c: Context) -> None:
    for slot in ("Y", "Out@GRAD"):
        fits(c, slot, c["X"].shape, f"Input({slot}) of cross_grad must have the shape of Input(X).")
    like_forward(c)


@grad_op("cross_grad", infer=_cross_infer_grad, cuda=FLOATS)
def cross_grad(b: Binder) -> None:
    """dX = Y × dOut; dY = dOut × X."""
    g = b["Out@GRAD"]
    _cross(b, b["Y"], g, b["X@GRAD"])
    _cross(b, g, b["X"], b["Y@GRAD"])


@kernel("addmm_grad", place="cuda", dtypes=FLOATS)
def addmm_grad_on_cuda(b: Binder) -> None:
    g, alpha, beta = b["Out@GRAD"], b.attr("Alpha", 1.0), b.attr("Beta", 1.0)
    if b.wants("X@GRAD"):
        multiplied(b, Side(g), Side(b["Y"], True), b["X@GRAD"], alpha)
    if b.wants("Y@GRAD"):
        multiplied(b, Side(b["X"], True), Side(g), b["Y@GRAD"], alpha)
    if b.wants("Input@GRAD"):
        to = b["Input@GRAD"]
        axes = summed(aligned(g.shape, to.shape, -1)[1], g.shape)
        if not axes:
            return scaled(b, g, to, beta)
        sums = writing_as(b, to, wide_dtype(to.dtype))
        strided_copy.fold(b, of_dtype(b, g, sums.dtype), sums, g.shape, axes)
        scaled(b, sums, sums, beta)
        written_as(b, to, sums)


def _down(x: Array) -> Side:
    """A vector as a column."""
    return Side(x.reshape(x.size, 1))


def _kron_shapes(b: Binder) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    sx, sy, so = _apart(b)
    return tuple(sx), tuple(sy), tuple(so)
