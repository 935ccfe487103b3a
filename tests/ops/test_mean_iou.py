"""Intersection over union, counted class by class with sets."""

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Forward, family
from tests.tools.refused import refused

RNG = np.random.default_rng(0)
GUESS, TRUTH = RNG.integers(0, 4, (2, 3, 5)), RNG.integers(0, 4, (2, 3, 5))
CLASSES = 6  # two of which nobody names


def counted(wrongs=0, corrects=0, means=0.0):
    """The three results, from the places of each class."""
    wrong, correct, shares = np.zeros(CLASSES, int) + wrongs, np.zeros(CLASSES, int) + corrects, []
    for k in range(CLASSES):
        guessed, true = (set(np.flatnonzero(x.ravel() == k)) for x in (GUESS, TRUTH))
        correct[k] += len(guessed & true)
        wrong[k] += len(guessed ^ true)
        if correct[k] + wrong[k]:
            shares.append(correct[k] / (correct[k] + wrong[k]))
    mean = np.array([np.mean(shares) + means], "float32")
    return {"OutMeanIou": mean, "OutWrong": wrong.astype("int32"), "OutCorrect": correct.astype("int32")}


INPUTS = {"Predictions": GUESS, "Labels": TRUTH}
WRONGS = [RNG.integers(0, 9, CLASSES).astype("int32") for _ in range(2)]
CORRECTS = [RNG.integers(0, 9, CLASSES).astype("int32") for _ in range(2)]
MEANS = [np.array([0.25], "float32"), np.array([0.5], "float32")]

family(
    globals(),
    Forward,
    {
        "mean_iou": {"inputs": INPUTS, "attrs": {"num_classes": CLASSES}, "outputs": counted()},
        "mean_iou/int32": {
            "inputs": {s: v.astype("int32") for s, v in INPUTS.items()}, "attrs": {"num_classes": CLASSES},
            "outputs": counted(),
        },
        "mean_iou/batches_before": {
            "inputs": {**INPUTS, **{slot: [(f"{slot}{i}", v) for i, v in enumerate(found)] for slot, found in
                       (("InWrongs", WRONGS), ("InCorrects", CORRECTS), ("InMeanIou", MEANS))}},
            "attrs": {"num_classes": CLASSES},
            "outputs": counted(sum(WRONGS), sum(CORRECTS), 0.75),
        },
    },
)  # fmt: skip


def test_no_class_has_no_mean():
    none = np.zeros((0, 1), "int64")
    out = run_op("mean_iou", {"Predictions": none, "Labels": none}, {"num_classes": 2})
    assert np.isnan(out["OutMeanIou"]).all() and not out["OutWrong"].any() and not out["OutCorrect"].any()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"Predictions": GUESS + 3}, EnforceNotMet, "Predictions.* names a class that there is not"),
        ({"Labels": TRUTH - 1}, EnforceNotMet, "Labels.* names a class that there is not"),
        ({"Labels": TRUTH[0]}, RuleError, "must have the same shape"),
        ({"Labels": TRUTH * 1.0}, RuleError, "Labels"),
        ({"InWrongs": np.zeros(3, "int32")}, RuleError, "InWrongs.* as the operator gives it"),
    ],
)
def test_what_does_not_fit_is_refused(change, error, message):
    with refused(error, message):
        run_op("mean_iou", {**INPUTS, **change}, {"num_classes": CLASSES})
