"""deformable_conv and deformable_conv_v1: convolutions whose windows take their elements from where offsets lead."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.conv.device_products import parts_of, products
from fluidnb_kernels.conv.host_products import depth_of
from fluidnb_kernels.conv.rules import conv_axes, conv_infer
from fluidnb_kernels.cuda import Source, ctype, each, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import gemm
from fluidnb_kernels.cuda.sliding_windows import numbers_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sliding import Axis
from fluidnb_kernels.tensor.strided_copy import fill, layout_of, move
from fluidnb_kernels.verbs import summing

CUDA = Source(__file__, "deformable.cu", typed(("deformed_columns deformed_gradients", ("float32", "float64"))))


@dataclass(frozen=True, slots=True)
class _Taps:
    """The four elements of an image around each place, for [images, deformable groups, window elements · places]."""

    index: Array  # of the element above and to the left, in [-size - 1, size)
    inside: tuple[Array, ...]  # whether each of the four is in the image
    down: Array  # how far each place is below the upper row
    right: Array  # how far it is right of the left column
    width: int

    def each(self) -> list[tuple[Array, Array, Array, Array]]:
        """Number and share of each of the four, and how the share changes downwards and to the right."""
        found = []
        for (below, beside), inside in zip(((0, 0), (0, 1), (1, 0), (1, 1)), self.inside, strict=True):
            tall, wide = (self.down if below else 1 - self.down), (self.right if beside else 1 - self.right)
            number = np.where(inside, self.index + below * self.width + beside, 0)
            down, right = (2 * below - 1) * wide * inside, (2 * beside - 1) * tall * inside
            found.append((number, tall * wide * inside, down, right))
        return found


def _taps(offset: Array, axes: tuple[Axis, ...], groups: int) -> _Taps:
    """The places that offsets [n, groups · window · 2, rows, columns] lead to; those beyond the image count 0."""
    n = len(offset)
    window, places = axes[0].window * axes[1].window, axes[0].out * axes[1].out
    moved = offset.reshape(n, groups, window, 2, places)
    at = []
    for k, axis in enumerate(axes):
        start = np.arange(axis.out) * axis.stride - axis.low
        inner = np.arange(axis.window) * axis.dilation
        grid = (inner[:, None, None, None], start[:, None]) if k == 0 else (inner[:, None, None], start)
        whole = np.broadcast_to(grid[0] + grid[1], (axes[0].window, axes[1].window, axes[0].out, axes[1].out))
        at.append((whole.reshape(window, places).astype(offset.dtype) + moved[:, :, :, k]).reshape(n, groups, -1))
    (y, x), (height, width) = at, (axis.size for axis in axes)
    with np.errstate(invalid="ignore"):  # a place that is no number is outside
        seen = (y > -1) & (x > -1) & (y < height) & (x < width)
    y, x = np.where(seen, y, 0), np.where(seen, x, 0)
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    rows, columns = (top >= 0, top + 1 < height), (left >= 0, left + 1 < width)
    inside = tuple(seen & row & column for row in rows for column in columns)
    return _Taps(top * width + left, inside, y - top, x - left, width)


def _grouped(x: Array, groups: int) -> Array:
    """An image [n, c, h, w] as [n, groups, c / groups, h · w]."""
    return x.reshape(len(x), groups, x.shape[1] // groups, -1)


def _pixels(x: Array, number: Array) -> Array:
    """Elements of [n, groups, c, h · w] by numbers [n, groups, places], as [n, groups, c, places]."""
    return np.take_along_axis(x, number[:, :, None], 3)


def _sampled(x: Array, taps: _Taps, groups: int) -> Array:
    """The image at each place, [n, groups, c / groups, window · places]."""
    image, total = _grouped(x, groups), None
    for number, share, _, _ in taps.each():
        part = _pixels(image, number) * share[:, :, None]
        total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total


def _masked(columns: Array, mask: Array | None, groups: int) -> Array:
    return columns if mask is None else columns * mask.reshape(len(mask), groups, 1, -1)


def _matrices(columns: Array, w: Array, groups: int) -> tuple[Array, Array]:
    """Columns [n, groups, c / groups · window, places], and the filter [groups, f / groups, c / groups · window]."""
    depth = w.shape[1] * w.shape[2] * w.shape[3]
    return columns.reshape(len(columns), groups, depth, -1), w.reshape(groups, -1, depth)


def convolve(x: Array, offset: Array, mask: Array | None, w: Array, how: tuple[Any, ...], out: Array) -> None:
    """Write the convolution, image by image."""
    axes, groups, parts = how
    for n in range(len(x)):
        taps = _taps(offset[n : n + 1], axes, parts)
        columns = _masked(_sampled(x[n : n + 1], taps, parts), None if mask is None else mask[n : n + 1], parts)
        matrix, weights = _matrices(columns, w, groups)
        out[n] = np.matmul(weights, matrix[0]).reshape(out.shape[1:])


def gradients(
    x: Array, offset: Array, mask: Array | None, w: Array, g: Array, how: tuple[Any, ...],
    outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    """Write the gradients of image, offsets, mask and filter, those that are wanted."""
    axes, groups, parts = how
    dx, d_offset, d_mask, dw = outs
    if dw is not None:
        dw[...] = 0
    for n in range(len(x)):
        one, weight = slice(n, n + 1), None if mask is None else mask[n : n + 1]
        taps = _taps(offset[one], axes, parts)
        plain = _sampled(x[one], taps, parts)
        matrix, weights = _matrices(_masked(plain, weight, parts), w, groups)
        given = g[n].reshape(groups, -1, matrix.shape[-1])
        if dw is not None:
            dw += np.matmul(given, matrix[0].swapaxes(1, 2)).reshape(w.shape)
        back = np.matmul(weights.swapaxes(1, 2), given).reshape(plain.shape)
        if d_mask is not None:
            d_mask[n] = (back * plain).sum(2).reshape(d_mask.shape[1:])
        back = _masked(back, weight, parts)
        if dx is not None:
            _spread(back, taps, dx[n])
        if d_offset is not None:
            felt = [part.reshape(parts, -1, 1, given.shape[-1]) for part in _moved(x[one], back, taps, parts)]
            d_offset[n] = np.concatenate(felt, 2).reshape(d_offset.shape[1:])


def _spread(back: Array, taps: _Taps, dx: Array) -> None:
    """Write the sum of what each element of an image has given."""
    _, groups, channels, _ = back.shape
    size = dx.shape[1] * dx.shape[2]
    rows = np.arange(groups * channels).reshape(groups, channels, 1) * size
    total = np.zeros(groups * channels * size, np.float64)
    for number, share, _, _ in taps.each():
        flat = (rows + number[0, :, None]).ravel()
        total += np.bincount(flat, (back[0] * share[0, :, None]).ravel(), total.size)
    dx[...] = total.reshape(dx.shape)


def _moved(x: Array, back: Array, taps: _Taps, groups: int) -> tuple[Array, Array]:
    """The gradients of where each element is taken, downwards and to the right."""
    image = _grouped(x, groups)
    down = right = np.zeros((), x.dtype)
    for number, _, downwards, rightwards in taps.each():
        felt = (_pixels(image, number) * back).sum(2)
        down, right = down + felt * downwards, right + felt * rightwards
    return down, right


def _infer(c: Context) -> None:
    name, w = c.definition.type, c["Filter"]
    conv_infer(c)
    parts, channels = c.attr("deformable_groups"), c["Input"].shape[1]
    out = [axis.out for axis in conv_axes(c, c["Input"].shape[2:], w.shape[2:])]
    c.require(
        channels < 0 or channels % parts == 0, f"deformable_groups of {name} must divide the channels of Input.",
        expected=f"a divisor of {channels}", received=parts,
    )  # fmt: skip
    for slot, count in (("Offset", 2), ("Mask", 1)):
        if not c.has(slot):
            continue
        c.check_inputs(slot)
        wanted = (c["Input"].shape[0], count * parts * w.shape[2] * w.shape[3], *out)
        have = c[slot].shape
        known = w.shape[2] > 0 and w.shape[3] > 0
        wanted = wanted if known else (wanted[0], -1, *wanted[2:])
        c.require(
            all(n == m or -1 in (n, m) for n, m in zip(wanted, have, strict=True)),
            f"Input({slot}) of {name} must have {'two numbers' if count == 2 else 'a number'} for each element of each "
            "window.", expected=list(wanted), received=list(have),
            hint="its channels are deformable_groups · filter height · filter width" + " · 2" * (count == 2) + ".",
        )  # fmt: skip


def _how(b: Binder) -> tuple[Any, ...]:
    axes = conv_axes(b, b["Input"].shape[2:], b["Filter"].shape[2:])
    return axes, b.attr("groups", 1) or 1, b.attr("deformable_groups", 1)


#: An array that is not there, for a kernel.
_NONE = np.uintp(0)


class _OnCuda:
    """The operands of a convolution on a GPU, in the precision in which kernels compute."""

    def __init__(self, b: Binder, masked: bool) -> None:
        self.b, self.dtype = b, wide_dtype(b["Input"].dtype)
        self.x, self.offset, self.w = (of_dtype(b, b[slot], self.dtype) for slot in ("Input", "Offset", "Filter"))
        self.mask = of_dtype(b, b["Mask"], self.dtype) if masked else None
        self.axes, self.groups, self.parts = _how(b)
        self.places = self.axes[0].out * self.axes[1].out
        self.depth = depth_of(self.x, self.axes)
        self.weights = self.w.reshape(self.groups, -1, self.depth // self.groups)

    def images(self) -> list[slice]:
        """The images whose columns are computed at once."""
        return parts_of(self.x, self.axes)

    def room(self, rows: int) -> Array:
        """A workspace for so many rows of columns of each image."""
        images = self.images()
        return self.b.tmp(((images[0].stop if images else 0) * rows * self.places,), self.dtype)

    def matrices(self, array: Array, part: slice) -> Array:
        """Some images of a result, as matrices of each group."""
        one = array[part]
        return one.reshape(len(one), self.groups, one.shape[1] // self.groups, self.places)

    def columns(self, part: slice, out: Array, steps: tuple[int, int]) -> None:
        """Emit the columns of some images; from image to image and from row to row there are so many numbers."""
        self._launch("deformed_columns", part, [out], steps)

    def gradients(self, part: slice, columns: Array, outs: tuple[Array | None, ...]) -> None:
        """Emit what the gradients of columns give to images, offsets and masks."""
        given = [_NONE if each is None else each[part] for each in outs]
        self._launch("deformed_gradients", part, [columns, *given])

    def _launch(self, name: str, part: slice, args: list[Any], steps: tuple[int, ...] = ()) -> None:
        x, offset = self.x[part], self.offset[part]
        mask = _NONE if self.mask is None else self.mask[part]
        numbers = map(np.int64, (x.shape[1] // self.parts, self.parts, *steps))
        kernel = f"{name}<{ctype(self.dtype)}>"
        each(self.b, CUDA, kernel, offset.size // 2, x, offset, mask, *args, *numbers_of(self.axes), *numbers)


def _on_cuda(b: Binder, masked: bool) -> None:
    """Emit the convolution: columns and a product, a few images at a time."""
    on, out = _OnCuda(b, masked), writing_as(b, b["Output"], wide_dtype(b["Output"].dtype))
    room = on.room(on.depth)
    for part in on.images():
        n = part.stop - part.start
        columns = room[: n * on.depth * on.places].reshape(n, on.groups, -1, on.places)
        on.columns(part, columns, (on.depth * on.places, on.places))
        products(b, on.weights, columns, on.matrices(out, part))
    written_as(b, b["Output"], out)


def _grad_on_cuda(
    b: Binder, masked: bool, dx: Array | None, d_offset: Array | None, d_mask: Array | None, dw: Array | None
) -> None:
    """Emit the gradients: that of columns by a product, those of images, offsets and masks from it."""
    on = _OnCuda(b, masked)
    g, room = of_dtype(b, b["Output@GRAD"], on.dtype), on.room(on.depth)
    if dx is not None or d_offset is not None or d_mask is not None:
        with ExitStack() as stack:
            total = None if dx is None else stack.enter_context(summing(b, dx))
            written = [None if each is None else writing_as(b, each, on.dtype) for each in (d_offset, d_mask)]
            for part in on.images():
                n = part.stop - part.start
                columns = room[: n * on.depth * on.places].reshape(n, on.groups, -1, on.places)
                products(b, on.weights, on.matrices(g, part), columns, True)
                on.gradients(part, columns, (total, *written))
            for out, array in zip((d_offset, d_mask), written, strict=True):
                if out is not None and array is not None:
                    written_as(b, out, array)
    if dw is not None:
        _filter_gradient(b, on, g, room, dw)


def _filter_gradient(b: Binder, on: _OnCuda, g: Array, room: Array, dw: Array) -> None:
    """Emit the gradient of the filter: the product of gradients and columns, of some images side by side."""
    if not on.images():
        return fill(b, dw)
    filters, total = len(on.w), writing_as(b, dw, on.dtype)
    aside, result = on.room(filters), total.reshape(on.groups, filters // on.groups, -1)
    for part in on.images():
        n = part.stop - part.start
        columns, slopes = (each[: n * rows * on.places] for each, rows in ((room, on.depth), (aside, filters)))
        on.columns(part, columns, (on.places, n * on.places))
        slopes = slopes.reshape(filters, n, on.places)
        move(b, slopes, g[part], of=layout_of(g[part], (n, filters, on.places)).swapaxes(0, 1))
        sides = [each.reshape(on.groups, -1, n * on.places) for each in (slopes, columns)]
        gemm(b, sides[0], sides[1], result, ty=True, beta=float(part.start > 0))
    return written_as(b, dw, total)


_DOC = """Output[n, f] = sum of Filter[f] · {mask}Input at (place in the window + offset), over channels and the window.

    Windows are those of conv2d. Offset has two numbers for each element of each window, how far down and to the right
    of it an element is taken, between four pixels; beyond the image there is 0.{mask_doc} Channels fall into
    ``deformable_groups``, each with separate offsets.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, right = np.arange(4.0).reshape(1, 1, 2, 2), np.zeros((1, 2, 2, 2))
        >>> right[0, 1] = 0.5
        >>> inputs = {{"Input": x, "Offset": right, "Filter": np.ones((1, 1, 1, 1)){given}}}
        >>> run_op("{type}", inputs)["Output"].ravel()
        array([0.5, 0.5, 2.5, 1.5])

    Source: Paddle's {type}_op; {paper}.
    """
_PAPERS = {
    "deformable_conv_v1": "Dai and others, Deformable Convolutional Networks, 2017",
    "deformable_conv": "Zhu and others, Deformable ConvNets v2, 2018",
}


def _define(type: str, masked: bool) -> None:
    mask = {"Mask: float[n, deformable_groups * kh * kw, oh, ow]": "a factor for each element of each window"}

    @op(
        type,
        inputs={
            "Input: float[n, c, h, w]": "images",
            "Offset: float[n, 2 * deformable_groups * kh * kw, oh, ow]": "down and to the right, for each element",
            **(mask if masked else {}),
            "Filter: float[f, c / groups, kh, kw]": "windows",
        },
        outputs={"Output": "[n, f, oh, ow]"},
        attrs={
            "strides": Attr("ints", [1, 1], "from window to window, down and to the right", gt=0),
            "paddings": Attr("ints", [0, 0], "elements around the image that count as 0", ge=0),
            "dilations": Attr("ints", [1, 1], "from element to element of a window", gt=0),
            "groups": Attr("int", 1, "groups of channels that do not see each other", ge=1),
            "deformable_groups": Attr("int", 1, "groups of channels with separate offsets", ge=1),
            "im2col_step": Attr("int", 64, "accepted, without effect"),
        },
        cost="8 * Output * Filter[1:]",
        infer=_infer,
        grad=default_grad(
            "Input", "Offset", *(["Mask"] if masked else []), "Filter", "Output@GRAD",
            wrt=["Input", "Offset", *(["Mask"] if masked else []), "Filter"],
        ),
        dtype_slot="Input",
        dtypes=FLOATS,
        cuda=FLOATS,
        doc=_DOC.format(
            type=type, mask="Mask · " if masked else "", paper=_PAPERS[type],
            mask_doc=" Mask has a factor for each element of each window." if masked else "",
            given=', "Mask": np.ones((1, 1, 2, 2))' if masked else "",
        ),
    )
    def deformable(b: Binder) -> None:
        if b.on_cuda:
            return _on_cuda(b, masked)
        return b(convolve, b["Input"], b["Offset"], b["Mask"] if masked else None, b["Filter"], _how(b), b["Output"])

    @grad_op(type + "_grad", dtype_slot="Output@GRAD", cuda=FLOATS)
    def deformable_grad(b: Binder) -> None:
        """dInput, dOffset, dMask and dFilter, by the shares of the four pixels around each place."""
        slots = ("Input@GRAD", "Offset@GRAD", "Mask@GRAD", "Filter@GRAD")
        outs = tuple(b[slot] if slot != "Mask@GRAD" or masked else None for slot in slots)
        if b.on_cuda:
            return _grad_on_cuda(b, masked, *outs)
        mask = b["Mask"] if masked else None
        return b(gradients, b["Input"], b["Offset"], mask, b["Filter"], b["Output@GRAD"], _how(b), outs)


_define("deformable_conv_v1", False)
_define("deformable_conv", True)
