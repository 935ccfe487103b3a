"""Views that would leave their memory are refused."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.errors import OpValueError
from fluidnb.memory import Reserve, strided, view_of


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((2,), (-4,)), ((5,), (4,)), ((2, 2), (8, 12)), ((1 << 62, 4), (1 << 62, 4)), ((3,), (7,)), ((-1,), (4,))],
)
def test_a_view_outside_is_refused(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    with pytest.raises(OpValueError, match="would reach outside its array"):
        strided(np.arange(4, dtype="int32"), shape, strides)


def test_a_view_of_a_part_stays_in_the_part() -> None:
    x = np.arange(10, dtype="int32")
    assert strided(x[2:6], (2, 2), (8, 4)).tolist() == [[2, 3], [4, 5]]
    assert strided(x[6:2:-1], (4,), (-4,)).tolist() == [6, 5, 4, 3]
    for shape, strides in (((5,), (4,)), ((2,), (-4,))):
        with pytest.raises(OpValueError):
            strided(x[2:6], shape, strides)


def test_no_elements_reach_nothing() -> None:
    assert strided(np.arange(4), (0, 5), (1 << 40, 8)).shape == (0, 5)


@pytest.mark.parametrize(
    ("shape", "offset", "strides"),
    [
        ((5,), 0, None),
        ((4,), 4, None),
        ((2,), 0, (-4,)),
        ((2,), -4, None),
        ((3,), 4, (2**63 - 1,)),
        ((5,), 0, (2**62,)),
    ],
)
def test_an_array_outside_its_buffer_is_refused(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...] | None
) -> None:
    with pytest.raises(OpValueError, match="would reach outside its buffer"):
        view_of(np.zeros(4, "int32"), shape, "int32", offset, strides)


def test_a_reserve_of_absurd_size_is_refused() -> None:
    with pytest.raises(MemoryError):
        Reserve()((1 << 40, 1 << 40), "float64")
