"""Memory growth over the steps of a loop: bytes of the pool and of the scopes, and what grew."""

from dataclasses import dataclass
from typing import Any

from fluidnb import memory
from fluidnb.memory import size_text
from fluidnb.runtime.scope import Scope, global_scope
from fluidnb.values import CPUPlace
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor
from fluidnb.viz.base.curves import Curve, bars
from fluidnb.viz.base.curves_svg import curves_svg
from fluidnb.viz.base.html import lines_html
from fluidnb.viz.base.styled_text import Line, columns, cut, plural
from fluidnb.viz.memory.model import Holder
from fluidnb.viz.memory.pools import totals


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory at one moment."""

    pool: int  # allocated bytes of the pool
    blocks: int  # number of allocated blocks
    scope: int  # bytes of the tensors in the scope and its children
    variables: int  # number of variables of these


@dataclass(frozen=True, slots=True)
class GrowthPicture:
    """Memory over the steps of a loop."""

    samples: tuple[Sample, ...] = ()  # one after each step
    grown: tuple[Holder, ...] = ()  # holders that grew between the first and the last step, with added bytes and blocks
    place: str = ""  # the place of the pool; empty if unknown

    @property
    def steady_since(self) -> int | None:
        """The step (from 1) of the last new maximum of the pool; None while it still grows, or before three steps."""
        most, since = -1, 0
        for i, sample in enumerate(self.samples):
            if sample.pool > most:
                most, since = sample.pool, i
        return since + 1 if len(self.samples) > 2 and since < len(self.samples) * 2 // 3 else None

    @property
    def per_step(self) -> float:
        """Growth of the pool in bytes per step, over the second half."""
        half = self.samples[len(self.samples) // 2 :]
        return (half[-1].pool - half[0].pool) / (len(half) - 1) if len(half) > 1 else 0.0

    @property
    def verdict(self) -> str:
        """The conclusion in words."""
        if len(self.samples) < 3:
            return "run at least three steps to measure growth"
        if self.steady_since is not None:
            return f"steady since step {self.steady_since}"
        return f"grows by {size_text(self.per_step)} per step"


class Growth:
    """Records the memory in use after each step of a loop: by default of the global scope and the CPU's pool."""

    def __init__(self, scope: Scope | None = None, place: Any = None) -> None:
        self._scope = global_scope() if scope is None else scope
        self._place = CPUPlace() if place is None else place
        self._samples: list[Sample] = []
        self._first: dict[str, tuple[int, int]] = {}
        self._now: dict[str, tuple[int, int]] = {}

    def add(self) -> None:
        """Records the current memory; call it after each step."""
        stats = memory.stats(self._place)
        self._now = totals(stats)
        if not self._samples:
            self._first = self._now
        self._samples.append(Sample(stats.used, len(stats.live), *bytes_in(self._scope)))

    def picture(self) -> GrowthPicture:
        """The recorded samples."""
        grown = []
        for name, (size, count) in self._now.items():
            before, blocks = self._first.get(name, (0, 0))
            if size > before:
                grown.append(Holder("other", name or "unnamed", size - before, count - blocks))
        return GrowthPicture(tuple(self._samples), tuple(sorted(grown, key=lambda h: -h.bytes)), str(self._place))


def growth_lines(picture: GrowthPicture, width: int = 0, top: int = 8) -> list[Line]:
    """Text rendering, with the ``top`` holders that grew most."""
    style = "" if picture.steady_since is not None else "warn" if len(picture.samples) > 2 else "dim"
    lines: list[Line] = [[(plural(len(picture.samples), "step"), "bold"), ("  " + picture.verdict, style)]]
    if picture.place:
        lines[0].append((f"  pool of {picture.place}", "dim"))
    if not picture.samples:
        return lines
    first, last = picture.samples[0], picture.samples[-1]
    size = max(min(48, width - 56), 8) if width else 48
    rows: list[list[Line]] = []
    for title, role, attribute, count in (
        ("pool", "forward", "pool", "blocks"), ("scopes", "backward", "scope", "variables"),
    ):  # fmt: skip
        curve = Curve(title)
        for i, sample in enumerate(picture.samples):
            curve.add(i, getattr(sample, attribute))
        change = f"{size_text(getattr(first, attribute))} → {size_text(getattr(last, attribute))}"
        counts = f"{getattr(first, count)} → {getattr(last, count)} {count}"
        rows.append([[(title, "name")], [(bars(curve, size), role)], [(change, "")], [(counts, "dim")]])
    lines += columns(rows, width)
    if picture.grown:
        lines.append([("grew between the first and the last step", "dim")])
        grown = [(h, plural(h.count, "block") if h.count else "") for h in picture.grown[:top]]
        lines += columns(
            [[[("  " + h.name, "name")], [(size_text(h.bytes), "")], [(count, "dim")]] for h, count in grown], width
        )
    return [cut(line, width) for line in lines] if width else lines


def growth_html(picture: GrowthPicture) -> str:
    """HTML rendering: the pool over the steps in KB, and what grew."""
    lines = growth_lines(picture)
    pool = Curve("pool, KB")
    for i, sample in enumerate(picture.samples):
        pool.add(i, sample.pool / 1024)
    svg = curves_svg([pool]) if pool.count > 1 else ""
    return f'<div class="fluidnb" style="line-height:normal">{lines_html(lines[:3])}{svg}{lines_html(lines[3:])}</div>'


def bytes_in(scope: Scope) -> tuple[int, int]:
    """Bytes of the tensors in a scope and its children, and number of variables."""
    variables = list(scope.vars.values())
    size, count = sum(_bytes(v.value) for v in variables), len(variables)
    for kid in list(scope.kids):
        inner, more = bytes_in(kid)
        size, count = size + inner, count + more
    return size, count


def _bytes(value: Any) -> int:
    if isinstance(value, SelectedRows):
        value = value.value
    if isinstance(value, list | tuple):
        return sum(map(_bytes, value))
    if isinstance(value, LoDTensor) and value.array is not None:
        return int(value.array.nbytes)
    return 0
