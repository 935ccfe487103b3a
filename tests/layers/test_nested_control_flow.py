"""Random networks of loops, branches and recurrent networks inside each other: their gradients, in both walkers."""

import numpy as np
import pytest

import fluidnb as fluid
from tests.layers.gradients import check_gradients
from tests.layers.nests import ROWS, WIDTH, Nest
from tests.tools.sampling import sample

L = fluid.layers


@pytest.mark.parametrize("seed", sample(range(300), 12))
def test_gradients_of_a_random_network(seed):
    with fluid.fresh():
        x = L.data("x", [WIDTH], dtype="float64")
        nest = Nest(seed)
        h = nest.build(x, 2 + seed % 2)
        fluid.default_startup_program().random_seed = seed + 1
        feed = np.random.default_rng(seed).standard_normal((ROWS, WIDTH))
        loss = L.mean(L.elementwise_mul(h, L.sin(L.scale(h, 2.0, bias=0.5))))
        check_gradients(loss, {"x": feed}, rtol=1e-4)
