"""``%fluid open``: saved models in a notebook, and ``%fluid diff`` between them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

PIR = Path(__file__).parents[1] / "golden" / "pir" / "3.3"


def test_a_notebook(session, tmp_path):
    shown = session.run(f"%fluid open {PIR / 'branches'}")
    assert "x: float32[-1, 4]" in shown and "2 parameters" in shown
    session.run("import numpy as np; y, i = model.run(np.ones((1, 4), 'float32'))")
    assert "True" in session.run("print(i.tolist() == [3])")
    assert "while" in session.run("%fluid show model.program")
    session.run(f"%fluid open {PIR / 'simple_rnn' / 'inference.json'} --name other")
    assert "2 feeds" in session.run("print(len(other.feeds), 'feeds')")
    session.run(f"files = model.save({str(tmp_path)!r})")
    shown = session.run(f"%fluid diff {PIR / 'branches'} {tmp_path / 'inference'}")
    assert "while" not in shown
    error, _ = session.fail("%fluid open nothing")
    assert "There is no model nothing" in str(error)
    session.fail(f"%fluid open {PIR / 'branches'} --name 3x")


def test_html(session):
    session.run(f"%fluid open {PIR / 'branches'}")
    html = session.run("print(model._repr_html_())")
    assert "float32[-1, 4]" in html and "<" in html


def test_the_processing_of_images(session, tmp_path):
    pytest.importorskip("yaml")
    shutil.copytree(PIR / "branches", tmp_path / "model")
    text = "Preprocess: [{type: Resize, target_size: [4, 2]}]\nlabel_list: [cat]"
    (tmp_path / "model" / "infer_cfg.yml").write_text(text)
    shown = session.run(f"%fluid open {tmp_path / 'model'}")
    assert "before    Resize(target_size=[4, 2])" in shown and "after     Boxes(label_list=['cat'])" in shown
