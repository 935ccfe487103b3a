"""Text rendering of summaries."""

from fluidnb.viz.base.styled_text import Line, columns
from fluidnb.viz.summary.model import Summary


def summary_lines(summary: Summary) -> list[Line]:
    """A title, then a line for each fact."""
    head: Line = [(summary.title, summary.role), *([("  " + summary.about, "dim")] if summary.about else [])]
    return [head, *columns([[[("  " + fact.name, "dim")], [(fact.text, fact.style)]] for fact in summary.facts])]
