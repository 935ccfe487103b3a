"""Text renderings of tensors and scopes."""

from collections.abc import Iterator

from fluidnb.utils.text_width import text_width
from fluidnb.values.lod_text import draw
from fluidnb.viz.base.curves import sparkline
from fluidnb.viz.base.styled_text import Line, Span, columns, plural
from fluidnb.viz.values.model import ScopeRow, TensorSummary


def scope_lines(scope: ScopeRow, width: int = 0) -> list[Line]:
    """A tree of scopes with statistics of tensors."""
    return columns(_scope_rows(scope, 0), width)


def tensor_lines(summary: TensorSummary) -> list[Line]:
    """A tensor in a line or two: name, dtype, shape, LoD, statistics, device."""
    lead: Line = [(summary.name + "  ", "name")] if summary.name else []
    line = [*lead, (summary.facts if summary.dtype else "no value yet", ""), *statistics_pieces(summary)]
    if summary.where:
        line.append(("  on " + summary.where, "dim"))
    if not summary.lod:
        return [line]
    indent = " " * (text_width(summary.name) + 2 if summary.name else 0)
    picture, _ = draw(summary.lod, summary.shape[0] if summary.shape else 0)
    return [line, [(indent, ""), (f"{lod_text(summary.lod)}  {picture}", "dim")]]


def statistics_pieces(summary: TensorSummary) -> Line:
    """Statistics and histogram of a tensor, where it has them."""
    style = "warn" if summary.nan or summary.inf else ""
    pieces = [("  " + summary.statistics, style)] if summary.statistics else []
    return [*pieces, ("  " + sparkline(summary.histogram), "forward")] if summary.histogram else pieces


def lod_text(lod: tuple[tuple[int, ...], ...], most: int = 12) -> str:
    """Offsets as text; long levels are cut."""
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
