"""Each ONNX node that is converted computes what onnx's reference computes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import helper

import fluidnb as fluid
from fluidnb.onnx.importer import convert, converts
from tests.onnx.nodes import CASES, Case, Constant


def model_of(case: Case) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model of a case, and its feeds."""
    names, feeds, constants, inputs = [], {}, [], []
    for i, value in enumerate(case.inputs):
        names.append("" if value is None else f"x{i}")
        if isinstance(value, Constant):
            constants.append(onnx.numpy_helper.from_array(np.asarray(value.value), f"x{i}"))
        elif value is not None:
            feeds[f"x{i}"] = np.asarray(value)
            sizes = [None if i == 0 and k in case.any_size else n for k, n in enumerate(np.shape(value))]
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
            inputs.append(helper.make_tensor_value_info(f"x{i}", kind, sizes))
    outs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outs, **case.attrs)
    graph = helper.make_graph([node], "case", inputs, [onnx.ValueInfoProto(name=n) for n in outs], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)]), feeds


def run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """The results of the program of a model."""
    done = convert(model)
    assert not done.unknown, done.unknown
    scope = fluid.Scope()
    for name, value in done.parameters.items():
        scope.var(name).get_tensor().set(value, fluid.CPUPlace())
    return list(fluid.Executor(fluid.CPUPlace()).run(done.program, feeds, done.fetches, scope=scope))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_a_node_computes_what_the_reference_computes(case: Case) -> None:
    model, feeds = model_of(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, of the reference
        wanted = [case.wanted] if case.wanted is not None else onnx.reference.ReferenceEvaluator(model).run(None, feeds)
    for got, want in zip(run(model, feeds), wanted, strict=True):
        want = np.asarray(want)
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def test_every_converter_has_a_case() -> None:
    rest = {"If", "Loop", "Upsample", "Scatter", "Swish", "SimplifiedLayerNormalization", "Hardmax", "BitwiseNot"}
    assert set(converts) - {case.op for case in CASES} == rest
