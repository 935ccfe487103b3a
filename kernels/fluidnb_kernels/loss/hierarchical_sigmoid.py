"""hierarchical_sigmoid: a class as a path through a binary tree."""

from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, default_grad, grad_op, op
from fluidnb.values import SelectedRows
from fluidnb_kernels.cuda import ctype, each, each_line, of_dtype, wide_dtype
from fluidnb_kernels.emit import FLOATS
from fluidnb_kernels.loss.sampled_products import CUDA, dots, dots_grad, slopes_of, sparse_rows
from fluidnb_kernels.rows.values import sparse_slopes, spread
from fluidnb_kernels.rules import agree, check_classes, fits, whole_numbers
from fluidnb_kernels.tensor.strided_copy import move

_FAR = 40.0  # logits are clipped to -40 … 40


def _infer(c: Context) -> None:
    x, w, label = c["X"], c["W"], c["Label"]
    whole_numbers(c, "Label")
    c.check_inputs("X", "W")
    c.require(
        agree(label.shape, (x.shape[0], 1)) or agree(label.shape, x.shape[:1]),
        "Label of hierarchical_sigmoid has one class for each row of X.",
        expected=[x.shape[0], 1], received=list(label.shape), late=True,
    )  # fmt: skip
    c.require(
        c.has("PathTable") == c.has("PathCode"), "hierarchical_sigmoid needs both PathTable and PathCode, or neither.",
        expected="both or none", received="one",
    )  # fmt: skip
    if c.has("PathTable"):
        table = c["PathTable"].shape
        fits(c, "PathCode", table, "PathTable and PathCode of hierarchical_sigmoid have the same shape.")
        width = table[1]
    else:
        c.require(
            w.shape[0] >= c.attr("num_classes") - 1 or w.shape[0] < 0, "W of hierarchical_sigmoid has too few rows.",
            expected=f"{c.attr('num_classes') - 1}, one less than classes", received=w.shape[0],
        )  # fmt: skip
        width = (c.attr("num_classes") - 1).bit_length()
    nodes = w.shape[0] if c.has("PathTable") else c.attr("num_classes") - 1
    if c.has("Bias"):
        c.require(
            c["Bias"].size >= nodes or c["Bias"].size < 0, "Bias of hierarchical_sigmoid has a number for each node.",
            expected=[nodes, 1], received=list(c["Bias"].shape),
        )  # fmt: skip
    c.set("Out", (x.shape[0], 1), x.dtype)
    c.set("PreOut", (x.shape[0], width), x.dtype)
    c.set("W_Out", w.shape, w.dtype)


def paths(label: Array, classes: int, width: int) -> tuple[Array, Array]:
    """The path to each class in Huffman's tree of equal frequencies: nodes (-1 after its end) and decisions."""
    check_classes(label, classes)
    code = (label + classes)[:, None]
    bits = np.arange(width)
    length = np.frexp(code.astype(np.float64))[1] - 1
    ended = bits >= length
    return np.where(ended, -1, (code >> (bits + 1)) - 1), np.where(ended, 0, (code >> bits) & 1)


def _tree(b: Binder) -> tuple[Any, ...]:
    """The paths in the tree: labels, or custom tables."""
    if b.has("PathTable"):
        return b["PathTable"], b["PathCode"], 0
    return b["Label"].reshape(-1), None, b.attr("num_classes")


def _nodes(tree: tuple[Any, ...], width: int) -> tuple[Array, Array]:
    first, codes, classes = tree
    return paths(first, classes, width) if codes is None else (first, np.where(first < 0, 0, codes))


def path_costs(x: Array, w: Array, bias: Array | None, tree: tuple[Any, ...], pre: Array, out: Array) -> None:
    """Write the cost of each row's path, and log(1 + exp(logit)) at each node: log 2 where it has ended.

    ``tree``: labels, None and the number of classes; or nodes, decisions and 0.
    """
    nodes, bits = _nodes(tree, pre.shape[1])
    on = nodes >= 0
    logits = np.einsum("nd,nkd->nk", x, w[np.where(on, nodes, 0)])
    if bias is not None:
        logits = logits + bias.reshape(-1)[np.where(on, nodes, 0)]
    logits = np.clip(np.where(on, logits, 0), -_FAR, _FAR)
    pre[...] = np.log1p(np.exp(logits))
    out[:, 0] = pre.sum(1) - (bits * logits).sum(1)


