"""``paddle.v2.plot`` and ``paddle.utils.plot``: curves of costs, drawn with matplotlib where it is installed."""

import importlib
import os
import sys
from typing import Any

from fluidnb.errors import NotFound, near
from fluidnb.utils.source_location import warn

__all__ = ["PlotData", "Ploter"]


class PlotData:
    """The points of one curve."""

    def __init__(self) -> None:
        self.reset()

    def append(self, step: float, value: float) -> None:
        """Add a point."""
        self.step.append(step)
        self.value.append(value)

    def reset(self) -> None:
        """Remove all points."""
        self.step: list[float] = []
        self.value: list[float] = []


class Ploter:
    """Curves in one figure. The environment variable ``DISABLE_PLOT=True`` turns drawing off."""

    def __init__(self, *titles: str) -> None:
        self.curves = {title: PlotData() for title in titles}
        self._figures: Any = None
        if os.environ.get("DISABLE_PLOT") != "True":
            try:
                self._figures = importlib.import_module("matplotlib.pyplot")
            except ImportError:
                warn("matplotlib is not installed: Ploter keeps the points of its curves, and draws nothing.")

    def append(self, title: str, step: float, value: float) -> None:
        """Add a point to a curve."""
        if title not in self.curves:
            raise NotFound(f'There is no curve "{title}".', hint=near(title, self.curves))
        self.curves[title].append(step, float(value))

    def plot(self, path: str | None = None) -> None:
        """Draw the curves.

        Args:
            path: a file; None: the output of a notebook's cell.
        """
        if self._figures is None:
            return
        drawn = [title for title, curve in self.curves.items() if curve.step]
        for title in drawn:
            self._figures.plot(self.curves[title].step, self.curves[title].value)
        self._figures.legend(drawn, loc="upper left")
        if path is not None:
            self._figures.savefig(path)
        elif "IPython" in sys.modules:
            display = importlib.import_module("IPython.display")
            display.clear_output(wait=True)
            display.display(self._figures.gcf())
        self._figures.gcf().clear()

    def reset(self) -> None:
        """Remove the points of all curves."""
        for curve in self.curves.values():
            curve.reset()
