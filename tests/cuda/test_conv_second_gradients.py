"""Gradients of convolutions' gradients on the emulator."""

from __future__ import annotations

from typing import Any

import pytest

from fluidnb_kernels import emulator
from tests.cuda.operands import numbers, twins

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

_ARRIVING = ("grad_input@GRAD", "grad_filter@GRAD")
#: operator, Input, Filter, the gradient of Output, attributes
CASES: dict[str, tuple[str, Any, Any, Any, dict[str, Any]]] = {
    "split": ("conv2d", (3, 4, 5, 4), (6, 2, 3, 3), (3, 6, 3, 4), {"groups": 2, "strides": [2, 1], "paddings": [1, 1]}),
    "channel_last": ("conv2d", (2, 4, 5, 3), (2, 3, 2, 2), (2, 3, 4, 2), {"data_format": "NHWC"}),
    "apart": ("depthwise_conv2d", (2, 3, 4, 4), (3, 1, 3, 3), (2, 3, 2, 2), {"groups": 3}),
    "volumes": ("conv3d", (1, 2, 3, 3, 3), (2, 2, 2, 2, 2), (1, 2, 2, 2, 2), {}),
    "transposed": ("conv2d_transpose", (2, 4, 2, 3), (4, 3, 2, 2), (2, 6, 3, 4), {"groups": 2}),
}


@pytest.mark.parametrize("given", [_ARRIVING, _ARRIVING[:1], _ARRIVING[1:]])
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_gradients(name: str, given: tuple[str, ...]) -> None:
    type, x, w, g, attrs = CASES[name]
    shapes = {"Input": x, "Filter": w, "grad_out": g, "grad_input@GRAD": x, "grad_filter@GRAD": w}
    inputs = {s: numbers(*shape, seed=i) for i, (s, shape) in enumerate(shapes.items()) if "@" not in s or s in given}
    twins(f"{type}_grad_grad", inputs, attrs, ["grad_out@GRAD", "Input@GRAD", "Filter@GRAD"])
