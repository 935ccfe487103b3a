"""Scopes as HTML: folds, previews that are samples of the values, sequences as boxes."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import array_shapes

import fluidnb as fluid
from fluidnb import viz
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.viz.base.png import png
from fluidnb.viz.values.model import ScopeRow, ScopeVariable
from fluidnb.viz.values.preview_html import histogram_html, lod_html, preview_html
from tests.viz.conftest import same_as_golden
from tests.viz.programs import counting, dynamic_rnn


class Balanced(HTMLParser):
    """Fails when an element is not closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def decoded(data: bytes) -> np.ndarray:  # type: ignore[type-arg]
    """The pixels of a PNG without filters; its checksums are right."""
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size]) == (zlib.crc32(name + body),)
        chunks[name], at = body, at + 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), "uint8").reshape(height, -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, {0: 1, 2: 3, 6: 4}[colour])


def pictured(preview: viz.Preview) -> np.ndarray:  # type: ignore[type-arg]
    """The pixels of the only <img> of a preview."""
    (data,) = re.findall(r'src="data:image/png;base64,([^"]*)"', preview_html(preview))
    return decoded(b64decode(data))


def kept(build: object, feed: dict[str, object]) -> fluid.Scope:
    """The scope after a run that leaves its scopes."""
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    build()  # type: ignore[operator]
    exe.run(fluid.default_startup_program(), scope=scope)
    exe.run(feed=feed, scope=scope, keep_scopes=True)
    return scope


@settings(max_examples=60, deadline=None)
@given(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=70).filter(lambda s: np.prod(s) < 1e6))
def test_previews_are_even_samples_of_the_values(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype="float64").reshape(shape)
    preview = viz.read_preview(array)
    if array.size <= 8:
        assert preview is None
        return
    assert preview is not None
    most = {"line": (1, 64), "field": (32, 32), "image": (96, 96)}[preview.kind]
    for i, plane in enumerate(preview.planes):
        if preview.kind == "line":
            source = array.reshape(1, -1)
        elif preview.kind == "image":
            source = array.reshape(-1, *shape[-2:])[i]
        else:
            source = array[(0,) * (array.ndim - 2)]
        shown = np.array(plane)
        assert shown.shape == tuple(min(n, m) for n, m in zip(source.shape, most, strict=True)) == preview.size
        assert shown[0, 0] == source[0, 0]
        assert shown[-1, -1] == source[-1, -1]
        rows, places = np.divmod(shown - source[0, 0], source.shape[1])
        for index, n in ((rows[:, 0], source.shape[0]), (places[0], source.shape[1])):
            steps = np.diff(index)
            assert not steps.size or (steps.min() >= 1 and steps.max() - steps.min() <= 1), (index, n)
        np.testing.assert_array_equal(rows, np.broadcast_to(rows[:, :1], rows.shape))
        np.testing.assert_array_equal(places, np.broadcast_to(places[:1], places.shape))


@pytest.mark.parametrize(("shape", "kind", "size", "what"), [
    ((5, 1, 28, 28), "image", (28, 28), "first of 5"), ((1, 3, 200, 100), "image", (96, 96), ""),
    ((3, 8, 8), "image", (8, 8), ""), ((1, 7, 8), "field", (7, 8), ""),
    ((2, 6, 12, 12), "field", (12, 12), "first of 12 matrices"), ((100, 1), "line", (1, 64), "64 of 100 elements"),
    ((784, 10), "field", (32, 10), "32 of 784 rows"),
])  # fmt: skip
def test_kinds_of_previews(shape: tuple[int, ...], kind: str, size: tuple[int, int], what: str) -> None:
    preview = viz.read_preview(np.zeros(shape, "float32"))
    assert preview is not None
    assert (preview.kind, preview.size, preview.what) == (kind, size, what)


