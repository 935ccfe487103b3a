"""pad, pad_constant_like, crop, crop_tensor, pad2d and pad3d: borders around tensors, and pieces out of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels import verbs
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS, zeros
from fluidnb_kernels.rules import integers, require_fixed
from fluidnb_kernels.sliding import split_shape, steps_in
from fluidnb_kernels.tensor.gather_scatter import add_rows
from fluidnb_kernels.tensor.strided_copy import WORDS, layout_of, parts_in_c


def window(starts: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The index of a block of a tensor."""
    return tuple(slice(s, s + n) for s, n in zip(starts, shape, strict=True))


def put_window(b: Binder, out: Array, starts: Sequence[int], x: Array, value: float = 0.0) -> None:
    """Emit a tensor with a border around it, or a gradient where a piece was taken."""
    if out.shape != x.shape:
        verbs.fill(b, out, value)
    verbs.copy(b, out, x, to=itemgetter(window(starts, x.shape)))


def take_window(b: Binder, x: Array, starts: Sequence[int], out: Array) -> None:
    """Emit a piece of a tensor."""
    verbs.copy(b, out, x, of=itemgetter(window(starts, out.shape)))


def _pad_infer(c: Context) -> None:
    x, paddings = c["X"], c.attr("paddings")
    c.require(
        len(paddings) == 2 * x.ndim, "Attr(paddings) of pad needs two numbers for each dimension of X.",
        expected=f"{2 * x.ndim} numbers: before and after each dimension", received=paddings,
    )  # fmt: skip
    shape = [n if n < 0 else n + paddings[2 * i] + paddings[2 * i + 1] for i, n in enumerate(x.shape)]
    c.set("Out", shape, x.dtype, () if paddings and any(paddings[:2]) else c.lod("X"))


@op(
    "pad",
    inputs={"X": "any shape"},
    outputs={"Out": "X with a border"},
    attrs={
        "paddings": Attr("ints", doc="how much before and after each dimension", ge=0),
        "pad_value": Attr("float", 0.0, "what the border holds"),
    },
    infer=_pad_infer,
    grad=default_grad("Out@GRAD"),
    cuda=True,
)
def pad(b: Binder) -> None:
    """Out = X with ``paddings[2d]`` elements before it and ``paddings[2d + 1]`` after it along each dimension d.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("pad", {"X": [1.0, 2.0]}, {"paddings": [1, 2], "pad_value": 9.0})["Out"]
        array([9., 1., 2., 9., 9.])

    Source: Fluid's pad_op.
    """
    put_window(b, b["Out"], b.attr("paddings")[::2], b["X"], b.attr("pad_value"))


def _pad_grad_infer(c: Context) -> None:
    g, paddings = c["Out@GRAD"], c.attr("paddings")
    shape = [n - paddings[2 * i] - paddings[2 * i + 1] for i, n in enumerate(g.shape)]
    c.set("X@GRAD", shape, g.dtype, () if any(paddings[:2]) else c.lod("Out@GRAD"))


@grad_op("pad_grad", infer=_pad_grad_infer, cuda=True)
def pad_grad(b: Binder) -> None:
    """dX = dOut without its border."""
    take_window(b, b["Out@GRAD"], b.attr("paddings")[::2], b["X@GRAD"])


def _border_in_c(c: Context, starts: Sequence[int], value: float) -> dict[str, Constant]:
    x, out = c["X"], c["Out"]
    inner = layout_of(out)[window(starts, x.shape)]
    text: Constant = float(value) if x.dtype.kind == "f" else str(int(value))
    return {**parts_in_c(out, x, to=inner), "VALUE": text}


def _piece_in_c(c: Context, starts: Sequence[int]) -> dict[str, Constant]:
    g, dx = c["Out@GRAD"], c["X@GRAD"]
    return parts_in_c(dx, g, of=layout_of(g)[window(starts, dx.shape)])


@c_code("pad", function="bordered", file="strided_copy.c")
def _pad_in_c(c: Context) -> dict[str, Constant]:
    return _border_in_c(c, c.attr("paddings")[::2], c.attr("pad_value"))


@c_code("pad_grad", function="rearranged_grad", file="strided_copy.c")
def _pad_grad_in_c(c: Context) -> dict[str, Constant]:
    return _piece_in_c(c, c.attr("paddings")[::2])


