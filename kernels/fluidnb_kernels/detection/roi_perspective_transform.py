"""roi_perspective_transform: quadrilaterals of images as upright rectangles."""

from collections.abc import Iterator

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb_kernels.cuda import Source, typed
from fluidnb_kernels.detection.regions import emit, emit_grad, images_of
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.sequences import one_sequence_each, require_lod

CUDA = Source(__file__, "roi_perspective_transform.cu", typed(("warped warped_grad", FLOATS)))

#: How near to an edge a point counts as on it, as in Fluid.
NEAR = 1e-4


def _infer(c: Context) -> None:
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
    columns, rows = np.arange(sizes[1], dtype=rois.dtype), np.arange(sizes[0], dtype=rois.dtype)[:, None]
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
    infer=_infer,
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
    emit(b, warp, b.attr("spatial_scale"), "warped", source=CUDA, channels=False)


@grad_op("roi_perspective_transform_grad", cuda=FLOATS)
def roi_perspective_transform_grad(b: Binder) -> None:
    """dX = the sum of what each pixel has given, by its share."""
    emit_grad(b, warp_grad, b.attr("spatial_scale", 1.0), "warped_grad", source=CUDA, channels=False)
