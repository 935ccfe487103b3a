"""roi_align, roi_pool, psroi_pool, roi_perspective_transform: regions of feature maps as small images."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import Source, by_rows, ctype, each, of_dtype, typed, wide_dtype
from fluidnb_kernels.emit import FLOATS, store
from fluidnb_kernels.rules import attributes, check_below
from fluidnb_kernels.sequences import one_sequence_each, require_lod
from fluidnb_kernels.verbs import summing

#: Points for each element along an axis: a GPU goes through their squares, and 2^31 would keep it for ever.
_MOST_POINTS = 1024

#: Slots of regions.
REGIONS = {
    "ROIs: float[regions, 4] lod": "left, top, right, bottom; a sequence for each image",
    "RoisNum?: int[n]": "how many regions each image has, instead of sequences",
}
INPUTS = {"X: float[n, c, h, w]": "images"} | REGIONS

#: Attributes of regions.
ATTRS = {
    "pooled_height": Attr("int", 1, "rows of the result", gt=0),
    "pooled_width": Attr("int", 1, "columns of the result", gt=0),
    "spatial_scale": Attr("float", 1.0, "pixels of X for one unit of ROIs", gt=0),
}


def check_regions(c: Context) -> None:
    """Require images, and regions of each of them."""
    c.check_inputs()
    sizes = c["X"].shape[2:]
    c.require(0 not in sizes, f"The images of {c.definition.type} must have pixels.", received=list(c["X"].shape))
    if not c.has("RoisNum"):
        require_lod(c, "ROIs")
        if c.runtime:
            one_sequence_each(c, "ROIs", c["X"].shape[0])


def region_infer(c: Context) -> None:
    """Rule: one small image for each region."""
    check_regions(c)
    x, rois = c["X"], c["ROIs"]
    shape = (rois.shape[0], x.shape[1], c.attr("pooled_height", 1), c.attr("pooled_width", 1))
    c.set("Out", shape, x.dtype)
    c.set("Argmax", shape, np.int64)


def counts_of(b: Binder) -> Array:
    """Number of regions of each image: a constant if a LoD gives it, else the variable."""
    return b["RoisNum"] if b.has("RoisNum") else np.diff(b.lod("ROIs")[-1])


def images_of(counts: Array, regions: int) -> Array:
    """The image of each region."""
    return np.repeat(np.arange(len(counts)), counts)[:regions]


CUDA = Source(__file__, "regions.cu", typed(("owners",), ("align align_grad pool pool_grad", FLOATS)))


def owners(b: Binder, regions: int) -> Array:
    """The image of each region, int32: a table where the LoD has it, else computed from the counts."""
    counts = counts_of(b)
    if not b.has("RoisNum"):
        return b.table(images_of(counts, regions).astype(np.int32))
    image = b.tmp((regions,), np.int32)
    each(b, CUDA, "owners", regions, of_dtype(b, counts, np.dtype(np.int64)), image, np.int64(len(counts)))
    return image


def launch(
    b: Binder, name: str, x: Array, result: Array, first: Array, *args: Any, source: Source = CUDA,
    channels: bool = True,
) -> None:  # fmt: skip
    """Emit a launch over the parts of regions, and over their channels; those come between the first operands."""
    (regions, count, oh, ow), (h, w) = result.shape, x.shape[2:]
    sizes = *map(np.int64, (count, h, w)), np.int32(oh), np.int32(ow), np.float64(b.attr("spatial_scale", 1.0))
    if name.startswith("align"):
        sizes += np.int32(b.attr("sampling_ratio", -1)), np.int32(b.attr("aligned", False))
    operands = first, of_dtype(b, b["ROIs"], wide_dtype(x.dtype)), owners(b, regions), *args
    threads = count * oh * ow if channels else oh * ow
    by_rows(b, source, f"{name}<{ctype(x.dtype)}>", regions, threads, *operands, *sizes)


def emit(b: Binder, host: Callable[..., None], how: Any, name: str, **launched: Any) -> None:
    """Emit the results of regions: a call of a function of the host, or a launch."""
    x, out = b["X"], b["Out"]
    if not b.on_cuda:
        b(host, x, b["ROIs"], counts_of(b), how, out)
    elif out.size:
        launch(b, name, x, out, x, out, **launched)


def emit_grad(b: Binder, host: Callable[..., None], how: Any, name: str, **launched: Any) -> None:
    """Emit the gradient of `emit`; since regions overlap, a GPU adds it up with atomics."""
    g, dx = b["Out@GRAD"], b["X@GRAD"]
    if not b.on_cuda:
        return b(host, g, b["ROIs"], counts_of(b), how, dx)
    with summing(b, dx) as total:
        if g.size:
            launch(b, name, dx, g, g, total, **launched)


def weights(start: Any, end: Any, count: int, size: int, how: Any) -> tuple[slice, Array]:
    """The pixels along an axis that any element of a region's result reads, and their shares [count, pixels]."""
    length = end - start
    if not how.aligned:
        length = max(length, type(length)(1))
    step = length / type(length)(count)
    each = how.sampling_ratio if how.sampling_ratio > 0 else max(int(np.ceil(length / type(length)(count))), 0)
    spots = np.arange(count, dtype=step.dtype).reshape(-1, 1) * step
    if each <= _MOST_POINTS:
        rows, points = np.repeat(np.arange(count), each), np.arange(each, dtype=step.dtype)
        at = (start + spots + (points + step.dtype.type(0.5)) * step / max(each, 1)).ravel()
    else:
        rows, points = _near(float(start), float(step), count, each, size)
        at = start + spots[rows, 0] + (points.astype(step.dtype) + step.dtype.type(0.5)) * step / each
    inside = (at >= -1) & (at <= size)
    at = np.maximum(at, 0)
    low = np.minimum(at.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    share = np.where(low == size - 1, 0, at - low)
    first, last = (int(low.min()), int(high.max()) + 1) if low.size else (0, 1)
    out = np.zeros((count, last - first), step.dtype)
    np.add.at(out, (rows, low - first), inside * (1 - share) / max(each, 1))
    np.add.at(out, (rows, high - first), inside * share / max(each, 1))
    return slice(first, last), out


def _near(start: float, step: float, count: int, each: int, size: int) -> tuple[Array, Array]:
    """The elements, and the numbers of their points, that are near the pixels: a box may reach far beyond its image."""
    ends = (np.array([[-2.0], [size + 1.0]]) - start - np.arange(count) * step) / step * each
    first, last = np.clip(ends, 0, each).astype(np.int64)
    number = last - first
    rows = np.repeat(np.arange(count), number)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(number) - number - first, number)


