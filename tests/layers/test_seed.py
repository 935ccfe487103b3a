"""fluid.seed reaches every initializer, and what a user's own readers draw from."""

import random

import numpy as np
import pytest

import fluidnb as fluid

I, L = fluid.initializer, fluid.layers  # noqa: E741
INITIALIZERS = [I.Uniform(), I.Normal(), I.TruncatedNormal(), I.Xavier(), I.Xavier(uniform=False), I.MSRA()]


def first_values(initializer):
    with fluid.fresh():
        names = [L.create_parameter([4, 5], "float32", name=n, default_initializer=initializer).name for n in "ab"]
        return fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=names)


@pytest.mark.parametrize("initializer", INITIALIZERS, ids=repr)
def test_initializers(initializer):
    drawn = []
    for seed in (7, 8, 7):
        fluid.seed(seed)
        drawn.append(first_values(initializer))
    one, other, again = drawn
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one[0], one[1]) and not np.array_equal(one, other)


def test_generators_of_python_and_numpy():
    drawn = []
    for seed in (7, -8, 7):
        fluid.seed(seed)
        drawn.append((random.random(), np.random.rand()))
    assert drawn[0] == drawn[2] != drawn[1]


def test_the_startup_programs_own_seed_fixes_first_values():
    """A seed of the main program alone fixes masks, not first values."""
    got = []
    for _ in range(2):
        with fluid.fresh() as (main, startup):
            main.random_seed, startup.random_seed = 3, 5
            w = L.create_parameter([4], "float32", name="w")
            masked = L.dropout(L.ones([50], "float32"), 0.5)
            exe = fluid.Executor(fluid.CPUPlace())
            [value] = exe.run(startup, fetch_list=[w.name])
            got.append((value.tobytes(), exe.run(fetch_list=[masked])[0].tobytes()))
    assert got[0] == got[1]
    with fluid.fresh() as (main, _):
        main.random_seed = 3
        w = L.create_parameter([4], "float32", name="w")
        [value] = fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program(), fetch_list=[w.name])
    assert value.tobytes() != got[0][0]
