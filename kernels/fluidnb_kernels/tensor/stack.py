"""stack and unstack: tensors of one shape laid along a new dimension, and taken apart again."""

from operator import itemgetter

from fluidnb.op import Attr, Binder, Context, default_grad, grad_op, op, product
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import agree, joint, one_axis


def _layer(b: Binder, rank: int, i: int) -> verbs.View:
    """The i-th layer of a tensor along ``axis``."""
    return itemgetter((*[slice(None)] * (b.attr("axis", 0) % rank), i, ...))


def _join(b: Binder, whole: str, parts: str) -> None:
    """Emit a copy of each part into its layer of the whole."""
    y = b[whole]
    for i, x in enumerate(b.all(parts)):
        verbs.copy(b, y, x, to=_layer(b, y.ndim, i))


def _part(b: Binder, whole: str, parts: str, count: int) -> None:
    """Emit a copy of each layer that is wanted out of the whole."""
    x = b[whole]
    for i in range(count):
        if b.wants(parts, i):
            verbs.copy(b, b.all(parts)[i], x, of=_layer(b, x.ndim, i))


def _stack_infer(c: Context) -> None:
    xs = c.all("X")
    shape, dtype = xs[0].shape, xs[0].dtype
    for i, x in enumerate(xs[1:], 1):
        c.require(
            agree(shape, x.shape) and x.dtype == dtype, "The inputs of stack must have the same shape and dtype.",
            expected=f"{dtype} {list(shape)}", received=f"{x.dtype} {list(x.shape)} of {c.name('X', i)}",
        )  # fmt: skip
        shape = joint(shape, x.shape)
    axis = one_axis(c, c.attr("axis"), len(shape) + 1)
    c.set("Y", (*shape[:axis], len(xs), *shape[axis:]), dtype)


@op(
    "stack",
    inputs={"X*": "tensors of one shape"},
    outputs={"Y": "all of them, one dimension more"},
    attrs={"axis": Attr("int", 0, "where the new dimension is; from the end when negative")},
    infer=_stack_infer,
    grad=default_grad("X", "Y@GRAD"),
    cuda=True,
)
def stack(b: Binder) -> None:
    """Y = the X along a new dimension ``axis``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("stack", {"X": [np.array([1.0, 2.0]), np.array([3.0, 4.0])]}, {"axis": 1})["Y"]
        array([[1., 3.],
               [2., 4.]])

    Source: Fluid's stack_op.
    """
    _join(b, "Y", "X")


@grad_op("stack_grad", cuda=True)
def stack_grad(b: Binder) -> None:
    """dX[i] = the i-th layer of dY."""
    _part(b, "Y@GRAD", "X@GRAD", len(b.all("X")))


def _unstack_infer(c: Context) -> None:
    x, number = c["X"], c.attr("num")
    axis = one_axis(c, c.attr("axis"), x.ndim)
    c.require(
        x.shape[axis] in (number, -1), "The number of outputs of unstack must be the size of X along axis.",
        expected=x.shape[axis], received=number,
    )  # fmt: skip
    wanted = len(c.outputs.get("Y", ()))
    c.require(wanted == number, "unstack must have num outputs.", expected=number, received=wanted)
    for i in range(number):
        c.set("Y", (*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, (), i)


@op(
    "unstack",
    inputs={"X": "at least one dimension"},
    outputs={"Y*": "its layers, one dimension less"},
    attrs={
        "axis": Attr("int", 0, "the dimension that is taken apart; from the end when negative"),
        "num": Attr("int", doc="how many layers there are", gt=0),
    },
    infer=_unstack_infer,
    grad=default_grad("Y@GRAD"),
    cuda=True,
)
def unstack(b: Binder) -> None:
    """Y[i] = the i-th layer of X along ``axis``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("unstack", {"X": [[1.0, 2.0], [3.0, 4.0]]}, {"axis": 1, "num": 2}, {"Y": 2})["Y"]
        [array([1., 3.]), array([2., 4.])]

    Source: Fluid's unstack_op.
    """
    _part(b, "X", "Y", b.attr("num"))


def _unstack_grad_infer(c: Context) -> None:
    gs = c.all("Y@GRAD")
    shape = gs[0].shape
    axis = one_axis(c, c.attr("axis", 0), len(shape) + 1)
    c.set("X@GRAD", (*shape[:axis], len(gs), *shape[axis:]), gs[0].dtype)


@grad_op("unstack_grad", infer=_unstack_grad_infer, cuda=True)
def unstack_grad(b: Binder) -> None:
    """dX = the dY as its layers."""
    _join(b, "X@GRAD", "Y@GRAD")


@c_code("stack", "stack_grad", "unstack", "unstack_grad")
def _stack_in_c(c: Context) -> dict[str, Constant]:
    type = c.definition.type
    part, outputs = {"stack": ("X", ""), "stack_grad": ("X", "X@GRAD"), "unstack": ("Y", "Y")}.get(type, ("Y@GRAD", ""))
    parts, axis = c.all(part), c.attr("axis", 0)
    shape, axis = parts[0].shape, axis % (len(parts[0].shape) + 1)
    there = [i for i in range(len(parts)) if not outputs or c.wants(outputs, i)]
    sizes = {"ROWS": product(shape[:axis]), "WIDTH": product(shape[axis:]), "LAYERS": len(parts), "PARTS": len(there)}
    return {**sizes, "LAYER": there}
