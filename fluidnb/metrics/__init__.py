"""Metrics: how good predictions are, over many batches, kept on the Python side.

A metric takes in what a program gave, batch by batch (``update``), says what it found so far (``eval``), and begins
anew for the next pass (``reset``).
"""

from typing import TYPE_CHECKING, Any

from fluidnb.errors import near
from fluidnb.metrics.base import CompositeMetric, MetricBase
from fluidnb.metrics.measures import Accuracy, Auc, ChunkEvaluator, DetectionMAP, EditDistance, Precision, Recall

__all__ = [
    "Accuracy", "Auc", "ChunkEvaluator", "CompositeMetric", "DetectionMAP", "EditDistance", "MetricBase",
    "Precision", "Recall",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        raise AttributeError(f"fluid.metrics has no {name}. {near(name, __all__)}".rstrip())
