"""MLflow: the values of a run as metrics."""

from typing import Any

from fluidnb.extras import require
from fluidnb.program import Program
from fluidnb.tracking.tracker import Step, Tracker

#: MLflow's words for the end of a run.
_STATUS = {"done": "FINISHED", "interrupted": "KILLED", "failed": "FAILED"}


class MLflow(Tracker):
    """Logs a run with MLflow, to the server or folder that ``mlflow.set_tracking_uri`` chose.

    Args:
        params: parameters of the run, such as ``{"learning_rate": 0.1}``.
        settings: arguments of ``mlflow.start_run``, such as ``run_name="wide"``.
    """

    def __init__(self, params: dict[str, Any] | None = None, **settings: Any) -> None:
        self._mlflow = require("mlflow", "fluid.tracking.MLflow")
        self._params, self._settings = params or {}, settings

    def begin(self, program: Program) -> None:
        """Begin a run."""
        self._mlflow.start_run(**self._settings)
        self._mlflow.log_params(self._params)

    def step(self, step: Step) -> None:
        """Log the values as metrics."""
        self._mlflow.log_metrics(dict(step.values), step=step.number)

    def end(self, how: str) -> None:
        """End the run with its status."""
        self._mlflow.end_run(_STATUS[how])
