"""Weights for the stored models, which come without: the same ones each time."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx

FOLDER = Path(__file__).parent / "models"
#: The names of the stored models.
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))


def filled(name: str) -> onnx.ModelProto:
    """A stored model with weights."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    for tensor in model.graph.initializer:
        if tensor.doc_string == "weights":
            rng, shape = np.random.default_rng(zlib.crc32(tensor.name.encode())), tuple(tensor.dims)
            if len(shape) == 1:  # scales, variances and biases
                value = rng.uniform(0.5, 1.5, shape)
            else:
                value = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            tensor.raw_data = value.astype("float32").tobytes()
            tensor.doc_string = ""
    return model


def feeds(name: str, model: onnx.ModelProto) -> dict[str, Any]:
    """Arrays for the inputs of a model: other sizes than those of the export where they may be any."""
    rng, sizes = np.random.default_rng(len(name)), {"batch": 3, "time": 9}
    found: dict[str, Any] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [d.dim_value or sizes.get(d.dim_param, 2) for d in kind.shape.dim]
        if kind.elem_type == onnx.TensorProto.INT64:
            found[value.name] = rng.integers(0, 2 if value.name == "in1" else 50, shape) if shape else np.array(4)
        else:
            found[value.name] = (rng.standard_normal(shape) * (5 if name.startswith("until") else 1)).astype("float32")
    return found
