"""Shared helpers of data sets: scikit-learn's bundled files, the fixed split, readers of rows, word numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidnb.data.reader.decorators import Reader
from fluidnb.extras import require
from fluidnb.values.one_element_array import for_user

Array = np.ndarray[Any, Any]


def load(name: str, **options: Any) -> tuple[Array, Array]:
    """A data set that scikit-learn carries in its package."""
    datasets = require("sklearn.datasets", f"The data set {name}")
    features, targets = getattr(datasets, f"load_{name}")(return_X_y=True, **options)
    return features, targets


def is_test(count: int) -> Array:
    """The fixed split: every fifth sample is for testing."""
    return np.arange(count) % 5 == 4


def part(samples: tuple[Array, Array], test: bool) -> Reader:
    """A reader of the samples to test with, or of those to train with."""
    features, targets = samples
    chosen = is_test(len(targets)) == test
    return rows(features[chosen], targets[chosen])


def rows(features: Array, targets: Array) -> Reader:
    """A reader of (features, target)."""

    def samples() -> Iterator[tuple[Array, Any]]:
        for x, y in zip(features, targets, strict=True):
            yield x, for_user(y) if y.ndim else y.item()

    return samples


def by_frequency(counts: Mapping[str, float], cutoff: float = 0, *last: str) -> dict[str, int]:
    """Numbers of the words that occur more than `cutoff` times, frequent ones first, equal ones by name."""
    kept = sorted((word for word, n in counts.items() if n > cutoff), key=lambda word: (-counts[word], word))
    return {word: i for i, word in enumerate([*kept, *last])}
