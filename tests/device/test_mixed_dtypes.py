"""Operands of other dtypes than the rest, as programs from files may have them: a device computes what the CPU does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid


def floats(*shape: int) -> Any:
    return np.random.RandomState(1).rand(*shape)


def small(*shape: int) -> Any:
    return np.random.RandomState(2).randint(-3, 4, shape).astype("int8")


def texts(array: Any) -> Any:
    return fluid.create_lod_tensor(array, [[1, len(array) - 1]], fluid.CPUPlace())


CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "mul": ({"X": floats(2, 3), "Y": small(3, 4)}, ["Out"]),
    "matmul": ({"X": floats(2, 3), "Y": floats(3, 4).astype("float32")}, ["Out"]),
    "matmul_grad": ({"X": floats(2, 3), "Y": small(3, 4), "Out@GRAD": floats(2, 4)}, ["X@GRAD"]),
    "matmul_v2_grad": ({"X": floats(2, 3), "Y": small(3, 4), "Out@GRAD": floats(2, 4)}, ["X@GRAD"]),
    "bmm_grad": ({"X": floats(2, 2, 3), "Y": small(2, 3, 4), "Out@GRAD": floats(2, 2, 4)}, ["X@GRAD"]),
    "fsp": ({"X": floats(2, 3, 3, 3), "Y": small(2, 2, 3, 3)}, ["Out"]),
    "fsp_grad": ({"X": floats(2, 3, 3, 3), "Y": small(2, 2, 3, 3), "Out@GRAD": floats(2, 3, 2)}, ["X@GRAD"]),
    "sequence_concat": ({"X": [texts(floats(3, 2)), texts(small(4, 2))]}, ["Out"]),
}


def results(kind: str, place: Any) -> list[Any]:
    inputs, outputs = CASES[kind]
    with fluid.fresh():
        block, feed, ins = fluid.default_main_program().global_block(), dict[str, Any](), dict[str, Any]()
        for slot, given in inputs.items():
            ins[slot] = []
            for i, value in enumerate(given if isinstance(given, list) else [given]):
                name, array = f"{slot.replace('@', '_')}_{i}", np.array(value)
                lod = 0 if isinstance(value, np.ndarray) else 1
                ins[slot].append(
                    fluid.layers.data(name, list(array.shape), False, str(array.dtype), lod)
                )
                feed[name] = value
        outs = {slot: [block.create_var(name=slot.replace("@", "_"))] for slot in outputs}
        block.append_op(kind, ins, outs)
        return [np.array(x) for x in fluid.Executor(place).run(
            feed=feed, fetch_list=[v for row in outs.values() for v in row], return_numpy=False
        )]  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
def test_as_on_the_cpu(kind: str, cuda: fluid.CUDAPlace) -> None:
    for here, there in zip(results(kind, fluid.CPUPlace()), results(kind, cuda), strict=True):
        assert here.dtype == there.dtype
        np.testing.assert_allclose(there, here, rtol=1e-6, atol=1e-9)
