"""Coverage of Paddle 3's operations, from the tables of the conversion."""

from __future__ import annotations

from fluidnb.op import has_op
from fluidnb.pir.convert import STRUCTURAL
from fluidnb.pir.coverage import coverage, coverage_table
from fluidnb.pir.signatures import LINES


def test_every_operation_of_the_tables_is_there_once() -> None:
    rows = coverage()
    assert [row.operation for row in rows] == sorted({*LINES, *STRUCTURAL})
    for row in rows:
        assert (row.runs == ()) == bool(row.operator and not has_op(row.operator))
    assert {"if", "while", "full", "parameter"} <= set(STRUCTURAL)


def test_places_and_attributes() -> None:
    rows = {row.operation: row for row in coverage()}
    assert rows["einsum"].runs == ("CPU",) and rows["atan2"].runs == ("CPU", "CUDA")
    assert rows["leaky_relu"].renamed == (("negative_slope", "alpha"),)
    assert rows["argsort"].ignored == ("stable",)
    line = next(line for line in coverage_table(rows.values()).splitlines() if line.startswith("leaky_relu "))
    assert line.split() == ["leaky_relu", "leaky_relu", "CPU,", "CUDA", "negative_slope", "is", "alpha"]


def test_every_operation_runs() -> None:
    assert not [row.operation for row in coverage() if not row.runs]
