"""Tensors and scopes as plain data; every rendering reads only this."""

from __future__ import annotations

from dataclasses import dataclass, field

from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.values.preview import Preview


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """Summary of a tensor: dtype, shape, LoD, statistics."""

    name: str  # its variable, or empty
    dtype: str
    shape: tuple[int, ...]  # sizes
    lod: tuple[tuple[int, ...], ...] = ()  # offsets per level
    where: str = ""  # its device; empty on the host
    nbytes: int = 0  # its size in bytes
    nan: int = 0  # number of NaN elements
    inf: int = 0  # number of infinite elements
    low: float | None = None  # smallest finite element, or None
    high: float | None = None  # largest finite element, or None
    mean: float | None = None  # mean of the finite elements, or None
    std: float | None = None  # their standard deviation, or None
    histogram: tuple[int, ...] = ()  # counts of finite elements in equal bins between low and high
    values: str = ""  # the elements as text if they are few, else empty

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
    """A variable of a scope."""

    name: str
    kind: str  # type of its value: ``LoDTensor``, ``step scopes``, …
    tensor: TensorSummary | None = None  # its summary when it is a tensor
    preview: Preview | None = None  # some of its elements, where they were read
    parts: tuple[ScopeVariable, ...] = ()  # tensors of an array; rows and value of SelectedRows


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope and its child scopes."""

    title: str
    variables: tuple[ScopeVariable, ...] = ()  # its variables, without those of parents
    kids: tuple[ScopeRow, ...] = field(default=())
    more: int = 0  # variables that were not read
    more_kids: int = 0  # child scopes that were not read
