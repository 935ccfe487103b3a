"""Placement: buffers that live at the same time never overlap."""

from hypothesis import given
from hypothesis import strategies as st

from fluidnb.memory import arena

lives = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10), st.integers(1, 1000)), max_size=60).map(
    lambda rows: [(first, first + length, size, key) for key, (first, length, size) in enumerate(rows)]
)


def check(lives, offsets, top):
    for first, last, size, key in lives:
        at = offsets[key]
        assert at % 64 == 0 and at + size <= top
        for f, t, n, other in lives:
            if other != key and first <= t and f <= last:
                assert offsets[other] + n <= at or at + size <= offsets[other]


@given(lives)
def test_first_fit(rows):
    check(rows, *arena._first_fit(rows))


@given(lives)
def test_linear(rows):
    check(rows, *arena._linear(rows))


def test_a_chain_takes_two_buffers():
    chain = [(i, i + 1, 100, i) for i in range(1000)]
    _, top = arena.place(chain)
    assert top == 2 * 128
