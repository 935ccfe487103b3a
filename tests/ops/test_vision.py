"""Images resampled, shuffled, shifted, cut into windows, put back."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, distinct, family, values
from tests.ops.images import last, pool

X = values(2, 3, 3, 5)
VIDEO = values(4, 8, 2, 3)
BLOCKS, THIRDS = values(2, 8, 2, 4), values(1, 9, 6, 3)
SCALE, BIAS = values(3, seed=1), values(3, seed=2)
SPREAD = distinct(2, 3, 5, 6)


def resized(x, size, place):
    """Every element of a new size by the four around its place."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *size))
    for i in range(size[0]):
        for j in range(size[1]):
            y, z = place(i, h, size[0]), place(j, w, size[1])
            y0, z0 = int(y), int(z)
            y1, z1 = min(y0 + 1, h - 1), min(z0 + 1, w - 1)
            top = x[..., y0, z0] * (1 - z + z0) + x[..., y0, z1] * (z - z0)
            low = x[..., y1, z0] * (1 - z + z0) + x[..., y1, z1] * (z - z0)
            out[..., i, j] = top * (1 - y + y0) + low * (y - y0)
    return out


def corner(k, size, new):
    return k * (size - 1) / (new - 1)


def edge(k, size, new):
    return k * size / new


def middle(k, size, new):
    return max((k + 0.5) * size / new - 0.5, 0)


