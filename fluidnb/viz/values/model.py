"""Tensors and scopes as plain data; every rendering reads only this."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.values.preview import Preview


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """Summary of a tensor: dtype, shape, LoD, statistics.

    Args:
        name: its variable, or empty.
        dtype: the name of its dtype.
        shape: sizes.
        lod: offsets per level.
        where: its device; empty on the host.
        nbytes: its size in bytes.
        nan: number of NaN elements.
        inf: number of infinite elements.
        low: smallest finite element, or None.
        high: largest finite element, or None.
        mean: mean of the finite elements, or None.
        std: their standard deviation, or None.
        histogram: counts of finite elements in equal bins between low and high.
        values: the elements as text if they are few, else empty.

    Example:
        >>> TensorSummary("x", "float32", (2, 3), low=0.0, high=5.0, mean=2.5, std=1.7).facts
        'float32[2, 3]'
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    lod: tuple[tuple[int, ...], ...] = ()
    where: str = ""
    nbytes: int = 0
    nan: int = 0
    inf: int = 0
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    histogram: tuple[int, ...] = ()
    values: str = ""

    @property
    def facts(self) -> str:
        """Dtype and shape."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def statistics(self) -> str:
        """Mean, deviation and range, or the elements themselves when they are few; NaN and infinities first."""
        parts = [plural(k, what, "") for k, what in ((self.nan, "NaN"), (self.inf, "Inf")) if k]
        if self.values:
            parts.append(self.values)
        elif self.mean is not None:
            parts.append(f"{self.mean:.3g} ± {self.std:.2g} in [{self.low:.3g}, {self.high:.3g}]")
        return "  ".join(parts)


@dataclass(frozen=True, slots=True)
class ScopeVariable:
    """A variable of a scope.

    Args:
        name: the variable's name.
        kind: type of its value: ``LoDTensor``, ``step scopes``, ….
        tensor: its summary when it is a tensor.
        preview: some of its elements, where they were read.
        parts: tensors of an array; rows and value of SelectedRows.
    """

    name: str
    kind: str
    tensor: TensorSummary | None = None
    preview: Preview | None = None
    parts: tuple[ScopeVariable, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope and its child scopes.

    Args:
        title: its name.
        variables: its variables, without those of parents.
        kids: the child scopes.
        more: variables that were not read.
        more_kids: child scopes that were not read.
    """

    title: str
    variables: tuple[ScopeVariable, ...] = ()
    kids: tuple[ScopeRow, ...] = field(default=())
    more: int = 0
    more_kids: int = 0
