"""lookup_table: rows of a table by their numbers, with a dense or a sparse gradient."""

import math

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, Cost, default_grad, grad_op, op
from fluidnb.op.c_code import Constant, c_code
from fluidnb.values import SelectedRows
from fluidnb_kernels.emit import FLOATS, outside, reading, writing, written, zeros
from fluidnb_kernels.rows.operators import take_gradient_on_device
from fluidnb_kernels.rows.values import dtype_of, fill, places_of, put_rows, shape_of, sum_rows, value_array
from fluidnb_kernels.tensor import row_indexing
from fluidnb_kernels.tensor.strided_copy import fill as fill_all

#: The padding_idx of tables without a row for padding.
NO_PADDING = -1


def check_ids(ids: Array, height: int, strange: Array) -> None:
    """Refuse numbers that are no row of the table, which ``strange`` marks."""
    if np.count_nonzero(strange):
        place = int(np.flatnonzero(strange)[0])
        raise EnforceNotMet(
            f"An id of lookup_table is outside the table: {ids[place]} at place {place}.",
            expected=f"0 to {height - 1}, the rows of W", received=int(ids[place]),
            hint="the size of layers.embedding is [number of words, width]; ids start at 0.",
        )  # fmt: skip


def blank(rows: Array, ids: Array, padding: int) -> None:
    """Make the rows of one number zero."""
    rows[ids == padding] = 0


def take_held(table: SelectedRows, ids: Array, padding: int, out: Array) -> None:
    """Write rows of a table that is SelectedRows."""
    counts = np.ones(len(ids), bool) if padding == NO_PADDING else ids != padding
    out[~counts] = 0
    out[counts] = value_array(table)[places_of(table.rows_, ids[counts])]


def take_gradient(target: SelectedRows, ids: Array, g: Array, padding: int) -> None:
    """Fill SelectedRows with the gradient of each row that was looked up."""
    fill(target, ids.astype(np.int64), g.copy())
    if padding != NO_PADDING:
        blank(value_array(target), ids, padding)


def spread_gradient(total: Array, ids: Array, g: Array, padding: int) -> None:
    """Write the gradient of each row that was looked up to a dense one of zeros."""
    sum_rows(total, ids, g)
    if padding != NO_PADDING:
        total[padding] = 0


def _cost(c: Context) -> Cost:
    """Nothing is computed; only the rows that are looked up are read."""
    ids, out = c["Ids"], c["Out"]
    return Cost(0, read=math.prod(ids.shape) * ids.dtype.itemsize + math.prod(out.shape) * out.dtype.itemsize)


def _infer(c: Context) -> None:
    w, ids, name = c["W"], c["Ids"], c.definition.type
    c.check_inputs()
    table, shape = shape_of(w), ids.shape
    if name == "lookup_table":
        c.require(
            ids.ndim >= 2 and ids.shape[-1] in (1, -1), "The last dimension of Input(Ids) of lookup_table must be 1.",
            expected="[…, 1]", received=list(ids.shape), hint='layers.data("ids", [1], dtype="int64") has it.',
        )  # fmt: skip
        shape = ids.shape[:-1]
    padding, height = c.attr("padding_idx"), table[0]
    c.require(
        padding == NO_PADDING or 0 <= padding and (height < 0 or padding < height),
        f"Attr(padding_idx) of {name} must be a row of the table.",
        expected=f"0 to {height - 1}, or {NO_PADDING} for none", received=padding,
    )  # fmt: skip
    c.set("Out", (*shape, table[1]), dtype_of(w), c.lod("Ids"))


_ATTRS = {
    "is_sparse": Attr("bool", False, "whether the gradient is SelectedRows"),
    "padding_idx": Attr("long", NO_PADDING, "number of the row that reads as zeros and never changes; -1 for none"),
    "is_distributed": Attr("bool", False, "ignored (compatibility): whether the table is on parameter servers"),
    "remote_prefetch": Attr("bool", False, "ignored (compatibility)"),
    "slot": Attr("int", 0, "ignored (compatibility)"),
    "trainer_id": Attr("int", 0, "ignored (compatibility)"),
    "height_sections": Attr("longs", [], "rows of each part of a distributed table"),
    "epmap": Attr("strings", [], "where the parts are"),
    "table_names": Attr("strings", [], "what they are called"),
}

#: Those that only the older of the two has.
_OLD = {
    "entry": Attr("string", "none", "ignored (compatibility)"),
    "entry_config": Attr("string", "", "ignored (compatibility)"),
    "table_class": Attr("string", "none", "ignored (compatibility)"),
    "is_test": Attr("bool", False, "ignored (compatibility)"),
    "grad_inplace": Attr("bool", False, "ignored (compatibility)"),
}


