"""affine_grid: where an affine map of an image takes each of its elements from."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op, values_of
from fluidnb_kernels.cuda.gemm import DTYPES, gemm
from fluidnb_kernels.emit import reading
from fluidnb_kernels.rules import integers


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
    n = theta.shape[0]
    c.require(
        not known or n in (-1, shape[0]) or shape[0] == -1,
        "affine_grid must be given as many images as Input(Theta) has maps.", expected=n, received=shape,
    )  # fmt: skip
    c.set("Output", (n, *(shape[2:] if known else [-1] * rank), rank), theta.dtype)


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
    points, rows = _points(b, out.shape[1:-1], theta.dtype), out.reshape(len(out), -1, out.shape[-1])
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