def _like_infer(c: Context) -> None:
    x, y = c["X"], c["Y"]
    fits = x.ndim == y.ndim and all(m >= n or m < 0 for m, n in zip(x.shape, y.shape, strict=True))
    c.require(
        fits, "Input(X) of pad_constant_like must be as large as Input(Y) in every dimension.",
        expected=f"sizes >= {list(y.shape)}, the shape of Y", received=f"{list(x.shape)}",
    )  # fmt: skip
    c.set("Out", x.shape, y.dtype, c.lod("X"))


@op(
    "pad_constant_like",
    inputs={"X": "says the shape", "Y": "what is filled up, no larger in any dimension"},
    outputs={"Out": "Y with what it lacks"},
    attrs={"pad_value": Attr("float", 0.0, "what is put after the elements of Y")},
    infer=_like_infer,
    grad=default_grad("Y", "Out@GRAD", wrt=["Y"]),
    dtype_slot="Y",
    cuda=True,
)
def pad_constant_like(b: Binder) -> None:
    """Out = Y in the first corner of a tensor of the shape of X that is pad_value elsewhere.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("pad_constant_like", {"X": [0.0, 0.0, 0.0], "Y": [1.0]}, {"pad_value": 5.0})["Out"]
        array([1., 5., 5.])

    Source: Fluid's pad_constant_like_op.
    """
    put_window(b, b["Out"], [0] * b["Y"].ndim, b["Y"], b.attr("pad_value"))


@grad_op("pad_constant_like_grad", dtype_slot="Y", cuda=True)
def pad_constant_like_grad(b: Binder) -> None:
    """dY = dOut where Y was put."""
    take_window(b, b["Out@GRAD"], [0] * b["Y@GRAD"].ndim, b["Y@GRAD"])


def _crop_shape(c: Context) -> tuple[int, ...]:
    shape = c["Y"].shape if c.has("Y") else c.attr("shape", [])
    x = c["X"]
    c.require(
        len(shape) == x.ndim, "The piece that crop takes must have the rank of X.",
        expected=f"{x.ndim} sizes", received=list(shape),
    )  # fmt: skip
    return tuple(n if s == -1 and not c.has("Y") else s for s, n in zip(shape, x.shape, strict=True))


def _pad_offsets(c: Context) -> list[int]:
    """The offsets of the piece; while building, 0 stands for the value of a variable."""
    return integers(c, "offsets", "Offsets", unknown=0) or [0] * c["X"].ndim


def _crop_infer(c: Context) -> None:
    x, shape, offsets = c["X"], _crop_shape(c), _pad_offsets(c)
    c.require(
        len(offsets) == x.ndim, "Attr(offsets) of crop must have a number for each dimension of X.",
        expected=f"{x.ndim} numbers", received=offsets,
    )  # fmt: skip
    for o, n, size in zip(offsets, shape, x.shape, strict=True):
        c.require(
            o >= 0 and (-1 in (n, size) or o + n <= size), "The region that crop takes must be inside X.",
            expected=f"inside {list(x.shape)}", received=f"{list(shape)} from {offsets} on",
        )  # fmt: skip
    c.set("Out", shape, x.dtype, c.lod("Y") if c.has("Y") else ())


@op(
    "crop",
    inputs={"X": "any shape", "Y?": "says the shape of the piece", "Offsets?": "the offsets as a variable"},
    outputs={"Out": "a piece of X"},
    attrs={
        "offsets": Attr("ints", [], "where the piece begins; none means the first corner"),
        "shape": Attr("ints", [], "its sizes where there is no Y; -1 takes that of X"),
    },
    infer=_crop_infer,
    grad=default_grad("X", "Y", "Offsets", "Out@GRAD", wrt=["X"]),
    guard=values_of("Offsets"),
    dtype_slot="X",
    cuda=True,
)
def crop(b: Binder) -> None:
    """Out = the piece of X that begins at ``offsets``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("crop", {"X": [1.0, 2.0, 3.0]}, {"offsets": [1], "shape": [2]})["Out"]
        array([2., 3.])

    Source: Fluid's crop_op.
    """
    take_window(b, b["X"], _pad_offsets(b), b["Out"])


