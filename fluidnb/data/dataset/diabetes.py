"""Diabetes: 10 measurements and the disease progression after a year of 442 patients, from scikit-learn.

Source: B. Efron, T. Hastie, I. Johnstone, R. Tibshirani, Least Angle Regression, Annals of Statistics 32 (2004).
"""

import functools

import numpy as np

from fluidnb.data.dataset.bundled import Array, is_test, load, part
from fluidnb.data.reader.decorators import Reader

#: What the features are, in order.
feature_names = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6"]


def train() -> Reader:
    """354 samples: (10 features as float32, the progression as an array of one float32, from 25 to 346).

    Features are shifted by their mean and divided by their range, (x - mean) / (max - min), both over the training
    samples: they are within -1 and 1.
    """
    return part(_all(), test=False)


def test() -> Reader:
    """The other 88 samples, every fifth one, normalised by the same numbers; samples as in `train`."""
    return part(_all(), test=True)


@functools.cache
def _all() -> tuple[Array, Array]:
    features, targets = load("diabetes", scaled=False)
    seen = features[~is_test(len(targets))]
    scaled = (features - seen.mean(0)) / (seen.max(0) - seen.min(0))
    return scaled.astype(np.float32), targets.astype(np.float32).reshape(-1, 1)
