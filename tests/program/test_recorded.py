"""Programs that real Paddle wrote: read, cloned, shown, checked, snapshot, and the bytes stay what they were."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from fluidnb.passes.diff import diff
from fluidnb.passes.lint import lint
from fluidnb.program import Program
from fluidnb.program.index_view import index_view
from fluidnb.program.printing import pprint_program_codes

RECORDED = sorted(p for p in (Path(__file__).parents[1] / "golden").rglob("*.pb"))


def test_there_are_recorded_programs() -> None:
    assert len(RECORDED) > 5


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_recorded_program(path: Path) -> None:
    data = path.read_bytes()
    program = Program.parse_from_string(data)
    # Some feed what they update, and we do not have every operator.
    assert [f for f in lint(program) if f.kind not in ("read-before-write", "unknown-op")] == []
    for text in (
        str(program), program.to_string(True, True), program._to_readable_code(), pprint_program_codes(program, True),
        index_view(program), repr(program), *map(repr, program.list_vars()), *map(repr, program.global_block().ops),
    ):  # fmt: skip
        assert text
    clone = program.clone()
    assert clone.desc.serialize_to_string() == data
    assert not diff(program, clone, details=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # most of them are training programs
        program.clone(for_test=True)
    before = program.snapshot()
    program.global_block().prepend_op("t_source", outputs={"Out": "new"}, attrs={"shape": [1]})
    program.global_block().remove_op(-1)
    assert program.desc.serialize_to_string() != data
    program.restore(before)
    assert program.desc.serialize_to_string() == data
