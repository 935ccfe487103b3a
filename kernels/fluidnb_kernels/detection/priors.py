"""prior_box, density_prior_box, anchor_generator: boxes for every place of a feature map, known by its shape alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, kernel, op, product
from fluidnb_kernels.cuda import Source, by_rows, ctype, typed
from fluidnb_kernels.emit import FLOATS

CUDA = Source(__file__, "priors.cu", typed(("priors", FLOATS)))


@dataclass(frozen=True, slots=True)
class Places:
    """The boxes around the places of a feature map."""

    # [boxes, 4] of each place: moves across and down from its middle, half a width, half a height, in pixels
    shapes: Array
    steps: tuple[float, float]  # pixels from one place to the next, across and down
    first: tuple[float, float]  # the middle of the first place
    size: tuple[float, float]  # width and height by which pixels are divided
    inside: bool  # whether boxes end at the edges of the image

    def boxes(self, h: int, w: int) -> Array:
        """The boxes of a map, [h, w, boxes, 4]."""
        x = (self.first[0] + np.arange(w) * self.steps[0])[:, None] + self.shapes[:, 0]
        y = (self.first[1] + np.arange(h) * self.steps[1])[:, None, None] + self.shapes[:, 1]
        half_w, half_h = self.shapes[:, 2:].T
        sides = [(x - half_w) / self.size[0], (y - half_h) / self.size[1], (x + half_w) / self.size[0],
                 (y + half_h) / self.size[1]]  # fmt: skip
        out = np.stack(np.broadcast_arrays(*sides), -1)
        return np.clip(out, 0, 1) if self.inside else out


_IMAGES = {"Input: float[n, c, h, w]": "feature map", "Image: float[n, c, height, width]": "images"}
_BOXES = {
    "Boxes": "[h, w, priors, 4]: left, top, right, bottom as parts of the image",
    "Variances": "the shape of Boxes",
}
_PLACES = {
    "variances": Attr("floats", doc="four numbers that go with every box"),
    "clip": Attr("bool", True, "whether boxes end at the edges of the image"),
    "step_w": Attr("float", 0.0, "pixels from one place to the next; 0 for the image's width over the map's"),
    "step_h": Attr("float", 0.0, "the same down"),
    "offset": Attr("float", 0.5, "where in its place a box has its middle"),
}


def _check(c: Context, *slots: str) -> None:
    for slot in slots:
        c.check_inputs(slot)
    c.require(
        len(c.attr("variances")) == 4, f"Attr(variances) of {c.definition.type} must have 4 numbers.",
        expected="4 numbers", received=c.attr("variances"),
    )  # fmt: skip


def ratios(given: list[float], flip: bool) -> list[float]:
    """Aspect ratios without repetitions, 1 first."""
    out = [1.0]
    for r in given:
        if all(abs(r - seen) >= 1e-6 for seen in out):
            out += [r, 1 / r] if flip else [r]
    return out


def _check_finite(given: list[float]) -> str | None:
    """A sentence if a ratio is no number."""
    return None if np.isfinite(given).all() else "aspect_ratios must be finite."


def _shapes(c: Context) -> list[tuple[float, float]]:
    """Width and height of every prior at a place."""
    shapes: list[tuple[float, float]] = []
    small, large = c.attr("min_sizes"), c.attr("max_sizes")
    for i, size in enumerate(small):
        sides = [(size * r**0.5, size / r**0.5) for r in ratios(c.attr("aspect_ratios"), c.attr("flip"))]
        between = [((size * large[i]) ** 0.5,) * 2] if large else []
        ordered = c.attr("min_max_aspect_ratios_order")
        shapes += [sides[0], *between, *sides[1:]] if ordered else [*sides, *between]
    return shapes


def _steps(c: Context) -> tuple[float, float]:
    """Pixels from one place to the next, across and down."""
    (h, w), (height, width) = c["Input"].shape[2:], c["Image"].shape[2:]
    across, down = c.attr("step_w"), c.attr("step_h")
    return (across, down) if across and down else (width / w, height / h)  # one alone counts for nothing


def _places(c: Context, shapes: Any, inside: bool) -> Places:
    """Places evenly over an image."""
    steps, (height, width), offset = _steps(c), c["Image"].shape[2:], c.attr("offset")
    return Places(np.array(shapes), steps, (offset * steps[0], offset * steps[1]), (width, height), inside)


def _prior_infer(c: Context) -> None:
    _check(c, "Input", "Image")
    small, large = c.attr("min_sizes"), c.attr("max_sizes")
    c.require(
        not large or len(large) == len(small) and all(a < b for a, b in zip(small, large, strict=True)),
        "Attr(max_sizes) of prior_box must have a greater number for each of min_sizes.",
        expected=f"{len(small)} numbers greater than {small}", received=large,
    )  # fmt: skip
    shape = (*c["Input"].shape[2:], len(_shapes(c)), 4)
    for slot in _BOXES:
        c.set(slot, shape, c["Input"].dtype)


def _emit(b: Binder, slot: str, places: Places) -> None:
    """Emit boxes that are constants of the binding, with their variances."""
    if b.wants(slot):
        out = b[slot]
        b(np.copyto, out, places.boxes(*b["Input"].shape[2:]).astype(out.dtype).reshape(out.shape))
    if b.wants("Variances"):
        b(np.copyto, b["Variances"], np.array(b.attr("variances"), b["Variances"].dtype))


def _on_cuda(type: str, slot: str, places: Callable[[Context], Places]) -> None:
    """Register the kernel that works them out on a device."""

    @kernel(type, place="cuda", dtypes=FLOATS)
    def launch(b: Binder) -> None:
        given, (h, w) = places(b), b["Input"].shape[2:]
        outs = [b[s] if b.wants(s) else np.uintp(0) for s in (slot, "Variances")]
        numbers = map(np.float64, (*b.attr("variances"), *given.steps, *given.first, *given.size))
        count, sizes = len(given.shapes), (np.int32(given.inside), np.int64(w), np.int64(len(given.shapes)))
        name = f"priors<{ctype(b['Input'].dtype)}>"
        by_rows(b, CUDA, name, h * w, 4 * count, b.table(given.shapes.astype(np.float64)), *outs, *numbers, *sizes)


def _priors(c: Context) -> Places:
    return _places(c, [(0, 0, w / 2, h / 2) for w, h in _shapes(c)], c.attr("clip"))


@op(
    "prior_box",
    inputs=_IMAGES,
    outputs=_BOXES,
    attrs={
        "min_sizes": Attr("floats", doc="sides of squares, in pixels", gt=0),
        "max_sizes": Attr("floats", [], "for each of them a larger one; their geometric mean makes one more square"),
        "aspect_ratios": Attr("floats", [], "width over height of more boxes", gt=0, check=_check_finite),
        "flip": Attr("bool", True, "whether each ratio counts the other way round too"),
        **_PLACES,
        "min_max_aspect_ratios_order": Attr("bool", False, "whether the second square comes before the other ratios"),
    },
    infer=_prior_infer,
)
def prior_box(b: Binder) -> None:
    """Boxes of some sizes and ratios around every place of a feature map, as parts of the image.

    For a size s and a ratio r, width = s · sqrt(r) and height = s / sqrt(r); for s and its larger size t there is also
    a square with width = sqrt(s · t).

    Example:
        >>> from fluidnb.testing import run_op
        >>> maps, attrs = {"Input": np.zeros((1, 1, 1, 1)), "Image": np.zeros((1, 1, 8, 8))}, {"variances": [0.1] * 4}
        >>> run_op("prior_box", maps, {"min_sizes": [4.0], **attrs})["Boxes"].ravel()
        array([0.25, 0.25, 0.75, 0.75])

    Source: Liu et al., "SSD: Single Shot MultiBox Detector" (2016); Fluid's prior_box_op.
    """
    _emit(b, "Boxes", _priors(b))


def _density_infer(c: Context) -> None:
    _check(c, "Input", "Image")
    sizes, densities = c.attr("fixed_sizes"), c.attr("densities")
    c.require(
        len(sizes) == len(densities) > 0 and min(densities) > 0 and c.attr("fixed_ratios"),
        "density_prior_box needs sizes, a density for each of them, and ratios.",
        expected=f"{len(sizes)} densities > 0, one ratio or more",
        received=f"densities {densities}, ratios {c.attr('fixed_ratios')}",
    )  # fmt: skip
    many = len(c.attr("fixed_ratios")) * sum(d * d for d in densities)
    h, w = c["Input"].shape[2:]
    shape = (product((h, w, many)), 4) if c.attr("flatten_to_2d") else (h, w, many, 4)
    for slot in _BOXES:
        c.set(slot, shape, c["Input"].dtype)


def _dense(c: Context) -> Places:
    average = int(sum(_steps(c)) * 0.5)
    shapes = []
    for size, density in zip(c.attr("fixed_sizes"), c.attr("densities"), strict=True):
        shift = average // density
        spots = np.arange(density) * shift - average / 2 + shift / 2
        for r in c.attr("fixed_ratios"):
            half = size * r**0.5 / 2, size / r**0.5 / 2
            shapes += [(across, down, *half) for down in spots for across in spots]
    return _places(c, shapes, True)


@op(
    "density_prior_box",
    inputs=_IMAGES,
    outputs=_BOXES,
    attrs={
        **_PLACES,
        "flatten_to_2d": Attr("bool", False, "whether the boxes come as [h · w · priors, 4]"),
        "fixed_sizes": Attr("floats", [], "sides of squares, in pixels", gt=0),
        "fixed_ratios": Attr("floats", [], "width over height", gt=0),
        "densities": Attr("ints", [], "for each size, how many boxes there are along a side of a place", gt=0),
    },
    infer=_density_infer,
)
def density_prior_box(b: Binder) -> None:
    """Boxes of some sizes and ratios at evenly spaced points of every place of a feature map, as parts of the image.

    For a size s of density d and a ratio r there are d² boxes of width = s · sqrt(r) and height = s / sqrt(r), whose
    middles are ``floor(step / d)`` apart. They end at the edges of the image, whatever ``clip`` says.

    Example:
        >>> from fluidnb.testing import run_op
        >>> maps, attrs = {"Input": np.zeros((1, 1, 1, 1)), "Image": np.zeros((1, 1, 8, 8))}, {"variances": [0.1] * 4}
        >>> attrs |= {"fixed_sizes": [4.0], "fixed_ratios": [1.0], "densities": [1]}
        >>> run_op("density_prior_box", maps, attrs)["Boxes"].ravel()
        array([0.25, 0.25, 0.75, 0.75])

    Source: Zhang et al., "FaceBoxes" (2017); Fluid's density_prior_box_op.
    """
    _emit(b, "Boxes", _dense(b))


def _anchor_infer(c: Context) -> None:
    _check(c, "Input")
    c.require(
        len(c.attr("stride")) == 2, "Attr(stride) of anchor_generator must have 2 numbers.",
        expected="pixels across and down", received=c.attr("stride"),
    )  # fmt: skip
    many = len(c.attr("aspect_ratios")) * len(c.attr("anchor_sizes"))
    c.require(
        many > 0, "anchor_generator takes at least one size and one ratio.", expected="one of anchor_sizes, and more",
        received=f"anchor_sizes {c.attr('anchor_sizes')}, aspect_ratios {c.attr('aspect_ratios')}",
    )  # fmt: skip
    for slot in ("Anchors", "Variances"):
        c.set(slot, (*c["Input"].shape[2:], many, 4), c["Input"].dtype)


def _anchors(c: Context) -> Places:
    (across, down), offset = c.attr("stride"), c.attr("offset")
    shapes = []
    for r in c.attr("aspect_ratios"):
        wide = np.floor((across * down / r) ** 0.5 + 0.5)
        high = np.floor(wide * r + 0.5)
        sides = [(s / across * wide, s / down * high) for s in c.attr("anchor_sizes")]
        shapes += [(0, 0, (w - 1) / 2, (h - 1) / 2) for w, h in sides]
    return Places(np.array(shapes), (across, down), (offset * (across - 1), offset * (down - 1)), (1, 1), False)


@op(
    "anchor_generator",
    inputs={"Input: float[n, c, h, w]": "feature map"},
    outputs={
        "Anchors": "[h, w, anchors, 4]: left, top, right, bottom in pixels",
        "Variances": "the shape of Anchors",
    },
    attrs={
        "anchor_sizes": Attr("floats", doc="sides of squares of the same area, in pixels", gt=0),
        "aspect_ratios": Attr("floats", doc="height over width", gt=0),
        "variances": Attr("floats", doc="four numbers that go with every anchor"),
        "stride": Attr("floats", [16.0, 16.0], "pixels from one place to the next, across and down", gt=0),
        "offset": Attr("float", 0.5, "where in its place an anchor has its middle"),
    },
    infer=_anchor_infer,
)
def anchor_generator(b: Binder) -> None:
    """Boxes of some sizes and ratios around every place of a feature map, in pixels of the image.

    For a ratio r the base is ``w = round(sqrt(stride area / r))`` wide and ``round(w · r)`` high, and grows with the
    size over the stride. Its last pixel counts as its edge.

    Example:
        >>> from fluidnb.testing import run_op
        >>> attrs = {"anchor_sizes": [32.0], "aspect_ratios": [1.0], "variances": [0.1] * 4}
        >>> run_op("anchor_generator", {"Input": np.zeros((1, 1, 1, 1))}, attrs)["Anchors"].ravel()
        array([-8., -8., 23., 23.])

    Source: Ren et al., "Faster R-CNN" (2015); Fluid's anchor_generator_op.
    """
    _emit(b, "Anchors", _anchors(b))


_on_cuda("prior_box", "Boxes", _priors)
_on_cuda("density_prior_box", "Boxes", _dense)
_on_cuda("anchor_generator", "Anchors", _anchors)
