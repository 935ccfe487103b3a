"""Postprocessing: labels, texts, boxes and maps of classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb.data.processing import Box, Label, ProcessingConfig, Text, postprocess
from fluidnb.data.processing.config import Step
from fluidnb.errors import EnforceNotMet, NotBuiltYet

SCORES = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]], "float32")


def run(name: str, options: dict[str, Any], *arrays: np.ndarray, path: str = "inference.yml") -> list[Any]:
    """The results of one step."""
    return postprocess(ProcessingConfig(path, "PreProcess", (), (Step(name, options),)), arrays)


def test_the_best_classes(tmp_path: Path) -> None:
    found = run("Topk", {"topk": 2, "label_list": ["cat", "dog"]}, SCORES)
    assert [[(label.number, label.name) for label in row] for row in found] == [
        [(1, "dog"), (2, "")], [(0, "cat"), (2, "")]]  # fmt: skip
    assert found[0][0].score == pytest.approx(0.6) and str(Label(1, "dog", 0.6)) == "0.6000  1  dog"
    (tmp_path / "labels.txt").write_text("0 cat\n1 big dog\n2 fox\n")
    path = str(tmp_path / "inference.yml")
    found = run("Topk", {"class_id_map_file": "../../elsewhere/labels.txt"}, SCORES, path=path)
    assert [row[0].name for row in found] == ["big dog", "cat"]
    with pytest.raises(EnforceNotMet, match="cannot be read") as caught:
        run("Topk", {"class_id_map_file": "../others.txt"}, SCORES, path=path)
    assert caught.value.expected == str(tmp_path / "others.txt"), "only beside the model"
    named = run("Topk", {"label_list": {0: "a", 1: "b", 2: "c"}}, SCORES)
    assert [row[0].name for row in named] == ["b", "a"]


def test_all_classes_above_a_threshold() -> None:
    found = run("MultiLabelThreshOutput", {"threshold": 0.3, "label_list": list("abc")}, SCORES)
    assert [[label.name for label in row] for row in found] == [["b", "c"], ["a", "c"]]
    found = run("MultiLabelThreshOutput", {"threshold": [0.0, 0.9, 0.9]}, SCORES)
    assert [[label.number for label in row] for row in found] == [[0], [0]]


def columns(*best: int, count: int = 5) -> np.ndarray:
    """Scores of one line of text, 0.9 at the best character of each column."""
    scores = np.full((1, len(best), count), 0.025, "float32")
    scores[0, np.arange(len(best)), best] = 0.9
    return scores


def test_characters() -> None:
    options = {"character_dict": ["h", "é", "字"]}
    (found,) = run("CTCLabelDecode", options, columns(1, 1, 0, 2, 2, 4, 3, 0, 3))
    assert found.text == "hé 字字" and found.score == pytest.approx(0.9)
    assert run("CTCLabelDecode", options, columns(1, 3, count=4))[0].text == "h字", "a model without a space"
    assert run("CTCLabelDecode", options, columns(0, 0)) == [Text("", 0.0)]
    for count in (3, 6):
        with pytest.raises(EnforceNotMet, match="characters of another model"):
            run("CTCLabelDecode", options, columns(1, count=count))


def test_characters_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("x\n \ny\n")
    options = {"character_dict_path": "ppocr/utils/keys.txt"}
    (found,) = run("CTCLabelDecode", options, columns(1, 2, 3), path=str(tmp_path / "inference.yml"))
    assert found.text == "x y"


def test_boxes() -> None:
    rows = np.array([[1, 0.9, 1, 2, 3, 4], [0, 0.4, 5, 6, 7, 8], [0, 0.8, 9, 9, 9, 9]], "float32")
    options = {"draw_threshold": 0.5, "label_list": ["car", "bus"]}
    found = run("Boxes", options, rows, np.array([2, 1], "int32"))
    assert [[box[:2] for box in image] for image in found] == [[(1, "bus")], [(0, "car")]]
    assert found[0][0][3:] == (1, 2, 3, 4) and "bus  (1.0, 2.0) to (3.0, 4.0)" in str(found[0][0])
    assert isinstance(found[1][0], Box) and len(run("Boxes", {"draw_threshold": 0.1}, rows)[0]) == 3
    for arrays in ([rows, np.array([2, 2])], [rows, np.array([4, -1])], [rows[:, :5]], [rows[0]]):
        with pytest.raises(EnforceNotMet, match="do not fit Boxes"):
            run("Boxes", options, *arrays)


def test_maps_of_classes() -> None:
    scores = np.random.default_rng(0).random((2, 3, 4, 5))
    found = run("ClassMap", {}, scores)
    np.testing.assert_array_equal(np.stack(found), scores.argmax(1))
    np.testing.assert_array_equal(run("ClassMap", {}, np.stack(found))[1], found[1])
    with pytest.raises(EnforceNotMet, match="do not fit ClassMap"):
        run("ClassMap", {}, scores[0, 0])


def test_a_step_that_is_not_here() -> None:
    with pytest.raises(NotBuiltYet, match="has SARLabelDecode for the results"):
        run("SARLabelDecode", {}, SCORES)
    with pytest.raises(EnforceNotMet, match="do not fit Topk"):
        run("Topk", {"topk": "many"}, SCORES)
