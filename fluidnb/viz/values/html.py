"""The HTML face of scopes: a fold for each, a row for each variable, values as small pictures."""

from __future__ import annotations

from collections.abc import Iterable

from fluidnb.visible import escape
from fluidnb.viz.base.html import CSS, boxed
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.base.svg import FONT, new_uid
from fluidnb.viz.program.html import SUMMARY
from fluidnb.viz.values.model import ScopeRow, ScopeVariable, TensorSummary
from fluidnb.viz.values.preview import Preview
from fluidnb.viz.values.preview_html import histogram_html, lod_html, preview_html

#: Scopes inside one that stand open; when there are more, all are folded.
_OPEN = 3
#: Scopes inside one, and variables of one, that are drawn; what follows is counted.
_KIDS, _HELD = 24, 300
#: Notebooks give cells a place of their own.
_CELL = ' style="text-align:left;vertical-align:top;padding:1px 8px;white-space:nowrap"'


def scope_html(scope: ScopeRow, uid: str = "") -> str:
    """A scope and those inside it as HTML that folds, without a script.

    Args:
        scope: the outermost one, read with previews.
        uid: start of all ids; unique by default. A scope's fold has the id ``{uid}scope``, and a number for each scope
            on the way to it.

    Returns:
        One element.

    Example:
        >>> html = scope_html(ScopeRow("scope", (ScopeVariable("x", "nothing yet"),), (ScopeRow("block 0"),)), "a_")
        >>> html.count("<details"), 'id="a_scope_0"' in html
        (2, True)
    """
    css = f"line-height:1.5;padding-left:1.3em;font-family:{escape(FONT)};font-size:12px"
    return boxed(f'<div style="{css}">{_fold(scope, f"{uid or new_uid()}scope", True)}</div>')


def tensor_html(summary: TensorSummary, preview: Preview | None) -> str:
    """A tensor with its histogram, preview and sequences.

    Args:
        summary: the tensor.
        preview: some of its elements, or None.

    Returns:
        One element.

    Example:
        >>> tensor_html(TensorSummary("x", "int64", (3,), ((0, 1, 3),), values="[7, 8, 9]"), None).count("inline-block")
        2
    """
    css = f"line-height:1.5;font-family:{escape(FONT)};font-size:12px"
    row = ScopeVariable(summary.name, "LoDTensor", summary, preview)
    return boxed(f'<div style="{css}">{_table(_rows([row]))}</div>')


def _fold(scope: ScopeRow, uid: str, opened: bool) -> str:
    title = f"{_piece(scope.title, 'bold')}  {_piece(plural(len(scope.held) + scope.more, 'variable'), 'dim')}"
    parts = [f'<details id="{uid}"{" open" * opened}><summary style="{SUMMARY}">{title}</summary>']
    if scope.held:
        parts.append(
            _table(_rows(scope.held[:_HELD])) + _rest(scope.more + max(len(scope.held) - _HELD, 0), "more variable")
        )
    kids = "".join(_fold(kid, f"{uid}_{i}", len(scope.kids) <= _OPEN) for i, kid in enumerate(scope.kids[:_KIDS]))
    if kids:
        kids += _rest(scope.more_kids + max(len(scope.kids) - _KIDS, 0), "more scope")
        parts.append(f'<div style="padding-left:1.3em">{kids}</div>')
    return "".join([*parts, "</details>"])


def _table(rows: Iterable[str]) -> str:
    return f'<table style="border-collapse:collapse;border:0;margin:0;font-size:12px">{"".join(rows)}</table>'


def _rows(held: Iterable[ScopeVariable], depth: int = 0) -> Iterable[str]:
    """A row a variable, and one for each part of those that have parts."""
    for h in held:
        name = f'<span style="padding-left:{1.3 * depth:.1f}em">{_piece(h.name, "dim" if depth else "name")}</span>'
        cells = [escape(h.kind)] if h.tensor is None else _cells(h.tensor, h.preview)
        wide = ' colspan="4"' if h.tensor is None else ""
        row = f"<td{_CELL}>{name}</td>" + "".join(f"<td{wide}{_CELL}>{cell}</td>" for cell in cells)
        yield f'<tr style="background:none">{row}</tr>'
        yield from _rows(h.parts, depth + 1)


def _cells(t: TensorSummary, preview: Preview | None) -> list[str]:
    facts = escape(t.facts) if t.dtype else _piece("empty", "dim")
    facts += _piece(f"  on {t.where}", "dim") if t.where else ""
    facts += lod_html(t.lod, t.shape[0] if t.shape else 0)
    picture = "" if preview is None else preview_html(preview)
    bars = histogram_html(t.histogram) if t.histogram else ""
    return [facts, picture, bars, _piece(t.statistics, "warn" if t.nan or t.inf else "")]


def _rest(count: int, what: str) -> str:
    return f"<div>{_piece(f'… {plural(count, what)}', 'dim')}</div>" if count > 0 else ""


def _piece(text: str, style: str) -> str:
    return f'<span style="{CSS[style]}">{escape(text)}</span>' if CSS[style] else escape(text)
