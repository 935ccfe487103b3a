"""``fluidnb diff A B --feed`` and ``%fluid diff A B --values``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb.cli import main
from fluidnb.compare.difference import first_difference
from fluidnb.viz import plain
from fluidnb.viz.compare.html import difference_html, difference_svg
from fluidnb.viz.compare.operators import compared_operators
from fluidnb.viz.compare.text import difference_lines
from tests.compare.networks import built


def test_equal_models_end_with_0(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "good.onnx", "--feed", "x.npz"]) == 0
    assert "The results agree." in capsys.readouterr().out


def test_the_first_difference_is_printed(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "bad", "--feed", "x.npz", "--svg", "a.svg"]) == 1
    out = capsys.readouterr().out
    assert "First difference: op" in out and "(leaky_relu) in block 0" in out
    assert "attribute alpha is 0.1 in" in out and "where it differs" in out and "what it reads" in out
    svg = Path("a.svg").read_text()
    assert "same" in svg and "differs" in svg


def test_json_for_programs(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "bad", "--feed", "x.npz", "--json", "-"]) == 1
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert not found["equal"] and found["operator"]["type"] == "leaky_relu"
    assert main(["diff", "good", "bad", "--feed", "x.npz", "--json", "found.json"]) == 1
    assert json.loads(Path("found.json").read_text()) == found and "First difference" in capsys.readouterr().out
    assert found["output"]["count"] > 0 and found["changes"][0].startswith("attribute alpha is 0.1 in")


def test_runtimes_and_recorded_values(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "good@compiled", "--feed", "x.npz"]) == 0
    assert main(["run", "bad", "--feed", "x.npz", "--all", "--out", "values.npz"]) == 0
    capsys.readouterr()
    assert main(["diff", "good", "values.npz", "--feed", "x.npz"]) == 1
    assert "(leaky_relu) in block 0" in capsys.readouterr().out
    assert main(["diff", "values.npz", "good", "--feed", "x.npz"]) == 1


@pytest.mark.parametrize("option", ["--rtol=nan", "--atol=nan", "--rtol=-1", "--atol=-1e-9"])
def test_a_tolerance_that_is_none(models: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["diff", "good", "bad", "--feed", "x.npz", option]) == 1
    assert f"{option[2:6]} must be a number from 0 on." in capsys.readouterr().err
    assert main(["diff", "good", "good", "--feed", "x.npz", "--rtol=0", "--atol=0"]) == 0


def test_damaged_values(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.npz").write_bytes(b"PK\x03\x04 none")
    for words in (["good", "bad.npz", "--feed", "x.npz"], ["good", "good", "--feed", "bad.npz"], ["good", "bad.npz"]):
        assert main(["diff", *words]) == 1
        assert " from bad.npz" in capsys.readouterr().err


def test_words_that_do_not_fit(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "good", "good@natve", "--feed", "x.npz"]) == 1
    assert "There is no runtime natve." in (err := capsys.readouterr().err) and "native" in err
    assert main(["diff", "good", "bad", "--json", "-"]) == 1
    assert "--json is about values." in capsys.readouterr().err
    np.savez("two.npz", a=np.ones(2), b=np.ones(2))
    assert main(["diff", "good", "bad", "--feed", "two.npz"]) == 1
    assert "takes 1 arrays, and 2 are fed" in capsys.readouterr().err
    assert main(["run", "good", "--feed", "x.npz", "--out", "a.npz"]) == 0
    assert main(["diff", "a.npz", "a.npz", "--feed", "x.npz"]) == 1
    assert "Neither side has a program" in capsys.readouterr().err


def test_pictures() -> None:
    network = built("turns")
    faulty = network.copy()
    next(op for op in faulty.program.desc.blocks[1].ops if op.optype == "scale").set_attr("bias", 0.5)
    difference = first_difference(network.record("good"), faulty.record("bad"))
    text = plain(difference_lines(difference))
    assert "(scale) in block 1, iteration 0" in text
    html = difference_html(difference)
    assert html.count("<svg") >= 2 and "good" in html and "bad" in html
    assert "differs" in difference_svg(difference) and difference_svg(difference, second=True)


def test_operators_side_by_side() -> None:
    network = built("convolutions")
    faulty = network.copy()
    next(op for op in faulty.program.desc.blocks[0].ops if op.optype == "leaky_relu").set_attr("alpha", 0.5)
    difference = first_difference(network.record("good"), faulty.record("bad"))
    found = compared_operators(difference)
    assert [op.index for op in found] == [w.index for w in difference.first.writes] and {op.other for op in found} == {
        op.index for op in found}  # fmt: skip
    states = [op.state for op in found]
    at = states.index("differs")
    assert difference.op is not None and found[at].index == difference.op.index and "differs" not in states[:at]
    text = plain(found[at].lines)
    assert "numbers, by up to" in text and text.count("float32[2, 4, 12, 12]") == 2
    first, second = (line for line in text.splitlines() if line.startswith(("  first", "  second")))
    assert first.split(maxsplit=1)[1] != second.split(maxsplit=1)[1]
    same = plain(found[0].lines).splitlines()
    assert same[1].split(maxsplit=1)[1] == same[2].split(maxsplit=1)[1]
    html = difference_html(difference)
    assert html.count("<details>") == len(found) + 1 and "(leaky_relu) in block 0: differs</summary>" in html
