"""similarity_focus: where the largest elements of some slices are, no two in one row or column."""

from collections.abc import Sequence

import numpy as np

from fluidnb.op import Array, Attr, Binder, Context, op


def _infer(c: Context) -> None:
    x, axis, indexes = c["X"], c.attr("axis"), c.attr("indexes")
    c.check_inputs()
    size = x.shape[axis]
    c.require(
        bool(indexes) and all(0 <= i and (size < 0 or i < size) for i in indexes),
        "Attr(indexes) of similarity_focus must name slices of its axis.",
        expected=f"some of 0 to {size - 1}" if size > 0 else "at least one", received=list(indexes),
    )  # fmt: skip
    c.set("Out", x.shape, x.dtype, c.lod("X"))


def spots(plane: Array) -> Array:
    """Marks the largest elements of a matrix, no two in one row or column, as many as its smaller side."""
    found, rows, columns = np.zeros(plane.shape, bool), set[int](), set[int]()
    for at in np.argsort(-plane, axis=None, kind="stable").tolist():
        row, column = divmod(at, plane.shape[1])
        if row not in rows and column not in columns:
            found[row, column] = True
            rows.add(row)
            columns.add(column)
            if len(rows) == min(plane.shape):
                break
    return found


def focus(x: Array, axis: int, indexes: Sequence[int], out: Array) -> None:
    """Write 1 at the `spots` of every slice that is named, along the whole axis; 0 elsewhere."""
    for image, target in zip(np.moveaxis(x, axis, 1), np.moveaxis(out, axis, 1), strict=True):
        target[...] = np.logical_or.reduce([spots(image[i]) for i in indexes])


@op(
    "similarity_focus",
    inputs={"X: float[batch, a, b, c]": ""},
    outputs={"Out": "the shape of X: 1 and 0"},
    attrs={
        "axis": Attr("int", doc="the dimension that is cut into slices", enum=(1, 2, 3)),
        "indexes": Attr("ints", doc="which slices"),
    },
    cost="X",
    infer=_infer,
    host_only="searches step by step: each step depends on the one before",
    dtypes=("float32", "float64"),
)
def similarity_focus(b: Binder) -> None:
    """Out = 1 where a slice that is named has one of its largest elements, no two of them in one row or column.

    Example:
        >>> from fluidnb.testing import run_op
        >>> x = np.array([[[[9.0, 8.0], [7.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]])
        >>> run_op("similarity_focus", {"X": x}, {"axis": 1, "indexes": [0]})["Out"][0, 1]
        array([[1., 0.],
               [0., 1.]])

    Source: He and Lin, "Pairwise Word Interaction Modeling" (2016); Fluid's similarity_focus_op.
    """
    b(focus, b["X"], b.attr("axis"), b.attr("indexes"), b["Out"])
