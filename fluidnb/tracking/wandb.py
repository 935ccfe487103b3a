"""Weights & Biases: the values of a run."""

from typing import Any

from fluidnb.extras import require
from fluidnb.program import Program
from fluidnb.tracking.tracker import Step, Tracker


class WandB(Tracker):
    """Logs a run with Weights & Biases.

    Args:
        settings: arguments of ``wandb.init``: ``project="digits"``, ``mode="offline"``, ``config={...}``.
    """

    def __init__(self, **settings: Any) -> None:
        self._wandb = require("wandb", "fluid.tracking.WandB")
        self._settings = settings

    def begin(self, program: Program) -> None:
        """Begin a run."""
        self._run = self._wandb.init(**self._settings)

    def step(self, step: Step) -> None:
        """Log the values."""
        self._run.log(dict(step.values), step=step.number)

    def end(self, how: str) -> None:
        """Finish the run."""
        self._run.finish(exit_code=int(how != "done"))
