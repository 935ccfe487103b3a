"""merge_selected_rows and get_tensor_from_selected_rows."""

import numpy as np

from fluidnb.op import Array, Binder, Context, op
from fluidnb.values import SelectedRows
from fluidnb.values.copies import copy_between, on_host
from fluidnb_kernels.cuda import BLOCKS, THREADS, ctype
from fluidnb_kernels.rows.device_rows import CUDA, merge_on_device
from fluidnb_kernels.rows.values import as_x, dtype_of, fill, join, put_rows, shape_of, value_array


def _require_rows(c: Context) -> None:
    c.require(
        c.is_rows("X"), f"Input(X) of {c.definition.type} must be SelectedRows.", expected="SELECTED_ROWS",
        received="a tensor", hint="layers.embedding(is_sparse=True) gives such gradients.",
    )  # fmt: skip


def _merge_infer(c: Context) -> None:
    _require_rows(c)
    if not c.runtime:
        c.set("Out", c["X"].shape, c["X"].dtype)


@op(
    "merge_selected_rows",
    inputs={"X: rows": "SelectedRows"},
    outputs={"Out": "SelectedRows, each row once"},
    infer=_merge_infer,
    rows=as_x,
    cuda=True,
)
def merge_selected_rows(b: Binder) -> None:
    """Out = X with rows of the same number added up, in rising order.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensor, SelectedRows
        >>> run_op("merge_selected_rows", {"X": SelectedRows([4, 0, 4], 9, LoDTensor(np.ones((3, 2))))})["Out"]
        SelectedRows(rows=[0, 4], height=9, value=[2, 2] float64)

    Source: Fluid's merge_selected_rows_op.
    """
    source = b["X"]
    target = put_rows(b, "Out", shape_of(source), dtype_of(source))
    if b.on_cuda:
        b(merge_on_device, source, target)
    else:
        b(join, [source], target)


def _tensor_infer(c: Context) -> None:
    _require_rows(c)
    if c.runtime:
        values = value_array(c["X"])
        c.set("Out", values.shape, values.dtype)
    else:
        c.set("Out", (-1, *c["X"].shape[1:]), c["X"].dtype)


def take_values(source: SelectedRows, out: Array) -> None:
    """Write the values of SelectedRows."""
    np.copyto(out, value_array(source))


@op(
    "get_tensor_from_selected_rows",
    inputs={"X: rows": "SelectedRows"},
    outputs={"Out": "[rows held, …]: their values"},
    infer=_tensor_infer,
    guard=lambda b: len(b["X"].rows_),
    data_shape=True,
    cuda=True,
)
def get_tensor_from_selected_rows(b: Binder) -> None:
    """Out = the values of the rows that X holds.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensor, SelectedRows
        >>> run_op("get_tensor_from_selected_rows", {"X": SelectedRows([4], 9, LoDTensor(np.ones((1, 2))))})["Out"]
        array([[1., 1.]])

    Source: Fluid's get_tensor_from_selected_rows_op.
    """
    b(take_values_on_device if b.on_cuda else take_values, b["X"], b["Out"])


def take_gradient_on_device(target: SelectedRows, ids: Array, g: Array, out: Array, padding: int) -> None:
    """Fill SelectedRows with the gradient of each row that was looked up, but ``padding``; numbers come to the host."""
    if g.size:
        blocks = min(BLOCKS, -(-g.size // THREADS))
        numbers = np.int64(padding), np.int64(g.size // len(ids)), np.int64(g.size)
        CUDA[f"but_padding<{ctype(g.dtype)}, {ctype(ids.dtype)}>"]((blocks,), (THREADS,), 0, ids, g, out, *numbers)
    fill(target, on_host(ids).astype(np.int64), out)


def take_values_on_device(source: SelectedRows, out: Array) -> None:
    """Write the values of SelectedRows that are on a device."""
    copy_between("cuda", "cuda")(value_array(source), out)
