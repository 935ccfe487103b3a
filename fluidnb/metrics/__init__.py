"""Metrics: how good predictions are, over many batches, kept on the Python side.

A metric takes in what a program gave, batch by batch (``update``), says what it found so far (``eval``), and begins
anew for the next pass (``reset``).
"""

from fluidnb.metrics.base import CompositeMetric, MetricBase
from fluidnb.metrics.binary import Auc, Precision, Recall
from fluidnb.metrics.counts import Accuracy, ChunkEvaluator, EditDistance

__all__ = [
    "Accuracy",
    "Auc",
    "ChunkEvaluator",
    "CompositeMetric",
    "EditDistance",
    "MetricBase",
    "Precision",
    "Recall",
]
