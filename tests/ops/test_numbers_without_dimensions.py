"""Operators along a dimension, of a number that has none: as in Paddle 2.6.2, which counts it as the axes 0 and -1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op

NUMBER, FIRST = np.array(0.75), np.array(0)
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    *(("cumsum", flags, {"Out": NUMBER}) for flags in ({}, {"reverse": True}, {"exclusive": True})),
    *(("argsort", {"descending": down}, {"Out": NUMBER, "Indices": FIRST}) for down in (False, True)),
    *((type, {"keepdims": keep}, {"Out": [0]}) for type in ("arg_max", "arg_min") for keep in (False, True)),
    *(("top_k_v2", {"largest": largest}, {"Out": NUMBER, "Indices": FIRST}) for largest in (False, True)),
    *(("logsumexp", {"keepdim": keep}, {"Out": [0.75]}) for keep in (False, True)),
]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(("type", "attrs", "outputs"), CASES, ids=str)
def test_one_number(type: str, attrs: dict[str, Any], outputs: dict[str, Any], axis: int) -> None:
    test = OpTest()
    test.op_type, test.inputs, test.outputs = type, {"X": NUMBER}, {k: np.array(v) for k, v in outputs.items()}
    test.attrs = {**attrs, "axis": [axis] if type == "logsumexp" else axis}
    test.check_output()
    if not type.startswith("arg_"):
        test.check_grad("X", "Out")


@pytest.mark.parametrize("type", ["cumsum", "argsort", "arg_max", "top_k_v2", "logsumexp"])
def test_another_axis_is_refused(type: str) -> None:
    with pytest.raises(RuleError, match="must name a dimension"):
        run_op(type, {"X": NUMBER}, {"axis": [1] if type == "logsumexp" else 1})


def test_top_k_takes_no_number() -> None:
    with pytest.raises(RuleError, match="top_k must name a dimension"):
        run_op("top_k", {"X": NUMBER})
