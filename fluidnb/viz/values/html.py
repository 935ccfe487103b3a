"""HTML rendering of scopes and tensors: collapsible, a row for each variable, values as small pictures."""

from collections.abc import Iterable

from fluidnb.utils.escapes import escape
from fluidnb.viz.base.html import boxed, span_html
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.base.svg import FONT, new_uid
from fluidnb.viz.program.html import SUMMARY
from fluidnb.viz.values.model import ScopeRow, ScopeVariable, TensorSummary
from fluidnb.viz.values.preview import Preview
from fluidnb.viz.values.preview_html import histogram_html, lod_html, preview_html

#: Child scopes that are open; when there are more, all are collapsed.
_OPEN = 3
#: Child scopes and variables that are drawn; the rest is counted.
_KIDS, _VARIABLES = 24, 300
#: Overrides the alignment of table cells in notebooks.
_CELL = ' style="text-align:left;vertical-align:top;padding:1px 8px;white-space:nowrap"'


def scope_html(scope: ScopeRow, uid: str = "") -> str:
    """A tree of scopes as collapsible HTML without a script.

    A scope's element has the id ``{uid}scope``, and a number for each scope on the path to it.
    """
    css = f"line-height:1.5;padding-left:1.3em;font-family:{escape(FONT)};font-size:12px"
    return boxed(f'<div style="{css}">{_fold(scope, f"{uid or new_uid()}scope", True)}</div>')


def tensor_html(summary: TensorSummary, preview: Preview | None) -> str:
    """A tensor with its histogram, preview and sequences."""
    return variable_html(ScopeVariable(summary.name, "LoDTensor", summary, preview))


def variable_html(variable: ScopeVariable) -> str:
    """The value of a variable with its parts."""
    css = f"line-height:1.5;font-family:{escape(FONT)};font-size:12px"
    return boxed(f'<div style="{css}">{_table(_rows([variable]))}</div>')


def _fold(scope: ScopeRow, uid: str, opened: bool) -> str:
    count = plural(len(scope.variables) + scope.more, "variable")
    title = f"{span_html(scope.title, 'bold')}  {span_html(count, 'dim')}"
    parts = [f'<details id="{uid}"{" open" * opened}><summary style="{SUMMARY}">{title}</summary>']
    if scope.variables:
        more = scope.more + max(len(scope.variables) - _VARIABLES, 0)
        parts.append(_table(_rows(scope.variables[:_VARIABLES])) + _rest(more, "more variable"))
    kids = "".join(_fold(kid, f"{uid}_{i}", len(scope.kids) <= _OPEN) for i, kid in enumerate(scope.kids[:_KIDS]))
    if kids:
        kids += _rest(scope.more_kids + max(len(scope.kids) - _KIDS, 0), "more scope")
        parts.append(f'<div style="padding-left:1.3em">{kids}</div>')
    return "".join([*parts, "</details>"])


def _table(rows: Iterable[str]) -> str:
    return f'<table style="border-collapse:collapse;border:0;margin:0;font-size:12px">{"".join(rows)}</table>'


def _rows(variables: Iterable[ScopeVariable], depth: int = 0) -> Iterable[str]:
    """A row for each variable and for each of its parts."""
    for h in variables:
        name = f'<span style="padding-left:{1.3 * depth:.1f}em">{span_html(h.name, "dim" if depth else "name")}</span>'
        cells = [escape(h.kind)] if h.tensor is None else _cells(h.tensor, h.preview)
        wide = ' colspan="4"' if h.tensor is None else ""
        row = f"<td{_CELL}>{name}</td>" + "".join(f"<td{wide}{_CELL}>{cell}</td>" for cell in cells)
        yield f'<tr style="background:none">{row}</tr>'
        yield from _rows(h.parts, depth + 1)


def _cells(t: TensorSummary, preview: Preview | None) -> list[str]:
    facts = escape(t.facts) if t.dtype else span_html("empty", "dim")
    facts += span_html(f"  on {t.where}", "dim") if t.where else ""
    facts += lod_html(t.lod, t.shape[0] if t.shape else 0)
    picture = "" if preview is None else preview_html(preview)
    bars = histogram_html(t.histogram) if t.histogram else ""
    return [facts, picture, bars, span_html(t.statistics, "warn" if t.nan or t.inf else "")]


def _rest(count: int, what: str) -> str:
    return f"<div>{span_html(f'… {plural(count, what)}', 'dim')}</div>" if count > 0 else ""
