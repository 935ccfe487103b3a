"""Any text in names, attributes, cells and titles is data of a saved page, never markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb import layers
from fluidnb.utils.escapes import visible
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture, SlotRow, VarRow
from fluidnb.viz.saved_page.page import read_page
from tests.viz.saved_page.programs import large
from tests.viz.saved_page.test_recording import data_of
from tests.viz.test_hostile_names import EVIL

MARKUP = ["</script>", "<!--", "-->", '"', "'", "`", "${1}", "\\", "&lt;", "]]>", "\u202e", "\0", "\n"]
#: Texts with what ends a script, an attribute or a comment more often than chance has it.
TEXTS = st.one_of(
    st.text(max_size=30), st.lists(st.sampled_from(MARKUP), max_size=6).map("".join), st.just(EVIL),
    st.just("<" * 10_000),
)  # fmt: skip


class Elements(HTMLParser):
    """The elements of a page in order, and the texts of some of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.texts: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.found[-1] if self.found else "", data)


def picture(name: str, attribute: str, cell: str) -> ProgramPicture:
    """A program of one operator."""
    var = VarRow(name, "lod_tensor", "float32", (1,))
    slots = (SlotRow("X", (var,)),), (SlotRow("Out", (var,)),)
    op = OpRow(0, 0, "scale", "forward", *slots, ((attribute, cell),), cell, cell)
    return ProgramPicture(BlockRow(0, -1, (op,), (var,)))


PLAIN = Elements(read_page(picture("a", "b", "c"), title="t", note="n").text).found


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_texts_are_data(name: str, attribute: str, cell: str, title: str) -> None:
    page = read_page(picture(name, attribute, cell), title=title or "t", note=cell or "n")
    elements = Elements(page.text)
    assert elements.found == PLAIN
    table = data_of(page.text, "table")
    assert table["vars"][0][0] == name
    words = table["words"]
    assert [[words[i] for i in pair] for pair in table["rows"][0][7]] == [[attribute, cell]]
    assert elements.texts["title"] == visible(title or "t").replace("\r\n", "\n").replace("\r", "\n")


def test_a_session_with_long_names() -> None:
    x = layers.data("x", [2])
    out = layers.scale(x, 2.0)
    block = fluid.default_main_program().global_block()
    long = "n" * 10_000 + EVIL
    block.desc.rename_var(out.name, long)
    session = fluid.debug(fluid.default_main_program(), {"x": [[1.0, 2.0]]})
    session.step()
    text = read_page(session).text
    assert Elements(text).found == Elements(read_page(large(1, 1, 2)).text).found
    values = data_of(text, "steps")["values"]
    assert [value["cells"] for value in values if value["line"]["name"] == long] == ["2 4"]
