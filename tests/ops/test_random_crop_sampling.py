"""Parts of images and classes that are drawn, and a scale that follows what was seen."""

from itertools import permutations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import OpTest, run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.tools.refused import refused

IMAGES = np.arange(2 * 3 * 6 * 5.0).reshape(2, 3, 6, 5)


def windows(image, height, width):
    """Every part of an image [c, h, w] of this size, all channels cut at the same place."""
    rows, columns = image.shape[1] - height + 1, image.shape[2] - width + 1
    return [image[:, i : i + height, j : j + width] for i in range(rows) for j in range(columns)]


def are_parts(out):
    for image, part in zip(IMAGES, out, strict=True):
        assert any((part == window).all() for window in windows(image, 4, 3))


class TestRandomCrop(OpTest):
    op_type, inputs = "random_crop", {"X": IMAGES, "Seed": np.array([7])}
    attrs = {"shape": [3, 4, 3]}
    outputs = {"Out": are_parts, "SeedOut": np.array([7 * 48271**7 % (2**31 - 1)])}  # six numbers for two places

    def test_output(self):
        self.check_output()


def test_crops_come_from_every_place_alike():
    x = np.tile(np.arange(4.0), (4000, 1))
    found = run_op("random_crop", {"X": x, "Seed": np.array([1])}, {"shape": [2]})["Out"][:, 0]
    assert abs(np.bincount(found.astype(int), minlength=3) / 4000 - 1 / 3).max() < 0.03


@pytest.mark.parametrize("startup", [False, True])
def test_every_run_crops_elsewhere_and_a_seed_tells_where(startup):
    x = np.arange(64.0, dtype="f")[None]

    def run(**how):
        with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
            y = fluid.layers.random_crop(fluid.layers.data("x", [64]), [2], seed=3)
            exe = fluid.Executor(fluid.CPUPlace())
            if startup:
                exe.run(fluid.default_startup_program())
            return [exe.run(feed={"x": x}, fetch_list=[y], **how)[0][0, 0] for _ in "abcd"]

    assert len(set(run())) > 1 and run() == run() == run(keep_scopes=True)


def test_a_seed_of_ones_own_goes_on():
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        seed = fluid.layers.create_global_var([1], 5, "int64", persistable=True)
        y = fluid.layers.random_crop(fluid.layers.data("x", [64]), [2], seed)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        x = np.arange(64.0, dtype="f")[None]
        seeds = [int(exe.run(feed={"x": x}, fetch_list=[y, seed])[1][0]) for _ in "ab"]
    assert seeds == [5 * 48271**2 % (2**31 - 1), 5 * 48271**4 % (2**31 - 1)]


LOGITS, TRUE = values(3, 6), np.array([[5, 0], [1, 2], [0, 3]])
SAMPLES = np.hstack([TRUE, np.tile([0, 4, 2], (3, 1))])
CHANCES = values(3, 5, low=0.1, high=0.9, seed=1)
GIVEN = {"Logits": LOGITS, "Labels": TRUE, "CustomizedSamples": SAMPLES, "CustomizedProbabilities": CHANCES}


def chosen(remove):
    found = np.array([[LOGITS[i, k] for k in row] for i, row in enumerate(SAMPLES)]) - np.log(CHANCES)
    for i, j in ((0, 2), (1, 4), (2, 2)) if remove else ():  # samples that are true classes of their row
        found[i, j] = -1e20
    places = np.tile([0, 1], (3, 1))
    return {"SampledLogits": found, "SampledLabels": places, "Samples": SAMPLES, "Probabilities": CHANCES}


family(
    globals(),
    Forward,
    {
        "sample_logits": {
            "inputs": GIVEN, "outputs": chosen(True), "attrs": {"num_samples": 3, "use_customized_samples": True},
        },
    },
)  # fmt: skip

