"""SelectedRows: some rows of a tall tensor, as sparse gradients are."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import OpValueError
from fluidnb.utils.representations import repr_html
from fluidnb.values.tensor import Array, LoDTensor


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
    def __init__(self, rows: Any = (), height: int = 0, value: LoDTensor | None = None) -> None:
        self.height_ = height
        self.value = value if value is not None else LoDTensor()
        self.set_rows(rows)

    def rows(self) -> list[int]:
        """The row numbers."""
        return [int(r) for r in self.rows_]

    def set_rows(self, rows: Any) -> None:
        """Sets the row numbers, ints from 0 to height - 1."""
        new = np.array(rows, dtype=np.int64).reshape(-1)
        if self.height_ and new.size and not (0 <= new.min() and new.max() < self.height_):
            raise OpValueError(
                "A row is outside the tensor.", expected=f"0..{self.height_ - 1}", received=f"{new.min()}..{new.max()}"
            )
        self.rows_: Array = new

    def height(self) -> int:
        """Rows of the whole tensor."""
        return self.height_

    def set_height(self, height: int) -> None:
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
        values = np.asarray(self.value)
        rows, inverse = np.unique(self.rows_, return_inverse=True)
        total = np.zeros((len(rows), *values.shape[1:]), values.dtype)
        np.add.at(total, inverse, values)
        merged = SelectedRows(rows, self.height_)
        merged.value.set(total, self.value.place)
        return merged

    def to_dense(self) -> Array:
        """The whole tensor as an array, zero where no row is stored."""
        values = np.asarray(self.value)
        whole = np.zeros((self.height_, *values.shape[1:]), values.dtype)
        np.add.at(whole, self.rows_, values)
        return whole

    def __repr__(self) -> str:
        value = f"{self.value.shape()} {self.value.array.dtype}" if self.value.array is not None else "none"
        return f"SelectedRows(rows={self.rows()[:20]}, height={self.height_}, value={value})"

    _repr_html_ = repr_html
