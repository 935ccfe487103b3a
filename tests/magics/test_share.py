"""`%fluid share`: the session, a program or a part of one as an HTML file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from fluidnb.errors import OpValueError
from fluidnb.viz import Picture
from tests.magics.conftest import Session
from tests.viz.saved_page.test_recording import data_of

NET = """%%fluid net
x = layers.data("x", shape=[10])
h = layers.fc(x, 4)
loss = layers.mean(h)
"""


@pytest.fixture
def net(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A program; files go to a folder of the test."""
    monkeypatch.chdir(tmp_path)
    session.run(NET)
    session.run("import numpy as np\nX = np.ones((4, 10), 'float32')")
    return session


def test_the_program_without_a_session(net: Session) -> None:
    shown = net.run("%fluid share a.html")
    assert re.search(r"^writes a\.html: \d+ KB \(3 operators\)$", shown, re.MULTILINE)
    assert 'id="data-steps"' not in Path("a.html").read_text()


def test_the_session_its_last_steps_and_a_part_of_the_program(net: Session) -> None:
    net.run("%fluid debug --feed x=X --fetch loss")
    net.run("%fluid continue")
    shown = net.run("%fluid share 'my session.html' --last 2")
    assert "writes my session.html:" in shown and "3 operators, 2 steps; all" in shown
    steps = data_of(Path("my session.html").read_text(), "steps")["steps"]
    assert [step["position"]["at"] for step in steps] == [1, 2, 3]
    net.run("%fluid share part.html net")
    text = Path("part.html").read_text()
    assert "<title>cell net</title>" in text and 'id="data-steps"' not in text
    net.run("%fluid share startup.html --startup")
    assert "<title>startup program</title>" in Path("startup.html").read_text()
    net.run("%fluid debug off")


def test_a_limit_that_is_too_small_writes_nothing(net: Session) -> None:
    net.run("%fluid debug --feed x=X --fetch loss")
    error, _ = net.fail("%fluid share a.html --max-size 20kB")
    assert isinstance(error, OpValueError) and not Path("a.html").exists()
    error, _ = net.fail("%fluid share a.html --max-size much")
    assert isinstance(error, UsageError) and "500kB" in str(error)
    error, _ = net.fail(f"%fluid share a.html --max-size {'9' * 400}")
    assert isinstance(error, UsageError) and "digits at most" in str(error)
    net.run("%fluid share a.html --max-size 0.5MB")
    assert Path("a.html").stat().st_size < 500_000
    net.run("%fluid debug off")


def test_show_writes_pictures_of_parts(net: Session) -> None:
    shown = net.run("%fluid show net --role forward --svg 'a b.svg' --mermaid -")
    assert "a b.svg: " in shown and "flowchart TD" in shown and 'op_0_0["mul"]' in shown
    text = Path("a b.svg").read_text()
    assert text.startswith("<svg") and text.count('class="fluidnb-op') == 3
    net.run("%fluid show 0:1 --dot one.dot")
    assert re.findall(r"(op_\d_\d) \[id=", Path("one.dot").read_text()) == ["op_0_1"]


def test_a_notebook_gets_an_image_beside_the_html(net: Session) -> None:
    shown: list[Picture] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fluidnb_magics.display.display", shown.append)
        for line in ("show", "show --fold layers", "show --text"):
            net.run(f"%fluid {line}")
    images = [picture._repr_svg_() for picture in shown]
    assert images[0] is not None and images[0].startswith("<svg") and images[1:] == [None, None]
