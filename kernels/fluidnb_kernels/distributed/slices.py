"""split_byref and split_selected_rows: a gradient divided among parameter servers by rows."""

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Attr, Binder, Context, op
from fluidnb.values import CPUPlace, LoDTensor, SelectedRows
from fluidnb_kernels.rows.values import dtype_of, fill, shape_of, value_array
from fluidnb_kernels.rules import checked


def _parts_rule(c: Context) -> None:
    sizes, x = c.attr("sections"), c["X"]
    c.require(
        len(sizes) == len(c.outputs["Out"]) and (x.shape[0] < 0 or sum(sizes) == x.shape[0]),
        "sections must divide the rows of X.", expected=f"{len(c.outputs['Out'])} sizes with sum {x.shape[0]}",
        received=str(list(sizes)), hint="DistributeTranspiler writes them.",
    )  # fmt: skip
    for i, size in enumerate(sizes):
        c.set("Out", (size, *x.shape[1:]), x.dtype, (), i)


@op(
    "split_byref",
    inputs={"X: any[rows, …]": "a tensor"},
    outputs={"Out*": "its rows, in order"},
    attrs={"sections": Attr("ints", [], "rows of each output")},
    infer=checked(_parts_rule),
    host_only="is followed by send, which works on the host",
)
def split_byref(b: Binder) -> None:
    """Out = X divided along its first axis.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x, sections = np.arange(3.0), {"sections": [2, 1]}
        >>> run_op("split_byref", {"X": x}, sections, outputs={"Out": 2})["Out"]
        [array([0., 1.]), array([2.])]

    Source: Fluid's split_byref_op.
    """
    start = 0
    for size, out in zip(b.attr("sections"), b.all("Out"), strict=True):
        if out is not None:
            b(np.copyto, out, b["X"][start : start + size])
        start += size


def take_sections(source: SelectedRows, starts: Sequence[int], targets: Sequence[SelectedRows]) -> None:
    """Give each section those rows of a sparse gradient that fall into it, numbered from its start."""
    ids, values = source.rows_, value_array(source)
    for start, target in zip(starts, targets, strict=True):
        inside = np.flatnonzero((ids >= start) & (ids < start + target.height_))
        fill(target, ids[inside] - start, values[inside])


def _every_output(c: Context) -> bool:
    return True


@op(
    "split_selected_rows",
    inputs={"X: rows": "SelectedRows"},
    outputs={"Out*": "SelectedRows: those rows of X that fall into each section, numbered from its start"},
    attrs={"height_sections": Attr("longs", [], "rows of each section")},
    infer=lambda c: None,
    rows=_every_output,
    host_only="is followed by send, which works on the host",
)
def split_selected_rows(b: Binder) -> None:
    """Out = the rows of X divided by ranges of their numbers.

    Example:
        >>> from fluidnb.testing import run_op
        >>> from fluidnb.values import CPUPlace, LoDTensor, SelectedRows
        >>> x = SelectedRows([4, 0], 6, LoDTensor(np.ones((2, 1))))
        >>> sections = {"height_sections": [3, 3]}
        >>> low, high = run_op("split_selected_rows", {"X": x}, sections, outputs={"Out": 2})["Out"]
        >>> low.rows(), high.rows()
        ([0], [1])

    Source: Fluid's split_selected_rows_op.
    """
    sizes, source = b.attr("height_sections"), b["X"]
    width, dtype = shape_of(source)[1:], dtype_of(source)
    targets = []
    for i, size in enumerate(sizes):
        rows = SelectedRows((), size, LoDTensor(np.empty((0, *width), dtype), (), CPUPlace()))
        targets.append(b.put("Out", rows, i))
    b(take_sections, source, [sum(sizes[:i]) for i in range(len(sizes))], targets)