family(
    globals(),
    Differentiable,
    {
        "sample_logits/hits": {
            "inputs": GIVEN, "outputs": chosen(False), "grads": ("Logits",), "loss": ("SampledLogits",),
            "attrs": {"num_samples": 3, "use_customized_samples": True, "remove_accidental_hits": False},
        },
        "moving_average_abs_max_scale": {
            "inputs": {"X": values(3, 4, low=-3), "InAccum": np.array([2.0]), "InState": np.array([1.5])},
            "attrs": {"moving_rate": 0.75}, "grads": ("X",), "loss": ("Out",),
            "outputs": {
                "Out": values(3, 4, low=-3), "OutAccum": np.array([1.5 + abs(values(3, 4, low=-3)).max()]),
                "OutState": np.array([2.125]), "OutScale": np.array([(1.5 + abs(values(3, 4, low=-3)).max()) / 2.125]),
            },
        },
    },
)  # fmt: skip


def draws(once, count=4, classes=10, runs=300):
    one = {"Logits": np.zeros((2, classes)), "Labels": np.array([[1], [2]])}
    found = [run_op("sample_logits", one, {"num_samples": count, "uniq": once, "seed": k}) for k in range(1, runs)]
    return [r["Samples"][0, 1:] for r in found], found


def tries_of(samples, counts):
    """The tries of a draw: those with which the formula gives the counts of all its classes."""
    if np.allclose(counts, 4 * LAW[samples]):
        return 4
    fits = [t for t in range(5, 200) if np.allclose(counts, 1 - (1 - LAW[samples]) ** t)]
    assert len(fits) == 1
    return fits[0]


LAW = np.log((np.arange(10) + 2) / (np.arange(10) + 1)) / np.log(11)


def test_classes_are_drawn_by_a_log_uniform_law():
    samples, found = draws(False)
    assert abs(np.bincount(np.concatenate(samples), minlength=10) / (4 * 299) - LAW).max() < 0.04
    np.testing.assert_allclose(found[0]["Probabilities"], 4 * LAW[found[0]["Samples"]])


def test_each_class_is_drawn_once_and_the_expected_counts_say_so():
    samples, found = draws(True)
    assert all(len(set(row)) == 4 for row in samples)
    often, tries = np.zeros(10), 0.0  # exactly: over all orders in which four classes may be drawn
    for order in permutations(range(10), 4):
        left = 1 - np.cumsum([0, *LAW[list(order[:-1])]])
        chance = np.prod(LAW[list(order)] / left)
        often[list(order)] += chance
        tries += chance * (1 / left).sum()
    assert abs(np.bincount(np.concatenate(samples), minlength=10) / 299 - often).max() < 0.09  # 3 deviations
    taken = [tries_of(r["Samples"][0, 1:], r["Probabilities"][0, 1:]) for r in found]
    assert abs(np.mean(taken) - tries) < 0.6
    assert all((r["Samples"][0, 1:] == r["Samples"][1, 1:]).all() for r in found)


def test_a_softmax_over_samples_is_that_over_all_classes_when_all_are_sampled():
    """With every class among the samples and all as likely, leaving out the true one twice, the loss is the usual."""
    with fluid.fresh():
        logits = fluid.layers.data("logits", [6])
        label = fluid.layers.data("label", [1], dtype="int64")
        samples, chance = fluid.layers.data("samples", [7], dtype="int64"), fluid.layers.data("chance", [7])
        logits.stop_gradient = False
        args = {"use_customized_samples": True, "customized_samples": samples, "customized_probabilities": chance}
        sampled = fluid.layers.sampled_softmax_with_cross_entropy(logits, label, 6, **args)
        usual = fluid.layers.softmax_with_cross_entropy(logits, label)
        slopes = [fluid.gradients([y], [logits])[0] for y in (sampled, usual)]
        true = np.array([[5], [1], [0]])
        feed = {"logits": LOGITS.astype("f"), "label": true, "chance": np.ones((3, 7), "f")}
        feed["samples"] = np.hstack([true, np.tile(np.arange(6), (3, 1))])
        a, b, da, db = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[sampled, usual, *slopes])
    np.testing.assert_allclose(a, b, 1e-5)
    np.testing.assert_allclose(da, db, 1e-5, 1e-6)


