"""Data sets: sizes, ranges, fixed splits, and that they can be learnt from."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from fluidnb.data import dataset, reader, seeding
from fluidnb.data.dataset import bundled
from fluidnb.extras import MissingPackage


def columns(read: reader.Reader) -> tuple[np.ndarray, np.ndarray]:
    """All features and all targets of a reader."""
    rows = list(read())
    return np.stack([x for x, _ in rows]), np.stack([y for _, y in rows])


@pytest.fixture(params=["digits", "diabetes", "uci_housing"])
def module(request: pytest.FixtureRequest) -> ModuleType:
    """Each data set."""
    if request.param != "uci_housing":
        pytest.importorskip("sklearn")
    return getattr(dataset, request.param)


def test_every_pass_and_every_seed_gives_the_same_disjoint_samples(module: ModuleType) -> None:
    read = module.train()
    seeding.seed(1)
    x, y = columns(read)
    seeding.seed(2)
    again, _ = columns(read)
    seeding.seed(None)
    tx, _ = columns(module.test())
    assert (x == again).all() and x.dtype == tx.dtype == np.float32
    assert not {row.tobytes() for row in x} & {row.tobytes() for row in tx}
    assert len(x) == len(y)


def test_digits() -> None:
    pytest.importorskip("sklearn")
    (x, y), (tx, ty) = columns(dataset.digits.train()), columns(dataset.digits.test())
    assert (x.shape, tx.shape) == ((1438, 64), (359, 64))
    assert x.min() == -1 and x.max() == 1
    assert set(y) == set(ty) == set(range(10)) and type(next(iter(dataset.digits.train()()))[1]) is int
    nearest = [y[((x - image) ** 2).sum(1).argmin()] for image in tx]
    assert np.mean(nearest == ty) > 0.95  # the pictures belong to their labels


def test_diabetes() -> None:
    pytest.importorskip("sklearn")
    (x, y), (tx, ty) = columns(dataset.diabetes.train()), columns(dataset.diabetes.test())
    assert (x.shape, y.shape, tx.shape, ty.shape) == ((354, 10), (354, 1), (88, 10), (88, 1))
    assert len(dataset.diabetes.feature_names) == 10
    assert np.allclose(x.mean(0), 0, atol=1e-6) and np.allclose(np.ptp(x, 0), 1, atol=1e-6)
    assert min(y.min(), ty.min()) == 25 and max(y.max(), ty.max()) == 346 and y.dtype == np.float32
    w, *_ = np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)
    explained = 1 - ((np.c_[tx, np.ones(len(tx))] @ w - ty) ** 2).mean() / ty.var()
    assert 0.3 < explained < 0.7  # the known difficulty of this data


def test_uci_housing_has_the_real_ones_shape_and_can_be_learnt() -> None:
    (x, y), (tx, ty) = columns(dataset.uci_housing.train()), columns(dataset.uci_housing.test())
    assert (x.shape, y.shape, tx.shape, ty.shape) == ((404, 13), (404, 1), (102, 13), (102, 1))
    w, b, losses = np.zeros((13, 1)), 0.0, []
    for _ in range(100):
        for k in range(0, 404, 20):
            error = x[k : k + 20] @ w + b - y[k : k + 20]
            losses.append((error**2).mean())
            w -= 0.01 * 2 * x[k : k + 20].T @ error / len(error)
            b -= 0.01 * 2 * error.mean()
    assert losses[-1] < 0.01 * losses[0] and losses[-1] < 0.05
    assert 0.005 < ((tx @ w + b - ty) ** 2).mean() < 0.02  # noise of standard deviation 0.1 stays


def test_uci_housing_says_once_that_it_is_synthetic() -> None:
    code = "from fluidnb.data.dataset import uci_housing as u; [list(r()) for r in (u.train(), u.train(), u.test())]"
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr.count("synthetic") == 1 and done.stdout == ""


@pytest.mark.parametrize("name", ["digits", "diabetes"])
def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingPackage, match=f"The data set {name} needs the package scikit-learn") as e:
        bundled.load(name)
    assert "pip install 'fluidnb[data]'" in str(e.value)
