"""Random networks of convolutions, normalisations and activations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb import layers


def network(seed: int) -> tuple[list[Any], dict[str, np.ndarray]]:
    """A random network: the variables to fetch, and the feed {"x": float32 [n, c, rows, columns]}."""
    draw = random.Random(seed)
    channels, height, width = draw.choice([2, 3, 5, 8]), draw.randint(4, 24), draw.randint(4, 40)
    y: Any = layers.data("x", [channels, height, width])
    trains, seen = draw.random() < 0.5, list[Any]()
    for _ in range(draw.randint(2, 7)):
        kind, c = draw.random(), y.shape[1]
        if kind < 0.45 and c > 1:
            window, stride = draw.choice([1, 2, 3, 3, 3, 5]), draw.choice([1, 1, 2, 3])
            dilation, padding = draw.choice([1, 1, 2]), draw.randint(0, 3)
            if min(y.shape[2:]) + 2 * padding < (window - 1) * dilation + 1:
                continue
            y = layers.conv2d(
                y, c, window, stride=stride, padding=padding, dilation=dilation, groups=c,
                bias_attr=draw.choice([False, None]), act=draw.choice([None, "relu", "tanh"]),
            )  # fmt: skip
        elif kind < 0.6:
            y = layers.conv2d(y, draw.choice([c, 4]), 1, act=draw.choice([None, "relu"]), bias_attr=False)
        elif kind < 0.8:
            test = not trains or draw.random() < 0.3
            y = layers.batch_norm(y, is_test=test, act=draw.choice([None, "relu", "relu6"]))
        elif kind < 0.9:
            y = getattr(layers, draw.choice(["relu6", "sigmoid", "leaky_relu", "swish"]))(y)
        elif min(y.shape[2:]) > 2:
            y = layers.pool2d(y, 2, draw.choice(["max", "avg"]), 2, ceil_mode=True)
        for other in seen:
            if other.shape == y.shape and draw.random() < 0.4:
                y = layers.elementwise_add(y, other)
                break
        seen.append(y)
    fetches = [y]
    if trains:
        loss = layers.mean(layers.square(y))
        fetches = [loss, *(gradient for _, gradient in fluid.append_backward(loss))]
    if draw.random() < 0.3 and seen:
        fetches.append(draw.choice(seen))
    shape = draw.choice([1, 1, 2, 8, 9]), channels, height, width
    return fetches, {"x": np.random.default_rng(seed).normal(size=shape).astype("float32")}
