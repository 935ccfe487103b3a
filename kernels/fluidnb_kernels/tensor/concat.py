"""concat, split, partial_concat and partial_sum: tensors one after another along a dimension, and parts of them."""

from collections.abc import Collection
from itertools import accumulate
from operator import itemgetter

import numpy as np

from fluidnb.op import EMPTY, Attr, Binder, Context, OpDef, OpDesc, grad_op, op, product, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb.op.context import Lod
from fluidnb.op.grad import default_grad, second_grad
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda.axis_reduction import fold as reduced
from fluidnb_kernels.reduce.reduction_kernels import CUDA as REDUCE
from fluidnb_kernels.reduce.reduction_kernels import NUMBERS, TOTAL
from fluidnb_kernels.rules import checked, integer, integers, one_axis, require_fixed


def _axis(c: Context) -> int:
    axis, n = integer(c, "axis", "AxisTensor"), c.all("X")[0].ndim
    c.require(
        -n <= axis < n, "Attr(axis) of concat must name a dimension of X.",
        expected=f"{-n} to {n - 1}", received=axis, hint=f"axis={n - 1} is the last one.",
    )  # fmt: skip
    return int(axis % n)


def _concat_infer(c: Context, out: str = "Out") -> None:
    xs = c.all("X")
    if c.has("AxisTensor") and not c.runtime:
        return c.set(out, [-1] * xs[0].ndim, xs[0].dtype)
    axis = _axis(c)
    shape = list(xs[0].shape)
    for i, x in enumerate(xs[1:], 1):
        c.require(
            x.ndim == len(shape), "The inputs of concat must have the same rank.",
            expected=f"rank {len(shape)}, as {c.name('X')}", received=f"rank {x.ndim} of {c.name('X', i)}",
        )  # fmt: skip
        for d in range(len(shape)):
            if d == axis:
                shape[d] = -1 if -1 in (shape[d], x.shape[d]) else shape[d] + x.shape[d]
                continue
            if shape[d] != x.shape[d] and -1 not in (shape[d], x.shape[d]):
                c.fail(
                    f"The inputs of concat must have the same size in every dimension but {axis}.",
                    expected=f"size {shape[d]} in dimension {d}", received=f"size {x.shape[d]} of {c.name('X', i)}",
                    hint=_axis_hint([x.shape for x in xs]),
                )  # fmt: skip
            shape[d] = max(shape[d], x.shape[d])
    return c.set(out, shape, xs[0].dtype, c.lod("X") if axis else _joined(c, len(xs)))


def _joined(c: Context, count: int) -> Lod:
    """The sequences of all X one after another; none where one X has none."""
    lods = [c.lod("X", i) for i in range(count)]
    if not all(lods):
        return ()
    c.require(
        len({len(lod) for lod in lods}) == 1, "The inputs of concat must have the same number of LoD levels.",
        expected=f"{len(lods[0])}, as {c.name('X')}", received=[len(lod) for lod in lods],
    )  # fmt: skip
    if not c.runtime:
        return lods[0]
    joined = [list(level) for level in lods[0]]
    for lod in lods[1:]:
        for level, more in zip(joined, lod, strict=True):
            level += [level[-1] + n for n in more[1:]]
    return tuple(map(tuple, joined))


def _axis_hint(shapes: list[tuple[int, ...]]) -> str:
    """The axis along which the inputs fit, if there is one."""
    differ = {d for shape in shapes for d, (n, m) in enumerate(zip(shape, shapes[0], strict=False)) if n != m}
    if len(differ) == 1 and len({len(shape) for shape in shapes}) == 1:
        return f"axis={differ.pop()} joins them."
    return "the inputs may differ along the axis alone: cut the others to one size with layers.slice."


def _parts(b: Binder) -> list[verbs.View]:
    """For each X the part of the whole that it is."""
    axis = _axis(b)
    return verbs.parts_along(axis, [x.shape[axis] for x in b.all("X")])


