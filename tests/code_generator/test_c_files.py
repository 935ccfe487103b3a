"""The C files of operators: functions take slots, and helpers of one name are one function."""

from collections import defaultdict
from pathlib import Path

import pytest

import fluidnb_kernels
from fluidnb.op import get_op
from fluidnb.op.c_code import all_c_code, c_code_of, functions_of

FILES = sorted(Path(fluidnb_kernels.__file__).parent.rglob("*.c"))


@pytest.mark.parametrize("type", all_c_code())
def test_parameters_are_slots(type: str) -> None:
    """The function of an operator takes slots that the operator has."""
    definition = get_op(type)
    for parameter in c_code_of(type).text.slots:
        slot = parameter.slot
        known = {*definition.inputs, *definition.outputs}
        if not definition.is_grad and slot not in known:
            others = [each for each in all_c_code() if c_code_of(each).text is c_code_of(type).text]
            assert any(slot in {*get_op(t).inputs, *get_op(t).outputs} for t in others), slot


def test_helpers_of_one_name_are_one_function() -> None:
    """A generated file has each helper once, whichever operators call it."""
    texts = defaultdict(set)
    for file in FILES:
        for name, text in functions_of(file).items():
            if not text.comment:
                raise AssertionError(f"{name} in {file.name} has no comment")
            if f"static {text.result} {name}(".replace("* ", "*") in file.read_text().replace("* ", "*"):
                texts[name].add((text.result, text.parameters, text.body))
    assert {name for name, found in texts.items() if len(found) > 1} == set()
