"""Sums of which some terms are SelectedRows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb.values import SelectedRows
from fluidnb_kernels.rows.values import add_rows, dtype_of, fill, merged, put_rows, shape_of, value_array


def join(sources: Sequence[SelectedRows], target: SelectedRows) -> None:
    """Fill SelectedRows with the sum of several, each row once, in rising order."""
    ids = np.concatenate([s.rows_ for s in sources])
    fill(target, *merged(ids, np.concatenate([value_array(s) for s in sources])))


def add_source(total: Array, source: SelectedRows) -> None:
    """Add SelectedRows to a tensor."""
    add_rows(total, source.rows_, value_array(source))


def emit_sum(b: Binder, terms: Sequence[Any]) -> None:
    """Emit the sum of X into Out: SelectedRows when all terms are, else a tensor."""
    if b.is_rows("X"):
        first = terms[0]
        return b(join, list(terms), put_rows(b, "Out", shape_of(first), dtype_of(first)))
    whole = [x for x in terms if not isinstance(x, SelectedRows)]
    total = b.like(b["Out"])
    b(np.copyto, total, whole[0])
    for x in whole[1:]:
        b(np.add, total, x, out=total)
    for x in terms:
        if isinstance(x, SelectedRows):
            b(add_source, total, x)
    return b(np.copyto, b["Out"], total)
