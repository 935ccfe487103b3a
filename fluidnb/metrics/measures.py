"""Metrics: of two classes, of what a program counted, and of detections."""

import math
from typing import Annotated, Any

import numpy as np

from fluidnb import layers
from fluidnb.arguments import Rule, checked
from fluidnb.average import check_number, refuse_sum
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpValueError, near
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.metrics.base import MetricBase, check_numbers, share
from fluidnb.program import Program, Variable, program_guard, unique_name
from fluidnb.runtime import Executor
from fluidnb.values import CPUPlace

Array = np.ndarray[Any, Any]
Thresholds = Annotated[int, Rule("an int from 0 to 100,000,000", lambda n: 0 <= n <= 10**8)]


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
        """
        p, t = _rounded(preds, labels)
        self.tp += int(((p == 1) & (t == 1)).sum())
        self.fp += int(((p == 1) & (t != 1)).sum())

    def eval(self) -> float:
        """The precision so far; 0 where nothing was predicted to be positive."""
        return share(self.tp, self.tp + self.fp)


class Recall(MetricBase):
    """Of what is positive, the share that was predicted to be: tp / (tp + fn), in two classes.

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
        curve: ``ROC`` (true against false positives) or ``PR`` (precision against recall).
        num_thresholds: see above.

    Example:
        >>> metric = fluid.metrics.Auc("auc")
        >>> metric.update(preds=np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4]]), labels=np.array([[0], [1], [1]]))
        >>> metric.eval()
        1.0
    """

    def __init__(self, name: str | None = None, curve: str = "ROC", num_thresholds: Thresholds = 4095) -> None:
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
        if scores.dtype.kind in "iu":  # the product does not fit into small integers
            scores = scores.astype(np.float64)
        # at most: in float16, 1 times 4095 is 4096
        bucket = np.minimum((scores * self._num_thresholds).astype(np.int64), self._num_thresholds)
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
        predicted = np.maximum(hits + misses, 1)
        precision = np.where(hits + misses > 0, hits / predicted, 1.0)
        return float(np.trapezoid(np.concatenate([precision[:1], precision]), recall))


class Accuracy(MetricBase):
    """The mean of the accuracies of batches, each counting by its size.

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
        """
        check_number(value, "value", array=True)
        check_number(weight, "weight")
        if weight < 0:
            raise OpValueError("The 'weight' can not be negative", received=weight)
        try:
            self.value += value * weight
        except (OverflowError, ValueError) as e:
            refuse_sum(self.value, value, e)
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


@checked
class DetectionMAP:
    """Mean average precision (mAP) of detections: of each batch, and of all batches since the last ``reset``.

    It adds operators to the main program; fetch the variables that ``get_map_var`` gives.

    Args:
        input: float [detections, 6]: class, score, left, top, right, bottom; a sequence for each image.
        gt_label: classes of the objects [objects, 1]; a sequence for each image.
        gt_box: float [objects, 4]: left, top, right, bottom; a sequence for each image.
        gt_difficult: 1 for a difficult object, else 0 [objects, 1]; a sequence for each image; None for no such marks.
        class_num: how many classes there are, with the background.
        background_label: see `fluid.layers.detection_map`.
        overlap_threshold: what the overlap (intersection over union) of a right detection with its object exceeds.
        evaluate_difficult: whether difficult objects count.
        ap_version: ``"integral"`` of precision over recall, or ``"11point"`` (VOC 2007).

    Attributes:
        metrics: the variable to fetch for the batch, as evaluators have it.
        cur_map: float [1], of the batch.
        accum_map: float [1], of all batches since the last ``reset``.
        has_state: int32 [1], 0 until the first batch; the startup program and ``reset`` set it to 0.

    Example:
        >>> found = fluid.layers.data("found", [6], lod_level=1)
        >>> label, box = (fluid.layers.data(n, [width], lod_level=1) for n, width in (("label", 1), ("box", 4)))
        >>> metric = fluid.metrics.DetectionMAP(found, label, box, class_num=2)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> start = exe.run(fluid.default_startup_program())
        >>> boxes = np.float32([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]])
        >>> feed = {"label": fluid.create_lod_tensor(np.float32([[1]]), [[1]])}
        >>> feed["box"] = fluid.create_lod_tensor(boxes[:1], [[1]])
        >>> for box in boxes:
        ...     feed["found"] = fluid.create_lod_tensor(np.float32([[1, 0.9, *box]]), [[1]])
        ...     print(*exe.run(feed=feed, fetch_list=list(metric.get_map_var())))
        [1.] [1.]
        [0.] [0.5]
    """

    def __init__(
        self, input: Variable, gt_label: Variable, gt_box: Variable, gt_difficult: Variable | None = None,
        class_num: int | None = None, background_label: int = 0, overlap_threshold: float = 0.5,
        evaluate_difficult: bool = True, ap_version: str = "integral",
    ) -> None:  # fmt: skip
        if class_num is None:
            raise OpValueError(
                "DetectionMAP needs class_num.", expected="the number of classes, with the background", received="None"
            )
        self.helper = LayerHelper("map_eval")
        self.metrics: list[Variable] = []
        main, startup = self.helper.main_program, self.helper.startup_program
        with all_or_nothing(main, startup):
            marks = [gt_label] if gt_difficult is None else [gt_label, gt_difficult]
            label = layers.concat([*(layers.cast(mark, gt_box.dtype) for mark in marks), gt_box], axis=1)
            of_batch = (input, label, class_num, background_label, overlap_threshold, evaluate_difficult)
            self.cur_map = layers.detection_map(*of_batch, ap_version=ap_version)
            self.metrics.append(self.cur_map)
            self.states: list[Variable] = [
                self._state("accum_pos_count", "int32"), self._state("accum_true_pos", input.dtype),
                self._state("accum_false_pos", input.dtype),
            ]  # fmt: skip
            self.has_state = self._state("has_state", "int32", (1,))
            self.helper.set_variable_initializer(self.has_state, Constant(0.0))
            self.accum_map = layers.detection_map(
                *of_batch, has_state=self.has_state, input_states=self.states, out_states=self.states,
                ap_version=ap_version,
            )  # fmt: skip
            layers.fill_constant([1], "int32", 1, out=self.has_state)

    def _state(self, suffix: str, dtype: object, shape: tuple[int, ...] = ()) -> Variable:
        """A persistable variable; the operator sets the shape of the counts."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        return self.helper.create_global_variable(True, name=name, dtype=dtype, shape=shape, stop_gradient=True)

    def get_map_var(self) -> tuple[Variable, Variable]:
        """The variables to fetch: mAP of the batch, and of all batches since the last `reset`."""
        return self.cur_map, self.accum_map

    def reset(self, executor: Executor | None = None, reset_program: Program | None = None) -> None:
        """Forget all batches, as at the start of a pass.

        Args:
            executor: runs it; None for one on the CPU.
            reset_program: gets the operator; None for a separate program.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(program, Program()):
            twin = program.global_block().create_var(
                name=self.has_state.name, shape=(1,), dtype="int32", persistable=True
            )
            layers.fill_constant([1], "int32", 0, out=twin)
        (executor or Executor(CPUPlace())).run(program)
