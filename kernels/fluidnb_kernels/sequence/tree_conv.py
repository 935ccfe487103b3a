"""tree_conv: continuous convolution over the nodes of trees."""

from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, default_grad, grad_op, op
from fluidnb_kernels.rules import checked


def shares(edges: Array, nodes: int, depth: int, dtype: Any) -> Array:
    """Shares [nodes, nodes, 3] of each node of a tree in the patch below each node: left, right and top."""
    ends = np.flatnonzero((edges == 0).any(1))
    edges = edges[: ends[0]] if len(ends) else edges
    if edges.size and not 1 <= edges.min() <= edges.max() <= nodes:
        raise EnforceNotMet(
            "An element of Input(EdgeSet) of tree_conv is no node.",
            expected=f"1 to {nodes}, or 0 behind the last edge", received=f"{edges.min()} to {edges.max()}",
        )  # fmt: skip
    out = np.zeros((nodes, nodes, 3), dtype)
    roots = np.arange(min(len(edges) + 1, nodes))
    paths = np.zeros((len(roots), nodes), dtype)  # how often a level of the patch has a node
    paths[roots, roots] = 1
    out[roots, roots, 2] = 1
    parents, children = edges[:, 0] - 1, edges[:, 1] - 1
    siblings = np.bincount(parents, minlength=nodes)[parents]
    order = np.argsort(parents, kind="stable")
    place = np.empty(len(parents), np.int64)
    place[order] = np.arange(len(parents)) - np.searchsorted(parents[order], parents[order])
    left = np.where(siblings == 1, 0.5, place / np.maximum(siblings - 1, 1))
    for level in range(1, min(depth, nodes)):  # a path through a tree has no more nodes
        top = (depth - level) / depth
        aside = (1 - top) * left
        eta = np.stack([aside, (1 - top) * (1 - aside), np.full(len(left), top)], 1).astype(dtype)
        along = paths[:, parents]
        np.add.at(out[: len(roots)].transpose(1, 0, 2), children, along.T[:, :, None] * eta[:, None])
        paths = np.zeros_like(paths)
        np.add.at(paths.T, children, along.T)
    return out


def convolve(x: Array, edges: Array, weight: Array, depth: int, out: Array) -> None:
    """Write the convolution of each node [batch, nodes, size, filters]."""
    for k in range(len(x)):
        patch = np.einsum("rnt,nf->rft", shares(edges[k], x.shape[1], depth, x.dtype), x[k])
        np.einsum("rft,ftok->rok", patch, weight, out=out[k])


def convolve_back(
    x: Array, edges: Array, weight: Array, g: Array, depth: int, dx: Array | None, dweight: Array | None
) -> None:
    """Write the gradients of `convolve`; either may be None."""
    if dweight is not None:
        dweight[...] = 0
    for k in range(len(x)):
        share = shares(edges[k], x.shape[1], depth, x.dtype)
        if dweight is not None:
            dweight += np.einsum("rft,rok->ftok", np.einsum("rnt,nf->rft", share, x[k]), g[k])
        if dx is not None:
            np.einsum("rnt,rft->nf", share, np.einsum("ftok,rok->rft", weight, g[k]), out=dx[k])


@op(
    "tree_conv",
    inputs={
        "NodesVector: float[batch, nodes, width]": "the features of the nodes",
        "EdgeSet: int32[batch, edges, 2]": "parent and child, counted from 1; a row with a 0 ends the tree",
        "Filter: float[width, 3, size, filters]": "weights for what counts as left, right and top",
    },
    outputs={"Out": "[batch, nodes, size, filters]"},
    attrs={"max_depth": Attr("int", 2, "levels of a patch, its root included", gt=0)},
    cost="NodesVector[:2] * Filter",
    infer=checked(
        lambda c: c.set("Out", (*c["NodesVector"].shape[:2], *c["Filter"].shape[2:]), c["NodesVector"].dtype)
    ),
    grad=default_grad("NodesVector", "EdgeSet", "Filter", "Out@GRAD", wrt=["NodesVector", "Filter"]),
    dtypes=("float32", "float64"),
    dtype_slot="NodesVector",
    host_only="follows the edges of short trees",
)
def tree_conv(b: Binder) -> None:
    """Out[r] = Σ over the nodes n below r of NodesVector[n] · (left · Filter[0] + right · Filter[1] + top · Filter[2]).

    A node ``d`` levels below the root counts as top with ``(max_depth - d) / max_depth``. What is left of 1 is shared
    between left and right by the place of the node among its siblings. Nodes behind the last edge give 0.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, edges = np.ones((1, 2, 1)), np.array([[[1, 2]]], np.int32)
        >>> run_op("tree_conv", {"NodesVector": x, "EdgeSet": edges, "Filter": np.ones((1, 3, 1, 1))})["Out"].ravel()
        array([2.125, 1.   ])

    Source: Mou et al., "Convolutional Neural Networks over Tree Structures" (AAAI 2016); Fluid's tree_conv_op.
    """
    b(convolve, b["NodesVector"], b["EdgeSet"], b["Filter"], b.attr("max_depth"), b["Out"])


@grad_op("tree_conv_grad", dtype_slot="NodesVector", host_only="follows the edges of short trees")
def tree_conv_grad(b: Binder) -> None:
    """Gradients of NodesVector and Filter: the sums over the same patches."""
    b(
        convolve_back, b["NodesVector"], b["EdgeSet"], b["Filter"], b["Out@GRAD"], b.attr("max_depth", 2),
        b["NodesVector@GRAD"], b["Filter@GRAD"],
    )  # fmt: skip
