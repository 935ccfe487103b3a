"""The host's random numbers: shuffling, random data, and whatever else draws outside of programs."""

import functools

import numpy as np


def seed(n: int | None) -> None:
    """Seeds the host's generator.

    Args:
        n: 0 or more; None takes entropy from the system.

    Example:
        >>> seed(7); a = generator().integers(100)
        >>> seed(7); bool(a == generator().integers(100))
        True
    """
    global _made
    _made = functools.cache(lambda: np.random.default_rng(n))


def generator() -> np.random.Generator:
    """The random generator of the host; call it for each use, because `seed` replaces it."""
    return _made()


# Made at the first draw: importing numpy.random takes a tenth of this package's import.
_made = functools.cache(lambda: np.random.default_rng())
