"""Attributes: conversion, bounds, messages."""

import numpy as np
import pytest

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import Attr
from tests.tools.refused import refused


@pytest.mark.parametrize(
    ("kind", "given", "want"),
    [
        ("int", np.int64(3), 3),
        ("float", 2, 2.0),
        ("bool", np.bool_(True), True),
        ("bool", 1, True),
        ("string", "a", "a"),
        ("ints", (1, np.int32(2)), [1, 2]),
        ("floats", np.array([1.0, 2.0]), [1.0, 2.0]),
        ("dtype", "float32", 5),
        ("long", 2**40, 2**40),
    ],
)
def test_values_become_the_attributes_own_type(kind, given, want):
    got = Attr(kind).convert("scale", "a", given)
    assert got == want and type(got) is type(want)


@pytest.mark.parametrize(
    ("kind", "given"),
    [("int", 1.5), ("int", "1"), ("float", "1"), ("string", 3), ("ints", 3), ("ints", "12"), ("bool", "yes")],
)
def test_another_type_names_attribute_and_both_types(kind, given):
    with pytest.raises(OpTypeError, match="Cannot get attribute a of scale by type") as e:
        Attr(kind).convert("scale", "a", given)
    assert e.value.expected == kind and repr(given) in str(e.value)


@pytest.mark.parametrize(
    ("attr", "given", "text"),
    [
        (Attr("float", gt=0), 0.0, "larger_than check fails"),
        (Attr("int", ge=1), 0, "equal_larger_than check fails"),
        (Attr("string", enum=["a", "b"]), "c", "is not in enum container"),
        (Attr("int"), 2**31, "does not fit 32 bits"),
        (Attr("float", check=lambda v: "must be whole." if v % 1 else None), 1.5, "must be whole."),
        (Attr("floats", ge=0), [1.0, -1.0], "equal_larger_than"),
    ],
)
def test_bounds(attr, given, text):
    with refused(OpValueError, text):
        attr.convert("x", "a", given)


def test_a_default_that_breaks_its_own_rule_is_refused():
    with pytest.raises(OpValueError):
        Attr("float", -1.0, ge=0)
