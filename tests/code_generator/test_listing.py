"""Generated folders in `fluidnb show`: each operator beside its function."""

from __future__ import annotations

from pathlib import Path

import pytest

import fluidnb as fluid
from fluidnb.cli.entry import main
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.listing import read_folder

layers = fluid.layers


def saved(folder: Path, target: str = "c") -> Path:
    """The folder of a program with a branch, and two operators that share a function."""
    x = layers.data("x", [4])
    y = layers.fc(layers.relu(layers.relu(x)), 3)
    total = layers.scale(layers.reduce_sum(y), 1.0)
    zero = layers.fill_constant([1], "float32", 0.0)
    branch = layers.ConditionalBlock([layers.less_than(zero, total)], is_scalar_condition=True)
    with branch.block():
        layers.assign(layers.scale(total, 2.0), total)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    CodeGenerator(feeds=["x"], fetches=[total], target=target).save(folder)
    return folder


@pytest.mark.parametrize("target", ["c", "cuda"])
def test_operators_beside_their_functions(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path / "code", target)
    assert main(["show", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "operators, " in lines[0] and " functions" in lines[0]
    first = next(line for line in lines if "relu(X=x)" in line)
    left, right = first.split(" │ ")
    assert left.startswith("relu_0.tmp_0 = relu") and right.startswith("static void op_relu(")
    assert any(line.endswith(" │ op_relu, see above") for line in lines)
    assert any("test_listing.py:" in line for line in lines)
    assert any("conditional_block" in line for line in lines) and "block 1" in lines
    assert any(" │ static void block_1(void) {" in line for line in lines)
    assert max(map(len, lines)) < 200
    title, rows, functions = read_folder(folder)
    assert all(row.function in functions for row in rows) and title.startswith("scale_")


def test_one_block_and_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = saved(tmp_path / "code")
    assert main(["show", str(folder), "--block", "1"]) == 0
    out = capsys.readouterr().out
    assert "op_scale" in out and "op_relu(" not in out
    assert main(["show", str(folder), "--svg", str(tmp_path / "a.svg")]) == 1
    assert "is no picture" in capsys.readouterr().err
    (folder / "model.c").unlink()
    assert main(["show", str(folder)]) == 1
    assert "model.c in" in (err := capsys.readouterr().err) and "is damaged" in err
    (folder / "operators.json").write_bytes(b"\xff")
    assert main(["show", str(folder)]) == 1
    assert "operators.json in" in (err := capsys.readouterr().err) and "is damaged" in err
    (folder / "operators.json").write_text('{"title": "x"}')
    assert main(["show", str(folder)]) == 1
    assert "operators.json in" in (err := capsys.readouterr().err) and "is damaged" in err
