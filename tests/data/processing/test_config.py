"""Files that describe pre- and postprocessing: three kinds, where they are found, and damaged ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fluidnb.data.processing import read_config
from fluidnb.errors import EnforceNotMet
from fluidnb.extras import MissingPackage
from fluidnb.runtime.model_files import find_config

pytest.importorskip("yaml")

CLASSES = """
Global: {model_name: PP-LCNet_x1_0}
PreProcess:
  transform_ops:
  - ResizeImage: {resize_short: 256}
  - CropImage: {size: 224}
  - NormalizeImage: {channel_num: 3, mean: [0.485, 0.456, 0.406], order: '', scale: 0.00392156862745098}
  - ToCHWImage: null
PostProcess:
  main_indicator: Topk
  Topk: {topk: 5, label_list: [tench, goldfish, shark, ray, cock, hen, ostrich, brambling, finch, junco]}
"""
TEXT = """
PreProcess:
  transform_ops:
  - DecodeImage: {channel_first: false, img_mode: BGR}
  - RecResizeImg: {image_shape: [3, 48, 320]}
PostProcess: {name: CTCLabelDecode, character_dict: [a, b]}
"""
BOXES = """
mode: paddle
draw_threshold: 0.5
arch: YOLO
Preprocess:
- {interp: 2, keep_ratio: false, target_size: &id001 [640, 640], type: Resize}
- {type: Permute}
label_list: [person, bicycle]
tracker: *id001
"""
MAP = """
Deploy:
  model: model.pdmodel
  transforms:
  - {type: Resize, target_size: [512, 512]}
  - {type: Normalize}
  output_op: none
"""


def read(folder: Path, text: str):
    (folder / "inference.yml").write_text(text)
    return read_config(str(folder / "inference.yml"))


def test_the_steps_of_three_kinds(tmp_path: Path) -> None:
    config = read(tmp_path, CLASSES)
    assert config.kind == "PreProcess"
    assert [s.name for s in config.before] == ["ResizeImage", "CropImage", "NormalizeImage", "ToCHWImage"]
    assert config.before[0].options == {"resize_short": 256} and config.before[3].options == {}
    assert [str(s) for s in config.after] == ["Topk(topk=5, label_list=[tench, goldfish, shark, … 10])"]
    config = read(tmp_path, TEXT)
    assert config.facts()[1:] == [("before", "RecResizeImg(image_shape=[3, 48, 320])"),
                                  ("after", "CTCLabelDecode(character_dict=['a', 'b'])")]  # fmt: skip
    config = read(tmp_path, BOXES)
    assert [s.name for s in config.before] == ["Resize", "Permute"]
    assert config.before[0].options["target_size"] == [640, 640]
    assert config.after[0].options == {"draw_threshold": 0.5, "label_list": ["person", "bicycle"]}
    config = read(tmp_path, MAP)
    assert (config.kind, config.after[0].options) == ("Deploy", {"output_op": "none"})


def test_where_the_file_is(tmp_path: Path) -> None:
    program = str(tmp_path / "net.pdmodel")
    assert find_config(program) is None
    for name in ("deploy.yaml", "infer_cfg.yml", "inference.yml", "net.yml"):
        (tmp_path / name).write_text(MAP)
        assert find_config(program) == str(tmp_path / name)


def doubled(times: int) -> str:
    """YAML of a few lines that is a list of 2^times numbers."""
    lines = ["a0: &a0 [1, 1]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, times)]
    return "\n".join([*lines, "PreProcess: {transform_ops: []}"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (doubled(28), "1,000,000 values, 32 deep"),
        ("a: &a [*a]\nPreProcess: {transform_ops: []}", "1,000,000 values, 32 deep"),
        ("a: " + "[" * 50 + "]" * 50, "1,000,000 values, 32 deep"),
        ("a: " + "[" * 100_000, "plain values|could not|deep"),
        ("a: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
        ("a: [1", "plain values"),
        ("a: \x01", "plain values"),
        ("- 1", "names and values"),
        ("3", "names and values"),
        ("", "names and values"),
        ("model: 3", "PreProcess, Preprocess or Deploy"),
        ("PreProcess: 3", "PreProcess with a list of steps"),
        ("PreProcess: {transform_ops: [3]}", "PreProcess with a list of steps"),
        ("Preprocess: [{mean: 3}]", "Preprocess with a list of steps"),
        ("Deploy: {transforms: 7}", "Deploy with a list of steps"),
    ],
)  # fmt: skip
def test_damaged_files(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(EnforceNotMet, match="describes no processing") as caught:
        read(tmp_path, text)
    assert any(word in str(caught.value) for word in said.split("|"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "inference.yml").write_bytes(b"\xff\xfe\xfd" * 9)
    with pytest.raises(EnforceNotMet, match="describes no processing"):
        read_config(str(tmp_path / "inference.yml"))


def test_without_pyyaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inference.yml").write_text(MAP)
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingPackage, match="needs the package pyyaml") as caught:
        read_config(str(tmp_path / "inference.yml"))
    assert caught.value.hint == "pip install 'fluidnb[data]'"
