"""Every operator of Paddle 1.4 is there, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from fluidnb.absent import OPERATORS
from fluidnb.errors import NotFound
from fluidnb.op import get_op, has_op

_LINES = (Path(__file__).parents[1] / "golden" / "ops" / "paddle_1_4.txt").read_text().splitlines()
TYPES = [line for line in _LINES if line[:1] != "#"]


def test_every_operator_is_there_or_refused() -> None:
    assert len(TYPES) > 340
    assert [type for type in TYPES if has_op(type) == (type in OPERATORS)] == []


def test_what_is_refused_is_an_operator_of_version_1_4() -> None:
    assert set(OPERATORS) <= set(TYPES)


@pytest.mark.parametrize("type", ["gen_nccl_id", "fusion_lstm", "fake_quantize_abs_max", "sync_batch_norm_grad"])
def test_a_reason_and_what_to_use_instead(type: str) -> None:
    with pytest.raises(NotFound, match=f'Operator "{type}" is not part of fluidnb: it .*') as caught:
        get_op(type)
    assert caught.value.hint and "Did you mean" not in caught.value.hint
