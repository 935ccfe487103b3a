"""Metrics of two classes: precision, recall, the area under a curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidnb.errors import OpValueError, near
from fluidnb.metrics.base import MetricBase, check_numbers, share

Array = np.ndarray[Any, Any]


def _rounded(preds: object, labels: object) -> tuple[Array, Array]:
    """Predictions and labels of two classes as 0 and 1."""
    check_numbers("preds", preds)
    check_numbers("labels", labels)
    p, t = np.rint(np.asarray(preds)).astype(np.int64).ravel(), np.asarray(labels).astype(np.int64).ravel()
    if len(p) != len(t):
        raise OpValueError("There must be a label for each prediction.", expected=len(p), received=len(t))
    return p, t


class Precision(MetricBase):
    """Of what was predicted to be positive, the share that is: tp / (tp + fp), in two classes.

    Args:
        name: its name.

    Example:
        >>> metric = fluid.metrics.Precision()
        >>> metric.update(preds=np.array([[0.9], [0.7], [0.2]]), labels=np.array([[1], [0], [1]]))
        >>> metric.eval()
        0.5
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp, self.fp = 0, 0

    def update(self, preds: Array, labels: Array) -> None:
        """Take a batch in.

        Args:
            preds: probabilities of the positive class [N, 1]; 0.5 and below counts as negative.
            labels: 0 or 1 [N, 1].

        Raises:
            OpValueError: one of them is no array, or their numbers differ.
        """
        p, t = _rounded(preds, labels)
        self.tp += int(((p == 1) & (t == 1)).sum())
        self.fp += int(((p == 1) & (t != 1)).sum())

    def eval(self) -> float:
        """The precision so far; 0 where nothing was predicted to be positive."""
        return share(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """Of what is positive, the share that was predicted to be: tp / (tp + fn), in two classes.

    Args:
        name: its name.

    Example:
        >>> metric = fluid.metrics.Recall()
        >>> metric.update(preds=np.array([[0.9], [0.7], [0.2]]), labels=np.array([[1], [1], [1]]))
        >>> round(metric.eval(), 4)
        0.6667
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.tp, self.fn = 0, 0

    def update(self, preds: Array, labels: Array) -> None:
        """Take a batch in.

        Args:
            preds: probabilities of the positive class [N, 1]; 0.5 and below counts as negative.
            labels: 0 or 1 [N, 1].

        Raises:
            OpValueError: one of them is no array, or their numbers differ.
        """
        p, t = _rounded(preds, labels)
        self.tp += int(((p == 1) & (t == 1)).sum())
        self.fn += int(((p != 1) & (t == 1)).sum())

    def eval(self) -> float:
        """The recall so far; 0 where nothing was positive."""
        return share(self.tp, self.tp + self.fn)


class Auc(MetricBase):
    """The area under a curve of a classifier's quality, over two classes.

    Scores are counted in ``num_thresholds + 1`` buckets, so that nothing grows with the number of batches.

    Args:
        name: its name.
        curve: ``ROC`` (true against false positives) or ``PR`` (precision against recall).
        num_thresholds: see above.

    Raises:
        OpValueError: there is no such curve.

    Example:
        >>> metric = fluid.metrics.Auc("auc")
        >>> metric.update(preds=np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]), labels=np.array([[0], [1], [1]]))
        >>> metric.eval()
        1.0
    """

    def __init__(self, name: str | None = None, curve: str = "ROC", num_thresholds: int = 4095) -> None:
        super().__init__(name)
        if curve not in ("ROC", "PR"):
            raise OpValueError(
                f"Auc has no curve called {curve!r}.", expected="'ROC' or 'PR'",
                received=repr(curve), hint=near(str(curve).upper(), ("ROC", "PR")),
            )  # fmt: skip
        self._curve, self._num_thresholds = curve, int(num_thresholds)
        self.positive = np.zeros(self._num_thresholds + 1, np.int64)
        self.negative = np.zeros(self._num_thresholds + 1, np.int64)

    def update(self, preds: Array, labels: Array) -> None:
        """Take a batch in.

        Args:
            preds: probabilities [N, 2]; the second column is that of the positive class. Or that column alone [N, 1].
            labels: 0 or 1 [N, 1].

        Raises:
            OpValueError: one of them is no array, their numbers differ, or a score is not from 0 to 1.
        """
        check_numbers("labels", labels)
        check_numbers("predictions", preds)
        scores, truth = (preds[..., -1] if preds.ndim > 1 else preds).ravel(), labels.ravel() != 0
        if len(scores) != len(truth):
            raise OpValueError("There must be a label for each prediction.", expected=len(scores), received=len(truth))
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise OpValueError(
                "Auc takes probabilities.", expected="0 to 1", received=f"{scores.min()} to {scores.max()}",
                hint="layers.softmax() makes probabilities of scores.",
            )  # fmt: skip
        bucket = (scores * self._num_thresholds).astype(np.int64)
        self.positive += np.bincount(bucket[truth], minlength=len(self.positive))
        self.negative += np.bincount(bucket[~truth], minlength=len(self.negative))

    def eval(self) -> float:
        """The area so far; 0 for ROC where one of the classes is missing."""
        hits, misses = np.cumsum(self.positive[::-1]), np.cumsum(self.negative[::-1])
        if not hits[-1] or self._curve == "ROC" and not misses[-1]:
            return 0.0
        recall = np.concatenate([[0.0], hits / hits[-1]])
        if self._curve == "ROC":
            return float(np.trapezoid(recall, np.concatenate([[0.0], misses / misses[-1]])))
        found = np.maximum(hits + misses, 1)
        precision = np.where(hits + misses > 0, hits / found, 1.0)
        return float(np.trapezoid(np.concatenate([precision[:1], precision]), recall))
