"""`fluidnb convert`: models of Paddle 3 in other formats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli import main
from fluidnb.files.safetensors import read_safetensors

PIR = Path(__file__).parents[1] / "golden" / "pir" / "3.3"
DECODER = PIR / "transformer_decoder"


@pytest.mark.parametrize(("to", "files"), [
    ("pdmodel", ["inference.pdiparams", "inference.pdmodel"]), ("programdesc", ["__model__", "__params__"]),
])  # fmt: skip
def test_a_converted_model_gives_the_same(
    to: str, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert main(["convert", str(PIR / "branches" / "inference.json"), "-o", str(tmp_path / "out"), "--to", to]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("model     ") and [line for line in lines if line.startswith("written")] == [
        f"written   {tmp_path / 'out' / name}" for name in sorted(files, reverse=to == "pdmodel")
    ]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == files
    with np.load(PIR / "branches" / "feeds.npz") as feeds:
        feed = dict(feeds)
    for a, b in zip(*(fluid.open(str(p)).run(feed) for p in (PIR / "branches", tmp_path / "out")), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_parameters_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convert", str(PIR / "branches"), "-o", str(tmp_path), "--to", "safetensors", "--name", "weights"]
    assert main(words) == 0
    assert read_safetensors(str(tmp_path / "weights.safetensors"))["linear_0.w_0"].shape == (4, 4)


def test_what_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(tmp_path / "nothing"), "-o", str(tmp_path / "out")]) == 1
    assert "There is no model" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_a_model_is_edited_on_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["convert", str(DECODER), "-o", str(tmp_path), "--pass", "fold_constants", "--rename", "softmax_42=shares"]
    assert main([*words, "--fetch", "softmax_42", "--diff"]) == 0
    shown = capsys.readouterr().out
    assert "fetch     shares" in shown and "matmul_v2" in shown, "what the others need is gone"
    model = fluid.open(str(tmp_path))
    with np.load(DECODER / "feeds.npz") as feeds:
        feed = {v.name: feeds[v.name] for v in model.feeds}
        (found,) = model.run(feed)
        whole = fluid.open(str(DECODER))
        (wanted,) = whole.run({v.name: feeds[v.name] for v in whole.feeds}, ["softmax_42"])
    np.testing.assert_array_equal(found, wanted)
    for wrong, said in (
        (["--pass", "fold"], "There is no pass fold."), (["--rename", "x"], "has no new name"),
        (["--fetch", "softmax_41"], 'no variable "softmax_41"'), (["--rename", "softmax_41=a"], 'no variable "softmax'),
    ):  # fmt: skip
        assert main(["convert", str(DECODER), "-o", str(tmp_path), *wrong]) == 1
        assert said in capsys.readouterr().err