@op(
    "hierarchical_sigmoid",
    inputs={
        "X: float[N, D]": "", "W: float[num_classes - 1, D]": "a vector for each inner node of the tree",
        "Label: int64[N, 1] | int64[N]": "classes", "PathTable?: int64[N, L]": "nodes on the path, -1 at its end",
        "PathCode?: int64[N, L]": "0 or 1 at each node", "Bias?: float": "a number for each node",
    },
    outputs={
        "Out": "[N, 1]: the cost of each row", "PreOut~": "[N, L]: log(1 + exp(logit)) at each node",
        "W_Out~?": "W itself",
    },
    attrs={
        "num_classes": Attr("int", 2, "how many classes there are"),
        "trainer_id": Attr("int", 0, "accepted, without effect"),
        "height_sections": Attr("longs", [], "accepted, without effect"),
        "epmap": Attr("strings", [], "accepted, without effect"),
        "table_names": Attr("strings", [], "accepted, without effect"),
        "is_sparse": Attr("bool", False, "whether the gradient of W is SelectedRows"),
    },
    check=lambda a: None if a["num_classes"] >= 2 else "num_classes should be at least 2.",
    cost="PreOut * X[1:] + 3 * PreOut",
    infer=_infer,
    grad=default_grad("X", "W", "Label", "PathTable", "PathCode", "Bias", "PreOut", "Out@GRAD", wrt=["X", "W", "Bias"]),
    dtypes=FLOATS,
    dtype_slot="X", cuda=FLOATS,
)  # fmt: skip
def hierarchical_sigmoid(b: Binder) -> None:
    """Out = the sum over the nodes on the path to Label of log(1 + exp(z)) - bit · z, z = W[node] · x + Bias[node].

    As in Fluid, each step by which a path is shorter than the longest adds log 2.

    Example:
        >>> from fluidnb.testing import run_op
        >>> tree = {"X": np.ones((1, 2)), "W": np.zeros((3, 2)), "Label": [[1]]}
        >>> run_op("hierarchical_sigmoid", tree, {"num_classes": 4})["Out"].round(3)
        array([[1.386]])

    Source: Morin and Bengio, "Hierarchical Probabilistic Neural Network Language Model" (2005); Fluid's
    hierarchical_sigmoid_op.
    """
    if b.on_cuda:  # paths, products with their nodes, and costs; NaN where a label is no class
        x, nodes_and_bits = b["X"], _picks(b)
        z = dots(b, x, b["W"], b["Bias"], nodes_and_bits[0])
        pre = b["PreOut"] if b.wants("PreOut") else b.tmp(z.shape, x.dtype)
        each_line(b, CUDA, f"path_cost<{ctype(x.dtype)}>", *z.shape, 1, z, *nodes_and_bits, pre, b["Out"])
        if b.wants("W_Out"):
            move(b, b["W_Out"], b["W"])
        return
    pre = b["PreOut"] if b.wants("PreOut") else b.tmp(_pre_shape(b), b["X"].dtype)
    b(path_costs, b["X"], b["W"], b["Bias"], _tree(b), pre, b["Out"])
    if b.wants("W_Out"):
        b(np.copyto, b["W_Out"], b["W"])


def _pre_shape(b: Binder) -> tuple[int, int]:
    table = b["PathTable"]
    return len(b["X"]), (b.attr("num_classes") - 1).bit_length() if table is None else table.shape[1]


def path_costs_grad(
    x: Array, w: Array, tree: tuple[Any, ...], pre: Array, grad: Array, dx: Array | None,
    dw: Array | SelectedRows | None, dbias: Array | None,
) -> None:  # fmt: skip
    """Write the gradients of `path_costs`, that of ``w`` whole or in rows; None without a consumer."""
    nodes, bits = _nodes(tree, pre.shape[1])
    on = nodes >= 0
    slope = (np.where(on, 1 - np.exp(-pre) - bits, 0) * grad).astype(x.dtype, copy=False)
    if dx is not None:
        np.einsum("nk,nkd->nd", slope, w[np.where(on, nodes, 0)], out=dx)
    if dw is not None:
        spread(dw, nodes[on], (slope[:, :, None] * x[:, None, :])[on])
    if dbias is not None:
        spread(dbias.reshape(-1), nodes[on], slope[on])


@grad_op("hierarchical_sigmoid_grad", infer=sparse_slopes("W"), dtype_slot="X", rows=sparse_rows("W"), cuda=FLOATS)
def hierarchical_sigmoid_grad(b: Binder) -> None:
    """At each node dz = dOut · (s(z) - bit); dX = the sum of dz · W[node]; dW[node] += dz · X; dBias[node] += dz.

    With is_sparse, dW is SelectedRows with a row for each node on the paths of the batch.
    """
    if not b.on_cuda:
        return b(path_costs_grad, b["X"], b["W"], _tree(b), b["PreOut"], b["Out@GRAD"], *slopes_of(b, "X", "W", "Bias"))
    x, (nodes, bits) = b["X"], _picks(b)
    slopes, many = b.tmp(nodes.shape, wide_dtype(x.dtype)), np.int64(nodes.shape[1])
    operands = b["PreOut"], nodes, bits, b["Out@GRAD"], slopes, many
    each(b, CUDA, f"path_slopes<{ctype(x.dtype)}>", nodes.size, *operands)
    return dots_grad(b, slopes, nodes, (x, b["W"]), slopes_of(b, "X", "W", "Bias"))


def _picks(b: Binder) -> tuple[Array, Array]:
    """Emit the nodes and the decisions on each row's path, int64."""
    if b.has("PathTable"):
        return of_dtype(b, b["PathTable"], np.int64), of_dtype(b, b["PathCode"], np.int64)
    shape, labels = _pre_shape(b), of_dtype(b, b["Label"], np.int64)
    nodes, bits = b.tmp(shape, np.int64), b.tmp(shape, np.int64)
    each(b, CUDA, "class_paths", nodes.size, labels, nodes, bits, np.int64(b.attr("num_classes")), np.int64(shape[1]))
    return nodes, bits