@grad_op("crop_grad", guard=values_of("Offsets"), dtype_slot="X", cuda=True)
def crop_grad(b: Binder) -> None:
    """dX = dOut where the piece was, 0 elsewhere."""
    put_window(b, b["X@GRAD"], _pad_offsets(b), b["Out@GRAD"])


_VARIABLES = ("Shape", "ShapeTensor", "Offsets", "OffsetsTensor")


def _piece(c: Context) -> tuple[list[int], list[int]]:
    """The offsets of the piece and its sizes; while building, -1 stands for what is unknown."""
    x = c["X"]
    shape = integers(c, "shape", "Shape", "ShapeTensor") or [-1] * x.ndim
    offsets = integers(c, "offsets", "Offsets", "OffsetsTensor") or [0] * x.ndim
    c.require(
        len(shape) == len(offsets) == x.ndim, "crop_tensor needs a size and an offset for each dimension of X.",
        expected=f"{x.ndim} of each", received=f"shape {shape}, offsets {offsets}",
    )  # fmt: skip
    placed = c.runtime or not (c.has("Offsets") or c.has("OffsetsTensor"))
    sized = c.runtime or not (c.has("Shape") or c.has("ShapeTensor"))
    sizes = []
    for n, o, whole in zip(shape, offsets, x.shape, strict=True):
        size = whole - o if n == -1 and placed and sized and whole >= 0 else n
        fits = not placed or whole < 0 or o >= 0 and (-1 if not sized else 0) <= size <= whole - o
        c.require(
            fits, "The region that crop_tensor takes must be inside X.", expected=f"inside {list(x.shape)}",
            received=f"{shape} from {offsets} on",
        )  # fmt: skip
        sizes.append(size)
    return offsets, sizes


@op(
    "crop_tensor",
    inputs={
        "X": "any shape",
        "Shape?": "the shape as a variable",
        "ShapeTensor*?": "its sizes as variables",
        "Offsets?": "the offsets as a variable",
        "OffsetsTensor*?": "the offsets as variables",
    },
    outputs={"Out": "a piece of X"},
    attrs={
        "shape": Attr("ints", [], "its sizes; -1 for all that comes after the offset"),
        "offsets": Attr("ints", [], "where it begins; none for the first corner"),
    },
    infer=lambda c: c.set("Out", _piece(c)[1], c["X"].dtype),
    grad=default_grad("X", *_VARIABLES[2:], "Out@GRAD", wrt=["X"]),
    guard=values_of(*_VARIABLES),
    dtype_slot="X",
    cuda=True,
)
def crop_tensor(b: Binder) -> None:
    """Out = the piece of X that begins at ``offsets``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("crop_tensor", {"X": [1.0, 2.0, 3.0]}, {"offsets": [1], "shape": [-1]})["Out"]
        array([2., 3.])

    Source: Paddle's crop_tensor_op.
    """
    take_window(b, b["X"], _piece(b)[0], b["Out"])


@grad_op("crop_tensor_grad", guard=values_of(*_VARIABLES[2:]), dtype_slot="X", cuda=True)
def crop_tensor_grad(b: Binder) -> None:
    """dX = dOut where the piece was, 0 elsewhere."""
    put_window(b, b["X@GRAD"], _crop_tensor_offsets(b, b["X@GRAD"].ndim), b["Out@GRAD"])


def _crop_tensor_offsets(b: Binder, rank: int) -> list[int]:
    return integers(b, "offsets", "Offsets", "OffsetsTensor") or [0] * rank


#: How numpy calls what the modes do at an edge.
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge", "circular": "wrap"}

#: What they are in ``pad_images.cu``.
_BORDERS = {"reflect": 0, "edge": 1, "replicate": 1, "circular": 2}