def squares(x, r):
    """Groups of r² channels as squares of pixels."""
    n, c, h, w = x.shape
    out = np.zeros((n, c // r**2, h * r, w * r))
    for k in range(c):
        out[:, k // r**2, k % r**2 // r :: r, k % r :: r] = x[:, k]
    return out


def reorganised(x, r):
    """`squares`, but channels in groups of r² far apart, and the result read in a smaller shape."""
    n, c, h, w = x.shape
    out = np.zeros((n, c // r**2, h * r, w * r))
    for k in range(c):
        i, j = divmod(k // (c // r**2), r)
        out[:, k % (c // r**2), i::r, j::r] = x[:, k]
    return out.reshape(n, c * r**2, h // r, w // r)


def shifted(x, steps, one, two):
    """The first channels of a video a step later, the next a step earlier."""
    out = x.copy()
    for t in range(len(x)):
        first, final = t % steps == 0, t % steps == steps - 1
        out[t, :one] = 0 if first else x[t - 1, :one]
        out[t, one:two] = 0 if final else x[t + 1, one:two]
    return out


def columns(x, kernel, strides, paddings, dilations):
    """The windows of images, window by window."""
    up, left, down, right = paddings
    x = np.pad(x, ((0, 0), (0, 0), (up, down), (left, right)))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    out = []
    for i in range(0, x.shape[2] - reach[0] + 1, strides[0]):
        for j in range(0, x.shape[3] - reach[1] + 1, strides[1]):
            window = x[:, :, i : i + reach[0] : dilations[0], j : j + reach[1] : dilations[1]]
            out.append(window.reshape(len(x), -1))
    return np.stack(out, -1)


def largest(x, parts):
    """The largest element of each window and its place, window by window: (out, mask)."""
    rank = x.ndim - 2
    shape = (*x.shape[:2], *(len(p) for p in parts))
    out, mask = np.zeros(shape), np.zeros(shape, "int32")
    numbers = np.arange(np.prod(x.shape[2:])).reshape(x.shape[2:])
    for spot in np.ndindex(*shape[2:]):
        window = tuple(slice(*parts[a][spot[a]]) for a in range(rank))
        seen = x[(..., *window)].reshape(*x.shape[:2], -1)
        out[(..., *spot)] = seen.max(-1)
        mask[(..., *spot)] = numbers[window].ravel()[seen.argmax(-1)]
    return out, mask


def sampled(x, grid, corners=True, mode="bilinear", wrap=None):
    """An image read at points, point by point; ``wrap`` moves places into the image, else there are zeros around it."""
    n, c, h, w = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in np.ndindex(*grid.shape[:3]):
        gx, gy = grid[b, i, j]
        px = (gx + 1) / 2 * (w - 1) if corners else ((gx + 1) * w - 1) / 2
        py = (gy + 1) / 2 * (h - 1) if corners else ((gy + 1) * h - 1) / 2
        if wrap:
            px, py = wrap(px, w), wrap(py, h)
        if mode == "nearest":
            px, py = np.rint(px), np.rint(py)
        for y in (int(np.floor(py)), int(np.floor(py)) + 1):
            for z in (int(np.floor(px)), int(np.floor(px)) + 1):
                if 0 <= y < h and 0 <= z < w:
                    out[b, :, i, j] += x[b, :, y, z] * (1 - abs(py - y)) * (1 - abs(px - z))
    return out


def clamped(p, size):
    return min(max(p, 0), size - 1)


def mirrored(p, size):
    """Into the image by reflection at the middles of its outer pixels."""
    while not 0 <= p <= size - 1:
        p = -p if p < 0 else 2 * (size - 1) - p
    return p


BIG = resized(X, (5, 9), corner)
EVEN = values(1, 2, 2, 4)
ROWS, COLUMNS = np.array([0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 3, 3, 4, 4])
GRID = values(2, 3, 4, 2, low=-1.3, high=1.3)
THETA = values(2, 2, 3)
POINTS = np.ones((3, 5, 3))
POINTS[..., 0], POINTS[..., 1] = np.linspace(-1, 1, 5), np.linspace(-1, 1, 3)[:, None]
VOLUME = distinct(1, 2, 3, 4, 2)
SMALL = values(2, 1, 2, 2)
PLACES = np.array([[0, 3, 9, 14], [5, 2, 8, 15]], "int32").reshape(2, 1, 2, 2)
UNPOOLED = np.zeros((2, 1, 4, 4))
for k in range(2):
    UNPOOLED[k].flat[PLACES[k].ravel()] = SMALL[k].ravel()
#: test, images, attributes, windows along each axis
WINDOWS = [
    ("max_pool2d_with_index", SPREAD, {"ksize": [2, 3], "strides": [2, 1]},
     [[(0, 2), (2, 4)], [(0, 3), (1, 4), (2, 5), (3, 6)]]),
    ("max_pool2d_with_index/padded", SPREAD, {"ksize": [3, 3], "strides": [2, 3], "paddings": [1, 1]},
     [[(0, 2), (1, 4), (3, 5)], [(0, 2), (2, 5)]]),
    ("max_pool2d_with_index/shared", SPREAD, {"ksize": [3, 2], "adaptive": True},
     [[(0, 2), (1, 4), (3, 5)], [(0, 3), (3, 6)]]),
    ("max_pool2d_with_index/whole", SPREAD, {"ksize": [1, 1], "global_pooling": True}, [[(0, 5)], [(0, 6)]]),
    ("max_pool2d_with_index/larger_than_the_image", SPREAD, {"ksize": [6, 9], "strides": [2, 4]}, [[(0, 5)], [(0, 6)]]),
    ("max_pool2d_with_index/each_element", SPREAD, {"ksize": [1, 1], "adaptive": True, "global_pooling": True},
     [[(i, i + 1) for i in range(5)], [(i, i + 1) for i in range(6)]]),
    ("max_pool3d_with_index", VOLUME, {"ksize": [2, 2, 2], "strides": [1, 2, 1]},
     [[(0, 2), (1, 3)], [(0, 2), (2, 4)], [(0, 2)]]),
]  # fmt: skip

family(
    globals(),
    Differentiable,
    {
        "bilinear_interp": {"inputs": {"X": X}, "attrs": {"out_h": 5, "out_w": 9}, "outputs": {"Out": BIG}},
        "bilinear_interp/last": {
            "inputs": {"X": last(X)}, "attrs": {"out_h": 5, "out_w": 9, "data_layout": "NHWC"},
            "outputs": {"Out": last(BIG)},
        },
        "bilinear_interp/edges": {
            "inputs": {"X": EVEN}, "attrs": {"out_h": 4, "out_w": 8, "align_corners": False},
            "outputs": {"Out": resized(EVEN, (4, 8), edge)},
        },
        "bilinear_interp/middles": {
            "inputs": {"X": EVEN}, "attrs": {"scale": 2.0, "align_corners": False, "align_mode": 0},
            "outputs": {"Out": resized(EVEN, (4, 8), middle)},
        },
        "bilinear_interp/one": {
            "inputs": {"X": EVEN}, "attrs": {"out_h": 1, "out_w": 1}, "outputs": {"Out": EVEN[..., :1, :1]},
        },
        "bilinear_interp/given": {
            "inputs": {"X": X, "OutSize": np.array([5, 9], "int32")}, "attrs": {"scale": 3.0},
            "outputs": {"Out": BIG}, "grads": ("X",),
        },
        "bilinear_interp/each": {
            "inputs": {"X": X, "SizeTensor": [np.array([5], "int32"), np.array([9], "int32")]},
            "outputs": {"Out": BIG}, "grads": ("X",),
        },
        "nearest_interp": {
            "inputs": {"X": X}, "attrs": {"out_h": 5, "out_w": 9, "interp_method": "nearest"},
            "outputs": {"Out": X[:, :, ROWS][..., COLUMNS]},
        },
        "nearest_interp/edges": {
            "inputs": {"X": X}, "attrs": {"scale": 2.0, "align_corners": False},
            "outputs": {"Out": X.repeat(2, 2).repeat(2, 3)},
        },
        "affine_channel": {
            "inputs": {"X": X, "Scale": SCALE, "Bias": BIAS},
            "outputs": {"Out": X * SCALE[:, None, None] + BIAS[:, None, None]},
        },
        "affine_channel/last": {
            "inputs": {"X": last(X), "Scale": SCALE, "Bias": BIAS}, "attrs": {"data_layout": "NHWC"},
            "outputs": {"Out": last(X) * SCALE + BIAS},
        },
        "pixel_shuffle": {
            "inputs": {"X": VIDEO}, "attrs": {"upscale_factor": 2},
            "outputs": {"Out": squares(VIDEO, 2)},
        },
        "space_to_depth": {
            "inputs": {"X": BLOCKS}, "attrs": {"blocksize": 2}, "outputs": {"Out": reorganised(BLOCKS, 2)},
        },
        "space_to_depth/thirds": {
            "inputs": {"X": THIRDS}, "attrs": {"blocksize": 3}, "outputs": {"Out": reorganised(THIRDS, 3)},
        },
        "pixel_shuffle/last": {
            "inputs": {"X": last(VIDEO)}, "attrs": {"upscale_factor": 2, "data_format": "NHWC"},
            "outputs": {"Out": last(squares(VIDEO, 2))},
        },
        "shuffle_channel": {
            "inputs": {"X": VIDEO}, "attrs": {"group": 2}, "outputs": {"Out": VIDEO[:, [0, 4, 1, 5, 2, 6, 3, 7]]},
        },
        "shuffle_channel/one": {"inputs": {"X": VIDEO}, "outputs": {"Out": VIDEO}},
        "temporal_shift": {
            "inputs": {"X": VIDEO}, "attrs": {"seg_num": 2}, "outputs": {"Out": shifted(VIDEO, 2, 2, 4)},
        },
        "temporal_shift/last": {
            "inputs": {"X": last(VIDEO)}, "attrs": {"seg_num": 4, "shift_ratio": 0.4, "data_format": "NHWC"},
            "outputs": {"Out": last(shifted(VIDEO, 4, 3, 6))},
        },
        "unfold": {
            "inputs": {"X": SPREAD},
            "attrs": {"kernel_sizes": [2, 3], "strides": [1, 2], "paddings": [1, 0, 0, 2], "dilations": [2, 1]},
            "outputs": {"Y": columns(SPREAD, [2, 3], [1, 2], [1, 0, 0, 2], [2, 1])},
        },
        "unfold/larger_than_the_image": {
            "inputs": {"X": SPREAD},
            "attrs": {"kernel_sizes": [6, 7], "strides": [2, 3], "paddings": [0] * 4, "dilations": [1, 1]},
            "outputs": {"Y": columns(SPREAD, [6, 7], [2, 3], [0, 0, 1, 1], [1, 1])},
        },
        "spp": {
            "inputs": {"X": SPREAD}, "attrs": {"pyramid_height": 2, "pooling_type": "max"},
            "outputs": {"Out": np.concatenate([
                SPREAD.max((2, 3)), pool(SPREAD, "max", [3, 3], [3, 3], [1, 0]).reshape(2, -1),
            ], 1)},
        },
        "spp/mean": {
            "inputs": {"X": SPREAD[:, :, :4, :4]}, "attrs": {"pyramid_height": 3, "pooling_type": "avg"},
            "outputs": {"Out": np.concatenate([
                SPREAD[:, :, :4, :4].mean((2, 3)), pool(SPREAD[:, :, :4, :4], "avg", [2, 2], [2, 2]).reshape(2, -1),
                SPREAD[:, :, :4, :4].reshape(2, -1),
            ], 1)},
        },
        "grid_sampler": {
            "inputs": {"X": X, "Grid": GRID}, "outputs": {"Output": sampled(X, GRID)},
        },
        "grid_sampler/edges": {
            "inputs": {"X": X, "Grid": GRID}, "attrs": {"align_corners": False},
            "outputs": {"Output": sampled(X, GRID, corners=False)},
        },
        "grid_sampler/border": {
            "inputs": {"X": X, "Grid": GRID}, "attrs": {"padding_mode": "border"},
            "outputs": {"Output": sampled(X, GRID, wrap=clamped)},
        },
        "grid_sampler/reflection": {
            "inputs": {"X": X, "Grid": GRID}, "attrs": {"padding_mode": "reflection"},
            "outputs": {"Output": sampled(X, GRID, wrap=mirrored)},
        },
        "grid_sampler/nearest": {
            "inputs": {"X": X, "Grid": GRID}, "attrs": {"mode": "nearest"},
            "outputs": {"Output": sampled(X, GRID, mode="nearest")},
        },
        "affine_grid": {
            "inputs": {"Theta": THETA}, "attrs": {"output_shape": [2, 1, 3, 5]},
            "outputs": {"Output": np.einsum("nij,hwj->nhwi", THETA, POINTS)},
        },
        "affine_grid/batch": {  # as Fluid: Theta says how many images there are
            "inputs": {"Theta": THETA}, "attrs": {"output_shape": [7, 1, 3, 5]},
            "outputs": {"Output": np.einsum("nij,hwj->nhwi", THETA, POINTS)},
        },
        "affine_grid/given": {
            "inputs": {"Theta": THETA, "OutputShape": np.array([2, 1, 3, 5], "int32")},
            "outputs": {"Output": np.einsum("nij,hwj->nhwi", THETA, POINTS)}, "grads": ("Theta",),
        },
        "affine_grid/edges": {
            "inputs": {"Theta": THETA}, "attrs": {"output_shape": [2, 1, 3, 5], "align_corners": False},
            "outputs": {"Output": np.einsum("nij,hwj->nhwi", THETA, POINTS * [4 / 5, 2 / 3, 1])},
        },
        **{
            name: {
                "inputs": {"X": x}, "attrs": attrs, "loss": ("Out",),
                "outputs": dict(zip(("Out", "Mask"), largest(x, parts), strict=True)),
            }
            for name, x, attrs, parts in WINDOWS
        },
        "unpool": {
            "inputs": {"X": SMALL, "Indices": PLACES}, "outputs": {"Out": UNPOOLED}, "grads": ("X",),
            "attrs": {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max"},
        },
    },
)  # fmt: skip


def test_a_size_must_be_given():
    with pytest.raises(RuleError, match="needs a height and a width"):
        run_op("bilinear_interp", {"X": X})


def test_groups_must_divide_the_channels():
    with pytest.raises(RuleError, match="must divide the number of channels"):
        run_op("shuffle_channel", {"X": VIDEO}, {"group": 3})
    with pytest.raises(RuleError, match="must divide the number of channels"):
        run_op("pixel_shuffle", {"X": X}, {"upscale_factor": 2})
    with pytest.raises(RuleError, match="must divide the number of channels"):
        run_op("space_to_depth", {"X": X}, {"blocksize": 2})
    with pytest.raises(RuleError, match="must divide height and width"):
        run_op("space_to_depth", {"X": VIDEO}, {"blocksize": 2})


def test_a_video_must_be_whole():
    with pytest.raises(RuleError, match="must make whole videos"):
        run_op("temporal_shift", {"X": VIDEO}, {"seg_num": 3})
    with pytest.raises(OpValueError, match="between 0 and 0.5"):
        run_op("temporal_shift", {"X": VIDEO}, {"seg_num": 2, "shift_ratio": 0.7})


def test_more_parts_than_pixels():
    with pytest.raises(RuleError, match="more parts than an image has pixels"):
        run_op("spp", {"X": X}, {"pyramid_height": 3, "pooling_type": "max"})


def test_an_index_outside_the_image():
    attrs = {"ksize": [2, 2], "strides": [2, 2], "unpooling_type": "max"}
    with pytest.raises(EnforceNotMet, match="points outside the image"):
        run_op("unpool", {"X": SMALL, "Indices": PLACES + 9}, attrs)


def test_one_padding_for_two_axes():
    attrs = {"ksize": [2, 2], "strides": [2, 2], "paddings": [0], "unpooling_type": "max"}
    with pytest.raises(RuleError, match=r"Attr\(paddings\) of unpool must have 2 numbers"):
        run_op("unpool", {"X": SMALL, "Indices": PLACES}, attrs)


def test_a_padding_as_large_as_the_window():
    with pytest.raises(RuleError, match="must be smaller than the window"):
        run_op("max_pool2d_with_index", {"X": X}, {"ksize": [2, 2], "paddings": [2, 2]})


def test_a_point_that_is_no_number_is_no_number():
    image, grid = np.arange(4.0).reshape(1, 1, 2, 2), np.array([[[[np.nan, 0.0], [0.0, 0.0]]]])
    np.testing.assert_array_equal(run_op("grid_sampler", {"X": image, "Grid": grid})["Output"], [[[[np.nan, 1.5]]]])


def test_a_grid_for_other_images():
    with pytest.raises(RuleError, match=r"Input\(Grid\) of grid_sampler must have the shape"):
        run_op("grid_sampler", {"X": X, "Grid": GRID[:1]})
