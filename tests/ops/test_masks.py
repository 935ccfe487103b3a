"""Masks of objects: polygons as pixels, and which region learns which object."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from fluidnb_kernels.detection.polygons import inside
from tests.tools.refused import refused


def is_inside(points, x, y):
    """Whether a line from a point to the right crosses the polygon's edges an odd number of times."""
    crossings = 0
    for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, 0), strict=True):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) * (x1 - x0) / (y1 - y0):
            crossings += 1
    return crossings % 2 == 1


@pytest.mark.parametrize("seed", range(8))
def test_pixels_whose_middle_is_clearly_inside(seed):
    rng = np.random.default_rng(seed)
    points, size = rng.uniform(-4, 16, (rng.integers(3, 7), 2)), 12
    found = inside(points, size)
    for y, x in np.ndindex(size, size):
        near = [is_inside(points, x + 0.5 + dx, y + 0.5 + dy) for dx in (-0.4, 0, 0.4) for dy in (-0.4, 0, 0.4)]
        if len(set(near)) == 1:
            assert found[y, x] == near[0], (x, y)


def test_a_polygon_without_area_has_no_pixels():
    assert not inside(np.full((3, 2), 2.0), 5).any()
    assert not inside(np.array([[0.0, 0.0], [4.0, 4.0]]), 5).any()


def square(left, top, right, bottom):
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def part(rows, columns, size=4):
    """A square of zeros with ones in some rows and columns."""
    out = np.zeros((size, size), "int32")
    out[rows, columns] = 1
    return out


#: two objects, the second of two polygons, and a crowd; then an image without objects in its regions; then no regions
CORNERS = [*square(0, 0, 8, 8), *square(20, 0, 24, 4), *square(20, 4, 28, 8), *square(0, 0, 9, 9), *square(1, 1, 5, 5)]
CORNERS += square(0, 0, 1, 1)
IMAGES = {
    "ImInfo": np.array([[40, 40, 2], [20, 20, 1], [20, 20, 1]], "float32"),
    "GtClasses": (np.array([[1], [2], [1], [1], [2]], "int32"), [[3, 1, 1]]),
    "IsCrowd": (np.array([[0], [0], [1], [0], [0]], "int32"), [[3, 1, 1]]),
    "GtSegms": (np.array(CORNERS, "float32"), [[3, 1, 1], [1, 2, 1, 1, 1], [4] * 6]),
    "Rois": (np.array([[0, 0, 16, 16], [2, 2, 3, 3], [40, 0, 56, 16], [3, 4, 5, 6]], "float32"), [[3, 1, 0]]),
    "LabelsInt32": (np.array([[1], [0], [2], [0]], "int32"), [[3, 1, 0]]),
}
ATTRS = {"num_classes": 3, "resolution": 4}


def masks():
    """Region 0 sees object 0 whole; region 2 the second one: half its upper part, all of its lower part."""
    out = np.full((3, 3, 4, 4), -1, "int32")
    out[0, 1] = part(slice(0, 4), slice(0, 4))
    out[1, 2] = np.maximum(part(slice(0, 2), slice(0, 2)), part(slice(2, 4), slice(0, 4)))
    return out.reshape(3, -1)


class TestGenerateMaskLabels(OpTest):
    op_type, inputs, attrs = "generate_mask_labels", IMAGES, ATTRS
    outputs = {
        "MaskRois": (np.array([[0, 0, 16, 16], [40, 0, 56, 16], [3, 4, 5, 6]], "float32"), [[2, 1, 0]]),
        "RoiHasMaskInt32": (np.array([[0], [2], [0]], "int32"), [[2, 1, 0]]),
        "MaskInt32": (masks(), [[2, 1, 0]]),
    }

    def test_output(self):
        self.check_output()


def test_other_labels_in_the_next_run_give_other_sizes():
    """The number of masks depends on values, so a binding for one batch must not serve another."""
    few, many = IMAGES["LabelsInt32"], (np.array([[1], [1], [2], [1]], "int32"), [[3, 1, 0]])
    for labels, count in ((few, 3), (many, 4), (few, 3)):
        out = run_op("generate_mask_labels", {**IMAGES, "LabelsInt32": labels}, ATTRS)
        assert out["MaskInt32"].shape() == [count, 48]


def test_numbers_of_objects_need_no_column():
    flat = {slot: (IMAGES[slot][0].ravel(), IMAGES[slot][1]) for slot in ("GtClasses", "IsCrowd")}
    wanted = run_op("generate_mask_labels", IMAGES, ATTRS)
    for slot, value in run_op("generate_mask_labels", {**IMAGES, **flat}, ATTRS).items():
        np.testing.assert_array_equal(np.array(value), np.array(wanted[slot]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Rois": np.zeros((4, 4), "float32")}, "does not contain LoD"),
        ({"GtSegms": (np.zeros((24, 2), "float32"), [[24]])}, "sequences of another depth"),
        ({"LabelsInt32": (np.zeros((4, 1), "int32"), [[2, 2, 0]])}, "must have as many rows"),
        ({"IsCrowd": (np.zeros((5, 1), "int32"), [[5]])}, "must have a sequence for each image"),
        ({"ImInfo": np.ones((2, 3), "float32")}, "a row for each image"),
        ({"ImInfo": np.ones((3, 2), "float32")}, "must have the shape"),
        ({"GtSegms": (np.zeros((24, 3), "float32"), IMAGES["GtSegms"][1])}, "must have the shape"),
        ({"IsCrowd": (np.ones((5, 1), "int32"), [[3, 1, 1]])}, "no object with a mask"),
        ({"LabelsInt32": (np.full((4, 1), 3, "int32"), [[3, 1, 0]])}, "is no class"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with refused((RuleError, EnforceNotMet), message):
        run_op("generate_mask_labels", {**IMAGES, **changes}, ATTRS)