def _padding(b: Binder) -> int:
    """The number that CUDA kernels take for padding."""
    padding: int = b.attr("padding_idx", NO_PADDING)
    return row_indexing.NONE if padding == NO_PADDING else padding


def _define(type: str, ids: str, example: str) -> None:
    @op(
        type,
        inputs={
            "W: float[height, width] | rows": "the table, or SelectedRows with some of its rows",
            "Ids: int64": f"{ids}: which rows",
        },
        outputs={"Out": "the rows […, width]"},
        attrs=_ATTRS | (_OLD if type == "lookup_table" else {}),
        cost=_cost,
        infer=_infer,
        grad=default_grad("W", "Ids", "Out@GRAD", wrt=["W"]),
        dtypes=FLOATS,
        dtype_slot="W",
        cuda=FLOATS,
        doc=f"""Out[i] = W[Ids[i]], and zeros where Ids[i] is padding_idx; Out inherits the LoD of Ids.

    Example:
        >>> from fluidnb.testing import run_op
        >>> w = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> run_op("{type}", {{"W": w, "Ids": np.array({example})}})["Out"]
        array([[3., 4.],
               [1., 2.]])

    Source: {"Fluid" if type == "lookup_table" else "Paddle"}'s {type}_op.
    """,
    )
    def lookup(b: Binder) -> None:
        if b.on_cuda:
            w = b["W"]
            b.require(
                not b.is_rows("W"), f"{type} on a GPU takes a W that is a tensor.", expected="a tensor",
                received="SelectedRows", hint="run it on fluid.CPUPlace(), as Fluid does.",
            )  # fmt: skip
            return row_indexing.take(b, w, b["Ids"], b["Out"], (1, *w.shape), padding=_padding(b))
        w, out = b["W"], b["Out"]
        n, padding = b["Ids"].size, b.attr("padding_idx")
        ids, rows = reading(b, b["Ids"], (n,)), writing(b, out, (n, out.shape[-1]))
        if b.is_rows("W"):
            b(take_held, w, ids, padding, rows)
            return written(b, out, rows)
        b(check_ids, ids, len(w), outside(b, ids, len(w)))
        b(np.ndarray.take, w, ids, 0, rows, "clip")
        if padding != NO_PADDING:
            b(blank, rows, ids, padding)
        return written(b, out, rows)

    @grad_op(type + "_grad", infer=None, dtype_slot="W", rows=lambda c: bool(c.attr("is_sparse", False)), cuda=FLOATS)
    def lookup_grad(b: Binder) -> None:
        """dW = the sum of dOut for each row of W; as SelectedRows, one for each id, with is_sparse."""
        if not b.wants("W@GRAD"):
            return
        if b.on_cuda:
            w, ids, g = b["W"], b["Ids"], b["Out@GRAD"]
            if b.attr("is_sparse", False):
                shape = shape_of(w)
                rows, g = put_rows(b, "W@GRAD", shape, dtype_of(w)), g.reshape(-1, shape[1])
                values = b.memory.alloc_on("cuda", g.shape, g.dtype)  # the rows hold it longer than a workspace lives
                return b(take_gradient_on_device, rows, ids.reshape(-1), g, values, _padding(b))
            dw = b.set("W@GRAD", w.shape, w.dtype)
            fill_all(b, dw)
            return row_indexing.add(b, g, ids, dw, (1, *w.shape), padding=_padding(b))
        w, n, padding = b["W"], b["Ids"].size, b.attr("padding_idx", NO_PADDING)
        shape, dtype = shape_of(w), dtype_of(w)
        ids, g = reading(b, b["Ids"], (n,)), reading(b, b["Out@GRAD"], (n, shape[1]))
        if b.attr("is_sparse", False):
            return b(take_gradient, put_rows(b, "W@GRAD", shape, dtype), ids, g, padding)
        dw = b.set("W@GRAD", shape, dtype)
        zeros(b, dw)
        return b(spread_gradient, dw, ids, g, padding)


_define("lookup_table", "[…, 1]", "[[1], [0]]")
_define("lookup_table_v2", "of any shape", "[1, 0]")


@c_code("lookup_table", "lookup_table_v2", function="lookup")
@c_code("lookup_table_grad", "lookup_table_v2_grad", function="lookup_grad")
def _lookup_in_c(c: Context) -> dict[str, Constant]:
    height, width = c["W"].shape
    return {"COUNT": c["Ids"].size, "HEIGHT": height, "WIDTH": width, "PADDING": c.attr("padding_idx", NO_PADDING)}
