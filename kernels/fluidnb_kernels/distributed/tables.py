"""Tables that parameter servers keep by rows: rows looked up there, and gradients sent there."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.memory import view_of
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.engine import engine_at
from fluidnb.op.memory_policy import Memory
from fluidnb.values import CPUPlace, LoDTensor, SelectedRows, dtypes
from fluidnb_kernels.rows.values import dtype_of, fill, places_of, shape_of, value_array
from fluidnb_kernels.rules import checked

_HOST = "hands values to an engine, which works on the host"


def ids_of(arrays: Sequence[Array], servers: int) -> list[Array]:
    """Row numbers that each server has: those with its remainder, each once, rising."""
    ids = np.unique(np.concatenate([array.reshape(-1) for array in arrays]))
    return [ids[ids % servers == number] for number in range(servers)]


def _counts(b: Binder) -> Any:
    """Specialization key: how many rows of each server are looked up."""
    if b.is_rows("Ids"):
        return None
    return tuple(map(len, ids_of(b.all("Ids"), len(b.outputs["Out"]))))


def _split_rule(c: Context) -> None:
    if c.is_rows("Ids"):
        return
    known = [len(ids) for ids in ids_of(c.all("Ids"), len(c.outputs["Out"]))] if c.runtime else []
    for i in range(len(c.outputs["Out"])):
        c.set("Out", (known[i] if known else -1, 1), c["Ids"].dtype, (), i)


def split_numbers(arrays: Sequence[Array], outs: Sequence[Array | None]) -> None:
    """Write the row numbers that each server has."""
    for ids, out in zip(ids_of(arrays, len(outs)), outs, strict=True):
        if out is not None:
            np.copyto(out, ids[:, None])


def split_rows(source: SelectedRows, targets: Sequence[SelectedRows]) -> None:
    """Give each server the rows of a gradient that it has."""
    ids, values = source.rows_, value_array(source)
    for number, target in enumerate(targets):
        here = np.flatnonzero(ids % len(targets) == number)
        fill(target, ids[here], values[here])


@op(
    "split_ids",
    inputs={"Ids*": "row numbers, or one SelectedRows"},
    outputs={"Out*": "for each server the row numbers that it has, each once; or the rows of SelectedRows"},
    infer=_split_rule,
    guard=_counts,
    rows=lambda c: c.is_rows("Ids"),
    host_only=_HOST,
    data_shape=True,
)
def split_ids(b: Binder) -> None:
    """Out[i] = the numbers n of Ids with n mod servers = i, each once and rising.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("split_ids", {"Ids": [np.array([[4], [1], [4]])]}, outputs={"Out": 2})["Out"]
        [array([[4]]), array([[1]])]

    Source: Fluid's split_ids_op.
    """
    if not b.is_rows("Ids"):
        b(split_numbers, b.all("Ids"), b.all("Out"))
        return
    source = b["Ids"]
    width, dtype, targets = shape_of(source)[1:], dtype_of(source), []
    for i in range(len(b.outputs["Out"])):
        rows = SelectedRows((), source.height_, LoDTensor(np.empty((0, *width), dtype), (), CPUPlace()))
        targets.append(b.put("Out", rows, i))
    b(split_rows, source, targets)


def fetch_rows(endpoint: str, trainer: int, table: str, ids: Array, memory: Memory, out: Array) -> None:
    """Write rows of a table that a server keeps."""
    if len(ids):
        np.copyto(out, engine_at(endpoint).trainer(trainer).prefetch(endpoint, table, ids.reshape(-1), memory.check))


def _rows_rule(c: Context) -> None:
    width, dtype = c.attr("width"), dtypes.np_dtype(c.attr("dtype"))
    for i, ids in enumerate(c.all("X")):
        c.set("Out", (ids.shape[0], width), dtype, (), i)


@op(
    "prefetch",
    inputs={"X*: int64[…, 1]": "row numbers for each server"},
    outputs={"Out*": "these rows"},
    attrs={
        "epmap": Attr("strings", [], "endpoint of each server"),
        "table_names": Attr("strings", [], "name of the table on each server"),
        "trainer_id": Attr("int", 0, "number of the trainer"),
        "width": Attr("int", 1, "elements of a row", ge=1),
        "dtype": Attr("dtype", "float32", "dtype of Out"),
    },
    infer=checked(_rows_rule),
    side_effect=True,
    host_only=_HOST,
)
def prefetch(b: Binder) -> None:
    """Out[i] = table[X[i]] of server i, as it is after this trainer's last step.

    Example:
        >>> ids = fluid.layers.data("ids", [1], dtype="int64")
        >>> rows = fluid.layers.embedding(ids, [100, 4], is_sparse=True, is_distributed=True)
        >>> pairs = fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(rows))
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0,ps:1", trainers=2)
        >>> [op.type for op in t.get_trainer_program().global_block().ops][:3]
        ['split_ids', 'prefetch', 'merge_ids']

    Source: Fluid's prefetch_op.
    """
    places = zip(b.all("X"), b.all("Out"), b.attr("epmap"), b.attr("table_names"), strict=True)
    for ids, out, endpoint, table in places:
        if out is not None:
            b(fetch_rows, endpoint, b.attr("trainer_id"), table, ids, b.memory, out)


def join_rows(ids: Array, numbers: Sequence[Array], rows: Sequence[Array], out: Array) -> None:
    """Write the row of each number in order, from the server that looked it up."""
    known = np.concatenate([part.reshape(-1) for part in numbers])
    out[...] = np.concatenate(rows)[places_of(known, ids.reshape(-1))]


def _merge_rule(c: Context) -> None:
    rows = c["X"]
    c.require(
        all(x.ndim == 2 and x.shape[1] == rows.shape[1] for x in c.all("X")), "X of merge_ids must hold rows.",
        expected="shapes [N, width]", received=", ".join(str(list(x.shape)) for x in c.all("X")),
    )  # fmt: skip
    for i, ids in enumerate(c.all("Ids")):
        c.set("Out", (ids.shape[0], rows.shape[1]), rows.dtype, c.lods("Ids")[i], i)


@op(
    "merge_ids",
    inputs={
        "Ids*: int64[…, 1] lod": "row numbers",
        "Rows*: int64[…, 1]": "the numbers that each server looked up, as split_ids gives them",
        "X*": "the rows that it gave, [N, width]",
    },
    outputs={"Out*": "the row of each number of Ids"},
    infer=checked(_merge_rule),
    host_only=_HOST,
)
def merge_ids(b: Binder) -> None:
    """Out[i][j] = X[s][k], where Rows[s][k] = Ids[i][j].

    Example:
        >>> from fluidnb.testing import run_op
        >>> numbers, rows = [np.array([[4]]), np.array([[1]])], [np.array([[40.0]]), np.array([[10.0]])]
        >>> ids = [np.array([[4], [1], [4]])]
        >>> run_op("merge_ids", {"Ids": ids, "Rows": numbers, "X": rows}, outputs={"Out": 1})["Out"]
        array([[40.],
               [10.],
               [40.]])

    Source: Fluid's merge_ids_op.
    """
    for ids, out in zip(b.all("Ids"), b.all("Out"), strict=True):
        if out is not None:
            b(join_rows, ids, b.all("Rows"), b.all("X"), out)


def take_rows(table: SelectedRows, ids: Array, out: Array) -> None:
    """Write rows of a table by their numbers."""
    np.copyto(out, value_array(table)[places_of(table.rows_, ids.reshape(-1))])


@op(
    "lookup_sparse_table",
    inputs={"W: rows": "the table, SelectedRows", "Ids: int64[N, 1]": "row numbers"},
    outputs={"Out": "these rows"},
    attrs={
        "is_sparse": Attr("bool", True, "ignored (compatibility)"),
        "is_distributed": Attr("bool", True, "ignored (compatibility)"),
        "padding_idx": Attr("long", -1, "ignored (compatibility)"),
    },
    infer=checked(lambda c: c.set("Out", (c["Ids"].shape[0], *shape_of(c["W"])[1:]), dtype_of(c["W"]))),
    host_only=_HOST,
)
def lookup_sparse_table(b: Binder) -> None:
    """Out = W[Ids], for a table that has some rows only.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import LoDTensor, SelectedRows
        >>> table = SelectedRows([1, 3], 5, LoDTensor(np.array([[10.0], [30.0]])))
        >>> run_op("lookup_sparse_table", {"W": table, "Ids": np.array([[3]])})["Out"]
        array([[30.]])

    Source: Fluid's lookup_sparse_table_op.
    """
    b(take_rows, b["W"], b["Ids"], b["Out"])


def empty_table(target: SelectedRows, height: int, values: Array) -> None:
    """Make SelectedRows a table of which no row is here; ``values`` are none, of the rows' shape and dtype."""
    target.height_ = height
    fill(target, np.zeros(0, np.int64), values)


@op(
    "fake_init",
    outputs={"Out": "SelectedRows without rows"},
    attrs={"shape": Attr("longs", [], "sizes of the whole table"), "dtype": Attr("dtype", "float32", "its dtype")},
    infer=lambda c: None if c.runtime else c.set("Out", c.attr("shape"), dtypes.np_dtype(c.attr("dtype"))),
    rows=lambda c: True,
    side_effect=True,
    host_only="stores no numbers",
)
def fake_init(b: Binder) -> None:
    """Out = a table whose rows are on parameter servers: its shape, and no row.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("fake_init", attrs={"shape": [100, 4]})["Out"].shape()
        [100, 4]

    Source: Fluid's fake_init_op.
    """
    height, *width = b.attr("shape")
    none = view_of(np.empty(0, np.uint8), (0, *width), dtypes.np_dtype(b.attr("dtype")))
    b(empty_table, b.put("Out", SelectedRows((), height, LoDTensor(none, (), CPUPlace()))), height, none)
