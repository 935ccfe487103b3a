"""The steps of an optimizer for all parameters are one launch, with the same numbers, where FLAGS_native says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.runtime import native_calls
from fluidnb.values.device_context import DeviceContext
from fluidnb_kernels.device.update_groups import together
from fluidnb_kernels.optimizer.launch import CUDA as UPDATES
from tests.device.test_groups import same

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9, use_nesterov=True),
    "adam": lambda: fluid.optimizer.Adam(0.1),
    "adamax": lambda: fluid.optimizer.Adamax(0.1),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "rmsprop": lambda: fluid.optimizer.RMSProp(0.1, momentum=0.5, centered=True),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1),
    "adadelta": lambda: fluid.optimizer.Adadelta(0.1),
    "decayed": lambda: fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L2Decay(0.01)),
}


def network(optimizer: Any, dtype: str = "float32") -> Any:
    """Parameters of several sizes, one of them odd."""

    def build() -> list[Any]:
        h = layers.data("x", [33], dtype=dtype)
        for width in (16, 7, 300):
            h = layers.fc(h, width, act="tanh")
        loss = layers.mean(layers.square(layers.fc(h, 1)))
        optimizer().minimize(loss)
        return [loss]

    return build


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_bits(name: str, dtype: str, cuda: fluid.CUDAPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    feeds = [{"x": rng.random((n, 33)).astype(dtype)} for n in (5, 5, 5, 4)]
    main = same(network(OPTIMIZERS[name], dtype), feeds, cuda, monkeypatch)
    updates = [call for call in native_calls(main) if "parameters" in call.text]
    assert sum(call.replaced for call in updates if "update_all" in call.text) == 8, [call.text for call in updates]
    if name == "adam":
        assert [call.text for call in updates if "advance_all" in call.text] and len(updates[-1].ops) == 8


# ---- what depends on each other stays apart


def arrays(place: fluid.CUDAPlace, *sizes: int) -> list[Any]:
    return [DeviceContext.get(place).from_host(np.arange(1.0, n + 1, dtype="float32")) for n in sizes]


def step(param: Any, grad: Any, rate: Any, out: Any = None) -> Any:
    """A launch of sgd."""
    out = param if out is None else out
    numbers = [np.float64(0)] * 5
    args = (param, grad, *[param] * 3, *[rate] * 3, *[out] * 4, *numbers, np.int64(param.size))
    return UPDATES["update<f::sgd, float, 1>"], ((1,), (64,), 0, *args)


def powers(one: Any, two: Any) -> Any:
    return UPDATES["advance<float>"], ((1,), (1,), 0, one, two, one, two, np.float64(0.9), np.float64(0.99))


@pytest.mark.parametrize(
    ("case", "left"),
    [
        ("apart", 1), ("one parameter twice", 2), ("written and read", 2), ("powers behind", 2), ("powers before", 3),
        ("alone", 1), ("a part of another", 3),
    ],
)  # fmt: skip
def test_what_meets_in_memory(case: str, left: int, cuda: fluid.CUDAPlace) -> None:
    p, q, g, h, rate, other = arrays(cuda, 40, 33, 40, 33, 1, 1)
    calls = {
        "apart": [step(p, g, rate), step(q, h, rate)],
        "one parameter twice": [step(p, g, rate), step(p, g, rate)],
        "written and read": [step(p, g, rate), step(q, p[:33], rate)],
        "powers behind": [step(p, g, rate), powers(rate, other), step(q, h, g[:1])],
        "powers before": [powers(rate, other), step(p, g, rate), step(q, h, rate)],
        "alone": [step(p, g, rate)],
        "a part of another": [step(p, g, rate), step(q, h, rate), step(p[8:16], h[:8], rate)],
    }[case]
    context = DeviceContext.get(cuda)
    found = together(calls, [str(k) for k in range(len(calls))], context.from_host)
    assert len(found.calls) == left == len(found.ops)
    before = [context.to_host(x).copy() for x in (p, q)]
    for function, args in calls:
        function(*args)
    wanted = [context.to_host(x).copy() for x in (p, q)]
    for x, old in zip((p, q), before, strict=True):
        context.fill(x, old)
    context.fill(rate, np.ones(1, "float32"))
    context.fill(other, np.ones(1, "float32"))
    for function, args in found.calls:
        function(*args)
    for x, old in zip((p, q), wanted, strict=True):
        np.testing.assert_array_equal(context.to_host(x), old)
