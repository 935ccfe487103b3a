"""Metrics that add up what a program counted: accuracy, chunks, edit distances."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fluidnb.average import check_number
from fluidnb.errors import OpValueError
from fluidnb.metrics.base import MetricBase, check_numbers, share

Array = np.ndarray[Any, Any]


class Accuracy(MetricBase):
    """The mean of the accuracies of batches, each counting by its size.

    Args:
        name: its name.

    Example:
        >>> metric = fluid.metrics.Accuracy()
        >>> metric.update(value=0.75, weight=4)
        >>> metric.update(value=0.0, weight=2)
        >>> metric.eval()
        0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.value, self.weight = 0.0, 0.0

    def update(self, value: Any, weight: float) -> None:
        """Take a batch in.

        Args:
            value: its accuracy: what ``layers.accuracy`` gave.
            weight: how many rows it has.

        Raises:
            OpValueError: one of them is no number, or the weight is negative.
        """
        check_number(value, "value", array=True)
        check_number(weight, "weight")
        if weight < 0:
            raise OpValueError("The 'weight' can not be negative", received=weight)
        self.value += value * weight
        self.weight += weight

    def eval(self) -> Any:
        """The accuracy so far.

        Raises:
            OpValueError: there was no batch.
        """
        if not self.weight:
            raise OpValueError(
                "There is no data in Accuracy Metrics. Please check layers.accuracy output has added to Accuracy."
            )
        return self.value / self.weight


class ChunkEvaluator(MetricBase):
    """Precision, recall and F1 of chunks (names of persons, places, …), from the counts of ``layers.chunk_eval``.

    Args:
        name: its name.

    Example:
        >>> metric = fluid.metrics.ChunkEvaluator()
        >>> metric.update(num_infer_chunks=10, num_label_chunks=9, num_correct_chunks=8)
        >>> precision, recall, f1 = metric.eval()
        >>> precision, round(recall, 4), round(f1, 4)
        (0.8, 0.8889, 0.8421)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = 0, 0, 0

    def update(self, num_infer_chunks: Any, num_label_chunks: Any, num_correct_chunks: Any) -> None:  # type: ignore[override]
        """Take a batch in.

        Args:
            num_infer_chunks: how many chunks were predicted, a number or an array of one element.
            num_label_chunks: how many there are.
            num_correct_chunks: how many of the predicted ones are right.

        Raises:
            OpValueError: one of them is no number.
        """
        counts = {
            "num_infer_chunks": num_infer_chunks,
            "num_label_chunks": num_label_chunks,
            "num_correct_chunks": num_correct_chunks,
        }
        numbers = {name: _count(value, name) for name, value in counts.items()}
        for name, number in numbers.items():
            setattr(self, name, getattr(self, name) + number)

    def eval(self) -> tuple[float, float, float]:
        """(precision, recall, F1) so far; 0 where there is nothing to divide by."""
        precision = share(self.num_correct_chunks, self.num_infer_chunks)
        recall = share(self.num_correct_chunks, self.num_label_chunks)
        return precision, recall, share(2 * precision * recall, precision + recall)


class EditDistance(MetricBase):
    """The mean edit distance of sequences, and the share of sequences that are not exactly right.

    Args:
        name: its name.

    Example:
        >>> metric = fluid.metrics.EditDistance("distance")
        >>> metric.update(distances=np.array([[2.0], [0.0]]), seq_num=2)
        >>> metric.eval()
        (1.0, 0.5)
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.total_distance, self.seq_num, self.instance_error = 0.0, 0, 0

    def update(self, distances: Array, seq_num: Any) -> None:
        """Take a batch in.

        Args:
            distances: the edit distance of each sequence [N, 1], from ``layers.edit_distance``.
            seq_num: how many sequences there are.

        Raises:
            OpValueError: one of them has another kind.
        """
        check_numbers("distances", distances)
        number = _count(seq_num, "seq_num")
        self.total_distance += float(distances.sum())
        self.seq_num += number
        self.instance_error += number - int((distances == 0).sum())

    def eval(self) -> tuple[float, float]:
        """(mean distance, share of sequences with one above 0) so far.

        Raises:
            OpValueError: there was no sequence.
        """
        if not self.seq_num:
            raise OpValueError(
                "There is no data in EditDistance Metric. Please check layers.edit_distance output has been added to "
                "EditDistance."
            )
        return self.total_distance / self.seq_num, self.instance_error / self.seq_num


def _count(value: Any, argument: str) -> int:
    """A number of things, from a number or an array of one element."""
    check_number(value, argument)
    number = np.asarray(value).item()
    if isinstance(number, complex) or not math.isfinite(number):
        raise OpValueError(f"The '{argument}' must be a finite number.", expected="0 or more", received=number)
    return int(number)
