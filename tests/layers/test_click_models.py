"""Layers of click models, and others that serve one kind of model: against numpy, and what is refused."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.op import RuleError
from fluidnb.runtime import Executor
from fluidnb.testing import run_op

L = fluid.layers
RNG = np.random.default_rng(3)
X = RNG.uniform(0, 3, (5, 4))
COUNTS = np.array([[2.0, 1.0], [9.0, 4.0]])


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def run(fetch, **feed):
    exe = Executor()
    exe.run(fluid.default_startup_program())
    return exe.run(feed=feed, fetch_list=fetch, return_numpy=False)


@pytest.mark.parametrize("keep", [True, False])
def test_counts_of_shows_and_clicks(keep):
    given = {"X": (X, [[2, 3]]), "CVM": COUNTS}
    shown = np.log(X[:, 0] + 1)
    want = np.column_stack([shown, np.log(X[:, 1] + 1) - shown, X[:, 2:]]) if keep else X[:, 2:]
    found = run_op("cvm", given, {"use_cvm": keep})["Y"]
    np.testing.assert_allclose(found.array, want, rtol=1e-12)
    assert found.lod() == [[0, 2, 5]]
    g = RNG.normal(size=want.shape)
    slope = run_op("cvm_grad", {**given, "Y@GRAD": g}, {"use_cvm": keep}, ["X@GRAD"])["X@GRAD"]
    np.testing.assert_array_equal(np.asarray(slope), np.column_stack([COUNTS[[0, 0, 1, 1, 1]], g[:, -2:]]))


def test_counts_flow_back_to_an_embedding():
    x, counts = L.data("x", [4], lod_level=1), L.data("counts", [2])
    x.stop_gradient = False
    [dx] = fluid.gradients(L.continuous_value_model(x, counts), x)
    fed = fluid.LoDTensor(X.astype("float32"), ((0, 2, 5),))
    [slope] = run([dx], x=fed, counts=COUNTS.astype("float32"))
    np.testing.assert_array_equal(np.asarray(slope)[:, :2], COUNTS[[0, 0, 1, 1, 1]])


def test_what_cvm_refuses():
    with pytest.raises(RuleError, match=r"must have the shape \[sequences, 2\]"):
        run_op("cvm", {"X": X, "CVM": X})
    with pytest.raises(RuleError, match="a row for each sequence"):
        run_op("cvm_grad", {"X": (X, [[5]]), "CVM": COUNTS, "Y@GRAD": X}, {"use_cvm": True}, ["X@GRAD"])


def test_columns_are_normalised_by_what_was_seen():
    x = L.data("x", [4])
    seen = {"batch_size": 10.0, "batch_sum": 20.0, "batch_square": 40.0}
    y = L.data_norm(x, name="seen", param_attr=seen, act="relu")
    [out] = run([y], x=X.astype("float32"))
    np.testing.assert_allclose(np.asarray(out), np.maximum((X - 2) * np.sqrt(10 / 40), 0), rtol=1e-5, atol=1e-6)
    with pytest.raises(OpValueError, match="no layout"):
        L.data_norm(x, data_layout="NC")


def test_a_weight_over_its_largest_singular_value():
    weight = L.create_parameter([3, 4, 2], "float32", name="w")
    [out, w] = run([L.spectral_norm(weight, dim=1, power_iters=60), weight])
    matrix = np.asarray(w).transpose(1, 0, 2).reshape(4, 6)
    np.testing.assert_allclose(np.asarray(out), np.asarray(w) / np.linalg.norm(matrix, 2), rtol=1e-4)
    trained = [p.name for p in fluid.default_main_program().global_block().all_parameters() if p.trainable]
    assert trained == ["w"]
    with pytest.raises(OpValueError, match="a weight of known sizes"):
        L.spectral_norm(weight, dim=3)


def test_pairs_of_several_classes():
    a, p = (RNG.normal(size=(6, 3)).astype("float32") for _ in range(2))
    labels = np.array([0, 1, 0, 2, 1, 1], "float32")
    shapes = {"a": [6, 3], "p": [6, 3], "labels": [6]}
    given = [L.data(name, shape, append_batch_size=False) for name, shape in shapes.items()]
    [loss] = run([L.npair_loss(*given, l2_reg=0.1)], a=a, p=p, labels=labels)
    same = (labels[:, None] == labels).astype(float)
    wanted = same / same.sum(1, keepdims=True)
    logits = a @ p.T
    entropy = -(wanted * (logits - np.log(np.exp(logits).sum(1, keepdims=True)))).sum(1)
    want = np.mean((wanted * entropy[:, None]).sum(0)) + 0.025 * ((a**2).sum(1).mean() + (p**2).sum(1).mean())
    assert np.asarray(loss).item() == pytest.approx(want, rel=1e-5)
    with pytest.raises(OpValueError, match="a batch of a known size"):
        L.npair_loss(*given[:2], L.data("more", [1]))


def largest(x, axis, indexes):
    """The places of the largest elements, chosen one after the other."""
    out = np.zeros_like(x)
    for image, target in zip(x, out, strict=True):
        for index in indexes:
            plane = np.take(image, index, axis - 1).copy()
            for _ in range(min(plane.shape)):
                i, j = np.unravel_index(plane.argmax(), plane.shape)
                plane[i], plane[:, j] = -np.inf, -np.inf
                np.moveaxis(target, axis - 1, 0)[:, i, j] = 1
    return out


@pytest.mark.parametrize(("axis", "indexes"), [(1, [0]), (2, [1, 3]), (3, [0, 2, 4])])
def test_where_similarities_are_largest(axis, indexes):
    x = RNG.normal(size=(2, 3, 4, 5))
    found = run_op("similarity_focus", {"X": x}, {"axis": axis, "indexes": indexes})["Out"]
    np.testing.assert_array_equal(found, largest(x, axis, indexes))


def test_what_similarity_focus_refuses():
    x = L.data("x", [3, 2, 2])
    with pytest.raises(OpTypeError, match="indexes of similarity_focus must be a list of ints"):
        L.similarity_focus(x, 1, 0)
    with pytest.raises(RuleError, match="must name slices"):
        L.similarity_focus(x, 1, [3])


def test_nodes_of_a_tree_need_three_dimensions():
    nodes, edges = L.data("nodes", [3]), L.data("edges", [9, 2], dtype="int32")
    with pytest.raises(OpValueError, match="nodes_vector of tree_conv must have three dimensions"):
        L.tree_conv(nodes, edges, 6)
    assert not fluid.default_main_program().all_parameters()
