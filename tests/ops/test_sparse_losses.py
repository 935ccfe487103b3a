"""Losses over many classes whose weights get sparse gradients: the same numbers as dense ones give."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.testing import run_op
from fluidnb.values import SelectedRows, VarType
from tests.ops.cases import values

L, O = fluid.layers, fluid.optimizer  # noqa: E741

IN, TRUE = values(3, 4), np.array([[5], [1], [6]])
NCE = {"num_total_classes": 9, "num_neg_samples": 3, "custom_neg_classes": [1, 4, 6]}
TABLE, CODES = np.array([[0, 2, -1], [0, 1, 3], [4, -1, -1]]), np.array([[1, 0, -1], [0, 1, 1], [0, -1, -1]])
OPS = {
    "nce": (
        {"Input": IN, "Label": TRUE, "Weight": values(9, 4, seed=1), "Bias": values(9, seed=2)}, NCE,
        "Weight", [1, 4, 5, 6],
    ),
    "hierarchical_sigmoid": (
        {"X": IN, "W": values(8, 4, seed=1), "Label": TRUE, "Bias": values(8, 1, seed=2)}, {"num_classes": 9},
        "W", [0, 1, 2, 4, 6],
    ),
    "hierarchical_sigmoid of a table": (
        {"X": IN, "W": values(8, 4, seed=1), "Label": TRUE, "PathTable": TABLE, "PathCode": CODES}, {"num_classes": 9},
        "W", [0, 1, 2, 3, 4],
    ),
}  # fmt: skip


def slopes(case, is_sparse):
    """Gradients of an operator's inputs, for a gradient of ones."""
    inputs, attrs, table, _ = OPS[case]
    op, attrs = case.split()[0], {**attrs, "is_sparse": is_sparse}
    forward = run_op(op, inputs, attrs)
    out = "Cost" if op == "nce" else "Out"
    given = {**inputs, **forward, f"{out}@GRAD": np.ones_like(forward[out])}
    wanted = [s + "@GRAD" for s in inputs if s in ("Input", "X", "Bias", table)]
    return run_op(f"{op}_grad", given, attrs, wanted), table + "@GRAD"


@pytest.mark.parametrize("case", OPS)
def test_a_sparse_gradient_has_the_rows_of_the_batch(case):
    sparse, table = slopes(case, True)
    dense, _ = slopes(case, False)
    assert isinstance(sparse[table], SelectedRows)
    assert sparse[table].rows() == OPS[case][3] and sparse[table].height() == len(dense[table])
    np.testing.assert_allclose(sparse[table].to_dense(), dense[table])
    for slot in set(dense) - {table}:
        np.testing.assert_array_equal(sparse[slot], dense[slot])


LAYERS = {
    "nce": lambda x, label, how: L.nce(
        x, label, 9, param_attr="w", bias_attr="b", num_neg_samples=3, sampler="log_uniform", seed=5, **how
    ),
    "hsigmoid": lambda x, label, how: L.hsigmoid(x, label, 9, param_attr="w", bias_attr="b", **how),
    "hsigmoid of a table": lambda x, label, how: L.hsigmoid(
        x, label, 9, param_attr="w", bias_attr="b", path_table=L.data("table", [3], dtype="int64"),
        path_code=L.data("codes", [3], dtype="int64"), is_custom=True, **how,
    ),
}  # fmt: skip
OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.1),
    "momentum": lambda: O.Momentum(0.1, 0.9),
    "adam": lambda: O.Adam(0.1),
    "adagrad": lambda: O.Adagrad(0.1),
}


def train(layer, optimizer, is_sparse):
    """The parameters after three steps, and the sparse gradients of the last."""
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        fluid.default_startup_program().random_seed = 3
        x, label = L.data("x", [4]), L.data("label", [1], dtype="int64")
        OPTIMIZERS[optimizer]().minimize(L.mean(LAYERS[layer](x, label, {"is_sparse": is_sparse})))
        block = fluid.default_main_program().global_block()
        kinds = [block.var(n + "@GRAD").type for n in "wb"]
        assert kinds == [VarType.SELECTED_ROWS if is_sparse else VarType.LOD_TENSOR, VarType.LOD_TENSOR]
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for step in range(3):
            tables = {"table": TABLE, "codes": CODES} if layer.endswith("table") else {}
            feed = {"x": IN.astype("f"), "label": (TRUE + step) % 8, **tables}
            gradient = exe.run(feed=feed, fetch_list=["w@GRAD"])[0]
        return [np.array(fluid.global_scope().find_var(n).get_tensor()) for n in "wb"], gradient


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_it_trains_as_with_a_dense_gradient(layer, optimizer):
    sparse, rows = train(layer, optimizer, True)
    dense, whole = train(layer, optimizer, False)
    assert 0 < len(rows.rows()) < 9
    np.testing.assert_allclose(rows.to_dense(), whole, 1e-5, 1e-6)
    for a, b in zip(sparse, dense, strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)
