"""VisualDL: scalars, histograms of parameters, and the program for its graph page."""

from pathlib import Path

from fluidnb.extras import require
from fluidnb.files.atomic_write import atomic_write
from fluidnb.program import Program
from fluidnb.tracking.tracker import Step, Tracker


class VisualDL(Tracker):
    """Writes a run into a folder that ``visualdl --logdir FOLDER --model FOLDER/__model__`` shows.

    Args:
        folder: where the log goes.
        histograms: histograms of all parameters at each multiple of a step; 0 for none.
    """

    def __init__(self, folder: str, histograms: int = 0) -> None:
        self._writer = require("visualdl", "fluid.tracking.VisualDL").LogWriter(logdir=folder)
        self._folder, self._histograms = Path(folder), histograms

    def begin(self, program: Program) -> None:
        """Write the program beside the log."""
        with atomic_write(self._folder / "__model__", parents=True) as file:
            file.write(program.desc.serialize_to_string())

    def step(self, step: Step) -> None:
        """Write the values and, now and then, the histograms of all parameters."""
        for name, value in step.values.items():
            self._writer.add_scalar(tag=name, step=step.number, value=value)
        for name, array in step.parameters() if self._histograms and step.number % self._histograms == 0 else ():
            self._writer.add_histogram(tag=name, values=array.ravel(), step=step.number)

    def end(self, how: str) -> None:
        """Close the log."""
        self._writer.close()
