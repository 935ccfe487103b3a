"""Reads tensors and scopes into `TensorSummary` and `ScopeRow`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.values.array_stats import stats_of
from fluidnb.values.copies import is_on_device, on_host
from fluidnb.values.dtypes import dtype_name
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.reader import Reader
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, array_of
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.values.model import ScopeRow, ScopeVariable, TensorSummary
from fluidnb.viz.values.preview import even_indices, read_preview

#: Elements used for statistics by default; a larger tensor is sampled evenly.
_SAMPLE = 1 << 20
#: Tensors of up to so many elements are shown in full.
_FEW = 8


def read_tensor(tensor: Any, name: str = "", sample: int = _SAMPLE) -> TensorSummary:
    """The summary of a tensor, with statistics of up to ``sample`` evenly spaced elements."""
    name = name or getattr(tensor, "name", "")
    lod = tuple(getattr(tensor, "lod_", ()))
    place = getattr(tensor, "place", None)
    where = "" if place is None or place.kind == "cpu" else repr(place)
    array = array_of(tensor) if hasattr(tensor, "lod_") else tensor if is_on_device(tensor) else np.asarray(tensor)
    if array is None:
        return TensorSummary(name, "", (), lod, where)
    facts = (name, _dtype(array), array.shape, lod, where, int(array.nbytes))
    if array.size <= _FEW:
        few = on_host(array)
        nan, inf = _holes(few)
        return TensorSummary(*facts, nan=nan, inf=inf, values=_elements(few))
    return TensorSummary(*facts, **_statistics(array, sample))


def read_scope(scope: Any, title: str = "scope", previews: bool = False, most: int = 0) -> ScopeRow:
    """A tree of scopes as plain data; ``most`` of each scope's variables and child scopes, 0 for all."""
    names, inside = sorted(scope.vars), list(zip(scope.kids, child_titles(scope.kids), strict=True))
    end = most or None
    variables = tuple(read_variable(name, scope.vars[name].value, previews) for name in names[:end])
    kids = tuple(read_scope(kid, name, previews, most) for kid, name in inside[:end])
    return ScopeRow(title, variables, kids, len(names) - len(variables), len(inside) - len(kids))


def levels(value: Any, count: int = 32, high: int = 20) -> list[int | None]:
    """Evenly spaced elements as heights of a line, None for non-finite ones; empty for a tensor without numbers."""
    array = array_of(value)
    if array is None or not array.size or array.dtype.kind not in "fiub":
        return []
    few = stats_of(array).picked(array.reshape(-1), even_indices(array.size, count)).astype(np.float64)
    fine = np.isfinite(few)
    low, top = (few[fine].min(), few[fine].max()) if fine.any() else (0.0, 0.0)
    scaled = (few - low) * (high / ((top - low) or 1.0))
    return [round(v) if ok else None for v, ok in zip(scaled.tolist(), fine.tolist(), strict=True)]


def child_titles(kids: Sequence[Any]) -> list[str]:
    """Titles of the child scopes of one scope.

    Example:
        >>> child_titles([fluid.Scope(), fluid.Scope()])
        ['scope 0', 'scope 1']
    """
    times, seen = Counter(kid.block_index for kid in kids), Counter[int]()
    titles = []
    for i, kid in enumerate(kids):
        index = kid.block_index
        turn = "run" if kid.parent is None or kid.parent.block is None else "iteration"
        several = f", {turn} {seen[index]}" if times[index] > 1 else ""
        titles.append(f"scope {i}" if index < 0 else f"block {index}{several}")
        seen[index] += 1
    return titles


def read_variable(name: str, value: Any, previews: bool = False, sample: int = _SAMPLE) -> ScopeVariable:
    """The value of a variable as plain data."""
    if isinstance(value, LoDTensor):
        return ScopeVariable(
            name, "LoDTensor", read_tensor(value, name, sample), read_preview(array_of(value)) if previews else None
        )
    if isinstance(value, SelectedRows):
        kind = f"SelectedRows: {plural(len(value.rows_), 'row')} of {value.height_:,}"
        rows = ScopeVariable("rows", "LoDTensor", read_tensor(value.rows_, "rows"))
        return ScopeVariable(name, kind, parts=(rows, read_variable("value", value.value, previews, sample)))
    if isinstance(value, LoDRankTable):
        ranked = [f"sequence {i} has {n}" for i, n in value.items()[:_FEW]]
        return ScopeVariable(name, "LoDRankTable: " + ", ".join([*ranked, *_more(len(value.items()))]))
    if isinstance(value, list | tuple):
        if value and all(hasattr(v, "kids") for v in value):
            return ScopeVariable(name, plural(len(value), "step scope"))
        parts = [read_variable(f"[{i}]", v, previews, sample) for i, v in enumerate(value[:_FEW])]
        parts += [ScopeVariable(words, "") for words in _more(len(value))]
        return ScopeVariable(name, f"{type(value).__name__} of {len(value)}", parts=tuple(parts))
    if isinstance(value, Reader):
        return ScopeVariable(name, repr(value))
    return ScopeVariable(name, "nothing yet" if value is None else type(value).__name__)


def _more(count: int) -> list[str]:
    """A line that counts those that are not listed."""
    return [f"… {count - _FEW} more"] if count > _FEW else []


def _dtype(array: Any) -> str:
    try:
        return dtype_name(array.dtype)
    except Exception:  # a dtype without a name in Fluid, in an array of the user
        return str(array.dtype)


def _elements(array: np.ndarray[Any, Any]) -> str:
    if array.size == 0:
        return "empty"
    shown = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in array.ravel().tolist()]
    return shown[0] if array.ndim == 0 else f"[{', '.join(shown)}]"


def _holes(array: np.ndarray[Any, Any]) -> tuple[int, int]:
    if not np.issubdtype(array.dtype, np.floating):
        return 0, 0
    return int(np.isnan(array).sum()), int(np.isinf(array).sum())


def _statistics(array: Any, sample: int) -> dict[str, Any]:
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        return {}
    return stats_of(array).spread(array, sample)._asdict()


@dataclass(frozen=True, slots=True)
class ScopeNode:
    """A node of the scope tree."""

    path: tuple[int, ...]  # child indices from the outermost scope
    title: str
    names: tuple[str, ...]  # its variables, sorted
    kids: tuple[ScopeNode, ...] = ()

    def each(self) -> Iterator[ScopeNode]:
        """The node and its descendants in display order."""
        yield self
        for kid in self.kids:
            yield from kid.each()

    @property
    def size(self) -> int:
        """Number of variables of the node and its descendants."""
        return sum(len(branch.names) for branch in self.each())


def read_scope_tree(scope: Any, title: str = "scope", path: tuple[int, ...] = ()) -> ScopeNode:
    """The tree of a scope."""
    kids = list(scope.kids)
    inside = enumerate(zip(kids, child_titles(kids), strict=True))
    children = tuple(read_scope_tree(kid, name, (*path, i)) for i, (kid, name) in inside)
    return ScopeNode(path, title, tuple(sorted(scope.vars)), children)


def value_at(scope: Any, path: tuple[int, ...], name: str) -> Any:
    """The current value of a variable of a nested scope; None without it or its scope."""
    for i in path:
        kids = list(scope.kids)
        if not 0 <= i < len(kids):
            return None
        scope = kids[i]
    variable = scope.vars.get(name)
    return None if variable is None else variable.value
