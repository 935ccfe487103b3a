"""split: a tensor cut into parts along a dimension."""

from __future__ import annotations

from collections.abc import Collection

from fluidnb.op import GRAD, Attr, Binder, Context, OpDef, OpDesc, grad_desc, grad_names, op, values_of
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import integer, integers, one_axis


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


def _infer(c: Context) -> None:
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


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    parts = [n + GRAD for n in desc.outs["Out"]]
    axis = {s: n for s, n in desc.ins.items() if s == "AxisTensor" and n}
    return [grad_desc("concat", desc, {"X": parts, **axis}, {"Out": grad_names(desc, "X", no_grad)})]


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
    infer=_infer,
    grad=_grad,
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
