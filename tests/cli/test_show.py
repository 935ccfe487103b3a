"""`fluidnb show`: saved models and scripts, as listings and as files."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import fluidnb as fluid
from fluidnb.cli import main

SCRIPT = """
import sys
import numpy as np
import paddle.fluid as fluid

def network():
    i, n = fluid.layers.zeros([1], "int64"), fluid.layers.fill_constant([1], "int64", 3)
    more = fluid.layers.less_than(i, n)
    with fluid.layers.While(more).block():
        fluid.layers.increment(i)
        fluid.layers.less_than(i, n, cond=more)
    return i

def train():
    i = network()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    print("it ran", exe.run(fetch_list=[i])[0])

train()
"""
OWN = """
import paddle.v2.fluid as fluid
train_prog, startup = fluid.Program(), fluid.Program()
test_prog = fluid.Program()
with fluid.program_guard(train_prog, startup):
    fluid.layers.fc(fluid.layers.data("x", shape=[2]), size=3)
with fluid.program_guard(test_prog):
    fluid.layers.relu(fluid.layers.data("x", shape=[2]))
"""
LOCAL = """
import paddle.fluid as fluid
def go():
    mine = fluid.Program()
    with fluid.program_guard(mine):
        fluid.layers.relu(fluid.layers.data("x", [2]))
    try:
        fluid.Executor().run(mine)
    except Exception:
        pass
go()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which a test is, with a script."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SCRIPT)
    Path("own.py").write_text(OWN)
    return tmp_path


@pytest.fixture
def saved() -> str:
    """A folder of an inference model."""
    with fluid.fresh():
        y = fluid.layers.fc(fluid.layers.data("x", shape=[2]), size=3, act="relu")
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model("saved", ["x"], [y], exe)
    return "saved"


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The output of a command line that must succeed."""
    assert main(["show", *words]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The error of a command line that must fail."""
    assert main(["show", *words]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


MODEL = """
  x         float32[-1, 2]  data
  fc_0.w_0  float32[2, 3]   parameter
  fc_0.b_0  float32[3]      parameter
forward
  0  x = feed(feed, col=0)                                           float32[-1, 2]
  1  fc_0.tmp_0 = mul(X=x, Y=fc_0.w_0)                               float32[-1, 3]
  2  fc_0.tmp_1 = elementwise_add(X=fc_0.tmp_0, Y=fc_0.b_0, axis=1)  float32[-1, 3]
  3  fc_0.tmp_2 = relu(fc_0.tmp_1)                                   float32[-1, 3]
  4  fetch = fetch(fc_0.tmp_2, col=0)                                fetch_list
"""


def test_a_saved_model_as_a_folder_and_as_a_file(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, saved) == "saved  1 block, 5 ops, 2 parameters" + MODEL
    assert shown(capsys, "saved/__model__").endswith(MODEL)
    Path("saved/__model__").rename("later.pdmodel")
    assert shown(capsys, "later.pdmodel") == shown(capsys, "later").replace("later ", "later.pdmodel ") != ""


def test_counts(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, saved, "--ops").splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["1", name, "forward"] for name in ("elementwise_add", "feed", "fetch", "mul", "relu")
    ]
    assert [line.split()[:2] for line in shown(capsys, "train.py", "--ops").splitlines()[1:3]] == [
        ["2", "fill_constant"],
        ["2", "less_than"],
    ]


def test_a_script_is_shown_when_it_has_built(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "train.py")
    assert text.startswith("program  2 blocks, 6 ops") and "it ran" not in text
    assert "while(" in text and "train.py:9" in text and "block 1" in text
    assert fluid.Executor().run(fetch_list=["fill_constant_0.tmp_0"])[0] == 3, "programs run again as ever"


def test_a_script_runs_to_its_end_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "train.py", "--run").startswith("it ran [3]\nprogram  2 blocks")


def test_a_block(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "train.py", "--block", "1")
    assert text.splitlines()[0].startswith("program, block 1") and "increment(" in text and "while(" not in text
    assert "has no block 7" in (said := refused(capsys, "train.py", "--block", "7")) and "one of 0, 1" in said


def test_programs_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    titles = [line.split("  ")[0] for line in shown(capsys, "own.py").splitlines() if " block, " in line]
    assert titles == ["train_prog", "startup", "test_prog"]
    assert "relu(x)" in shown(capsys, "own.py", "--program", "test_prog")
    assert 'Did you mean "test_prog"' in refused(capsys, "own.py", "--program", "tst_prog")
    assert "--program train_prog or startup or test_prog" in refused(capsys, "own.py", "--svg", "a.svg")


def test_the_startup_program(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fc.py").write_text("import paddle.fluid as f\nf.layers.fc(f.layers.data('x', [2]), 3)\n")
    text = shown(capsys, "fc.py", "--startup")
    assert text.startswith("startup program  1 block, 2 ops") and "uniform_random" in text


def test_pictures(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "train.py", "--svg", "a.svg", "--dot", "a.dot").startswith("a.svg: ")
    root = ElementTree.parse("a.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and "less_than" in "".join(root.itertext())
    assert "subgraph" in Path("a.dot").read_text()
    assert shown(capsys, saved, "--dot", "-").startswith("digraph program {")
    assert "Cannot write" in refused(capsys, saved, "--svg", "no/such/folder.svg")


def test_limits(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "… 3 more ops" in shown(capsys, saved, "--limit", "2")
    with pytest.raises(SystemExit, match="2"):
        main(["show", saved, "--limit", "-2"])
    assert "-2" in capsys.readouterr().err


def test_what_is_nothing_to_show(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 'Did you mean "saved"' in refused(capsys, "svaed")
    said = refused(capsys, "saved/fc_0.w_0")
    assert "saved/fc_0.w_0 holds no program" in said and "files of parameters are not" in said
    assert "Traceback" not in said and "  at:" not in said, "no line of ours"
    Path("empty").mkdir()
    assert "empty is no saved model" in refused(capsys, "empty")
    for name in ("a", "b"):
        Path(f"empty/{name}.pdmodel").write_bytes(b"")
    assert "name the file: empty/a.pdmodel" in refused(capsys, "empty")
    assert "It has no blocks" in refused(capsys, "empty/a.pdmodel")
    assert "only scripts have several" in refused(capsys, saved, "--startup")
    Path("nothing.py").write_text("print('hello')\n")
    assert main(["show", "nothing.py"]) == 1 and "builds no program" in capsys.readouterr().err
    Path("a.ipynb").write_text("{}")
    assert "There is no no such.py" in refused(capsys, "no such.py")
    assert "is a notebook" in refused(capsys, "a.ipynb")


def test_a_script_that_fails_is_told_as_python_does(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.py").write_text("import paddle.fluid as f\n\nf.layers.fc(f.layers.data('x', [2]), size='a')\n")
    said = refused(capsys, "wrong.py")
    assert 'File "wrong.py", line 3' in said and "did not come to its end" in said and "fluidnb/layers" not in said


def test_it_stops_where_functions_of_the_script_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("local.py").write_text(LOCAL)
    assert shown(capsys, "local.py").startswith("mine  1 block, 1 op")


def test_a_model_of_paddle_3(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[1] / "golden" / "pir" / "3.3" / "branches"
    for path in (folder, folder / "inference", folder / "inference.json"):
        text = shown(capsys, str(path))
        assert "4 blocks" in text.splitlines()[0] and "while(" in text and "conditional_block(" in text
