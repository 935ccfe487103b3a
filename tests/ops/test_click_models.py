"""Operators of click models: counts in front of embeddings, and where similarities are largest."""

from __future__ import annotations

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.testing import OpTest, run_op
from fluidnb_kernels.sequence.hash import xxh64

RNG = np.random.default_rng(11)
COUNTED = RNG.uniform(0, 9, (5, 4))


class TestCvm(OpTest):
    # No numeric gradient: cvm_grad gives the counts themselves in the first two columns, as Fluid does.
    op_type = "cvm"
    inputs = {"X": (COUNTED, [[2, 3]]), "CVM": np.array([[2.0, 1.0], [9.0, 4.0]])}

    @pytest.mark.parametrize("keep", [True, False])
    def test_output(self, keep: bool) -> None:
        shown, clicked = np.log(COUNTED[:, :2] + 1).T
        kept = np.column_stack([shown, clicked - shown, COUNTED[:, 2:]])
        self.attrs, self.outputs = {"use_cvm": keep}, {"Y": (kept if keep else COUNTED[:, 2:], [[2, 3]])}
        self.check_output()


class TestSimilarityFocus(OpTest):
    op_type = "similarity_focus"
    inputs = {"X": np.array([[[[9.0, 8.0, 1.0], [7.0, 6.0, 2.0]], [[3.0, 5.0, 0.0], [4.0, 2.0, 8.0]]]])}
    attrs = {"axis": 1, "indexes": [0]}
    outputs = {"Out": np.array([[[[1, 0, 0], [0, 1, 0]]] * 2], "float64")}

    def test_one_slice(self) -> None:
        self.check_output()

    def test_two_slices(self) -> None:
        plane = [[1, 1, 0], [0, 1, 1]]
        self.attrs, self.outputs = {"axis": 1, "indexes": [0, 1]}, {"Out": np.array([[plane, plane]], "float64")}
        self.check_output()

    def test_slices_of_another_axis(self) -> None:
        plane = [[1, 0], [0, 1]]  # of X[0, :, :, 1]: 8 before 2
        self.attrs = {"axis": 3, "indexes": [1]}
        self.outputs = {"Out": np.repeat(np.array(plane, "float64")[None, :, :, None], 3, 3)}
        self.check_output()


class TestHash(OpTest):
    op_type = "hash"

    def test_output(self) -> None:
        # the numbers of Paddle's own test of the operator, which seeds 0 to 3 give for each id
        found = {0: [4372, 9456, 8204, 6695], 7: [9038, 7951, 5953, 8657], 9: [8473, 694, 5142, 2479]}
        self.inputs = {"X": (np.array([[k] for k in found], np.int32), [[2, 1]])}
        self.attrs = {"num_hash": 4, "mod_by": 10000}
        self.outputs = {"Out": (np.array(list(found.values()), np.int32)[:, :, None], [[2, 1]])}
        self.check_output()


@pytest.mark.parametrize(
    ("text", "seed", "want"),
    [
        (b"", 0, 0xEF46DB3751D8E999), (b"a", 0, 0xD24EC4F1A98C6E5B), (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)  # fmt: skip
def test_the_vectors_of_xxhash(text: bytes, seed: int, want: int) -> None:
    rows = np.frombuffer(text * 2, np.uint8).reshape(2, -1)
    assert xxh64(rows, np.array([seed + 5, seed], np.uint64))[:, 1].tolist() == [want, want]


def patch_sum(x: np.ndarray, edges: list[list[int]], weight: np.ndarray, depth: int) -> np.ndarray:
    """The convolution node by node, by recursion."""
    below: dict[int, list[int]] = {}
    for parent, child in edges:
        below.setdefault(parent, []).append(child)

    def visit(node: int, place: int, siblings: int, level: int) -> np.ndarray:
        top = (depth - level) / depth
        left = (1 - top) * (0.5 if siblings == 1 else (place - 1) / (siblings - 1))
        right = (1 - top) * (1 - left)
        total = np.einsum("f,ftok,t->ok", x[node - 1], weight, [left, right, top])
        if level + 1 < depth:
            children = below.get(node, [])
            total += sum(visit(child, i, len(children), level + 1) for i, child in enumerate(children, 1))
        return total

    out = np.zeros((len(x), *weight.shape[2:]))
    for node in range(1, len(edges) + 2):
        out[node - 1] = visit(node, 1, 1, 0)
    return out


TREES = [[[1, 2], [1, 3], [3, 4], [1, 5], [4, 6]], [[2, 1], [2, 3], [0, 0], [1, 4], [0, 0]]]


class TestTreeConv(OpTest):
    op_type = "tree_conv"

    def setUp(self) -> None:
        x, weight = RNG.uniform(-1, 1, (2, 6, 3)), RNG.uniform(-1, 1, (3, 3, 2, 4))
        self.inputs = {"NodesVector": x, "EdgeSet": np.array(TREES, np.int32), "Filter": weight}
        self.attrs = {"max_depth": 2}

    @pytest.mark.parametrize("depth", [1, 2, 4, 9])
    def test_output_and_grad(self, depth: int) -> None:
        x, _, weight = self.inputs.values()
        self.attrs = {"max_depth": depth}
        wants = [patch_sum(x[0], TREES[0], weight, depth), patch_sum(x[1], TREES[1][:2], weight, depth)]
        self.outputs = {"Out": np.stack(wants)}
        self.check_output()
        self.check_grad(["NodesVector", "Filter"], "Out")

    def test_levels_without_a_node_take_no_time(self) -> None:
        outputs = []
        for depth in (2**22, 2**31 - 1):  # found by random tests: the second went through all of them
            given = {"NodesVector": np.ones((1, 3, 1)), "EdgeSet": np.array([[[1, 2], [2, 3], [3, 1]]], np.int32),
                     "Filter": np.ones((1, 3, 1, 1))}  # fmt: skip
            outputs.append(run_op("tree_conv", given, {"max_depth": depth})["Out"])
        np.testing.assert_allclose(*outputs, rtol=1e-5)

    def test_an_edge_without_a_node(self) -> None:
        given = {"NodesVector": np.ones((1, 2, 1)), "EdgeSet": np.array([[[1, 3]]]), "Filter": np.ones((1, 3, 1, 1))}
        with pytest.raises(EnforceNotMet, match="no node"):
            run_op("tree_conv", given)
