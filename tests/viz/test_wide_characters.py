"""Chinese names are aligned in tables: a character takes two columns of a terminal, as the package rich counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.cells import cell_len

import fluidnb as fluid
from fluidnb import viz
from fluidnb.cli import main
from fluidnb.program.cost import program_cost
from fluidnb.utils.text_width import beginning, padded, text_width
from fluidnb.viz.base.styled_text import columns, cut, cut_text, width, wrapped
from fluidnb.viz.program.cost import cost_lines

#: Latin, accents, box drawing, arrows, bars, Chinese, Japanese, Korean, full-width forms.
RANGES = [
    (0x20, 0x7F), (0xA0, 0x250), (0x2190, 0x2200), (0x2500, 0x25A0), (0x3041, 0x3097), (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A4), (0xFF01, 0xFF5F),
]  # fmt: skip


def test_widths_are_those_of_rich() -> None:
    for first, end in RANGES:
        wrong = [hex(c) for c in range(first, end) if chr(c) != "\xad" and text_width(chr(c)) != cell_len(chr(c))]
        assert not wrong, wrong[:10]
    assert text_width("e\u0301") == 1 and text_width("损失 loss") == cell_len("损失 loss") == 9


@pytest.mark.parametrize("size", range(8))
def test_a_beginning_fits(size: int) -> None:
    assert text_width(beginning("损a失函数", size)) in (size, size - 1)
    assert beginning("loss", size) == "loss"[:size]
    assert text_width(padded("损失", size)) == max(size, 4)
    if size:
        assert text_width(cut_text("损失函数", size)) <= size
        assert width(cut([("损失", ""), ("函数", "dim")], size)) <= size


def test_columns_are_aligned() -> None:
    lines = viz.plain(columns([[[("变量", "")], [("1", "")]], [[("loss_long", "")], [("2", "")]]])).splitlines()
    assert [cell_len(line.partition(digit)[0]) for line, digit in zip(lines, "12", strict=True)] == [11, 11]
    assert all(cell_len(line) <= 12 for line in viz.plain(wrapped([[("损失 函数 变量 程序", "")]], 12)).splitlines())


@pytest.fixture
def program() -> fluid.Program:
    """A program with Chinese and English names."""
    x, y = fluid.layers.data("图像", [13]), fluid.layers.data("label", [1])
    predict = fluid.layers.fc(x, 1, name="全连接层", param_attr="权重")
    fluid.layers.mean(fluid.layers.square_error_cost(predict, y))
    return fluid.default_main_program()


def starts(lines: list[str], text: str) -> set[int]:
    """The columns in which a text begins."""
    return {cell_len(line.partition(text)[0]) for line in lines if text in line}


def test_a_listing_is_aligned(program: fluid.Program) -> None:
    lines = viz.plain(viz.program_lines(viz.read_program(program))).splitlines()
    named = [line for line in lines if line.startswith("  图像") or line.startswith("  label") or "权重" in line[:8]]
    assert len(named) == 3 and len(starts(named, "float32")) == 1
    ops = [line for line in lines if " = " in line]
    assert len(ops) > 3 and len(starts(ops, "float32[")) == 1


def test_fluid_show_is_aligned(program: fluid.Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model").write_bytes(program.desc.serialize_to_string())
    assert main(["show", str(tmp_path / "model")]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line for line in lines if line.startswith(("  图像", "  label"))]
    assert len(named) == 2 and len(starts(named, "float32")) == 1


def test_tables_of_costs_and_scopes_are_aligned(program: fluid.Program) -> None:
    lines = viz.plain(cost_lines(program_cost(program), "layer")).splitlines()[1:]
    assert any("全连接层" in line for line in lines) and len({cell_len(line) for line in lines}) == 1
    scope = fluid.Scope()
    for name in ("权重", "bias_of_fc"):
        scope.var(name).get_tensor().set(np.ones(3, "float32"), fluid.CPUPlace())
    assert len(starts(viz.plain(viz.scope_lines(viz.read_scope(scope))).splitlines(), "float32[3]")) == 1


def test_the_sheet_of_an_operator_is_aligned() -> None:
    from fluidnb.viz.program.op_type_text import _table

    rows: list[Any] = list(_table([("输入", "values"), ("Out", "result")], 60))
    lines = viz.plain(rows).splitlines()
    assert starts(lines, "values") == starts(lines, "result")


def test_without_rich_there_are_no_colours(program: fluid.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = viz.program_lines(viz.read_program(program))
    assert "\x1b[" in viz.ansi(lines, 60)
    monkeypatch.setattr("fluidnb.viz.base.styled_text.is_installed", lambda package: False)
    shown = viz.ansi(lines, 60)
    assert "\x1b[" not in shown and "图像" in shown and all(cell_len(line) <= 60 for line in shown.splitlines())