def test_no_preview_where_there_is_nothing_to_see() -> None:
    for thing in (None, np.arange(8), np.array(["x"] * 9), np.zeros((0, 9))):
        assert viz.read_preview(thing) is None


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_holds_the_pixels(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype("uint8")
    np.testing.assert_array_equal(decoded(png(pixels)), pixels)


def test_images_are_scaled_from_black_to_white() -> None:
    image = np.linspace(-2, 3, 3 * 10 * 12).reshape(1, 3, 10, 12)
    preview = viz.read_preview(image)
    assert preview is not None
    pixels = pictured(preview)
    assert pixels.shape == (10, 12, 3)
    np.testing.assert_allclose(pixels, ((image[0] + 2) / 5 * 255).transpose(1, 2, 0), atol=0.51)
    grey = viz.read_preview(np.full((1, 8, 9), np.nan))
    assert grey is not None
    assert pictured(grey).shape == (8, 9, 1)


def test_fields_show_sign_size_and_nan() -> None:
    values = np.zeros((4, 5))
    values[0, :3] = -2, 2, 1
    values[1, 0], values[1, 1] = np.nan, np.inf
    preview = viz.read_preview(values)
    assert preview is not None
    pixels = pictured(preview)
    assert pixels.shape == (4, 5, 4)
    assert pixels[0, 0, 2] > pixels[0, 0, 0]
    assert pixels[0, 1, 0] > pixels[0, 1, 2]
    assert pixels[0, 0, 3] == pixels[0, 1, 3] == 255
    assert pixels[3, 4, 3] < pixels[0, 2, 3] < 255
    assert pixels[1, 0].tolist() == pixels[1, 1].tolist() != pixels[0, 1].tolist()


@pytest.mark.parametrize(("value", "opacity"), [(0.0, 0), (5.0, 255), (-5.0, 255)])
def test_a_field_of_one_value_is_no_field_of_zeros(value: float, opacity: int) -> None:
    preview = viz.read_preview(np.full((4, 4), value))
    assert preview is not None
    assert set(pictured(preview)[..., 3].ravel().tolist()) == {opacity}


def test_lines_break_at_nan() -> None:
    values = np.arange(20.0)
    values[10] = np.nan
    preview = viz.read_preview(values)
    assert preview is not None
    runs = re.findall(r'points="([^"]*)"', preview_html(preview))
    assert [len(run.split()) for run in runs] == [10, 9]


def test_bars_are_as_high_as_the_counts() -> None:
    heights = [float(h) for h in re.findall(r'<rect[^>]* height="([^"]*)"', histogram_html((0, 2, 8)))]
    assert heights == [0, 4.5, 18]


def test_sequences_are_nested_boxes() -> None:
    html = lod_html(((0, 2, 3), (0, 2, 5, 6)), 6)
    assert re.findall(r">(\d+ rows?)<", html) == ["2 rows", "3 rows", "1 row"]
    depth, depths = 0, []
    for tag, text in re.findall(r"(</?span)|(\d+ rows?)(?=<)", html):
        depth += {"<span": 1, "</span": -1}.get(tag, 0)
        depths += [depth] * bool(text)
    assert depths == [2, 2, 2]
    long = lod_html((tuple(range(0, 200, 2)),), 198)
    assert long.count("2 rows") == 8
    assert "91 more sequences" in long


def test_step_scopes_of_a_loop() -> None:
    html = viz.scope_html(viz.read_scope(kept(counting, {}), previews=True), "a_")
    Balanced().feed(html)
    assert html.count("<details") == 5
    same_as_golden("scope.html", html.replace("<tr", "\n<tr").replace("<details", "\n<details"))


def test_dynamic_rnn_shows_arrays_sequences_and_tables() -> None:
    words = fluid.create_lod_tensor(np.arange(6).reshape(6, 1), [[2, 1, 3]], fluid.CPUPlace())
    scope = kept(dynamic_rnn, {"words": words})
    html = viz.scope_html(viz.read_scope(scope, previews=True))
    Balanced().feed(html)
    assert "LoDRankTable: sequence 2 has 3, sequence 0 has 2, sequence 1 has 1" in html
    assert "LoDTensorArray of 3" in html
    assert "block 1, iteration 2" in html
    assert "3 step scopes" in html
    assert html.count("[1, 8]") >= 1
    ids = re.findall(r'\bid="([^"]*)"', html + viz.scope_html(viz.read_scope(scope)))
    assert len(ids) == len(set(ids)) == 2 * html.count("<details")


def test_many_scopes_are_folded_and_counted() -> None:
    html = viz.scope_html(ScopeRow("s", (ScopeVariable("x", "nothing yet"),) * 303, (ScopeRow("k"),) * 30))
    assert html.count("<details") == 25
    assert html.count("<details") - html.count(" open>") == 24
    assert "6 more scopes" in html
    assert "3 more variables" in html
    assert viz.scope_html(ScopeRow("s", (), (ScopeRow("k"),) * 3)).count(" open>") == 4


def test_parts_nan_and_names() -> None:
    scope = fluid.Scope()
    values = np.ones((3, 4), "float32")
    values[0, 0] = np.nan
    scope.var("<w>").get_tensor().set(values, fluid.CPUPlace())
    sparse = SelectedRows([4, 0, 4], 10)
    sparse.get_tensor().set(np.ones((3, 2), "float32"), fluid.CPUPlace())
    scope.var("sparse").value = sparse
    scope.var("table").value = LoDRankTable((tuple(range(13)),))
    array = scope.var("many").get_lod_tensor_array()
    for _ in range(10):
        array.append(np.ones(2, "float32"))
    scope.var("late")
    html = viz.repr_html(scope)
    assert html is not None
    Balanced().feed(html)
    assert re.search(r'color:color-mix\(in srgb,#d97706 50%,currentColor\)">1 NaN', html)
    for words in ("&lt;w&gt;", "SelectedRows: 3 rows of 10", "[4, 0, 4]", "float32[3, 2]", "… 2 more", "… 4 more"):
        assert words in html, words
    assert "nothing yet" in html
    assert "<w>" not in html


def test_a_tensor_shows_its_sequences_and_values() -> None:
    html = viz.repr_html(fluid.create_lod_tensor(np.ones((3, 9), "float32"), [[2, 1]], fluid.CPUPlace()))
    assert html is not None
    assert "2 rows" in html
    assert "data:image/png" in html
