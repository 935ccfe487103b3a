"""`fluidnb run`, `debug`, `summary`, `diff` and `show` on saved models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.cli import main, model

PIR = Path(__file__).parents[1] / "golden" / "pir" / "3.3"
DECODER = PIR / "transformer_decoder"


def test_a_model_runs_on_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "results.npz"
    assert main(["run", str(DECODER), "--feed", str(DECODER / "feeds.npz"), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "topk_59  float32[2, 3]" in shown and "4 arrays" in shown and "Profile" not in shown
    names = [v.name for v in fluid.open(str(DECODER)).fetches]
    with np.load(out) as found, np.load(DECODER / "outputs.npz") as wanted:
        assert found.files == names
        for i, name in enumerate(names):
            np.testing.assert_allclose(found[name], wanted[str(i)], 1e-5)


def test_intermediate_results_and_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", str(DECODER), "--feed", str(DECODER / "feeds.npz")]
    assert main([*words, "--fetch", "softmax_42", "--fetch", "matmul_41", "--times"]) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines()]
    assert ["matmul_v2", "7"] in [row[:2] for row in rows], "a row of the table by type"
    assert ["op", "20", "(softmax)"] in [row[:3] for row in rows], "a row of the table by operator"
    assert [row[0] for row in rows[-2:]] == ["softmax_42", "matmul_41"]
    assert main([*words, "--all", "--out", str(tmp_path / "all.npz")]) == 0
    with np.load(tmp_path / "all.npz") as found:
        assert set(found.files) == set(fluid.open(str(DECODER)).computed())
        scores = np.exp(found["matmul_41"] - found["matmul_41"].max(-1, keepdims=True))
        np.testing.assert_allclose(found["softmax_42"], scores / scores.sum(-1, keepdims=True), 1e-5)


@pytest.mark.parametrize("name", ["branches", "detector", "simple_rnn", "tensor_functions", "zero_d"])
def test_all_results_of_every_model(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--feed", str(PIR / name / "feeds.npz"), "--all", "--out", str(tmp_path / "all.npz")]
    assert main(["run", str(PIR / name), *words]) == 0


def test_a_model_of_one_feed_takes_an_array(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 4), "float32"))
    assert main(["run", str(PIR / "branches"), "--feed", str(tmp_path / "x.npy")]) == 0
    assert "float32[3, 4]" in capsys.readouterr().out
    assert main(["run", str(DECODER), "--feed", str(tmp_path / "x.npy")]) == 1
    assert "has one array, and the model takes 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--feed", "none.npz"], "Cannot read arrays from none.npz"),
        (["--feed", "text.npz"], "Cannot read arrays from text.npz"),
        (["--feed", "objects.npz"], "Cannot read arrays from objects.npz"),
        *((["--feed", name], f"Cannot read arrays from {name}") for name in ("zip.npz", "crc.npz", "large.npy")),
        (["--feed", "{}/feeds.npz", "--fetch", "softmax_4"], 'Did you mean "softmax_42"'),
        (["--feed", "{}/feeds.npz", "--out", "results.txt"], "results.txt is no .npz"),
        (["--feed", "short.npz"], "keys"),
    ],
)
def test_words_that_do_not_fit(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text.npz").write_text("none")
    np.savez("objects.npz", ids=np.array([{}], object))
    Path("zip.npz").write_bytes(b"PK\x03\x04 none")
    np.savez_compressed("crc.npz", ids=np.arange(1000))
    data = bytearray(Path("crc.npz").read_bytes())
    data[len(data) // 2] ^= 255
    Path("crc.npz").write_bytes(data)
    np.save("large.npy", np.ones(10))
    small = Path("large.npy").read_bytes()
    Path("large.npy").write_bytes(small.replace(b"(10,), }            ", b"(1000000000000000,)}"))
    np.savez("short.npz", ids=np.zeros((1, 1), "int64"))
    assert main(["run", str(DECODER), *(word.format(DECODER) for word in words)]) == 1
    assert said in capsys.readouterr().err


def test_options_that_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", str(DECODER)])
    assert "one of the arguments --feed --image is required" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("m", True), ("m/inference", True), ("m/inference.json", True), ("m/inference.pdiparams", True), ("a.py", False),
     ("script", False), ("nothing", False), ("a.ipynb", False), ("empty", False)],
)  # fmt: skip
def test_models_are_told_from_scripts(path: str, is_one: bool, tmp_path: Path) -> None:
    for name in ("m", "empty"):
        (tmp_path / name).mkdir()
    for name in ("m/inference.json", "m/inference.pdiparams", "a.py", "script"):
        (tmp_path / name).write_text("")
    assert model.is_model(tmp_path / path) == is_one


def test_a_model_in_the_debugger(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["debug", "--no-wait", str(PIR / "branches"), "--feed", str(PIR / "branches" / "feeds.npz")]
    assert main(words) == 0
    assert "float32[3, 4]" in capsys.readouterr().out


def test_a_summary_by_layer_operator_and_block(capsys: pytest.CaptureFixture[str]) -> None:
    def rows(*words: str) -> dict[str, list[str]]:
        assert main(["summary", str(DECODER), *words]) == 0
        lines = capsys.readouterr().out.splitlines()[2:]
        return {line[:20].strip(): line[20:].split() for line in lines}

    layers = rows()
    assert layers["Linear_3"][:3] == ["2", "272", "272"], "16 * 16 weights and 16 biases, each used once"
    assert layers["MultiHeadAttention"][:2] == ["22", "1,088"] and layers["total"][1] == "2,440"
    assert "Linear_3" not in rows("--depth", "1")
    by_op = rows("--by", "op", "--batch", "2")
    assert by_op["layer_norm"][1:3] == ["32", "128"] and "softmax" in by_op and "feed" not in by_op
    assert rows("--by", "block").keys() == {"block 0         29", "total           29"}


def test_a_difference_of_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(DECODER), "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["diff", str(DECODER), str(tmp_path)]) == 0
    assert capsys.readouterr().out.rstrip().endswith("no difference")
    assert main(["diff", str(DECODER), str(PIR / "branches" / "inference.json")]) == 0
    shown = capsys.readouterr().out
    assert "- 20 softmax_42" in shown and "removed: 36 ops" in shown and "~ linear_0.b_0" in shown
    assert main(["diff", str(DECODER), str(tmp_path / "nothing")]) == 1


def test_a_model_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(DECODER / "inference.json")]) == 0
    assert "softmax_42 = softmax(" in capsys.readouterr().out
