"""Small models as plain data, so that fluidnb and real Paddle can each build the same one; and data for them."""

from __future__ import annotations

from typing import Any

import numpy as np

#: What every description states; the named ones and the random ones change some of it.
BASE: dict[str, Any] = {
    "width": 13,
    "layers": [[1, None]],
    "loss": "square_error",
    "optimizer": "sgd",
    "rate": 0.01,
    "nesterov": False,
    "l2": 0.0,
    "clip": 0.0,
    "seed": 7,
}
CLASSIFIER = {"width": 64, "layers": [[32, "relu"], [16, "tanh"], [10, "softmax"]], "loss": "cross_entropy"}

#: The descriptions that every run tries.
NAMED: dict[str, dict[str, Any]] = {
    "fit_a_line": BASE,
    "momentum": BASE | {"optimizer": "momentum", "rate": 0.003},
    "nesterov_l2": BASE | {"optimizer": "momentum", "rate": 0.003, "nesterov": True, "l2": 0.1},
    "clipped": BASE | {"clip": 0.5},
    "digits_adam": BASE | CLASSIFIER | {"optimizer": "adam"},
    "digits_adam_l2_clipped": BASE | CLASSIFIER | {"optimizer": "adam", "l2": 0.01, "clip": 0.05},
}


def random_spec(rng: np.random.Generator) -> dict[str, Any]:
    """A description drawn at random: depth, sizes, activations, loss, optimizer, decay and clip.

    Args:
        rng: where the numbers come from.

    Returns:
        A description like those of `NAMED`.

    Example:
        >>> random_spec(np.random.default_rng(0)).keys() == BASE.keys()
        True
    """
    acts = [None, "relu", "tanh", "sigmoid"]
    hidden = [[int(rng.integers(1, 20)), acts[rng.integers(4)]] for _ in range(rng.integers(0, 4))]
    labels = bool(rng.integers(2))
    return {
        "width": int(rng.integers(1, 20)),
        "layers": [*hidden, [int(rng.integers(2, 9)), "softmax"] if labels else [1, None]],
        "loss": "cross_entropy" if labels else "square_error",
        "optimizer": str(rng.choice(["sgd", "momentum", "adam"])),
        "rate": 0.005,
        "nesterov": bool(rng.integers(2)),
        "l2": float(rng.choice([0.0, 0.05])),
        "clip": float(rng.choice([0.0, 0.3])),
        "seed": int(rng.integers(1, 1000)),
    }


def feeds(spec: dict[str, Any], steps: int = 20, batch: int = 8) -> dict[str, np.ndarray]:
    """Training data for a description.

    Args:
        spec: the description.
        steps: how many batches.
        batch: rows in a batch; every third batch has fewer.

    Returns:
        Arrays named "step/x", float32 [rows, width], and "step/y", int64 or float32 [rows, 1].

    Example:
        >>> {name: array.shape for name, array in feeds(BASE, steps=1).items()}
        {'0/x': (8, 13), '0/y': (8, 1)}
    """
    rng = np.random.default_rng(spec["seed"])
    out = {}
    for step in range(steps):
        rows = batch - 3 if step % 3 == 2 else batch
        out[f"{step}/x"] = rng.standard_normal((rows, spec["width"]), np.float32)
        if spec["loss"] == "cross_entropy":
            out[f"{step}/y"] = rng.integers(0, spec["layers"][-1][0], (rows, 1))
        else:
            out[f"{step}/y"] = rng.standard_normal((rows, 1), np.float32)
    return out
