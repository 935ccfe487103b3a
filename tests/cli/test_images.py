"""`fluidnb run --image`, `show` and `summary` of a model with an `inference.yml` beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli import main
from fluidnb.data.dataset.image_files import to_ppm
from fluidnb.errors import EnforceNotMet, NotFound, OpValueError

pytest.importorskip("yaml")

CONFIG = """
PreProcess:
  transform_ops:
  - ResizeImage: {size: [4, 2]}
  - NormalizeImage: {scale: 1./255., mean: [0, 0, 0], std: [1, 1, 1]}
  - ToCHWImage: null
PostProcess:
  Topk: {topk: 2, label_list: [red, green, blue]}
"""


def save(folder: Path, feeds: int = 1) -> None:
    """A model that gives the mean of each colour, and adds what else it is fed."""
    x = fluid.layers.data("x", [3, 2, 4])
    y = fluid.layers.reduce_mean(x, [2, 3])
    names = ["x"]
    if feeds > 1:
        y = fluid.layers.elementwise_add(y, fluid.layers.data("more", [3]))
        names.append("more")
    exe = fluid.Executor(fluid.CPUPlace())
    fluid.io.save_inference_model(str(folder), names, [y], exe, model_filename="inference.pdmodel")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model, its `inference.yml`, and a photo of one colour."""
    save(tmp_path)
    (tmp_path / "inference.yml").write_text(CONFIG)
    (tmp_path / "photo.ppm").write_bytes(to_ppm(np.full((6, 9, 3), [51, 204, 102])))
    return tmp_path


def test_an_image_from_file_to_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photo, out = str(folder / "photo.ppm"), folder / "out.npz"
    assert main(["run", str(folder), "--image", photo, "--image", photo, "--out", str(out)]) == 0
    shown = capsys.readouterr().out.splitlines()
    labels = [photo, "  0.8000  1  green", "  0.4000  2  blue"]
    assert shown[1:7] == labels * 2 and "float32[2, 3]" in shown[0]
    with np.load(out) as found:
        np.testing.assert_allclose(found[found.files[0]], [[0.2, 0.8, 0.4]] * 2, 1e-5)
    assert main(["run", str(folder), "--image", photo, "--all"]) == 0
    assert "green" not in capsys.readouterr().out, "all results, in another order"


def test_the_model_in_python(folder: Path) -> None:
    model = fluid.open(str(folder))
    feed = model.preprocess(str(folder / "photo.ppm"))
    assert {name: a.shape for name, a in feed.items()} == {"x": (1, 3, 2, 4)}
    ((first, second),) = model.postprocess(model.run(feed))
    assert (first.name, second.name) == ("green", "blue") and first.score == pytest.approx(0.8)
    with pytest.raises(NotFound, match="no description of images"):
        model.extract([model.fetches[0].name]).preprocess(str(folder / "photo.ppm"))
    assert "before    ResizeImage(size=[4, 2])" in str(model) and "after     Topk(topk=2, label_list=" in str(model)


@pytest.mark.parametrize("word", ["show", "summary"])
def test_the_steps_are_shown(word: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index(f"images    {folder / 'inference.yml'}")
    assert lines[at + 1] == "before    ResizeImage(size=[4, 2])" and lines[-1].startswith("after     Topk(topk=2")
    (folder / "inference.yml").unlink()
    assert main([word, str(folder)]) == 0
    assert "before" not in capsys.readouterr().out


def test_results_that_nothing_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "inference.yml").write_text(CONFIG.replace("Topk:", "name: SARLabelDecode\n  topk:"))
    assert main(["run", str(folder), "--image", str(folder / "photo.ppm")]) == 0
    shown = capsys.readouterr().out
    assert "has SARLabelDecode for the results, which is not here" in shown and "float32[1, 3]" in shown


def test_a_model_runs_on_arrays_with_a_damaged_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "inference.yml").write_text("PreProcess: 7")
    model = fluid.open(str(folder))
    assert "is not read." in str(model) and model.run(np.ones((1, 3, 2, 4), "float32"))[0].tolist() == [[1, 1, 1]]
    with pytest.raises(EnforceNotMet, match="describes no processing"):
        model.preprocess(str(folder / "photo.ppm"))
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "pip install 'fluidnb[data]'" in str(fluid.open(str(folder)))


def test_what_is_missing(folder: Path, tmp_path: Path) -> None:
    (folder / "inference.yml").unlink()
    with pytest.raises(NotFound, match="no description of images"):
        fluid.open(str(folder)).preprocess(str(folder / "photo.ppm"))
    other = tmp_path / "two"
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        save(other, 2)
    (other / "inference.yml").write_text(CONFIG)
    with pytest.raises(OpValueError, match="how to compute more"):
        fluid.open(str(other)).preprocess(str(folder / "photo.ppm"))
