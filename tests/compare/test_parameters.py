"""``fluidnb diff`` of files of parameters: partners, differences, what is missing."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli import main
from fluidnb.compare.difference import Tolerance
from fluidnb.compare.parameters import ParameterFile, compare_parameters, read_parameters
from fluidnb.files.safetensors import write_safetensors
from fluidnb.viz import plain
from fluidnb.viz.compare.parameters import parameter_lines


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Random float32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """Some parameters, stored as ``a.pdparams``; a file is written by a pickle as Paddle's is."""
    monkeypatch.chdir(tmp_path)
    values = {"conv.weight": numbers(4, 3, 3, 3), "conv.bias": numbers(4, seed=1), "fc.weight": numbers(6, 5, seed=2)}
    Path("a.pdparams").write_bytes(pickle.dumps(values, protocol=2))
    return values


def test_equal_files_end_with_0(files: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    write_safetensors("b.safetensors", files)
    assert main(["diff", "a.pdparams", "b.safetensors"]) == 0
    assert "3 tensors compared: 3 equal" in (out := capsys.readouterr().out) and "The parameters agree." in out


def test_each_kind_of_difference_is_named(files: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    changed = {"conv.weight": files["conv.weight"].copy(), "conv.bias": files["conv.bias"].astype("float16"),
               "fc.weight": files["fc.weight"].T.copy(), "extra": numbers(2)}  # fmt: skip
    changed["conv.weight"][1, 2, 0, 1] += 0.5
    np.savez("b.npz", **changed)  # type: ignore[arg-type]  # numpy's stub takes no mapping
    assert main(["diff", "a.pdparams", "b.npz", "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    by_name = {each["first"]: each for each in found["tensors"]}
    assert {name: each["state"] for name, each in by_name.items()} == {
        "conv.weight": "differs", "conv.bias": "dtype", "fc.weight": "shape",
    }  # fmt: skip
    weight, before = by_name["conv.weight"], float(files["conv.weight"][1, 2, 0, 1])
    assert weight["at"] == weight["relative_at"] == [1, 2, 0, 1] and weight["count"] == 1
    assert weight["largest"] == pytest.approx(0.5, rel=1e-6)
    assert weight["relative"] == pytest.approx(abs(0.5 / (before + 0.5)), rel=1e-5)
    assert by_name["conv.bias"]["dtypes"] == ["float32", "float16"]
    assert by_name["fc.weight"]["shapes"] == [[6, 5], [5, 6]]
    assert not found["equal"] and found["only_second"] == {"extra": "[2] float32"} and not found["only_first"]
    assert main(["diff", "a.pdparams", "b.npz"]) == 1
    out = capsys.readouterr().out
    assert "1 differs, 1 of another shape, 1 of another dtype" in out and "only in b.npz" in out and "extra" in out


def test_tolerance(files: dict[str, np.ndarray]) -> None:
    near = {name: value * np.float32(1 + 1e-6) for name, value in files.items()}
    write_safetensors("b.safetensors", near)
    sides = [read_parameters(path) for path in ("a.pdparams", "b.safetensors")]
    found = compare_parameters(sides[0], sides[1])
    assert found.equal and {pair.state for pair in found.pairs} == {"within tolerance"}
    assert main(["diff", "a.pdparams", "b.safetensors"]) == 0
    assert main(["diff", "a.pdparams", "b.safetensors", "--rtol", "0", "--atol", "1e-9"]) == 1


def test_partners_of_other_names() -> None:
    ours = {"a": numbers(3, 3), "b": numbers(3, 3, seed=1), "c": np.zeros(3, "f"), "d": np.zeros(3, "f"),
            "e": numbers(7), "lost": numbers(2, 2)}  # fmt: skip
    theirs = {"z": ours["c"], "y": ours["d"], "x": ours["b"] * np.float32(1.01), "w": ours["a"],
              "v": -ours["e"], "g": numbers(9)}  # fmt: skip
    found = compare_parameters(ParameterFile("one", ours), ParameterFile("two", theirs))
    assert {pair.comparison.first: (pair.comparison.second, pair.how, pair.state) for pair in found.pairs} == {
        "a": ("w", "values", "equal"), "b": ("x", "values", "differs"), "c": ("z", "values", "equal"),
        "d": ("y", "values", "equal"), "e": ("v", "shape", "differs"),
    }  # fmt: skip
    assert set(found.only_first) == {"lost"} and set(found.only_second) == {"g"}
    text = plain(parameter_lines(found))
    assert "4 pairs of different names found by shape and values" in text and "(by shape alone)" in text


def test_models(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "good.onnx", "--values"]) == 0
    fluid.open("good").save("other", to="pdmodel")
    fluid.open("good").save("other", to="safetensors", name="alone")
    assert main(["diff", "other/inference.pdiparams", "good/", "--values"]) == 0
    assert main(["diff", "other/inference.pdiparams", "other/alone.safetensors"]) == 0
    model = fluid.open("good")
    model.rename({v.name: f"p{i}" for i, v in enumerate(model.parameters)}).save("renamed")
    capsys.readouterr()
    assert main(["diff", "good", "renamed", "--values"]) == 0
    assert "by the operators that read them" in capsys.readouterr().out


def test_strange_values() -> None:
    a = {"nan": np.array([np.nan, 1, np.inf], "f"), "none": np.empty((0, 3), "f"), "flags": np.array([True, False]),
         "half": np.array([1, 2], "float16")}  # fmt: skip
    same = compare_parameters(ParameterFile("a", a), ParameterFile("b", {n: v.copy() for n, v in a.items()}))
    assert same.equal and same.data()["equal"]
    b = a | {"nan": np.array([0, 1, np.inf], "f"), "flags": np.array([1.0, 0.0])}
    found = compare_parameters(ParameterFile("a", a), ParameterFile("b", b), Tolerance())
    assert [pair.state for pair in found.pairs if not pair.agrees] == ["differs", "dtype"]


def test_tensors_without_axes() -> None:
    sides = [ParameterFile(title, {"s": np.array(value)}) for title, value in (("a", 1.0), ("b", 2.0))]
    (pair,) = compare_parameters(*sides).pairs
    assert pair.state == "differs" and pair.relative == 0.5 and pair.comparison.values == (1.0, 2.0)
    assert compare_parameters(sides[0], sides[0]).equal


def test_bfloat16() -> None:
    kind = pytest.importorskip("ml_dtypes").bfloat16
    a, b = numbers(4).astype(kind), numbers(4)
    found = compare_parameters(ParameterFile("a", {"w": a}), ParameterFile("b", {"w": b}), Tolerance(1e-2))
    assert found.pairs[0].state == "dtype" and found.pairs[0].comparison.equal


def test_files_that_cannot_be_compared(files: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.pdiparams").write_bytes(b"")
    assert main(["diff", "a.pdparams", "b.pdiparams"]) == 1
    assert "has tensors by order, without names" in capsys.readouterr().err
    np.savez("b.npz", words=np.array(["one"]))
    assert main(["diff", "a.pdparams", "b.npz"]) == 1
    assert "words of dtype" in capsys.readouterr().err
    assert main(["diff", "a.pdparams", "missing.safetensors"]) == 1
    assert "missing.safetensors" in capsys.readouterr().err
    assert main(["diff", "a.pdparams", "a.pdparams", "--svg", "x.svg"]) == 1
    assert "--svg is about values." in capsys.readouterr().err
