"""Fluid's ``dataset`` module (``paddle.dataset``): real data sets (cached or downloaded), else synthetic data.

Example:
    >>> from fluidnb import dataset
    >>> features, price = next(dataset.uci_housing.train()())
    >>> len(features), len(price)
    (13, 1)
"""

from fluidnb.data import dataset as _dataset
from fluidnb.data.dataset import *  # noqa: F403

__all__ = _dataset.__all__