@op(
    "concat",
    inputs={"X*": "tensors that differ in one size at most", "AxisTensor?": "the axis as a variable of one element"},
    outputs={"Out": "all of them, one after another"},
    attrs={"axis": Attr("int", 0, "the dimension along which they follow each other")},
    infer=_concat_infer,
    grad=default_grad("X", "AxisTensor", "Out@GRAD", wrt=["X"]),
    guard=values_of("AxisTensor"),
    dtype_slot="X",
    cuda=True,
)
def concat(b: Binder) -> None:
    """Out = the X one after another along ``axis``; the LoD is that of the first, or joined with the rows.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("concat", {"X": [np.array([1.0]), np.array([2.0, 3.0])]})["Out"]
        array([1., 2., 3.])

    Source: Fluid's concat_op.
    """
    for x, part in zip(b.all("X"), _parts(b), strict=True):
        verbs.copy(b, b["Out"], x, to=part)


def _again(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    """Maker of the gradient's gradient: concat itself, where every X has a gradient."""
    wanted = [i for i, name in enumerate(desc.outs.get("X@GRAD", [])) if name != EMPTY]
    if len(wanted) == len(desc.ins["X"]):
        return second_grad("concat", {"AxisTensor": "AxisTensor"}, {"X": "X@GRAD"}, {"Out": "Out@GRAD"})(
            desc, definition, no_grad
        )
    reads, gives = {"X": "X", "AxisTensor": "AxisTensor"}, {"DDOut": "Out@GRAD"}
    [made] = second_grad("concat_grad_grad", reads, {"DDX": "X@GRAD"}, gives)(desc, definition, no_grad)
    made.set_attr("given", wanted)
    return [made]


def _again_infer(c: Context) -> None:
    _concat_infer(c, "DDOut")
    if c.runtime:
        given, arrived = c.attr("given", []), c.all("DDX")
        xs = c.all("X")
        c.require(
            len(given) == len(arrived) and all(0 <= i < len(xs) for i in given)
            and all(xs[i].shape == v.shape for i, v in zip(given, arrived, strict=True)),
            "Attr(given) of concat_grad_grad must name the X that each DDX belongs to.",
            expected=f"{len(arrived)} numbers from 0 to {len(xs) - 1}, and the shapes of these X", received=given,
        )  # fmt: skip


@grad_op("concat_grad", guard=values_of("AxisTensor"), dtype_slot="X", grad=_again, cuda=True)
def concat_grad(b: Binder) -> None:
    """dX = the part of dOut that is X."""
    for i, part in enumerate(_parts(b)):
        if b.wants("X@GRAD", i):
            verbs.copy(b, b.all("X@GRAD")[i], b["Out@GRAD"], of=part)


@grad_op("concat_grad_grad", infer=_again_infer, guard=values_of("AxisTensor"), dtype_slot="X", cuda=True)
def concat_grad_grad(b: Binder) -> None:
    """DDOut = the DDX one after another, in the places of the X that ``given`` names; 0 in those of others."""
    out, parts, named = b["DDOut"], _parts(b), b.attr("given", [])
    if len(named) < len(parts):
        verbs.fill(b, out)
    for i, x in zip(named, b.all("DDX"), strict=True):
        verbs.copy(b, out, x, to=parts[i])


def _sections(c: Context) -> tuple[int, list[int]]:
    """The dimension that is cut, and the size of each part; -1 where it is not known yet."""
    x, number = c["X"], c.attr("num")
    axis = integer(c, "axis", "AxisTensor")
    axis = one_axis(c, axis, x.ndim)
    size, sections = x.shape[axis], integers(c, "sections", "", "SectionsTensorList")
    if not c.runtime and (c.has("AxisTensor") or c.has("SectionsTensorList")):
        return axis, [-1] * (number or len(sections))
    if number > 0:
        c.require(
            size < 0 or size % number == 0,
            "The input's size along the split dimension must be evenly divisible by num.",
            expected=f"a multiple of {number}", received=size,
            hint=f"a list gives sizes, -1 for the rest: num_or_sections={[-(-size // number)] * (number - 1) + [-1]}.",
        )  # fmt: skip
        return axis, [size // number if size >= 0 else -1] * number
    c.require(sections, "split needs Attr(num) or Attr(sections).", expected="num > 0 or sizes", received="neither")
    c.require(sections.count(-1) <= 1, "Only one size in Attr(sections) of split can be -1.", received=sections)
    known = sum(n for n in sections if n != -1)
    if size >= 0:
        c.require(
            known <= size if -1 in sections else known == size,
            "The sizes in Attr(sections) of split must add up to the input's size along the split dimension.",
            expected=f"a sum of {size}", received=sections,
        )  # fmt: skip
        sections = [size - known if n == -1 else n for n in sections]
    return axis, sections


def _split_infer(c: Context) -> None:
    x, (axis, sections) = c["X"], _sections(c)
    wanted = len(c.outputs.get("Out", ()))
    c.require(
        wanted == len(sections), "split must have as many outputs as parts.", expected=len(sections), received=wanted
    )
    if not c.runtime and c.has("AxisTensor"):
        for i in range(wanted):
            c.set("Out", (-1,) * x.ndim, x.dtype, (), i)
        return
    for i, n in enumerate(sections):
        c.set("Out", (*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, c.lod("X") if axis else (), i)


@op(
    "split",
    inputs={
        "X": "at least one dimension",
        "AxisTensor?": "the axis as a variable",
        "SectionsTensorList*?": "the sizes as variables",
    },
    outputs={"Out*": "its parts, in order"},
    attrs={
        "num": Attr("int", 0, "how many parts of equal size; 0 takes the sizes from sections", ge=0),
        "sections": Attr("ints", [], "the size of each part; one may be -1, which takes what is left"),
        "axis": Attr("int", 0, "the dimension that is cut; from the end when negative"),
    },
    infer=_split_infer,
    grad=second_grad("concat", {"AxisTensor": "AxisTensor"}, {"X": "Out"}, {"Out": "X"}),
    guard=values_of("AxisTensor", "SectionsTensorList"),
    dtype_slot="X",
    cuda=True,
)
def split(b: Binder) -> None:
    """Out[i] = the i-th part of X along ``axis``; the LoD is propagated unless the rows are shared out.

    The gradient joins those of the parts with concat.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("split", {"X": [1.0, 2.0, 3.0]}, {"sections": [1, -1]}, {"Out": 2})["Out"]
        [array([1.]), array([2., 3.])]

    Source: Fluid's split_op.
    """
    for i, part in enumerate(verbs.parts_along(*_sections(b))):
        if b.wants("Out", i):
            verbs.copy(b, b.all("Out")[i], b["X"], of=part)


def _parts_in_c(c: Context, axis: int, shape: tuple[int, ...], sizes: list[int], slot: str) -> dict[str, Constant]:
    """Constants of parts of a tensor; those without a consumer are left out."""
    inner, ends = product(shape[axis + 1 :]), list(accumulate(sizes))
    there = [i for i in range(len(sizes)) if not slot or c.wants(slot, i)]
    return {
        "ROWS": product(shape[:axis]), "WIDTH": ends[-1] * inner, "PARTS": len(there),
        "STARTS": [(ends[i] - sizes[i]) * inner for i in there], "WIDTHS": [sizes[i] * inner for i in there],
    }  # fmt: skip


@c_code("concat", "concat_grad")
def _concat_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "AxisTensor")
    axis, xs = _axis(c), c.all("X")
    sizes, slot = [x.shape[axis] for x in xs], "X@GRAD" if "X@GRAD" in c.outputs else ""
    return _parts_in_c(c, axis, xs[0].shape, sizes, slot)


@c_code("split")
def _split_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "AxisTensor", "SectionsTensorList")
    axis, sizes = _sections(c)
    return _parts_in_c(c, axis, c["X"].shape, sizes, "Out")


_ATTRS = {
    "start_index": Attr("int", 0, "the first column that is taken; from the end when negative"),
    "length": Attr("int", -1, "how many columns are taken; -1 for all that follow"),
}


def _columns(c: Context) -> tuple[int, int]:
    """The first column that is taken, and how many."""
    xs = c.all("X")
    c.check_inputs()
    width, start, length = xs[0].shape[1], c.attr("start_index", 0), c.attr("length", -1)
    c.require(
        width > 0, f"{c.definition.type} must know the width of its inputs.", expected="[n, a number]",
        received=list(xs[0].shape),
    )  # fmt: skip
    first = start + width if start < 0 else start
    count = width - first if length < 0 else length
    c.require(
        0 <= first < width and 0 < count <= width - first, f"The columns of {c.definition.type} must be inside X.",
        expected=f"inside {width} columns", received=f"start_index {start}, length {length}",
    )  # fmt: skip
    return first, count


def _columns_of(first: int, count: int) -> verbs.View:
    return itemgetter((slice(None), slice(first, first + count)))


@op(
    "partial_concat",
    inputs={"X*: float[n, d]": "matrices of one shape"},
    outputs={"Out": "[n, length · how many matrices]"},
    attrs=_ATTRS,
    infer=checked(lambda c: c.set("Out", (c["X"].shape[0], _columns(c)[1] * len(c.all("X"))), c["X"].dtype)),
    grad=default_grad("X", "Out@GRAD"),
    cuda=True,
)
def partial_concat(b: Binder) -> None:
    """Out = the columns start_index … start_index + length of each X, side by side.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("partial_concat", {"X": [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]}, {"start_index": 1})["Out"]
        array([[2., 4.]])

    Source: Paddle's partial_concat_op.
    """
    first, count = _columns(b)
    for i, x in enumerate(b.all("X")):
        verbs.copy(b, b["Out"], x, _columns_of(i * count, count), _columns_of(first, count))


@op(
    "partial_sum",
    inputs={"X*: float[n, d]": "matrices of one shape"},
    outputs={"Out": "[n, length]"},
    attrs=_ATTRS,
    cost="X",
    cuda=NUMBERS,
    infer=checked(lambda c: c.set("Out", (c["X"].shape[0], _columns(c)[1]), c["X"].dtype)),
    grad=default_grad("X", "Out@GRAD"),
)
def partial_sum(b: Binder) -> None:
    """Out = the sum of the columns start_index … start_index + length of all X.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("partial_sum", {"X": [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])]}, {"start_index": 1})["Out"]
        array([[6.]])

    Source: Paddle's partial_sum_op.
    """
    part, xs, out = _columns_of(*_columns(b)), b.all("X"), b["Out"]
    if b.on_cuda:
        terms = b.tmp((len(xs), *out.shape), out.dtype)
        for i, x in enumerate(xs):
            verbs.copy(b, terms, x, itemgetter(i), part)
        return reduced(b, REDUCE, TOTAL, terms, [0], out)
    b(np.copyto, out, part(xs[0]))
    for x in xs[1:]:
        b(np.add, out, part(x), out=out)


def _give_back(b: Binder, shared: bool) -> None:
    """Emit the gradient of each X: its columns of dOut, or all of dOut where they share it; 0 elsewhere."""
    first, count = _columns(b)
    for i in range(len(b.all("X"))):
        if b.wants("X@GRAD", i):
            dx = b.all("X@GRAD")[i]
            verbs.fill(b, dx)
            verbs.copy(b, dx, b["Out@GRAD"], _columns_of(first, count), _columns_of(0 if shared else i * count, count))


@grad_op("partial_concat_grad", cuda=True)
def partial_concat_grad(b: Binder) -> None:
    """dX[i] = its columns of dOut, 0 elsewhere."""
    _give_back(b, False)


@grad_op("partial_sum_grad", cuda=True)
def partial_sum_grad(b: Binder) -> None:
    """dX[i] = dOut in the columns that were added, 0 elsewhere."""
    _give_back(b, True)
