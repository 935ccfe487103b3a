"""The picture of speedups: a table, and curves on two logarithmic axes."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from fluidnb.viz import scaling_picture, scaling_svg

ROWS = {"sync <1 server>": [(1, 0.9), (10, 5.0), (100, 6.0)], "async": [(10, 8.0), (1000, 700.0)]}


def test_the_table_has_each_number_once() -> None:
    lines = str(scaling_picture(ROWS)).splitlines()
    assert [line.split()[0] for line in lines] == ["trainers", "1", "10", "100", "1000"]
    assert lines[2].split() == ["10", "5.0", "8.0"]
    assert lines[4].split() == ["1000", "700.0"]


def test_the_curves_are_well_formed_and_stay_inside() -> None:
    root = ElementTree.fromstring(scaling_svg(ROWS))
    circles = root.findall(".//{*}circle")
    assert len(circles) == 5
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(0 < float(c.attrib["cx"]) < width and 0 < float(c.attrib["cy"]) < height for c in circles)


def test_a_perfect_speedup_is_on_the_dashed_line() -> None:
    svg = scaling_svg({"perfect": [(1, 1.0), (10, 10.0)], "more": [(1000, 2.0)]})
    dashed = re.search(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"[^>]*dasharray', svg)
    assert dashed is not None
    x0, y0, x1, y1 = map(float, dashed.groups())
    (cx, cy) = [(float(x), float(y)) for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)][1]
    assert abs((cx - x0) / (x1 - x0) - (cy - y0) / (y1 - y0)) < 0.01


def test_nothing_is_an_empty_picture() -> None:
    assert str(scaling_picture({})) == "trainers"
    ElementTree.fromstring(scaling_svg({}))
