"""Text renderings of tensors and scopes."""

from __future__ import annotations

from collections.abc import Iterator

from fluidnb.values.lod_text import draw
from fluidnb.viz.base.curves import sparkline
from fluidnb.viz.base.styled_text import Line, Span, columns, plural
from fluidnb.viz.values.model import ScopeRow, TensorSummary


def scope_lines(scope: ScopeRow, width: int = 0) -> list[Line]:
    """A tree of scopes with statistics of tensors.

    Args:
        scope: the outermost one.
        width: characters a line may have; 0 for any number.

    Returns:
        The lines.
    """
    return columns(_scope_rows(scope, 0), width)


def tensor_lines(summary: TensorSummary) -> list[Line]:
    """A tensor in a line or two: name, dtype, shape, LoD, statistics, device.

    Args:
        summary: the tensor.

    Returns:
        The lines.

    Example:
        >>> from fluidnb.viz.base.styled_text import plain
        >>> print(plain(tensor_lines(TensorSummary("x", "int64", (3,), ((0, 1, 3),), values="[7, 8, 9]"))))
        x  int64[3]  [7, 8, 9]
           lod [[0, 1, 3]]  [·][··]
    """
    lead: Line = [(summary.name + "  ", "name")] if summary.name else []
    line = [*lead, (summary.facts if summary.dtype else "no value yet", "")]
    if summary.statistics:
        line.append(("  " + summary.statistics, "warn" if summary.nan or summary.inf else ""))
    if summary.histogram:
        line.append(("  " + sparkline(summary.histogram), "forward"))
    if summary.where:
        line.append(("  on " + summary.where, "dim"))
    if not summary.lod:
        return [line]
    indent = " " * (len(summary.name) + 2 if summary.name else 0)
    picture, _ = draw(summary.lod, summary.shape[0] if summary.shape else 0)
    return [line, [(indent, ""), (f"{lod_text(summary.lod)}  {picture}", "dim")]]


def lod_text(lod: tuple[tuple[int, ...], ...], most: int = 12) -> str:
    """Offsets as text; long levels are cut.

    Example:
        >>> lod_text(((0, 2, 5),)), lod_text(((0, 1, 2, 3),), most=2)
        ('lod [[0, 2, 5]]', 'lod [[0, 1, ... 4 offsets]]')
    """
    levels = []
    for level in lod:
        shown = [str(i) for i in level[:most]]
        if len(level) > most:
            shown.append(f"... {len(level)} offsets")
        levels.append(f"[{', '.join(shown)}]")
    return f"lod [{', '.join(levels)}]"


def _scope_rows(scope: ScopeRow, depth: int) -> Iterator[list[Line]]:
    pad = "  " * depth
    yield [[(pad + scope.title, "bold"), ("  " + plural(len(scope.variables) + scope.more, "variable"), "dim")]]
    for variable in scope.variables:
        t = variable.tensor
        facts, stats = variable.kind, list[Span]()
        if t is not None:
            facts = t.facts + (" " + lod_text(t.lod) if t.lod else "") if t.dtype else "empty"
            facts += f"  on {t.where}" if t.where else ""
            stats = [(t.statistics, "warn" if t.nan or t.inf else ""), ("  " + sparkline(t.histogram), "forward")]
        yield [[(f"{pad}  ", ""), (variable.name, "name")], [(facts, "")], stats]
    for count, what in ((scope.more, "more variable"), (scope.more_kids, "more scope")):
        if count:
            yield [[(f"{pad}  … {plural(count, what)}", "dim")]]
    for kid in scope.kids:
        yield from _scope_rows(kid, depth + 1)
