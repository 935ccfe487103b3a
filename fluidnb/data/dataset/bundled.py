"""Shared helpers of data sets: scikit-learn's bundled files, the fixed split, readers of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import EnforceNotMet
from fluidnb.values.one_element_array import for_user

Array = np.ndarray[Any, Any]


def load(name: str, **options: Any) -> tuple[Array, Array]:
    """A data set that scikit-learn carries in its package.

    Args:
        name: as in ``sklearn.datasets.load_<name>``.
        options: handed to that function.

    Returns:
        (features, targets), a row a sample.

    Raises:
        EnforceNotMet: scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError:
        raise EnforceNotMet(
            f"The {name} data comes with scikit-learn, which is not installed.", hint="pip install fluidnb[data]."
        ) from None
    features, targets = getattr(datasets, f"load_{name}")(return_X_y=True, **options)
    return features, targets


def is_test(count: int) -> Array:
    """The fixed split: every fifth sample is for testing.

    Args:
        count: samples in all.

    Returns:
        A bool for each.

    Example:
        >>> is_test(6).tolist()
        [False, False, False, False, True, False]
    """
    return np.arange(count) % 5 == 4


def rows(features: Array, targets: Array) -> Reader:
    """A reader of (features, target).

    Args:
        features: a row a sample.
        targets: one a sample; what is no array becomes a Python number.

    Returns:
        A reader.

    Example:
        >>> list(rows(np.eye(2), np.array([3, 4]))())
        [(array([1., 0.]), 3), (array([0., 1.]), 4)]
    """

    def samples() -> Iterator[tuple[Array, Any]]:
        for x, y in zip(features, targets, strict=True):
            yield x, for_user(y) if y.ndim else y.item()

    return samples
