"""UCI housing: the table of numbers, its normalisation and split, and what is wrong with other files."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.data.dataset import uci_housing
from fluidnb.errors import EnforceNotMet, OpValueError

TABLE = np.random.RandomState(0).uniform(0, 50, (10, 14)).round(3)


def written(table: np.ndarray) -> bytes:
    """A table as the true file has it: aligned columns, each record over two lines."""
    return "".join(
        " " + "".join(f"{v:8.3f}" for v in row[:11]) + "\n  " + "".join(f"{v:8.3f}" for v in row[11:]) + "\n"
        for row in table
    ).encode()


def test_the_true_file(serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(uci_housing, "MD5", "uci_housing/housing.data", written(TABLE))
    train, test = list(uci_housing.train()()), list(uci_housing.test()())
    assert (len(train), len(test)) == (8, 2)
    x, y = (np.stack(column) for column in zip(*train, *test, strict=True))
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((10, 13), (10, 1), np.float32, np.float32)
    assert (y == TABLE[:, 13:].astype("f4")).all()
    reference = (TABLE - TABLE.sum(0) / 10) / (TABLE.max(0) - TABLE.min(0))
    assert np.allclose(x, reference[:, :13], atol=1e-6)
    assert "synthetic" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (written(TABLE)[:-9], "it has 139 numbers, which is no multiple of 14"),
        (b"", "it has 0 numbers"),
        (b"<html>not found</html>", "could not convert string to float"),
        (b"\xff" * 14, "'ascii' codec"),
    ],
    ids=["cut", "empty", "page", "bytes"],
)
def test_another_file_is_named(serve, data: bytes, message: str) -> None:
    serve(uci_housing, "MD5", "uci_housing/housing.data", data)
    with pytest.raises(EnforceNotMet, match=rf"housing.data cannot be read: .*({message})"):
        uci_housing.train()


def test_feature_range() -> None:
    ranges = uci_housing.feature_range(TABLE.max(0)[:13], TABLE.min(0)[:13])
    assert list(ranges) == uci_housing.feature_names
    assert ranges["RM"] == TABLE[:, 5].max() - TABLE[:, 5].min()
    bars = repr(uci_housing.feature_range([4.0, 2.0] + [0.0] * 11, [0.0] * 13)).splitlines()
    assert bars[0] == "CRIM    " + "█" * 40 + " 4" and bars[1] == "ZN      " + "█" * 20 + " 2"
    assert bars[2] == "INDUS    0" and len(bars) == 13
    with pytest.raises(OpValueError, match="a maximum and a minimum of each feature"):
        uci_housing.feature_range([1.0] * 14, [0.0] * 14)
