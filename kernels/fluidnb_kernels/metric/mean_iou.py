"""mean_iou: mean intersection over union of all classes."""

from collections.abc import Sequence

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb_kernels.emit import store
from fluidnb_kernels.metric.counts import CLASSES, count_classes
from fluidnb_kernels.rules import agree


def measure(
    predictions: Array, labels: Array, classes: int, before: Sequence[Sequence[Array]], mean: Array | None,
    wrong: Array | None, correct: Array | None,
) -> None:  # fmt: skip
    """Count the elements predicted for each class and write the mean overlap; outputs may be None.

    ``before``: lists of means, wrong and correct counts to be added. ``wrong`` counts elements of a class or predicted
    to be, but not both; ``correct`` both.
    """
    guess, truth = predictions.reshape(-1), labels.reshape(-1)
    for slot, found in (("Predictions", guess), ("Labels", truth)):
        if found.size and not (found.min() >= 0 and found.max() < classes):
            raise EnforceNotMet(
                f"Input({slot}) of mean_iou names a class that there is not.",
                expected=f"0 to {classes - 1}", received=f"{found.min()} to {found.max()}",
                hint="num_classes is one more than the largest class.",
            )  # fmt: skip
    means, wrongs, corrects = before
    hits, misses = guess[guess == truth], guess != truth
    right = np.bincount(hits, minlength=classes) + sum(corrects)
    off = np.bincount(guess[misses], minlength=classes) + np.bincount(truth[misses], minlength=classes) + sum(wrongs)
    union = right + off
    if mean is not None:
        seen = union > 0
        mean[...] = (right[seen] / union[seen]).mean() if seen.any() else np.nan
        for one in means:
            mean += one
    store((wrong, correct), (off, right))


def _infer(c: Context) -> None:
    predictions, labels, classes = c["Predictions"], c["Labels"], c.attr("num_classes")
    c.check_inputs("Predictions", "Labels")
    c.require(
        agree(predictions.shape, labels.shape), "Predictions and Labels of mean_iou must have the same shape.",
        expected=list(predictions.shape), received=list(labels.shape), late=True,
    )  # fmt: skip
    for slot, size in (("InWrongs", classes), ("InCorrects", classes), ("InMeanIou", 1)):
        for v in c.all(slot) if c.has(slot) else []:
            c.require(
                agree(v.shape, (size,)), f"Input({slot}) of mean_iou must be as the operator gives it.",
                expected=[size], received=list(v.shape),
            )  # fmt: skip
    c.set("OutMeanIou", (1,), np.float32)
    c.set("OutWrong", (classes,), np.int32)
    c.set("OutCorrect", (classes,), np.int32)


@op(
    "mean_iou",
    inputs={
        "Predictions: int": "the class of each element, any shape",
        "Labels: int": "its right class, the same shape",
        "InWrongs*?: int32[num_classes]": "OutWrong of batches before, added",
        "InCorrects*?: int32[num_classes]": "OutCorrect of batches before, added",
        "InMeanIou*?: float32[1]": "means of batches before, added",
    },
    outputs={
        "OutMeanIou": "float32 [1]: the mean over the classes that there are; nan where there are none",
        "OutWrong": "int32 [num_classes]: elements of a class or taken for it, but not both",
        "OutCorrect": "int32 [num_classes]: elements of a class that were taken for it",
    },
    attrs={"num_classes": Attr("int", doc="how many classes there are", gt=0)},
    cost="2 * Predictions",
    infer=_infer,
    dtype_slot="Predictions",
    cuda=CLASSES,
)
def mean_iou(b: Binder) -> None:
    """OutMeanIou = mean over classes of OutCorrect / (OutCorrect + OutWrong), each area's intersection over union.

    Example:
        >>> from fluidnb.testing import run_op
        >>> run_op("mean_iou", {"Predictions": [0, 1, 1], "Labels": [0, 0, 1]}, {"num_classes": 3})["OutMeanIou"]
        array([0.5], dtype=float32)

    Source: Fluid's mean_iou_op.
    """
    before = tuple(b.all(slot) for slot in ("InMeanIou", "InWrongs", "InCorrects"))
    reads = b["Predictions"], b["Labels"], b.attr("num_classes"), before
    outs = (b[slot] for slot in ("OutMeanIou", "OutWrong", "OutCorrect"))
    if b.on_cuda:
        count_classes(b, *reads, *outs)  # a class out of range makes the mean nan there, for a kernel cannot raise
    else:
        b(measure, *reads, *outs)
