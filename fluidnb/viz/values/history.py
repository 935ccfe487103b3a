"""History of displayed values: last changes, and mean and deviation over the steps."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from fluidnb.values.array_stats import stats_of, step_of
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, array_of
from fluidnb.viz.base.curves import Curve
from fluidnb.viz.values.model import TensorSummary

#: Evenly spaced elements that are compared to detect a change.
_SAMPLE = 1 << 14


class ValueHistory:
    """One value over the updates."""

    def __init__(self) -> None:
        self.mean, self.std = Curve("mean"), Curve("std")
        self._mark: Hashable = None
        self._changed = -1
        self._last = -1

    def add(self, value: Any, update: int, step: int, summary: TensorSummary | None) -> bool:
        """Adds a value; returns whether it changed."""
        mark = _mark(value)
        if self._last >= 0 and mark != self._mark:
            self._changed = update
        if update != self._last:
            moments = _moments(value, summary)
            if moments is not None:
                self.mean.add(step, moments[0])
                self.std.add(step, moments[1])
        self._mark, self._last = mark, update
        return self._changed == update

    @property
    def points(self) -> list[tuple[int, float, float]]:
        """(step, mean, deviation); of many, neighbours are averaged."""
        return [(int(s), m, d) for (s, m), (_, d) in zip(self.mean.points, self.std.points, strict=True)]


class ValueHistories:
    """Histories of the values of a scope."""

    def __init__(self) -> None:
        self._tracks: dict[Hashable, ValueHistory] = {}

    def add(self, key: Hashable, value: Any, update: int, step: int, summary: TensorSummary | None = None) -> bool:
        """Adds a value; see `ValueHistory.add`."""
        return self._tracks.setdefault(key, ValueHistory()).add(value, update, step, summary)

    def __getitem__(self, key: Hashable) -> ValueHistory:
        return self._tracks.get(key) or ValueHistory()

    def keep(self, keys: Iterable[Hashable]) -> None:
        """Drops all other histories."""
        known = set(keys)
        self._tracks = {key: track for key, track in self._tracks.items() if key in known}


def _mark(value: Any) -> Hashable:
    """A fingerprint that differs when the value does."""
    if isinstance(value, LoDTensor):
        array = array_of(value)
        if array is None:
            return None
        return array.shape, value.lod_, stats_of(array).mark(array, _SAMPLE)
    if isinstance(value, SelectedRows):
        return value.height_, _mark(value.rows_), _mark(value.value)
    if isinstance(value, list | tuple):
        return tuple(_mark(v) for v in value[:64]), len(value)
    return repr(value)


def _moments(value: Any, summary: TensorSummary | None) -> tuple[float, float] | None:
    """Mean and deviation of a tensor, from the summary if available."""
    if summary is not None and summary.mean is not None and summary.std is not None:
        return summary.mean, summary.std
    array = array_of(value)
    if array is None or not array.size or array.dtype.kind not in "fiub":
        return None
    few = stats_of(array).picked(array.reshape(-1), range(0, array.size, step_of(array, _SAMPLE))).astype(np.float64)
    return float(few.mean()), float(few.std())
