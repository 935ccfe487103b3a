"""slice and strided_slice: parts of a tensor."""

from functools import partial

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, linear_grad, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.rules import integers, one_axis, require_fixed
from fluidnb_kernels.tensor.strided_copy import layout_of, parts_in_c

_TENSORS = ("StartsTensor", "EndsTensor", "StridesTensor")
_LISTS = ("StartsTensorList", "EndsTensorList", "StridesTensorList")


def _index(c: Context) -> dict[int, slice]:
    """Axis -> the slice along it."""
    axes = c.attr("axes")
    starts = integers(c, "starts", "StartsTensor", "StartsTensorList")
    ends = integers(c, "ends", "EndsTensor", "EndsTensorList")
    strides = [1] * len(axes)
    if c.attr("strides", []) or c.has("StridesTensor") or c.has("StridesTensorList"):
        strides = integers(c, "strides", "StridesTensor", "StridesTensorList")
    c.require(
        len(axes) == len(starts) == len(ends) == len(strides),
        f"Attr(axes), Attr(starts) and Attr(ends) of {c.definition.type} must have the same length.",
        expected=f"{len(axes)} numbers each", received=f"starts {starts}, ends {ends}",
    )  # fmt: skip
    c.require(all(strides), f"Attr(strides) of {c.definition.type} must not be 0.", received=strides)
    x = c["Input"]
    index = {}
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        axis = one_axis(c, axis, x.ndim, "axes")
        n, part = x.shape[axis], slice(start, end, stride)
        if stride < 0:  # Paddle's rules: -1 ends before the first element, and nothing else does
            part = slice(max(start, -n), None if end == -1 else end if end >= 0 else max(end + n, 0), stride)
        index[axis] = part
    return index


def _infer(c: Context) -> None:
    x, index = c["Input"], _index(c)
    known = c.runtime or not any(map(c.has, (*_TENSORS, *_LISTS)))
    shape = [
        n if i not in index else len(range(*index[i].indices(n))) if n >= 0 and known else -1
        for i, n in enumerate(x.shape)
    ]
    for i, part in index.items():
        first, end, stride = part.indices(max(x.shape[i], 0))
        c.require(
            (end - first) * stride >= 0 or shape[i] < 0 or not all(x.shape),
            f"{c.definition.type} takes nothing: a start is behind its end.",
            expected="a start that is not behind its end, in the direction of the stride",
            received=f"starts {c.attr('starts')}, ends {c.attr('ends')}",
        )  # fmt: skip
    gone = [one_axis(c, a, x.ndim, "decrease_axis") for a in c.attr("decrease_axis", [])]
    for a in gone:
        c.require(
            shape[a] in (1, -1),
            f"A dimension in Attr(decrease_axis) of {c.definition.type} must have one element left.",
            expected=1, received=shape[a],
        )  # fmt: skip
    out = [n for i, n in enumerate(shape) if i not in gone]
    c.set("Out", out or (1,), x.dtype, () if 0 in index else c.lod("Input"))


def _part(b: Context, whole: Array) -> Array:
    """The part of the whole that is taken, a view."""
    index = _index(b)
    return whole[tuple(index.get(i, slice(None)) for i in range(whole.ndim))]


def _undropped(b: Context, out: Array) -> Array:
    """Out with the dimensions that decrease_axis dropped, a view."""
    rank = b["Input"].ndim
    gone = {a % rank for a in b.attr("decrease_axis", [])}
    rest = iter(out.shape)
    return out.reshape([1 if i in gone else next(rest) for i in range(rank)])


def _define(type: str, formula: str, slots: dict[str, str], attrs: dict[str, Attr], example: tuple[str, str]) -> None:
    variables = [slot.rstrip("*?") for slot in slots]

    @op(
        type,
        inputs={"Input": "at least one dimension", **slots},
        outputs={"Out": "a part of it"},
        attrs={
            "axes": Attr("ints", doc="the dimensions that are cut"),
            "starts": Attr("ints", [], "the first element along each; from the end when negative"),
            "ends": Attr("ints", [], "the element after the last one along each; from the end when negative"),
            **attrs,
            "decrease_axis": Attr("ints", [], "dimensions with one element left that are dropped"),
            "infer_flags": Attr("ints", [], "Paddle 2: which sizes are known while building; ignored"),
        },
        infer=_infer,
        grad=default_grad("Input", *variables, "Out@GRAD", wrt=["Input"]),
        guard=values_of(*variables),
        dtype_slot="Input",
        cuda=True,
        doc=f"""{formula}; ends beyond the input count as its end.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"Input": [1.0, 2.0, 3.0, 4.0]}}, {example[0]})["Out"]
        array({example[1]})

    Source: {"Fluid" if type == "slice" else "Paddle"}'s {type}_op.
    """,
    )
    def take(b: Binder) -> None:
        verbs.copy(b, b["Out"], b["Input"], partial(_undropped, b), partial(_part, b))

    @grad_op(
        type + "_grad", guard=values_of(*variables), dtype_slot="Input", grad=linear_grad(type, "Input", variables),
        cuda=True,
    )
    def give_back(b: Binder) -> None:
        """dInput = dOut where it was taken from, 0 elsewhere."""
        verbs.fill(b, b["Input@GRAD"])
        verbs.copy(b, b["Input@GRAD"], b["Out@GRAD"], partial(_part, b), partial(_undropped, b))


_AS_VARIABLES = {
    **{s + "?": "the numbers as a variable" for s in _TENSORS},
    **{s + "*?": "the numbers as variables" for s in _LISTS},
}
_define(
    "slice", "Out = Input[start:end] along each of ``axes``",
    {k: v for k, v in _AS_VARIABLES.items() if not k.startswith("Strides")}, {},
    ('{"axes": [0], "starts": [1], "ends": [-1]}', "[2., 3.]"),
)  # fmt: skip
_define(
    "strided_slice", "Out = Input[start:end:stride] along each of ``axes``", _AS_VARIABLES,
    {"strides": Attr("ints", [], "the step along each; negative ones go backwards")},
    ('{"axes": [0], "starts": [3], "ends": [0], "strides": [-2]}', "[4., 2.]"),
)  # fmt: skip


@c_code("slice", "strided_slice", function="part", file="strided_copy.c")
def _part_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, *_TENSORS, *_LISTS)
    x, out = c["Input"], c["Out"]
    return parts_in_c(out, x, _undropped(c, layout_of(out)), _part(c, layout_of(x)))


@c_code("slice_grad", "strided_slice_grad", function="part_grad", file="strided_copy.c")
def _part_grad_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, *_TENSORS, *_LISTS)
    g, dx = c["Out@GRAD"], c["Input@GRAD"]
    return parts_in_c(dx, g, _part(c, layout_of(dx)), _undropped(c, layout_of(g)))
