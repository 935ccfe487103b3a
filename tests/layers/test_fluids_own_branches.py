"""Programs as Fluid's own users wrote them: a network for each half of the labels, with IfElse and by hand."""

import numpy as np
import pytest

import fluidnb as fluid
from tests.layers.walkers import both

L = fluid.layers
RNG = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def network(image):
    return L.fc(input=L.fc(input=image, size=10, act="tanh"), size=4, act="softmax")


def with_if_else(image, cond):
    ie = L.IfElse(cond)
    with ie.true_block():
        ie.output(network(ie.input(image)))
    with ie.false_block():
        ie.output(network(ie.input(image)))
    return ie()[0]


def by_hand(image, cond):
    """Both blocks run in any case; one may have no rows."""
    outs = []
    for part in L.split_lod_tensor(input=image, mask=cond):
        out = L.create_tensor(dtype="float32")
        with L.ConditionalBlock([cond]).block():
            L.assign(input=network(part), output=out)
        outs.append(out)
    return L.merge_lod_tensor(in_true=outs[0], in_false=outs[1], mask=cond, x=image)


def train(build):
    fluid.default_startup_program().random_seed = 3
    image, label = L.data("image", shape=[6]), L.data("label", shape=[1], dtype="int64")
    limit = L.fill_constant(shape=[1], dtype="int64", value=2)
    prob = build(image, L.less_than(x=label, y=limit))
    loss = L.mean(L.cross_entropy(input=prob, label=label))
    fluid.optimizer.Momentum(learning_rate=0.5, momentum=0.9).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng, losses = np.random.default_rng(4), []
    for step in range(40):
        labels = np.full(8, 3) if step == 5 else rng.integers(0, 4, 8)  # once all on one side
        images = np.eye(6, dtype="float32")[labels] + rng.normal(0, 0.1, (8, 6)).astype("float32")
        losses += exe.run(feed={"image": images, "label": labels.reshape(8, 1)}, fetch_list=[loss])
    return np.array(losses).ravel()


def test_both_ways_train_to_the_same_losses():
    losses = []
    for build in (with_if_else, by_hand):
        with fluid.fresh():
            losses.append(train(build))
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert losses[0][0] > 1 and losses[0][-5:].mean() < 0.1


@pytest.mark.parametrize("limit", [-1.0, 0.0, 1.5, 100.0])
def test_a_branch_for_each_number(limit):
    src = L.data("data", shape=[1])
    ie = L.IfElse(L.less_than(x=src, y=L.fill_constant([1], dtype="float32", value=limit)))
    with ie.true_block():
        ie.output(L.exp(ie.input(src)))
    with ie.false_block():
        ie.output(L.tanh(ie.input(src)))
    feed = RNG.uniform(0, 3, (10, 1)).astype("float32")
    (total,) = both([L.reduce_sum(ie()[0])], data=feed)
    np.testing.assert_allclose(total, np.where(feed < limit, np.exp(feed), np.tanh(feed)).sum(), rtol=1e-5)
