"""Losses over many classes, as layers: what they make, learn and refuse."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L = fluid.layers
PLACE = fluid.CPUPlace()


def words() -> tuple[fluid.framework.Variable, fluid.framework.Variable]:
    return L.data("word", [4]), L.data("next", [1], dtype="int64")


def trained(cost: fluid.framework.Variable, steps: int = 60) -> tuple[float, float]:
    """The loss at the first step and at the last, where the class follows from the input."""
    loss = L.mean(cost)
    fluid.optimizer.Adam(0.1).minimize(loss)
    exe, random = fluid.Executor(PLACE), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())
    seen = []
    for _ in range(steps):
        x = random.normal(size=(32, 4)).astype("float32")
        feed = {"word": x, "next": x.argmax(1)[:, None].astype("int64")}
        seen.append(float(exe.run(feed=feed, fetch_list=[loss])[0][0]))
    return float(np.mean(seen[:3])), float(np.mean(seen[-3:]))


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "custom_dist"])
def test_nce_learns(sampler: str) -> None:
    fluid.default_main_program().random_seed = fluid.default_startup_program().random_seed = 3
    chances = [0.25] * 4 if sampler == "custom_dist" else None
    cost = L.nce(*words(), 4, num_neg_samples=3, sampler=sampler, custom_dist=chances)
    first, last = trained(cost)
    assert last < 0.8 * first


def test_hsigmoid_learns() -> None:
    fluid.default_startup_program().random_seed = 3
    first, last = trained(L.hsigmoid(*words(), 4))
    assert last < 0.6 * first


def test_hsigmoid_with_a_tree_of_its_own() -> None:
    word, label = words()
    table, code = (L.data(n, [2], dtype="int64") for n in ("table", "code"))
    cost = L.hsigmoid(word, label, 3, path_table=table, path_code=code, is_custom=True, bias_attr=False)
    exe = fluid.Executor(PLACE)
    exe.run(fluid.default_startup_program())
    x, nodes, turns = np.ones((1, 4), "float32"), np.array([[2, -1]]), np.array([[1, 0]])
    got = exe.run(feed={"word": x, "next": np.array([[0]]), "table": nodes, "code": turns}, fetch_list=[cost])[0]
    (parameter,) = fluid.default_main_program().all_parameters()
    z = np.array(fluid.global_scope().find_var(parameter.name).get_tensor())[2].sum()
    assert parameter.shape == (3, 4)
    assert got.item() == pytest.approx(np.log1p(np.exp(z)) - z + np.log(2), rel=1e-5)


def test_what_they_refuse() -> None:
    word, label = words()
    with pytest.raises(OpValueError, match="Unsupported sampler type"):
        L.nce(word, label, 4, sampler="best")
    with pytest.raises(OpValueError, match="a probability for each class"):
        L.nce(word, label, 4, sampler="custom_dist", custom_dist=[1.0])
    with pytest.raises(OpTypeError, match="label of nce must be a Variable"):
        L.nce(word, [1], 4)
    with pytest.raises(OpValueError, match="num_classes must not be less than 2"):
        L.hsigmoid(word, label, 1)
    with pytest.raises(OpValueError, match="needs path_table and path_code"):
        L.hsigmoid(word, label, 3, is_custom=True)
    assert not fluid.default_main_program().global_block().ops