CUDA = Source(__file__, "pad_images.cu", typed(
    ("bordered", [word for size, word in WORDS.items() if size <= 8]), ("bordered_grad", FLOATS),
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One operator."""

    axes: tuple[int, ...]  # the dimensions that ``paddings`` pairs up, in its order, with the channels first
    order: str  # the names of its numbers
    modes: tuple[str, ...]  # the modes that it knows
    value: str  # the attribute that holds the value of a border
    formats: tuple[str, str]  # the layouts; in the second the channels are last
    example: tuple[str, str, str]  # the shape of X, paddings and the shape of Out, for the documentation


ROWS = {
    "pad2d": Row((2, 3), "top, bottom, left, right", ("constant", "reflect", "edge"), "pad_value", ("NCHW", "NHWC"),
                 ("(1, 1, 2, 2)", "[0, 1, 2, 0]", "(1, 1, 3, 4)")),
    "pad3d": Row((4, 3, 2), "left, right, top, bottom, front, back", ("constant", "reflect", "replicate", "circular"),
                 "value", ("NCDHW", "NDHWC"), ("(1, 1, 1, 2, 2)", "[2, 0, 0, 1, 0, 0]", "(1, 1, 1, 3, 4)")),
}  # fmt: skip

_DOC = """Out = X with a border of ``paddings`` elements: {order}.

    Mode constant fills it with a value; the others with the elements of X: reflect as in a mirror at the
    outermost ones; edge and replicate with the outermost ones; circular with those of the other side.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("{type}", {{"X": np.zeros({x})}}, {{"paddings": {paddings}}})["Out"].shape
        {out}

    Source: {owner}'s {type}_op.
    """


def _define(type: str, row: Row) -> None:
    rank = len(row.axes) + 2

    def borders(c: Context) -> dict[int, tuple[int, int]]:
        """Dimension -> how much before and after it."""
        numbers = integers(c, "paddings", "Paddings")
        c.require(
            len(numbers) == 2 * len(row.axes), f"Attr(paddings) of {type} needs {2 * len(row.axes)} numbers.",
            expected=row.order, received=numbers,
        )  # fmt: skip
        shift = -1 if c.attr("data_format", row.formats[0]) == row.formats[1] else 0
        return {a + shift: (numbers[2 * i], numbers[2 * i + 1]) for i, a in enumerate(row.axes)}

    def largest(mode: str, n: int, before: int, after: int) -> int:
        """The largest border of a dimension with n elements."""
        return n - 1 if mode == "reflect" else 0 if mode == "circular" and not n else max(before, after)

    def infer(c: Context) -> None:
        x = c["X"]
        c.require(
            x.ndim == rank, f"Input(X) of {type} must hold images.", expected=f"{rank} dimensions, {row.formats[0]}",
            received=list(x.shape),
        )  # fmt: skip
        shape, mode, known = list(x.shape), c.attr("mode"), c.runtime or not c.has("Paddings")
        for axis, (before, after) in borders(c).items():
            n = shape[axis]
            shape[axis] = n + before + after if n >= 0 and known else -1
            most = largest(mode, n, before, after)
            c.require(
                not known or n < 0 or 0 <= min(before, after) <= max(before, after) <= most,
                f"Attr(paddings) of {type} does not fit X.", expected=f"0 to {most} along dimension {axis}",
                received=f"{before} and {after}",
            )  # fmt: skip
        c.set("Out", shape, x.dtype, c.lod("X"))

    def require_fit(b: Binder, g: Array, x: Array) -> None:
        """Checks the paddings of a loaded gradient operator against the shapes."""
        for axis, (before, after) in borders(b).items():
            n = x.shape[axis]
            most = largest(b.attr("mode", "constant"), n, before, after)
            b.require(
                0 <= min(before, after) <= max(before, after) <= most and g.shape[axis] == n + before + after,
                f"Attr(paddings) of {type}_grad does not fit.", expected=f"{g.shape[axis] - n} along dimension {axis}",
                received=f"{before} and {after}",
            )  # fmt: skip

    def places(b: Binder, shape: tuple[int, ...]) -> dict[int, Array]:
        """Dimension -> which of the elements of X each element of Out repeats, where there is a border."""
        mode: Any = _MODES[b.attr("mode", "constant")]
        return {a: np.pad(np.arange(shape[a]), sides, mode) for a, sides in borders(b).items() if any(sides)}

    def starts(b: Binder) -> list[int]:
        """The indices at which X begins in Out, one for each dimension."""
        sides = borders(b)
        return [sides.get(i, (0, 0))[0] for i in range(rank)]

    def launch(b: Binder, name: str, source: Array, target: Array, x: Array, over: Array) -> None:
        """Emit a kernel over the rows of a tensor; x is the one without a border."""
        sides = sorted(borders(b).items())
        last = sides[-1][0]
        numbers = [(1, 0, 0)] * (3 - len(sides)) + [(x.shape[a], *around) for a, around in sides]
        inner = math.prod(x.shape[last + 1 :])
        by_rows(
            b, CUDA, name, math.prod(over.shape[:last]), over.shape[last] * inner, source, target,
            *(np.int64(n) for side in numbers for n in side), np.int64(inner), np.int32(_BORDERS[b.attr("mode")]),
        )  # fmt: skip

    @op(
        type,
        inputs={"X": f"{row.formats[0]} or {row.formats[1]}", "Paddings?: int32": "the paddings as a variable"},
        outputs={"Out": "X with a border"},
        attrs={
            "paddings": Attr("ints", [], "how much: " + row.order),
            row.value: Attr("float", 0.0, "what the border holds in mode constant"),
            "mode": Attr("string", "constant", "contents of the border", enum=row.modes),
            "data_format": Attr("string", row.formats[0], "where the channels are", enum=row.formats),
        },
        infer=infer,
        grad=default_grad("X", "Paddings", "Out@GRAD", wrt=["X"]),
        guard=values_of("Paddings"),
        dtype_slot="X",
        cuda=True,
        doc=_DOC.format(
            type=type, order=row.order, x=row.example[0], paddings=row.example[1], out=row.example[2],
            owner="Fluid" if type == "pad2d" else "Paddle",
        ),
    )  # fmt: skip
    def pad(b: Binder) -> None:
        x, out = b["X"], b["Out"]
        if b.attr("mode") == "constant":
            return put_window(b, out, starts(b), x, np.asarray(b.attr(row.value)).astype(x.dtype).item())
        if b.on_cuda:
            return launch(b, f"bordered<{WORDS[x.dtype.itemsize]}>", x, out, x, out)
        for axis, index in places(b, x.shape).items():
            wider = b.tmp((*x.shape[:axis], index.size, *x.shape[axis + 1 :]), x.dtype)
            b(np.ndarray.take, x, index, axis, wider, "clip")
            x = wider
        return b(np.copyto, out, x)

    @grad_op(type + "_grad", guard=values_of("Paddings"), dtype_slot="X", cuda=FLOATS)
    def pad_grad(b: Binder) -> None:
        """dX = dOut without its border; what the border repeats of X gets the gradient of that too."""
        g, dx = b["Out@GRAD"], b["X@GRAD"]
        require_fit(b, g, dx)
        if b.attr("mode", "constant") == "constant":
            return take_window(b, g, starts(b), dx)
        if b.on_cuda:
            return launch(b, f"bordered_grad<{ctype(dx.dtype)}>", g, dx, dx, dx)
        for axis, index in reversed(places(b, dx.shape).items()):
            narrower = b.tmp((*g.shape[:axis], dx.shape[axis], *g.shape[axis + 1 :]), g.dtype)
            zeros(b, narrower)
            b(add_rows, narrower, index, g, axis)
            g = narrower
        return b(np.copyto, dx, g)

    def in_c(c: Context) -> dict[str, Constant]:
        require_fixed(c, "Paddings")
        layout = c.attr("data_format", "NCHW")
        shapes = c["X"].shape, c["Out@GRAD" if "X@GRAD" in c.outputs else "Out"].shape
        n, channels, sizes = split_shape(shapes[0], layout)
        around = [sides for _, sides in sorted(borders(c).items())]
        mode: Any = _MODES[c.attr("mode", "constant")]
        found: dict[str, Constant] = {"N": n, "C": channels, "COUNT": math.prod(shapes[0]), "D_AT": [0], "OD": 1}
        found["VALUE"] = float(c.attr(row.value, 0.0))
        for letter, size, sides in zip("DHW"[-len(sizes) :], sizes, around, strict=True):
            more: Any = {"constant_values": -1} if mode == "constant" else {}
            at = np.pad(np.arange(size), sides, mode, **more)
            found |= {letter + "_AT": at.tolist(), "O" + letter: len(at)}
        for letter, shape in zip("XY", shapes, strict=True):
            steps = zip("NCHW" if len(sizes) == 2 else "NCDHW", steps_in(layout, shape), strict=True)
            found |= {f"{letter}_D": 0} | {f"{letter}_{name}": step for name, step in steps}
        return found

    c_code(type, function="pad_images")(in_c)
    c_code(type + "_grad", function="pad_images_grad")(in_c)


for _type, _row in ROWS.items():
    _define(_type, _row)
