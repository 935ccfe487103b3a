"""pandas: the steps of a run, and the rows of reports, as tables."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from fluidnb.extras import require
from fluidnb.tracking.tracker import Step, Tracker


class Table(Tracker):
    """Collects the values of a run; ``frame()`` is a pandas table of them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def step(self, step: Step) -> None:
        """Keep the values."""
        self.rows.append({"step": step.number, **step.values})

    def frame(self) -> Any:
        """A table with a row for each step and a column for each value; the index is the step."""
        pandas = require("pandas", "Table.frame")
        return pandas.DataFrame(self.rows or {"step": []}).set_index("step")


def frame(report: Any) -> Any:
    """The rows of a report as a pandas table, a column for each field.

    Args:
        report: rows of one dataclass, or an object that has them as ``rows``: ``fluidnb.program.summary``'s summaries,
            ``program.cost()``, profiles.
    """
    pandas = require("pandas", "fluid.tracking.frame")
    rows = getattr(report, "rows", report)
    found: Iterable[Any] = rows() if callable(rows) else rows
    return pandas.DataFrame([{field.name: getattr(row, field.name) for field in fields(row)} for row in found])