def test_several_true_classes_share():
    with fluid.fresh():
        logits, label = fluid.layers.data("logits", [6]), fluid.layers.data("label", [2], dtype="int64")
        samples, chance = fluid.layers.data("samples", [5], dtype="int64"), fluid.layers.data("chance", [5])
        loss = fluid.layers.sampled_softmax_with_cross_entropy(
            logits, label, 3, 2, True, True, samples, chance
        )  # fmt: skip
        feed = {"logits": LOGITS.astype("f"), "label": TRUE, "samples": SAMPLES, "chance": CHANCES.astype("f")}
        [got] = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[loss])
    z = chosen(True)["SampledLogits"]
    logs = z - np.log(np.exp(z).sum(1, keepdims=True))
    np.testing.assert_allclose(got, -logs[:, :2].mean(1, keepdims=True) / 2, 1e-5)


def test_the_scale_stays_in_a_test():
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        block = fluid.default_main_program().global_block()
        x = fluid.layers.data("x", [2])
        accum, state, scale = (
            fluid.layers.create_global_var([1], v, "float32", persistable=True, name=n)
            for n, v in (("accum", 2.0), ("state", 1.0), ("scale", 9.0))
        )
        block.append_op(
            type="moving_average_abs_max_scale", inputs={"X": [x], "InAccum": [accum], "InState": [state]},
            outputs={"OutScale": [scale], "OutAccum": [accum], "OutState": [state]}, attrs={"moving_rate": 0.5},
        )  # fmt: skip
        test = fluid.default_main_program().clone(for_test=True)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        feed = {"x": np.array([[1, -3]], "f")}
        got = [exe.run(p, feed=feed, fetch_list=["scale"])[0] for p in (test, fluid.default_main_program(), test)]
    np.testing.assert_allclose(np.ravel(got), [9, 4 / 1.5, 4 / 1.5], 1e-6)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("random_crop", {"X": IMAGES, "Seed": np.array([1])}, {"shape": [7, 2]}, "must be a part of an instance"),
        ("random_crop", {"X": IMAGES, "Seed": np.array([1])}, {"shape": [2, 3, 6, 5]}, "fewer dimensions"),
        ("random_crop", {"X": IMAGES, "Seed": np.array([1.5])}, {"shape": [2]}, "must hold integers"),
        ("sample_logits", {"Logits": LOGITS, "Labels": TRUE}, {"num_samples": 7}, "more classes than there are"),
        ("sample_logits", {"Logits": LOGITS, "Labels": TRUE[:2]}, {"num_samples": 2}, r"must have the shape \[N, T\]"),
        ("sample_logits", GIVEN, {"num_samples": 2, "use_customized_samples": True}, "the true classes and then"),
        ("sample_logits", {"Logits": LOGITS, "Labels": TRUE + 1}, {"num_samples": 2}, "A label is out of range"),
        (
            "sample_logits", {"Logits": LOGITS, "Labels": TRUE}, {"num_samples": 2, "use_customized_samples": True},
            "needs CustomizedSamples",
        ),
        ("moving_average_abs_max_scale", {"X": LOGITS}, {}, "continues from InAccum and InState"),
        (
            "moving_average_abs_max_scale", {"X": LOGITS, "InAccum": LOGITS, "InState": np.ones(1)}, {},
            r"must have the shape \[1\]",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(op, inputs, attrs, message):
    with refused((RuleError, EnforceNotMet), message):
        run_op(op, inputs, attrs)


def test_layers_refuse_in_words():
    with fluid.fresh():
        x, label = fluid.layers.data("x", [6]), fluid.layers.data("label", [1], dtype="int64")
        with pytest.raises(OpTypeError, match="seed of random_crop must be an int, a Variable or None"):
            fluid.layers.random_crop(x, [2], seed="now")
        with pytest.raises(OpValueError, match="Custom samples need"):
            fluid.layers.sampled_softmax_with_cross_entropy(x, label, 3, use_customized_samples=True)
        with pytest.raises(OpTypeError, match="blocksize of space_to_depth must be an int"):
            fluid.layers.space_to_depth(x, 2.5)
        assert not fluid.default_main_program().global_block().ops
