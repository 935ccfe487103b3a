"""Each row together with its neighbours in the sequence: what sequence_conv and row_conv share."""

from __future__ import annotations

import numpy as np

from fluidnb.op import Array, Binder
from fluidnb_kernels.sequence import row_maps
from fluidnb_kernels.sequences import emit_put, emit_rows, emit_sum_rows


class Neighbours:
    """Indices of the ``count`` context rows of each row, from ``start`` on (-1 is the row before)."""

    def __init__(self, offsets: Array, start: int, count: int) -> None:
        lengths = np.diff(offsets)
        first = np.repeat(offsets[:-1], lengths)[:, None]
        behind = np.repeat(offsets[1:], lengths)[:, None]
        wanted = np.arange(offsets[-1])[:, None] + np.arange(start, start + count)
        before, after = wanted < first, wanted >= behind
        self.start, self.count = start, count
        # int64 [n · count]; any row where `outside` marks that there is none
        self.rows = np.where(before, first, np.where(after, behind - 1, wanted)).reshape(-1)
        self.outside = np.flatnonzero(before | after)
        above = max(-start, 0)
        beyond = np.where(before, wanted - first + above, wanted - behind + above)
        self.beyond = beyond.reshape(-1)[self.outside]  # rows of the padding, first those before the sequence

    @property
    def signed(self) -> Array:
        """``rows``, with ``-1 - k`` for row k of the padding."""
        out = self.rows.copy()
        out[self.outside] = -1 - self.beyond
        return out

    def on_cuda(self, b: Binder, x: Array, padding: Array | None = None) -> Array:
        """Emit the neighbours of each row on a GPU, into a workspace [n · count, width]."""
        rows, out = self.signed, b.tmp((len(self.rows), x.shape[1]), x.dtype)
        row_maps.gather(b, x, rows if padding is not None else np.maximum(rows, -1), out, padding)
        return out

    def emit(self, b: Binder, x: Array, padding: Array | None = None) -> Array:
        """Emit the neighbours of each row, into a workspace [n · count, width]; padding None is zeros."""
        out = b.tmp((len(self.rows), x.shape[1]), x.dtype)
        emit_rows(b, x, self.rows, out)
        if padding is None:
            emit_put(b, b.const(0, x.dtype), self.outside, out)
        elif len(self.outside):
            missing = b.tmp((len(self.outside), x.shape[1]), x.dtype)
            emit_rows(b, padding, self.beyond, missing)
            emit_put(b, missing, self.outside, out)
        return out

    def emit_grad(self, b: Binder, g: Array, dx: Array) -> None:
        """Emit the gradient of the rows from that of their neighbourhoods, which is cleared outside the sequences."""
        # row r is neighbour k of row r - start - k, where that row has it
        n, ks = len(dx), np.arange(self.count)
        home = np.arange(n)[:, None] - self.start - ks
        places = home * self.count + ks
        inside = (home >= 0) & (home < n)
        inside[inside] = self.rows[places[inside]] == np.broadcast_to(np.arange(n)[:, None], places.shape)[inside]
        emit_put(b, b.const(0, g.dtype), self.outside, g)
        shares = b.tmp((n, self.count, g.shape[1]), g.dtype)
        flat = shares.reshape(n * self.count, g.shape[1])
        emit_rows(b, g, np.where(inside, places, 0).reshape(-1), flat)
        emit_put(b, b.const(0, g.dtype), np.flatnonzero(~inside), flat)
        b(np.add.reduce, shares, 1, None, dx)

    def emit_padding_grad(self, b: Binder, g: Array, dpadding: Array) -> None:
        """Emit the gradient of the padding; before `emit_grad`, which clears what it reads."""
        outside = b.tmp((len(self.outside), g.shape[1]), g.dtype)
        emit_rows(b, g, self.outside, outside)
        emit_sum_rows(b, outside, self.beyond, dpadding)
