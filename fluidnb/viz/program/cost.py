"""The cost and the summary of a program as tables."""

from fluidnb.program.cost import ProgramCost
from fluidnb.program.summary import ProgramSummary
from fluidnb.viz.base.styled_text import Line, columns


def cost_lines(cost: ProgramCost, group: str = "op", title: str = "program") -> list[Line]:
    """The cost of a program, summed up by operator type, layer, cell or role."""
    table = cost.table(group)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    roles = {row.name or "-": row.role for row in cost.by(group)}
    rows: list[list[Line]] = []
    for i, texts in enumerate(table):
        style = "dim" if i == 0 else "bold" if i == len(table) - 1 else roles.get(texts[0], "")
        numbers = (text.rjust(width) for text, width in zip(texts[1:-1], widths[1:], strict=False))
        cells = [texts[0], *numbers, texts[-1]]
        rows.append([[(text, style if j == 0 or i == 0 else "")] for j, text in enumerate(cells)])
    return [[(title, "bold"), (f"  {cost.multiply_adds:,} multiply-adds", "dim")], *columns(rows)]


def summary_table_lines(summary: ProgramSummary, title: str = "program") -> list[Line]:
    """The summary of a program by layer, operator type or block."""
    table = summary.table()
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows: list[list[Line]] = []
    for i, (name, *numbers, kinds, mark) in enumerate(table):
        style = "dim" if i == 0 else "bold" if i == len(table) - 1 else ""
        cells = [name, *(text.rjust(width) for text, width in zip(numbers, widths[1:], strict=False)), kinds, mark]
        rows.append([[(text, style)] for text in cells])
    total = summary.total
    head = f"  {total.parameters:,} parameters, {total.multiply_adds:,} multiply-adds"
    return [[(title, "bold"), (head, "dim")], *columns(rows)]
