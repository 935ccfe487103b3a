"""Element types in all their spellings."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.proto import framework_pb2
from fluidnb.values import VarType, dtype_name, is_floating, np_dtype, var_type

ELEMENTS = ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_spelling_is_the_same_type(name: str) -> None:
    number = var_type(name)
    scalar = np.dtype(name).type
    for spelling in (name, number, int(number), np.dtype(name), scalar, np.int64(int(number))):
        assert np_dtype(spelling) == np.dtype(name)
        assert var_type(spelling) is number
        assert dtype_name(spelling) == name


def test_python_types() -> None:
    assert [dtype_name(t) for t in (bool, int, float)] == ["bool", "int64", "float64"]


def test_numbers_are_those_of_the_file_format() -> None:
    declared = framework_pb2.DESCRIPTOR.message_types_by_name["VarType"].enum_types_by_name["Type"].values
    theirs = {v.name: v.number for v in declared}
    ours = {v.name: int(v) for v in VarType}
    assert {name: theirs.get(name) for name in ours} == ours


def test_bfloat16_needs_ml_dtypes_only_when_used() -> None:
    import ml_dtypes

    assert np_dtype("bfloat16") == ml_dtypes.bfloat16
    assert var_type(np.dtype(ml_dtypes.bfloat16)) is VarType.BF16
    assert is_floating("bfloat16") and not is_floating("bool")
    code = "import sys, fluidnb.values; print('ml_dtypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True)
    assert done.stdout == b"False\n", done.stderr


def test_bfloat16_without_ml_dtypes_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['ml_dtypes'] = None\nimport fluidnb as fluid\nfrom fluidnb.values import np_dtype\n"
        "x = fluid.layers.data('x', [2], dtype='bfloat16')\n"  # a program is built and saved without it
        "try: np_dtype('bfloat16')\nexcept ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True)
    assert b"bfloat16 needs the package ml_dtypes, which is not installed." in done.stdout, done.stderr
    assert b"pip install 'fluidnb[bfloat16]'" in done.stdout


@pytest.mark.parametrize(
    "wrong", ["flot32", "object", "uint16", "str", object, None, VarType.LOD_TENSOR, 99, True, 1.5, []]
)
def test_what_is_no_element_type_is_refused(wrong: object) -> None:
    for f in (np_dtype, var_type, dtype_name):
        with pytest.raises(OpValueError, match="is not a dtype that Fluid computes on"):
            f(wrong)


def test_a_near_miss_is_offered() -> None:
    with pytest.raises(OpValueError, match='Did you mean "float32"'):
        np_dtype("flot32")


def test_numbers_that_equal_others_are_not_mixed_up() -> None:
    assert var_type(5) is VarType.FP32
    with pytest.raises(OpValueError):
        var_type(5.0)
    assert var_type(1) is VarType.INT16
    with pytest.raises(OpValueError):
        var_type(True)
