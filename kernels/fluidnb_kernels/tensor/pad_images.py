"""pad2d and pad3d: a border around images, of a value or of the image's elements."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS, zeros
from fluidnb_kernels.rules import integers
from fluidnb_kernels.tensor.gather_scatter import add_rows
from fluidnb_kernels.tensor.pad import put_window, take_window
from fluidnb_kernels.tensor.strided_copy import WORDS

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
            most = {"reflect": n - 1, "circular": n}.get(mode, max(before, after))
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
            most = {"reflect": n - 1, "circular": n}.get(b.attr("mode", "constant"), max(before, after))
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
        """Where X begins in Out along each dimension."""
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


for _type, _row in ROWS.items():
    _define(_type, _row)
