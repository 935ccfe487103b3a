"""Every operator's shape rule refuses inputs of an unexpected rank with a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.op import EMPTY, OpDesc, get_op, has_op
from fluidnb.op.compile_context import infer_compile
from fluidnb.values import VarType
from tests.fuzz.victims import Maker, makers
from tests.tools.sampling import sample

SHAPES = ([], [4], [2, 3], [-1, 3], [-1, -1], [0, 3], [2, 3, 4], [2, 3, 4, 5], [-1] * 4, [2] * 5, [2] * 6)


def rebuilt(op: OpDesc) -> Iterator[str]:
    """Infers the outputs of an operator with each shape for each of its inputs; gives what raised no `FluidError`."""
    definition, block = get_op(op.optype), op.block
    for name in sorted(set(op.input_arg_names()) - {EMPTY}):
        var = block.find_var_recursive(name)
        if var is None or var.type() not in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
            continue
        before = var.shape()
        for shape in SHAPES:
            var.set_shape(shape)
            try:
                infer_compile(definition, op, block)
            except FluidError:
                pass
            except Exception as error:
                yield f"{op.optype} with {name} of shape {shape}: {error!r}"
        var.set_shape(before)


def problems(make: Maker) -> Iterator[str]:
    """Exceptions other than `FluidError` of the operators of a program's first block."""
    program = fluid.Program.parse_from_string(make().program.desc.serialize_to_string())
    for op in program.desc.blocks[0].ops:
        if has_op(op.optype) and not get_op(op.optype).is_grad and get_op(op.optype).infer is not None:
            yield from rebuilt(op)


def test_every_rank_is_taken_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluidnb.op.compile_context.suggest", lambda context: None)  # tries each rule 60 times more
    known = [row for kind, rows in sorted(makers().items()) for row in rows[:6] if not kind.startswith("function")]
    wrong = [text for name, make in sample(known, 300) for text in problems(make)]
    assert not wrong, "\n".join(wrong[:50])
