"""tqdm: a progress bar with the values of the last step."""

from typing import Any

from fluidnb.extras import require
from fluidnb.program import Program
from fluidnb.tracking.tracker import Step, Tracker


class Tqdm(Tracker):
    """Shows a bar of tqdm.

    Args:
        settings: arguments of ``tqdm.auto.tqdm``: ``total=1000``, ``desc="training"``.
    """

    def __init__(self, **settings: Any) -> None:
        self._tqdm, self._settings = require("tqdm.auto", "fluid.tracking.Tqdm").tqdm, settings

    def begin(self, program: Program) -> None:
        """Show the bar."""
        self._bar = self._tqdm(**self._settings)

    def step(self, step: Step) -> None:
        """Move the bar, and show the values beside it."""
        self._bar.set_postfix(step.values, refresh=False)
        self._bar.update(step.number + 1 - self._bar.n)

    def end(self, how: str) -> None:
        """Close the bar."""
        self._bar.close()
