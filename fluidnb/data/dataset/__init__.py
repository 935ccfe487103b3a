"""Data sets: real files if cached or downloads are allowed, else synthetic data.

`digits` and `diabetes` are real and come with scikit-learn. The others are Fluid's: ``download(True)`` lets them fetch
their files; without it and without files each returns synthetic data of the same shapes, and warns once on stderr.
"""

from fluidnb.data.dataset import (
    cifar,
    common,
    conll05,
    diabetes,
    digits,
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
from fluidnb.data.dataset.source import download

__all__ = [
    "cifar", "common", "conll05", "diabetes", "digits", "download", "flowers", "image", "imdb", "imikolov", "mnist",
    "movielens", "mq2007", "sentiment", "uci_housing", "voc2012", "wmt14", "wmt16",
]  # fmt: skip
