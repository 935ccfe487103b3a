"""Fluid's ``dataset`` module (``paddle.dataset``): real data sets (cached or downloaded), else synthetic data.

Example:
    >>> from fluidnb import dataset
    >>> features, price = next(dataset.uci_housing.train()())
    >>> len(features), len(price)
    (13, 1)
"""

from fluidnb.data.dataset import (
    cifar,
    common,
    conll05,
    diabetes,
    digits,
    download,
    flowers,
    image,
    imdb,
    imikolov,
    mnist,
    movielens,
    mq2007,
    sentiment,
    uci_housing,
    voc2012,
    wmt14,
    wmt16,
)

__all__ = [
    "cifar",
    "common",
    "conll05",
    "diabetes",
    "digits",
    "download",
    "flowers",
    "image",
    "imdb",
    "imikolov",
    "mnist",
    "movielens",
    "mq2007",
    "sentiment",
    "uci_housing",
    "voc2012",
    "wmt14",
    "wmt16",
]
