"""SelectedRows: some rows of a tall tensor, as sparse gradients are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.utils.representations import repr_html
from fluidnb.values.tensor import Array, LoDTensor, Size, integers


class SelectedRows:
    """Some rows of a tensor of `height` rows: `rows` are their numbers, `value` their values; a row may occur twice.

    Args:
        rows: row numbers, int64.
        height: rows of the whole tensor.
        value: their values, shape [len(rows), ...].

    Example:
        >>> s = SelectedRows([4, 0, 4], 10)
        >>> s.get_tensor().set(np.ones((3, 2), "float32"))
        >>> s.to_dense()[4]
        array([2., 2.], dtype=float32)
        >>> s.merged()
        SelectedRows(rows=[0, 4], height=10, value=[2, 2] float32)
    """

    __slots__ = ("__weakref__", "height_", "rows_", "value")

    @checked
    def __init__(self, rows: Any = (), height: Size = 0, value: LoDTensor | None = None) -> None:
        self.height_ = height
        self.value = value if value is not None else LoDTensor()
        self.set_rows(rows)

    def rows(self) -> list[int]:
        """The row numbers."""
        return [int(r) for r in self.rows_]

    def set_rows(self, rows: Any) -> None:
        """Sets the row numbers, ints from 0 to height - 1."""
        numbers = integers(rows)
        if numbers is None:
            raise OpTypeError("The rows of SelectedRows are ints.", expected="for example [0, 4]", received=shown(rows))
        new = np.array(numbers).reshape(-1)
        if self.height_:
            self._check_rows(new)
        self.rows_: Array = new

    def _check_rows(self, rows: Array) -> None:
        if rows.size and not (0 <= rows.min() and rows.max() < self.height_):
            raise OpValueError(
                "A row is outside the tensor.", expected=f"rows from 0, less than the height {self.height_}",
                received=f"{rows.min()}..{rows.max()}",
            )  # fmt: skip

    def height(self) -> int:
        """Rows of the whole tensor."""
        return self.height_

    @checked
    def set_height(self, height: Size) -> None:
        """Sets the number of rows of the whole tensor."""
        self.height_ = height

    def get_tensor(self) -> LoDTensor:
        """The values of the rows, shape [len(rows), ...]."""
        return self.value

    def numel(self) -> int:
        """Number of elements of the stored rows."""
        return self.value.numel()

    def shape(self) -> list[int]:
        """Shape of the whole tensor."""
        return [self.height_, *self.value.shape()[1:]]

    def sync_index(self) -> None:
        """A no-op (compatibility): rows are looked up where they are."""

    def merged(self) -> SelectedRows:
        """The same tensor with every row once, in rising order, repeated ones added up."""
        values = self._values()
        rows, inverse = np.unique(self.rows_, return_inverse=True)
        total = np.zeros((len(rows), *values.shape[1:]), values.dtype)
        np.add.at(total, inverse, values)
        merged = SelectedRows(rows, self.height_)
        merged.value.set(total, self.value.place)
        return merged

    def to_dense(self) -> Array:
        """The whole tensor as an array, zero where no row is stored."""
        values = self._values()
        self._check_rows(self.rows_)
        whole = np.zeros((self.height_, *values.shape[1:]), values.dtype)
        np.add.at(whole, self.rows_, values)
        return whole

    def _values(self) -> Array:
        values = np.asarray(self.value)
        if values.shape[:1] != self.rows_.shape:
            raise OpValueError(
                "SelectedRows have one value for each row.", expected=f"shape [{len(self.rows_)}, ...]",
                received=f"shape {list(values.shape)}", hint="get_tensor().set(array) sets them, set_rows() the rows.",
            )  # fmt: skip
        return values

    def __repr__(self) -> str:
        value = f"{self.value.shape()} {self.value.array.dtype}" if self.value.array is not None else "none"
        return f"SelectedRows(rows={self.rows()[:20]}, height={self.height_}, value={value})"

    _repr_html_ = repr_html
