"""Metrics against scikit-learn, in one batch and in several; the rules of MetricBase; mistakes."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError
from tests.tools.refused import refused

M = fluid.metrics
rng = np.random.default_rng(3)
LABELS = rng.integers(0, 2, (500, 1))
#: Scores with ties, on both sides of a half, that know something of the label.
SCORES = np.round(np.clip(rng.normal(0.35 + 0.3 * LABELS, 0.25), 0, 1), 2).astype("float32")


def over_batches(metric, size, preds=SCORES, labels=LABELS):
    metric.reset()
    for at in range(0, len(labels), size):
        metric.update(preds[at : at + size], labels[at : at + size])
    return metric.eval()


@pytest.mark.parametrize("size", [500, 64, 1])
@pytest.mark.parametrize("name", ["precision_score", "recall_score"])
def test_precision_and_recall(name, size):
    truth = pytest.importorskip("sklearn.metrics")
    metric = M.Precision() if name == "precision_score" else M.Recall()
    want = getattr(truth, name)(LABELS.ravel(), SCORES.ravel() > 0.5)
    assert over_batches(metric, size) == pytest.approx(want) and 0.5 < want < 1


@pytest.mark.parametrize("size", [500, 64])
def test_area_under_roc(size):
    truth = pytest.importorskip("sklearn.metrics")
    both = np.concatenate([1 - SCORES, SCORES], 1)
    want = truth.roc_auc_score(LABELS.ravel(), SCORES.ravel())
    assert over_batches(M.Auc("auc"), size, both) == pytest.approx(want, abs=1e-9)
    assert over_batches(M.Auc("auc"), size, SCORES) == pytest.approx(want, abs=1e-9)
    assert over_batches(M.Auc("auc", num_thresholds=10), size, both) == pytest.approx(want, abs=0.03)


def test_area_under_precision_and_recall():
    truth = pytest.importorskip("sklearn.metrics")
    precision, recall, _ = truth.precision_recall_curve(LABELS.ravel(), SCORES.ravel())
    want = truth.auc(recall, precision)
    assert over_batches(M.Auc("auc", curve="PR"), 50) == pytest.approx(want, abs=2e-3)


def test_perfect_reversed_and_constant_scores():
    labels = np.array([[0], [1], [0], [1]])
    for scores, area in ((labels, 1.0), (1 - labels, 0.0), (np.full((4, 1), 0.5), 0.5)):
        assert over_batches(M.Auc(), 4, scores.astype("float64"), labels) == area
    assert over_batches(M.Auc(), 4, np.ones((4, 1)), np.ones((4, 1))) == 0.0
    assert M.Auc().eval() == 0.0


def test_nothing_to_divide_by():
    zeros, ones = np.zeros((3, 1)), np.ones((3, 1))
    assert over_batches(M.Precision(), 3, zeros, ones) == 0.0
    assert over_batches(M.Recall(), 3, ones, zeros) == 0.0
    assert M.ChunkEvaluator().eval() == (0.0, 0.0, 0.0)


def test_accuracy_weighs_batches():
    metric = M.Accuracy("top1")
    metric.update(np.array([0.5], "float32"), 4)  # as layers.accuracy gives it
    metric.update(1.0, np.int64(12))
    assert str(metric) == "top1" and metric.eval() == pytest.approx([0.875])
    metric.reset()
    with pytest.raises(OpValueError, match="There is no data in Accuracy Metrics"):
        metric.eval()


def test_chunks():
    metric = M.ChunkEvaluator()
    metric.update(np.array([4]), 5, np.int64(3))
    metric.update(6, 4, 5)
    assert metric.eval() == pytest.approx((0.8, 8 / 9, 2 * 0.8 * (8 / 9) / (0.8 + 8 / 9)))


def test_edit_distance():
    metric = M.EditDistance("distance")
    metric.update(np.array([[2.0], [0.0], [1.0]]), np.array([3]))
    metric.update(np.array([[0.0]]), 1)
    assert metric.eval() == (0.75, 0.5)
    metric.reset()
    with pytest.raises(OpValueError, match="There is no data in EditDistance Metric"):
        metric.eval()


def test_composite():
    both = M.CompositeMetric("both")
    metrics = [M.Precision(), M.Recall()]
    for metric in metrics:
        both.add_metric(metric)
    both.update(SCORES, LABELS)
    assert both.eval() == [over_batches(M.Precision(), 500), over_batches(M.Recall(), 500)]
    both.reset()
    assert both.eval() == [0.0, 0.0]


class Counts(M.MetricBase):
    def __init__(self):
        super().__init__(None)
        self.n, self.x, self.array, self.other, self._kept = 3, 1.5, np.ones(2), "text", 7


def test_reset_sets_public_attributes_back_by_their_kind():
    metric = Counts()
    config = metric.get_config()
    metric.reset()
    assert (metric.n, metric.x, metric.array.tolist(), metric.other, metric._kept) == (0, 0.0, [0, 0], None, 7)
    assert type(metric.n) is int and type(metric.x) is float
    assert config["name"] == "Counts" and config["states"]["array"].tolist() == [1, 1]
    assert set(config["states"]) == {"n", "x", "array", "other"}
    for method, args in (("update", (1, 2)), ("eval", ())):
        with pytest.raises(NotImplementedError, match=f"Counts must define {method}"):
            getattr(metric, method)(*args)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: M.Precision().update([0.5], LABELS), "preds of Precision.update must be an array"),
        (lambda: M.Recall().update(SCORES, [1]), "labels of Recall.update must be an array"),
        (lambda: M.Precision().update(SCORES, LABELS[:3]), "a label for each prediction"),
        (lambda: M.Accuracy().update("0.5", 4), "The 'value' must be a number"),
        (lambda: M.Accuracy().update(0.5, None), "weight of Accuracy.update must be a number"),
        (lambda: M.Accuracy().update(0.5, -1), "The 'weight' can not be negative"),
        (lambda: M.ChunkEvaluator().update(1, 2, "3"), "The 'num_correct_chunks' must be a number"),
        (lambda: M.ChunkEvaluator().update(float("inf"), 2, 1), "The 'num_infer_chunks' must be a finite number"),
        (lambda: M.EditDistance().update(np.ones(1), np.complex64(1)), "The 'seq_num' must be a finite number"),
        (lambda: M.EditDistance("d").update([1.0], 1), "distances of EditDistance.update must be an array"),
        (lambda: M.EditDistance("d").update(np.ones(1), "1"), "The 'seq_num' must be a number"),
        (lambda: M.Auc(curve="roc"), 'no curve called .roc.(.|\n)*Did you mean "ROC"'),
        (lambda: M.Auc().update(SCORES, [1]), "labels of Auc.update must be an array"),
        (lambda: M.Auc().update([0.5], LABELS), "preds of Auc.update must be an array"),
        (lambda: M.Auc().update(SCORES, LABELS[:3]), "a label for each prediction"),
        (lambda: M.Auc().update(SCORES * 2, LABELS), "Auc takes probabilities"),
        (lambda: M.Auc().update(np.full((1, 1), np.nan), LABELS[:1]), "Auc takes probabilities"),
    ],
)
def test_mistakes(call, message):
    with refused(OpValueError, message):
        call()


def test_a_refused_batch_counts_for_nothing():
    metric = M.ChunkEvaluator()
    with pytest.raises(OpValueError):
        metric.update(1, 2, "3")
    assert metric.num_infer_chunks == 0
    with pytest.raises(OpTypeError, match="metric of CompositeMetric.add_metric must be a MetricBase"):
        M.CompositeMetric().add_metric("accuracy")


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(AttributeError, match="no Acuracy. Did you mean .Accuracy"):
        _ = fluid.metrics.Acuracy