def _roi_align_parts(rois: Array, counts: Array, shape: tuple[int, ...], how: Any) -> Iterator[tuple[Any, ...]]:
    """For each region its part of the images, and the shares of rows and columns."""
    dtype = rois.dtype.type
    boxes = rois * dtype(how.spatial_scale) - dtype(0.5 if how.aligned else 0)
    for box, n in zip(boxes, images_of(counts, len(rois)), strict=True):
        rows, down = weights(box[1], box[3], how.pooled_height, shape[2], how)
        columns, across = weights(box[0], box[2], how.pooled_width, shape[3], how)
        yield (n, slice(None), rows, columns), down, across


def align(x: Array, rois: Array, counts: Array, how: Any, out: Array) -> None:
    """Write the result of each region [regions, c, rows, columns]."""
    for i, (part, down, across) in enumerate(_roi_align_parts(rois, counts, x.shape, how)):
        out[i] = down @ x[part] @ across.T


def align_grad(g: Array, rois: Array, counts: Array, how: Any, dx: Array) -> None:
    """Write the gradient of `align`."""
    dx[...] = 0
    for i, (part, down, across) in enumerate(_roi_align_parts(rois, counts, dx.shape, how)):
        dx[part] += down.T @ g[i] @ across


def _align_infer(c: Context) -> None:
    region_infer(c)
    points = c.attr("sampling_ratio", -1)
    c.require(
        points <= _MOST_POINTS, "Attr(sampling_ratio) of roi_align is too large.", expected=f"up to {_MOST_POINTS}",
        received=points, hint="0 takes one point for each pixel.",
    )  # fmt: skip


