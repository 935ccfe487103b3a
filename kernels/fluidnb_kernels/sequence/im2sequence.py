"""im2sequence: the windows of each image, as a sequence."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product, values_of
from fluidnb.values.copies import on_host
from fluidnb_kernels.cuda import Source, by_rows, ctype, each, typed
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS, reading, zeros
from fluidnb_kernels.rules import fits
from fluidnb_kernels.sequences import as_level
from fluidnb_kernels.sliding import Axis, padded, slide
from fluidnb_kernels.tensor.strided_copy import WORDS

CUDA = Source(__file__, "im2sequence.cu", typed(
    ("windows_as_rows", [WORDS[size] for size in (2, 4, 8)]), ("rows_as_windows", FLOATS),
))  # fmt: skip


def _windows(c: Context, height: int, width: int) -> tuple[Axis, ...]:
    up, left, down, right = c.attr("paddings", [0, 0, 0, 0])
    return slide([height, width], c.attr("kernels"), c.attr("strides", [1, 1]), [up, down, left, right], cut=False)


def _sizes(c: Context) -> list[tuple[Axis, ...]]:
    """The windows of each image; with Y, as far as its real size goes, also beyond the image."""
    n, _, height, width = c["X"].shape
    whole = _windows(c, height, width)
    if not c.has("Y") or n == 1:
        return [whole] * n
    steps = c.attr("out_stride", [1, 1])
    real = [[-(-int(size) // step) for size, step in zip(row, steps, strict=True)] for row in on_host(c["Y"])]
    return [_with_counts(whole, [axis.out for axis in _windows(c, h, w)]) for h, w in real]


def _with_counts(axes: tuple[Axis, ...], counts: Iterable[int]) -> tuple[Axis, ...]:
    """The same axes with other numbers of windows."""
    return tuple(replace(axis, out=out) for axis, out in zip(axes, counts, strict=True))


def _widest(c: Context, height: int, width: int) -> tuple[Axis, ...]:
    """The axes with as many windows as any image has."""
    sizes = _sizes(c)
    return _with_counts(_windows(c, height, width), (max([axes[i].out for axes in sizes], default=0) for i in (0, 1)))


def _check(attrs: Mapping[str, Any]) -> str | None:
    for name, count in (("kernels", 2), ("strides", 2), ("paddings", 4), ("out_stride", 2)):
        if len(attrs[name]) != count:
            return f"{name} must be {count} numbers, not {len(attrs[name])}."
    return None


def _infer(c: Context) -> None:
    x, kernels = c["X"], c.attr("kernels")
    fits(c, "X", (-1,) * 4, "Input(X) of im2sequence should have 4 dimensions, in NCHW format.", "[n, c, h, w]")
    y = c["Y"] if c.has("Y") and x.shape[0] != 1 else None
    c.require(
        y is None or y.ndim == 2 and y.shape[1] in (2, -1) and x.shape[0] in (-1, y.shape[0]),
        "Input(Y) of im2sequence must have height and width of each image.",
        expected=[x.shape[0], 2], received=None if y is None else list(y.shape), late=True,
    )  # fmt: skip
    row = product((x.shape[1], *kernels))
    if not c.runtime:
        return c.set("Out", (-1, row), x.dtype, (None,))
    sizes = _sizes(c)
    for axes in sizes:
        c.require(
            all(axis.out > 0 for axis in axes), "Each image of im2sequence must hold at least one window.",
            expected="at least one window along each axis", received=[axis.out for axis in axes],
        )  # fmt: skip
    level = as_level([product([axis.out for axis in axes]) for axes in sizes])
    return c.set("Out", (level[-1], row), x.dtype, (level,))


def _each(b: Binder, rows: Array, whole: Array) -> list[tuple[Array, Array]]:
    """Pairs of windows as rows and as parts of the padded images, element by element of the windows."""
    pairs, first, n = [], 0, len(whole)
    (kh, kw), sizes = b.attr("kernels"), _sizes(b)
    step = 1 if b.has("Y") else max(n, 1)  # images of one size go together
    for k in range(0, n, step):
        h, w = (axis.out for axis in sizes[k])
        mine = rows[first : first + step * h * w].reshape(step, h, w, whole.shape[1], kh, kw)
        first += step * h * w
        images, (down, across) = np.moveaxis(whole[k : k + step], 1, -1), sizes[k]
        pairs += [(mine[..., i, j], images[:, down.tap(i), across.tap(j)]) for i in range(kh) for j in range(kw)]
    return pairs


def copy_all(pairs: list[tuple[Array, Array]]) -> None:
    """Copy arrays: the second of each pair into the first."""
    for target, source in pairs:
        np.copyto(target, source)


def add_all(pairs: list[tuple[Array, Array]]) -> None:
    """Add arrays: the first of each pair onto the second."""
    for source, target in pairs:
        target += source


@op(
    "im2sequence",
    inputs={"X: float[n, c, h, w]": "images", "Y?: any[n, 2]": "their real heights and widths; ignored for one image"},
    outputs={"Out": "[windows, c · kernel height · kernel width], a sequence for each image"},
    attrs={
        "kernels": Attr("ints", doc="height and width of a window", gt=0),
        "strides": Attr("ints", [1, 1], "stride of the window", gt=0),
        "paddings": Attr("ints", [0, 0, 0, 0], "zeros above, left, below, right", ge=0),
        "out_stride": Attr("ints", [1, 1], "with Y: by how much X is smaller than the real images", gt=0),
    },
    infer=_infer,
    grad=default_grad("X", "Y", "Out@GRAD", wrt=["X"]),
    guard=values_of("Y"),
    check=_check,
    cuda=FLOATS,
)
def im2sequence(b: Binder) -> None:
    """Out = the windows of each image, from left to right and from top to bottom, each flattened.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(4.0).reshape(1, 1, 2, 2)
        >>> run_op("im2sequence", {"X": x}, {"kernels": [1, 2]})["Out"].array
        array([[0., 1.],
               [2., 3.]])

    Source: Fluid's im2sequence_op.
    """
    if b.on_cuda:
        x, rows = b["X"], b["Out"]
        corners = [
            np.moveaxis(np.indices((down.out, across.out)), 0, -1).reshape(-1, 2) * (down.stride, across.stride)
            - (down.low, across.low)
            for down, across in _sizes(b)
        ]
        images = np.repeat(np.arange(len(x)), [len(c) for c in corners])
        table = np.column_stack([images, np.concatenate([np.zeros((0, 2), np.int64), *corners])]).astype(np.int32)
        numbers = numbers_of(_windows(b, *x.shape[2:]))[6:]
        name = f"windows_as_rows<{WORDS[x.dtype.itemsize]}>"
        return by_rows(b, CUDA, name, len(rows), rows.shape[1], x, b.table(table), rows, *numbers, np.int64(x.shape[1]))
    x = b["X"]
    whole, inside = padded(b, x, _widest(b, *x.shape[2:]), 0, None)
    if inside is not None:
        b(np.copyto, inside, x)
    b(copy_all, _each(b, b["Out"], whole))


@grad_op("im2sequence_grad", guard=values_of("Y"), dtype_slot="Out@GRAD", cuda=FLOATS)
def im2sequence_grad(b: Binder) -> None:
    """dX = the sum of the gradients of all windows that see an element."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    if b.on_cuda:
        counts = [(down.out, across.out) for down, across in _sizes(b)]
        first = np.cumsum([0, *(down * across for down, across in counts)])
        table = np.array([(k, *count) for k, count in zip(first, counts, strict=False)], np.int64).reshape(-1, 3)
        numbers = numbers_of(_windows(b, *dx.shape[2:]))[6:]
        name = f"rows_as_windows<{ctype(dx.dtype)}>"
        return each(b, CUDA, name, dx.size, g, b.table(table), dx, *numbers, np.int64(dx.shape[1]))
    whole, inside = padded(b, dx, _widest(b, *dx.shape[2:]), None, None)
    zeros(b, whole)
    b(add_all, _each(b, reading(b, g, (g.size,)).reshape(g.shape), whole))
    if inside is not None:
        b(np.copyto, dx, inside)
