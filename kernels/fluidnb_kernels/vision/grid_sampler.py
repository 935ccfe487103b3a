"""affine_grid and grid_sampler: images sampled at the points of a grid."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, product, values_of
from fluidnb.op.c_code import Constant, c_code
from fluidnb_kernels.cuda import Source, by_rows, ctype, of_dtype, typed, wide_dtype, writing_as, written_as
from fluidnb_kernels.cuda.gemm import DTYPES, gemm
from fluidnb_kernels.emit import FLOATS, reading
from fluidnb_kernels.rules import checked, integers, require_fixed
from fluidnb_kernels.verbs import summing


def _infer(c: Context) -> None:
    theta = c["Theta"]
    rank = theta.shape[1] if theta.ndim == 3 else 0
    c.require(
        rank in (2, 3, -1) and theta.shape[2] in (rank + 1, -1), "Input(Theta) of affine_grid must hold affine maps.",
        expected="[batch, 2, 3]", received=list(theta.shape),
    )  # fmt: skip
    shape = integers(c, "output_shape", "OutputShape")
    known = c.runtime or not c.has("OutputShape")
    c.require(
        not known or len(shape) == rank + 2, "affine_grid must be given the shape of an image.",
        expected="[batch, channels, height, width]", received=shape,
    )  # fmt: skip
    # how many images there are, Theta says: the last batch of a pass may be smaller
    c.set("Output", (theta.shape[0], *(shape[2:] if known else [-1] * rank), rank), theta.dtype)


def _points(c: Context, sizes: tuple[int, ...], dtype: Any) -> Array:
    """The points of an image, from -1 to 1 along each axis: [points, (x, y, …, 1)]."""
    lines = []
    for n in sizes:
        line = np.linspace(-1, 1, n)
        lines.append(line if c.attr("align_corners", True) else line * (n - 1) / n)
    grid = np.meshgrid(*lines, indexing="ij")
    return np.stack([*(axis.ravel() for axis in grid[::-1]), np.ones(grid[0].size)], 1).astype(dtype)


@op(
    "affine_grid",
    inputs={
        "Theta: float[n, rows, columns]": "affine maps [2, 3] of images, [3, 4] of volumes",
        "OutputShape?": "output_shape as a variable",
    },
    outputs={"Output": "[n, h, w, 2]: x and y of the point for each element, from -1 to 1 across the image"},
    attrs={
        "output_shape": Attr("ints", [], "the shape [n, c, h, w] of the image to make"),
        "align_corners": Attr("bool", True, "whether -1 and 1 are the middles of the outer elements, or their edges"),
        "use_cudnn": Attr("bool", True, "chooses a library where one is registered"),
    },
    cost="3 * Output",
    infer=_infer,
    grad=default_grad("Theta", "OutputShape", "Output@GRAD", wrt=["Theta"]),
    guard=values_of("OutputShape"),
    dtype_slot="Theta",
    cuda=DTYPES,
)
def affine_grid(b: Binder) -> None:
    """Output[n, h, w] = Theta[n] · (x, y, 1), with x and y evenly from -1 to 1.

    Example:
        >>> from fluidnb.testing import run_op
        >>> turn = np.array([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]])
        >>> run_op("affine_grid", {"Theta": turn}, {"output_shape": [1, 1, 1, 2]})["Output"]
        array([[[[ 1., -1.],
                 [ 1.,  1.]]]])

    Source: Jaderberg et al., "Spatial Transformer Networks" (2015); Fluid's affine_grid_op.
    """
    theta, out = b["Theta"], b["Output"]
    points = _points(b, out.shape[1:-1], theta.dtype)
    rows = out.reshape(len(out), len(points), out.shape[-1])
    if not b.on_cuda:
        b(np.matmul, points, theta.transpose(0, 2, 1), out=rows)
    elif out.size:
        gemm(b, b.table(points), theta, rows, ty=True)


@grad_op("affine_grid_grad", guard=values_of("OutputShape"), dtype_slot="Output@GRAD", cuda=DTYPES)
def affine_grid_grad(b: Binder) -> None:
    """dTheta[n] = Σ dOutput[n, h, w] ⊗ (x, y, 1)."""
    g, out = b["Output@GRAD"], b["Theta@GRAD"]
    points = _points(b, g.shape[1:-1], g.dtype)
    rows = reading(b, g, (len(g), len(points), g.shape[-1]))
    if not b.on_cuda:
        b(np.matmul, rows.transpose(0, 2, 1), points, out=out)
    elif out.size:
        gemm(b, rows, b.table(points), out, tx=True)


def place(at: Array, size: int, padding: str, corners: bool) -> tuple[Array, Array]:
    """Points of -1 to 1 as positions along an axis, and their derivatives.

    With ``corners`` -1 and 1 are the middles of the outer elements, otherwise their edges.
    """
    last = size - 1
    if corners:
        p, slope = (at + 1) * (last / 2), np.full(at.shape, last / 2, at.dtype)
    else:
        p, slope = ((at + 1) * size - 1) / 2, np.full(at.shape, size / 2, at.dtype)
    if padding == "reflection":
        edge = 0.0 if corners else 0.5
        period = 2 * (last if corners else size)
        turned = p + edge
        slope = slope * np.where(turned < 0, -1, 1)
        turned = np.abs(turned)
        turned = turned - np.floor(turned / max(period, 1)) * period
        slope = slope * np.where(turned > period - turned, -1, 1)
        p = np.minimum(turned, period - turned) - edge
    if padding != "zeros":
        slope = slope * ((p >= 0) & (p <= last))
        p = np.clip(p, 0, last)
    return p.astype(at.dtype, copy=False), slope.astype(at.dtype, copy=False)


class _Samples:
    """The neighbours of each point: rows, columns, shares."""

    def __init__(self, x: Array, grid: Array, mode: str, padding: str, corners: bool) -> None:
        self.x, self.bilinear = np.moveaxis(x, 1, -1), mode == "bilinear"
        self.px, self.slope_x = place(grid[..., 0], x.shape[3], padding, corners)
        self.py, self.slope_y = place(grid[..., 1], x.shape[2], padding, corners)
        self.n = np.arange(len(x)).reshape(-1, 1, 1)

    def taps(self) -> Iterator[tuple[tuple[Array, Array, Array], Array, Array, Array, Array]]:
        """For each neighbour its index in [n, h, w, c], whether it is inside, share, derivatives by x and y."""
        h, w = self.x.shape[1:3]
        if self.bilinear:
            x0, y0 = np.floor(self.px), np.floor(self.py)
            fx, fy = self.px - x0, self.py - y0
            one = np.ones_like(fx)
            sides = [
                (y0 + j, x0 + i, (fy if j else 1 - fy), (fx if i else 1 - fx), one * (2 * j - 1), one * (2 * i - 1))
                for j in (0, 1) for i in (0, 1)
            ]  # fmt: skip
        else:
            one, none = np.ones_like(self.px), np.zeros_like(self.px)
            sides = [(np.rint(self.py), np.rint(self.px), one, one, none, none)]
        for row, col, sy, sx, dy, dx in sides:
            inside = (row >= 0) & (row < h) & (col >= 0) & (col < w)
            # fmax and fmin give a number for NaN, too; the share of such a point is NaN
            rows, columns = (np.fmin(np.fmax(at, 0), n - 1).astype(np.int64) for at, n in ((row, h), (col, w)))
            spot = (self.n, rows, columns)
            yield spot, inside, sy * sx, dx * sy, dy * sx


def sample(x: Array, grid: Array, mode: str, padding: str, corners: bool, out: Array) -> None:
    """Write an image read at points x and y of -1 to 1 [n, rows, columns, 2]."""
    found, total = _Samples(x, grid, mode, padding, corners), np.zeros((*grid.shape[:3], x.shape[1]), x.dtype)
    for spot, inside, share, _, _ in found.taps():
        total += found.x[spot] * (share * inside)[..., None]
    out[...] = np.moveaxis(total, -1, 1)


def sample_grad(
    x: Array, grid: Array, mode: str, padding: str, corners: bool, g: Array, dx: Array | None, dgrid: Array | None
) -> None:
    """Write the gradients of `sample`; either may be None."""
    found, g = _Samples(x, grid, mode, padding, corners), np.moveaxis(g, 1, -1)
    total, slopes = np.zeros(found.x.shape, x.dtype), np.zeros(grid.shape, grid.dtype)
    for spot, inside, share, by_x, by_y in found.taps():
        if dx is not None:
            np.add.at(total, spot, g * (share * inside)[..., None])
        if dgrid is not None:
            seen = (found.x[spot] * g).sum(-1) * inside
            slopes[..., 0] += seen * by_x
            slopes[..., 1] += seen * by_y
    if dx is not None:
        dx[...] = np.moveaxis(total, -1, 1)
    if dgrid is not None:
        dgrid[..., 0] = slopes[..., 0] * found.slope_x
        dgrid[..., 1] = slopes[..., 1] * found.slope_y


def _how(b: Binder) -> tuple[str, str, bool]:
    return b.attr("mode", "bilinear"), b.attr("padding_mode", "zeros"), b.attr("align_corners", True)


@op(
    "grid_sampler",
    inputs={
        "X: float[n, c, h, w]": "images",
        "Grid: float[n, rows, columns, 2]": "x and y of points, -1 to 1 across the image",
    },
    outputs={"Output": "[n, c, rows, columns]"},
    attrs={
        "mode": Attr("string", "bilinear", "bilinear or nearest", enum=("bilinear", "nearest")),
        "padding_mode": Attr(
            "string", "zeros", "values beyond the image: zeros, its border, or its reflection",
            enum=("zeros", "border", "reflection"),
        ),
        "align_corners": Attr("bool", True, "whether -1 and 1 are the middles of the outer elements, or their edges"),
        "use_cudnn": Attr("bool", True, "chooses a library where one is registered"),
    },
    cost="4 * Output",
    infer=checked(lambda c: c.set("Output", (*c["X"].shape[:2], *c["Grid"].shape[1:3]), c["X"].dtype, c.lod("X"))),
    grad=default_grad("X", "Grid", "Output@GRAD"),
    dtypes=FLOATS, cuda=FLOATS,
)  # fmt: skip
def grid_sampler(b: Binder) -> None:
    """Output[n, :, i, j] = X[n] at the point Grid[n, i, j]: its four neighbours by how near they are, or the nearest.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, point = np.array([1.0, 3.0]).reshape(1, 1, 1, 2), np.zeros((1, 1, 1, 2))
        >>> run_op("grid_sampler", {"X": x, "Grid": point})["Output"].ravel()
        array([2.])

    Source: Jaderberg et al., "Spatial Transformer Networks" (2015); Fluid's grid_sampler_op.
    """
    if not b.on_cuda:
        return b(sample, b["X"], b["Grid"], *_how(b), b["Output"])
    x = b["X"]
    return _launch(b, "sampled", True, x, x, of_dtype(b, b["Grid"], wide_dtype(x.dtype)), b["Output"])


@grad_op("grid_sampler_grad", cuda=FLOATS)
def grid_sampler_grad(b: Binder) -> None:
    """dX = the sum of what each element has given, by its share; dGrid follows the slopes between neighbours."""
    if not b.on_cuda:
        return b(sample_grad, b["X"], b["Grid"], *_how(b), b["Output@GRAD"], b["X@GRAD"], b["Grid@GRAD"])
    # dX with atomics, dGrid channel by channel
    x, g, dx, dgrid = b["X"], b["Output@GRAD"], b["X@GRAD"], b["Grid@GRAD"]
    wide = wide_dtype(x.dtype)
    grid = of_dtype(b, b["Grid"], wide)
    if dx is not None:
        with summing(b, dx) as total:
            _launch(b, "image_grad", True, x, g, grid, total)
    if dgrid is not None:
        slopes = writing_as(b, dgrid, wide)
        _launch(b, "point_grad", False, x, x, g, grid, slopes)
        written_as(b, dgrid, slopes)


#: Flags of the kernels, and channels of a thread, as ``grid_sampler.cu`` numbers them.
_NEAREST, _PADDINGS, _CORNERS, _SOME = 1, {"zeros": 0, "border": 2, "reflection": 4}, 8, 8

CUDA = Source(__file__, "grid_sampler.cu", typed(("sampled image_grad point_grad", FLOATS)))


def _launch(b: Binder, name: str, by_channels: bool, x: Array, *args: Any) -> None:
    """Emit a launch over the points of each image, and over groups of channels."""
    n, channels, h, w = x.shape
    mode, padding, corners = _how(b)
    how = (mode == "nearest") * _NEAREST + _PADDINGS[padding] + corners * _CORNERS
    points = b["Grid"].shape[1] * b["Grid"].shape[2]
    sizes = np.int64(channels), np.int32(h), np.int32(w), np.int64(points), np.int32(how)
    rows = n * -(-channels // _SOME) if by_channels else n
    by_rows(b, CUDA, f"{name}<{ctype(x.dtype)}>", rows, points, *args, *sizes)


@c_code("affine_grid")
def _affine_grid_in_c(c: Context) -> dict[str, Constant]:
    require_fixed(c, "OutputShape")
    n, *sizes, rank = c["Output"].shape
    axes = zip("DHW", (*[1] * (3 - len(sizes)), *sizes), strict=True)
    return {"N": n, "RANK": rank, "CORNERS": c.attr("align_corners", True), **dict(axes)}


@c_code("grid_sampler")
def _grid_sampler_in_c(c: Context) -> dict[str, Constant]:
    n, channels, h, w = c["X"].shape
    mode, padding, corners = c.attr("mode"), c.attr("padding_mode"), c.attr("align_corners")
    found: dict[str, Constant] = {"N": n, "C": channels, "H": h, "W": w, "POINTS": product(c["Grid"].shape[1:3])}
    kind = ("zeros", "border", "reflection").index(padding)
    return {**found, "NEAREST": mode == "nearest", "PADDING": kind, "CORNERS": corners}
