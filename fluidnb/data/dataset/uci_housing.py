"""UCI housing: 404 + 102 samples of 13 numbers about a district and the price of its houses.

The synthetic data have the shapes, dtypes and split of the real data, but random numbers: prices are linear in
standard normal features. `diabetes` is a real data set for regression that needs no network.

Source: D. Harrison, D. Rubinfeld, Hedonic prices and the demand for clean air (1978).
Fluid: paddle.dataset.uci_housing.
"""

import functools
from collections.abc import Sequence

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array, rows
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import OpValueError

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
_FILES = source.Files("uci_housing", (URL, MD5))
fetch = _FILES.fetch
#: What the features are, in order.
feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]
_COUNT, _NOISE, _MEAN_PRICE = 506, 0.1, 21.5


def train() -> Reader:
    """404 samples: (13 features as float32, the price in thousands of dollars as an array of one float32).

    Features are shifted by their mean and divided by their range, (x - mean) / (max - min), both over all 506 samples.
    Synthetic features are standard normal and the price is w · features + 21.5 + noise of deviation 0.1.
    """
    features, prices = _all(_FILES.paths())
    return rows(features[: len(prices) * 4 // 5], prices[: len(prices) * 4 // 5])


def test() -> Reader:
    """The other 102 samples; samples as in `train`."""
    features, prices = _all(_FILES.paths())
    return rows(features[len(prices) * 4 // 5 :], prices[len(prices) * 4 // 5 :])


class Ranges(dict[str, float]):
    """The range of each feature; printed, a bar for each."""

    def __repr__(self) -> str:
        most = max(self.values()) or 1.0
        return "\n".join(f"{name:<8}{'█' * round(40 * value / most)} {value:g}" for name, value in self.items())


def feature_range(maximums: Sequence[float], minimums: Sequence[float]) -> Ranges:
    """The range of each feature, used for normalization.

    Returns:
        Name to range; where it is printed, bars of the same scale.
    """
    if len(maximums) != len(feature_names) or len(minimums) != len(feature_names):
        raise OpValueError(
            "feature_range takes a maximum and a minimum of each feature.", expected=f"{len(feature_names)} of each",
            received=f"{len(maximums)} and {len(minimums)}",
        )  # fmt: skip
    return Ranges({n: float(high) - float(low) for n, high, low in zip(feature_names, maximums, minimums, strict=True)})


@functools.lru_cache(maxsize=2)
def _all(paths: tuple[str, ...] | None) -> tuple[Array, Array]:
    return _made_up() if paths is None else _read(paths[0])


def _read(path: str) -> tuple[Array, Array]:
    width = len(feature_names) + 1
    with source.reading(path), open(path, encoding="ascii") as file:
        values = np.array(file.read().split(), np.float64)  # numbers only: a record goes over two lines
        if not values.size or values.size % width:
            raise ValueError(f"it has {values.size} numbers, which is no multiple of {width}")
    table = values.reshape(-1, width)
    features, prices = table[:, :-1], table[:, -1:]
    features = (features - features.mean(0)) / np.ptp(features, 0)
    return features.astype(np.float32), prices.astype(np.float32)


def _made_up() -> tuple[Array, Array]:
    random = np.random.RandomState(1978)  # numpy keeps this stream as it is; the year of the real data
    features = random.standard_normal((_COUNT, len(feature_names)))
    weights = random.standard_normal((len(feature_names), 1))
    prices = features @ weights + _MEAN_PRICE + _NOISE * random.standard_normal((_COUNT, 1))
    return features.astype(np.float32), prices.astype(np.float32)