@op(
    "roi_align",
    inputs=INPUTS,
    outputs={"Out": "[regions, c, pooled_height, pooled_width]"},
    attrs={
        **ATTRS,
        "sampling_ratio": Attr("int", -1, "points for each element along an axis; 0 or less for one each pixel"),
        "aligned": Attr("bool", False, "whether pixels are squares with a middle, so that boxes move by half of one"),
    },
    infer=_align_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def roi_align(b: Binder) -> None:
    """Out[r, c, i, j] = the mean of X at evenly spaced points of part (i, j) of region r, between pixels linearly.

    A region is at least one pixel wide and high unless ``aligned``; points more than a pixel outside count as 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
        >>> run_op("roi_align", {"X": x, "ROIs": ([[0.0, 0.0, 2.0, 2.0]], [[1]])})["Out"].ravel()
        array([4.])

    Source: He et al., "Mask R-CNN" (2017); Fluid's roi_align_op.
    """
    emit(b, align, attributes(b), "align")


@grad_op("roi_align_grad", cuda=FLOATS)
def roi_align_grad(b: Binder) -> None:
    """dX = the sum of what each pixel has given, by its share."""
    emit_grad(b, align_grad, attributes(b), "align_grad")


def edges(first: int, last: int, count: int, size: int) -> tuple[list[int], list[int]]:
    """Starts and ends of the parts of a region along an axis."""
    step = np.float32(max(last - first + 1, 1)) / np.float32(count)
    spots = np.arange(count + 1, dtype=np.float32) * step
    starts = np.floor(spots[:-1]).astype(np.int64) + first
    ends = np.ceil(spots[1:]).astype(np.int64) + first
    return np.clip(starts, 0, size).tolist(), np.clip(ends, 0, size).tolist()


def pool(
    x: Array, rois: Array, counts: Array, scale: float, sizes: tuple[int, int], out: Array | None, spots: Array | None
) -> None:
    """Write the largest pixel of each part of each region, and its index in the plane; 0 and -1 where there is none."""
    pixels = rois * rois.dtype.type(scale)
    pixels = (np.sign(pixels) * np.floor(np.abs(pixels) + 0.5)).astype(np.int64)  # halves away from zero
    shape = (len(rois), x.shape[1], *sizes)
    best, where = np.zeros(shape, x.dtype), np.full(shape, -1, np.int64)
    height, width = x.shape[2:]
    for i, ((left, top, right, bottom), n) in enumerate(zip(pixels, images_of(counts, len(rois)), strict=True)):
        rows, columns = edges(top, bottom, shape[2], height), edges(left, right, shape[3], width)
        for j, (y0, y1) in enumerate(zip(*rows, strict=True)):
            for k, (x0, x1) in enumerate(zip(*columns, strict=True)):
                if y1 > y0 and x1 > x0:
                    part = x[n, :, y0:y1, x0:x1].reshape(x.shape[1], -1)
                    spot = part.argmax(1)
                    best[i, :, j, k] = part[np.arange(len(part)), spot]
                    where[i, :, j, k] = (y0 + spot // (x1 - x0)) * width + x0 + spot % (x1 - x0)
    store((out, spots), (best, where))


def pool_grad(g: Array, spots: Array, counts: Array, dx: Array) -> None:
    """Write the gradient of `pool`."""
    total = np.zeros((*dx.shape[:2], dx.shape[2] * dx.shape[3]), dx.dtype)
    r, c, i, j = np.nonzero(spots >= 0)
    check_below(spots[r, c, i, j], total.shape[2], "Input(Argmax) of roi_pool_grad must name pixels of X.", "")
    np.add.at(total, (images_of(counts, len(g))[r], c, spots[r, c, i, j]), g[r, c, i, j])
    dx[...] = total.reshape(dx.shape)


@op(
    "roi_pool",
    inputs=INPUTS,
    outputs={
        "Out": "[regions, c, pooled_height, pooled_width]",
        "Argmax~": "int64, same shape: where each was in its plane, counted row by row; -1 for none",
    },
    attrs=ATTRS,
    infer=region_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Argmax", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def roi_pool(b: Binder) -> None:
    """Out[r, c, i, j] = the largest pixel of X in part (i, j) of region r; 0 where the part has none.

    A region goes from its rounded left and top to its rounded right and bottom; part i of n of a length goes from
    ``floor(i · length / n)`` to before ``ceil((i + 1) · length / n)``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.arange(9.0).reshape(1, 1, 3, 3)
        >>> run_op("roi_pool", {"X": x, "ROIs": ([[0.0, 0.0, 1.0, 1.0]], [[1]])})["Out"].ravel()
        array([4.])

    Source: Girshick, "Fast R-CNN" (2015); Fluid's roi_pool_op.
    """
    x, outs = b["X"], (b["Out"], b["Argmax"])
    result = next((out for out in outs if out is not None), None)
    if not b.on_cuda:
        sizes = b.attr("pooled_height"), b.attr("pooled_width")
        b(pool, x, b["ROIs"], counts_of(b), b.attr("spatial_scale"), sizes, *outs)
    elif result is not None and result.size:
        launch(b, "pool", x, result, x, *(np.uintp(0) if out is None else out for out in outs))


@grad_op("roi_pool_grad", dtype_slot="Out@GRAD", cuda=FLOATS)
def roi_pool_grad(b: Binder) -> None:
    """dX = the sum of dOut over the parts whose largest pixel it was."""
    g, dx, spots = b["Out@GRAD"], b["X@GRAD"], b["Argmax"]
    if not b.on_cuda:
        return b(pool_grad, g, spots, counts_of(b), dx)
    with summing(b, dx) as total:
        if g.size:
            regions, channels, oh, ow = g.shape
            sizes = [np.int64(n) for n in (channels, dx.shape[2] * dx.shape[3], oh * ow)]
            name = f"pool_grad<{ctype(g.dtype)}>"
            by_rows(b, CUDA, name, regions, channels * oh * ow, g, spots, owners(b, regions), total, *sizes)


PART_MEANS = Source(__file__, "psroi_pool.cu", typed(("means spread", FLOATS)))


def sides(rois: Array, scale: float) -> tuple[Array, Array]:
    """Starts and ends [regions, 2] of regions in pixels, along columns and along rows."""
    whole = np.copysign(np.floor(abs(rois) + 0.5), rois).astype(rois.dtype)  # halves away from zero
    factor, one = rois.dtype.type(scale), rois.dtype.type(1)
    return whole[:, :2] * factor, (whole[:, 2:] + one) * factor


def part_edges(start: Any, end: Any, count: int, size: int) -> tuple[Array, Array]:
    """Starts and ends of the parts of a region along an axis."""
    step = max(end - start, type(start)(0.1)) / type(start)(count)
    spots = np.arange(count + 1, dtype=step.dtype) * step + start
    first, last = np.floor(spots[:-1]), np.ceil(spots[1:])
    return np.clip(first, 0, size).astype(np.int64), np.clip(last, 0, size).astype(np.int64)


def _psroi_pool_parts(
    rois: Array, counts: Array, scale: float, shape: tuple[int, ...], sizes: tuple[int, int]
) -> Iterator[tuple[tuple[int, int, int], tuple[Any, ...]]]:
    """The parts that have pixels: region, row, column; and their pixels in [n, channels, rows, columns, h, w]."""
    for r, (start, end, n) in enumerate(zip(*sides(rois, scale), images_of(counts, len(rois)), strict=True)):
        down = part_edges(start[1], end[1], sizes[0], shape[2])
        across = part_edges(start[0], end[0], sizes[1], shape[3])
        for i, j in product(*map(range, sizes)):
            rows, columns = slice(down[0][i], down[1][i]), slice(across[0][j], across[1][j])
            if rows.stop > rows.start and columns.stop > columns.start:
                yield (r, i, j), (n, slice(None), i, j, rows, columns)


def by_part(x: Array, sizes: tuple[int, int]) -> Array:
    """Images [n, channels · rows · columns, h, w] as [n, channels, rows, columns, h, w]."""
    return x.reshape(len(x), -1, *sizes, *x.shape[2:])


def pool_parts(x: Array, rois: Array, counts: Array, scale: float, out: Array) -> None:
    """Write the mean of each part of each region [regions, c, rows, columns]; 0 where a part has no pixel."""
    out[...] = 0
    sizes = out.shape[2:]
    split = by_part(x, sizes)
    for (r, i, j), part in _psroi_pool_parts(rois, counts, scale, x.shape, sizes):
        out[r, :, i, j] = split[part].mean((1, 2))


def pool_parts_grad(g: Array, rois: Array, counts: Array, scale: float, dx: Array) -> None:
    """Write the gradient of `pool_parts`."""
    total = np.zeros(dx.shape, dx.dtype)
    split = by_part(total, g.shape[2:])
    for (r, i, j), part in _psroi_pool_parts(rois, counts, scale, dx.shape, g.shape[2:]):
        pixels = split[part]
        pixels += (g[r, :, i, j] / g.dtype.type(pixels[0].size))[:, None, None]
    dx[...] = total


def _regions_infer(c: Context) -> None:
    check_regions(c)
    x, channels = c["X"], c.attr("output_channels")
    rows, columns = c.attr("pooled_height", 1), c.attr("pooled_width", 1)
    c.require(
        x.shape[1] in (-1, channels * rows * columns),
        "Input(X) of psroi_pool must have a channel for each part of each channel of Out.",
        expected=f"{channels} · {rows} · {columns} = {channels * rows * columns} channels",
        received=f"{x.shape[1]} channels",
    )  # fmt: skip
    c.set("Out", (c["ROIs"].shape[0], channels, rows, columns), x.dtype)


@op(
    "psroi_pool",
    inputs={"X: float[n, output_channels · pooled_height · pooled_width, h, w]": "images"} | REGIONS,
    outputs={"Out": "[regions, output_channels, pooled_height, pooled_width]"},
    attrs={**ATTRS, "output_channels": Attr("int", doc="channels of Out", gt=0)},
    infer=_regions_infer,
    grad=default_grad("X", "ROIs", "RoisNum", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def psroi_pool(b: Binder) -> None:
    """Out[r, c, i, j] = the mean of channel (c, i, j) of X in part (i, j) of region r; 0 where the part has no pixel.

    A region goes from its rounded left and top to behind its rounded right and bottom, and is at least a tenth of a
    pixel wide and high; part i of n of a length goes from ``floor(i · length / n)`` to before
    ``ceil((i + 1) · length / n)``.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, attrs = np.arange(8.0).reshape(1, 2, 2, 2), {"pooled_height": 2, "output_channels": 1}
        >>> run_op("psroi_pool", {"X": x, "ROIs": ([[0.0, 0.0, 1.0, 1.0]], [[1]])}, attrs)["Out"].ravel()
        array([0.5, 6.5])

    Source: Dai et al., "R-FCN" (2016); Fluid's psroi_pool_op.
    """
    emit(b, pool_parts, b.attr("spatial_scale"), "means", source=PART_MEANS)


@grad_op("psroi_pool_grad", cuda=FLOATS)
def psroi_pool_grad(b: Binder) -> None:
    """dX = the sum of dOut over the parts that a pixel is in, each divided by its pixels."""
    emit_grad(b, pool_parts_grad, b.attr("spatial_scale", 1.0), "spread", source=PART_MEANS)


PERSPECTIVE = Source(__file__, "roi_perspective_transform.cu", typed(("warped warped_grad", FLOATS)))

#: How near to an edge a point counts as on it, as in Fluid.
NEAR = 1e-4


def _roi_perspective_transform_infer(c: Context) -> None:
    x, rois = c["X"], c["ROIs"]
    c.check_inputs()
    require_lod(c, "ROIs")
    if c.runtime:
        one_sequence_each(c, "ROIs", x.shape[0])
    shape = (rois.shape[0], x.shape[1], c.attr("transformed_height"), c.attr("transformed_width"))
    c.set("Out", shape, x.dtype, c.lod("ROIs"))


def transform(corners: Array, height: int, width: int) -> Array:
    """The matrix [3, 3] that maps columns and rows of a rectangle to points of a quadrilateral; not finite for none.

    The corners begin at the top left and go clockwise. A narrower quadrilateral has fewer columns than ``width``.
    """
    dtype = corners.dtype.type
    lengths = np.sqrt(((corners - np.roll(corners, -1, 0)) ** 2).sum(1))
    with np.errstate(all="ignore"):
        wide, high = (lengths[0] + lengths[2]) / dtype(2), (lengths[1] + lengths[3]) / dtype(2)
        columns = np.floor(wide * dtype(height - 1) / high + dtype(0.5)) + dtype(1)
        w, h = min(columns, dtype(width)) - dtype(1), dtype(height - 1)
        (dx1, dy1), (dx2, dy2) = corners[1] - corners[2], corners[3] - corners[2]
        dx3, dy3 = corners[0] - corners[1] + corners[2] - corners[3]
        both = dx1 * dy2 - dx2 * dy1
        low = np.array([(dx3 * dy2 - dx2 * dy3) / both / w, (dx1 * dy3 - dx3 * dy1) / both / h, dtype(1)])
        first = (corners[1] - corners[0] + low[0] * w * corners[1]) / w
        second = (corners[3] - corners[0] + low[1] * h * corners[3]) / h
    return np.stack([*np.stack([first, second, corners[0]], 1), low])


def inside(x: Array, y: Array, corners: Array) -> Array:
    """Whether points are in a quadrilateral [4, 2], or on its edge."""
    on_edge, crossed = np.zeros(x.shape, bool), np.zeros(x.shape, np.int64)
    for (xs, ys), (xe, ye) in zip(corners, np.roll(corners, -1, 0), strict=True):
        left, right, top, bottom = min(xs, xe), max(xs, xe), min(ys, ye), max(ys, ye)
        if abs(ys - ye) < NEAR:
            near = (abs(y - ys) < NEAR) & (abs(y - ye) < NEAR)
            on_edge |= near & (x > left - NEAR) & (x < right + NEAR)
            continue
        cross = (y - ys) * (xe - xs) / (ye - ys) + xs
        on_edge |= (abs(cross - x) < NEAR) & (y > top - NEAR) & (y < bottom + NEAR)
        crossed += (y >= top + NEAR) & (y - bottom <= NEAR) & (cross - x > NEAR)
    return on_edge | (crossed % 2 == 1)


def _points(
    rois: Array, counts: Array, scale: float, sizes: tuple[int, int], image: tuple[int, int]
) -> Iterator[tuple[int, int, Array, Array, list[tuple[Array, Array, Array]]]]:
    """For each region its image, the rows and columns of the result that see a pixel, and four pixels with shares."""
    dtype = rois.dtype if rois.dtype.kind == "f" else np.float32
    columns, rows = np.arange(sizes[1], dtype=dtype), np.arange(sizes[0], dtype=dtype)[:, None]
    last_y, last_x = image[0] - 1, image[1] - 1
    for r, n in enumerate(images_of(counts, len(rois))):
        corners = (rois[r] * rois.dtype.type(scale)).reshape(4, 2)
        matrix = transform(corners, *sizes)
        if not np.isfinite(matrix).all():
            continue
        with np.errstate(all="ignore"):
            u, v, w = (row[0] * columns + row[1] * rows + row[2] for row in matrix)
            x, y = u / w, v / w
        seen = inside(x, y, corners)
        seen &= (x >= -0.5 - NEAR) & (x - (last_x + 0.5) <= NEAR) & (y >= -0.5 - NEAR) & (y - (last_y + 0.5) <= NEAR)
        i, j = np.nonzero(seen)
        x, y = np.clip(x[i, j], 0, last_x), np.clip(y[i, j], 0, last_y)
        left, top = x.astype(np.int64), y.astype(np.int64)
        right, bottom = np.minimum(left + 1, last_x), np.minimum(top + 1, last_y)
        fx, fy = x - left, y - top
        pixels = [(top, left, (1 - fy) * (1 - fx)), (bottom, left, fy * (1 - fx)), (bottom, right, fy * fx),
                  (top, right, (1 - fy) * fx)]  # fmt: skip
        yield r, int(n), i, j, pixels


def warp(x: Array, rois: Array, counts: Array, scale: float, out: Array) -> None:
    """Write each region as a rectangle [regions, c, rows, columns]."""
    out[...] = 0
    for r, n, i, j, pixels in _points(rois, counts, scale, out.shape[2:], x.shape[2:]):
        out[r][:, i, j] = sum(share * x[n][:, row, column] for row, column, share in pixels)


def warp_grad(g: Array, rois: Array, counts: Array, scale: float, dx: Array) -> None:
    """Write the gradient of `warp`."""
    dx[...] = 0
    for r, n, i, j, pixels in _points(rois, counts, scale, g.shape[2:], dx.shape[2:]):
        for row, column, share in pixels:
            np.add.at(dx[n].transpose(1, 2, 0), (row, column), (share * g[r][:, i, j]).T)


@op(
    "roi_perspective_transform",
    inputs={
        "X: float[n, c, h, w]": "images",
        "ROIs: float[regions, 8] lod": "x, y of four corners, clockwise from the top left; a sequence for each image",
    },
    outputs={"Out": "[regions, c, transformed_height, transformed_width]"},
    attrs={
        "spatial_scale": Attr("float", 1.0, "pixels of X for one unit of ROIs", gt=0),
        "transformed_height": Attr("int", 1, "rows of the result", gt=0),
        "transformed_width": Attr("int", 1, "columns of the result", gt=0),
    },
    infer=_roi_perspective_transform_infer,
    grad=default_grad("X", "ROIs", "Out@GRAD", wrt=["X"]),
    dtypes=FLOATS,
    dtype_slot="X",
    cuda=FLOATS,
)
def roi_perspective_transform(b: Binder) -> None:
    """Out[r] = quadrilateral r of X as a rectangle, between pixels linearly; 0 beyond the quadrilateral and the image.

    The rows of the result fill its height; a region that is narrower than the result leaves columns on the right at 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, square = np.arange(9.0).reshape(1, 1, 3, 3), ([[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]], [[1]])
        >>> run_op("roi_perspective_transform", {"X": x, "ROIs": square},
        ...        {"transformed_height": 2, "transformed_width": 2})["Out"].array
        array([[[[0., 1.],
                 [3., 4.]]]])

    Source: Liu et al., "FOTS" (2018); Fluid's roi_perspective_transform_op.
    """
    emit(b, warp, b.attr("spatial_scale"), "warped", source=PERSPECTIVE, channels=False)


@grad_op("roi_perspective_transform_grad", cuda=FLOATS)
def roi_perspective_transform_grad(b: Binder) -> None:
    """dX = the sum of what each pixel has given, by its share."""
    emit_grad(b, warp_grad, b.attr("spatial_scale", 1.0), "warped_grad", source=PERSPECTIVE, channels=False)
