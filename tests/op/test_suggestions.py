"""Hints of broken shape rules: one change, tried before it is suggested, so that it works when it is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.op.context import RuleError

Make = Callable[..., Any]


def data(name: str, *shape: int, dtype: str = "float32") -> Any:
    return layers.data(name, list(shape), dtype=dtype, append_batch_size=False)


def refused(make: Make) -> str:
    with pytest.raises(RuleError) as caught:
        make()
    return str(caught.value.hint)


@pytest.mark.parametrize(("make", "wrong", "right", "hint"), [
    (lambda n: layers.group_norm(data("x", -1, 6, 4, 4), n), 4, 3, "Attr(groups) = 3 fits."),
    (lambda n: layers.expand(data("x", 3, 4), n), [2], [2, 2], "Attr(expand_times) = [2, 2] fits."),
    (lambda n: layers.pad(data("x", 3, 4), n), [1, 1], [1] * 4, "Attr(paddings) = [1, 1, 1, 1] fits."),
    (lambda n: layers.crop(data("x", 3, 4), n), [5, 5], [3, 4], "Attr(shape) = [3, 4] fits."),
    (lambda n: layers.reduce_sum(data("x", -1, 4), n), 2, 1, "Attr(dim) = [1] fits."),
    (lambda n: layers.stack([data("x", 3, 4), data("y", *n)]), (3, 5), (3, 4), "y of shape [3, 4] fits as Input(X)."),
    (lambda n: layers.multiplex([data("x", -1, 4), data("y", -1, 4)], data("i", *n, dtype="int32")), (-1, 2), (-1, 1),
     "i of shape [-1, 1] fits as Input(Ids)."),
    (lambda n: layers.im2sequence(data("x", *n)), (-1, 3, 8), (-1, 3, 8, 1),
     "layers.reshape(x, [-1, 3, 8, 1]) fits as Input(X)."),
])  # fmt: skip
def test_a_suggestion_is_given_and_works(make: Make, wrong: Any, right: Any, hint: str) -> None:
    assert refused(lambda: make(wrong)) == hint
    with fluid.program_guard(fluid.Program()):
        make(right)


def test_an_unknown_size_never_makes_a_suggestion_fit() -> None:
    """A batch of -1 agrees with any size while a program is built: as an axis of 8 it would fail when it is fed."""
    x = data("x", -1, 8)
    assert "[8, -1]" not in refused(lambda: layers.stack([data("y", 8, 4), x]))
    assert refused(lambda: layers.split(x, [3, 3], dim=1)) == "Attr(num) = 2 fits."


def test_where_nothing_fits_the_hint_says_what_the_operator_takes() -> None:
    hint = refused(lambda: layers.layer_norm(data("x", 3, 4), begin_norm_axis=5))
    assert hint.startswith("layer_norm takes X, float: any shape with more than begin_norm_axis dimensions")


def test_a_trial_writes_nothing() -> None:
    x, block = data("x", 3, 4), fluid.default_main_program().global_block()
    out = block.create_var(name="out", dtype="float64", shape=[7])
    before = out.to_string()
    with pytest.raises(RuleError):
        block.append_op("pad", {"X": x}, {"Out": out}, {"paddings": [1, 1], "pad_value": 0.0})
    assert out.to_string() == before
