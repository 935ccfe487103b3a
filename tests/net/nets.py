"""Networks and scopes that several tests use."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.net import NN, NetDesc, Scope, State, op_def, var_def

CPU = fluid.CPUPlace()


def put(scope: Any, **values: Any) -> Any:
    """Give variables of a scope their values: floats as float32, integers as int64."""
    for name, value in values.items():
        array = np.asarray(value)
        array = array.astype("float32" if array.dtype.kind == "f" else "int64")
        scope.var(name).get_tensor().set(array, CPU)
    return scope


def held(scope: Any, name: str) -> np.ndarray:
    """The values of a scope."""
    variable = scope.find_var(name)
    assert variable is not None, name
    return np.array(variable.get_tensor())


def regression() -> NetDesc:
    """(x·w - y)² in the mean; x [-1, 2], w [2, 1] from ones."""
    return NetDesc(
        vars=[var_def("x", [-1, 2]), var_def("y", [-1, 1]), var_def("w", [2, 1], parameter=True)],
        init_ops=[op_def("fill_constant", {}, {"Out": "w"}, {"shape": [2, 1], "dtype": 5, "value": 1.0})],
        ops=[
            op_def("mul", {"X": "x", "Y": "w"}, {"Out": "p"}),
            op_def("elementwise_sub", {"X": "p", "Y": "y"}, {"Out": "d"}),
            op_def("square", {"X": "d"}, {"Out": "s"}),
            op_def("mean", {"X": "s"}, {"Out": "cost"}),
        ],
    )


def step_net(model_type: int = NN, boot: str = "boot") -> NetDesc:
    """h = sigmoid(W·x + U·h_before); the step net of the design documents' RNN, with vectors of width 1."""
    return NetDesc(
        model_type=model_type, inlinks=["x"], outlinks=["act", "hidden_out"],
        states=[State(name="act", previous="previous_state_act", boot=boot)],
        vars=[
            var_def("x", [1, 1]), var_def("previous_state_act", [1, 1]),
            var_def("W", [1, 1], parameter=True), var_def("U", [1, 1], parameter=True),
        ],
        init_ops=[
            op_def("fill_constant", {}, {"Out": name}, {"shape": [1, 1], "dtype": 5, "value": value})
            for name, value in (("W", 0.314), ("U", 0.375))
        ],
        ops=[
            op_def("mul", {"X": "x", "Y": "W"}, {"Out": "fc_out"}),
            op_def("mul", {"X": "previous_state_act", "Y": "U"}, {"Out": "hidden_out"}),
            op_def("elementwise_add", {"X": "fc_out", "Y": "hidden_out"}, {"Out": "sum"}),
            op_def("sigmoid", {"X": "sum"}, {"Out": "act"}),
        ],
    )  # fmt: skip


def tree_net() -> NetDesc:
    """h = tanh(x·w + u·sum of the children's h), rows of width 2, u [2, 2]."""
    from fluidnb.net import Recursive

    return NetDesc(
        model_type=Recursive, inlinks=["x"], outlinks=["h"], parents="parents",
        states=[State(name="h", previous="children", boot="leaf")],
        vars=[
            var_def("x", [2]), var_def("children", [-1, 2]), var_def("w", [2], parameter=True),
            var_def("u", [2, 2], parameter=True),
        ],
        ops=[
            op_def("reduce_sum", {"X": "children"}, {"Out": "below"}, {"dim": [0], "keep_dim": True}),
            op_def("mul", {"X": "below", "Y": "u"}, {"Out": "mixed"}),
            op_def("reshape", {"X": "mixed"}, {"Out": "flat"}, {"shape": [2]}),
            op_def("elementwise_mul", {"X": "x", "Y": "w"}, {"Out": "here"}),
            op_def("elementwise_add", {"X": "here", "Y": "flat"}, {"Out": "sum"}),
            op_def("tanh", {"X": "sum"}, {"Out": "h"}),
        ],
    )  # fmt: skip


def scope() -> Scope:
    """An empty scope on the CPU."""
    return Scope(CPU)
