"""Specifications of inputs: notation, what fits, and the slots that declare them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.op import InputSpec, OpDesc, RuleError, all_ops, get_op
from fluidnb.op.compile_context import CompileContext
from tests.tools.refused import refused


@pytest.mark.parametrize("text", ["any", "int64[N, 1] lod | int64[batch, steps, 1]", "float[…, n]", "any[] lod 2"])
def test_the_text_of_a_specification_is_its_notation(text: str) -> None:
    assert " | ".join(map(str, InputSpec.parse(text))) == text


@pytest.mark.parametrize("text", ["", "integers", "int64 [N]", "int64[N", "float[N] x", "float[N] | ", "any lod 0"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(OpValueError, match="no specification of an input"):
        InputSpec.parse(text)


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("int64[N, 1]", ("int64", 2, 0), True), ("int64[N, 1]", ("int32", 2, 0), True),
        ("int64[N, 1]", ("float32", 2, 0), False), ("int64[N, 1]", ("int64", 1, 0), False),
        ("int[N]", ("uint8", 1, 0), True), ("float[N]", ("bfloat16", 1, 1), True), ("bool", ("bool", 3, 0), True),
        ("any", ("bool", 0, 0), True), ("float[…, n, n]", ("float32", 1, 0), False),
        ("float[…, n, n]", ("float32", 2, 0), True), ("float[n, …] lod", ("float32", 2, 0), False),
        ("float[n, …] lod", ("float32", 2, 2), True), ("any[] lod 2", ("float32", 0, 1), False),
        ("array", ("float32", 2, 0), False),
    ],
)  # fmt: skip
def test_values_that_fit(text: str, value: tuple[str, int, int], fits: bool) -> None:
    (spec,) = InputSpec.parse(text)
    assert spec.fits(*value) is fits


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((2, 3, 4), (2, 4, 5), ""), ((-1, 3, 4), (2, -1, 5), ""),
        ((2, 3), (2, 4, 5), r"Input\(X\) of bmm must have the shape \[n, rows, k\]"),
        ((2, 3, 4), (2, 3, 5), r"expected: \[n, k, columns\], n = 2 as in Input\(X\), k = 4 as in Input\(X\)"),
    ],
)  # fmt: skip
def test_inputs_fit_what_their_slots_declare(x: tuple[int, ...], y: tuple[int, ...], message: str) -> None:
    program = fluid.Program()
    for name, shape in (("x", x), ("y", y)):
        program.global_block().create_var(name=name, shape=shape, dtype="float32")
    desc = OpDesc("bmm", {"X": ["x"], "Y": ["y"]}, {"Out": ["z"]})
    context = CompileContext(get_op("bmm"), desc, program.global_block().desc)
    with refused(RuleError, message) if message else nullcontext():
        context.check_inputs()


def test_slots_declare_what_they_take() -> None:
    label, image = get_op("cross_entropy").inputs["Label"], get_op("conv3d").inputs["Input"]
    assert [spec.dtype_class for spec in label.specs] == ["int", "float"] and label.specs[0].rank is None
    assert image.specs[0].rank == 5 and image.key == "Input: float[n, c, d, h, w]"
    assert get_op("sequence_pool").inputs["X"].specs[0].lod_level == 1
    for definition in all_ops():
        for slot in (*definition.inputs.values(), *definition.outputs.values()):
            assert InputSpec.parse(slot.spec) == slot.specs if slot.spec else not slot.specs
