"""Sums of a parameter's last values."""

import numpy as np
import pytest

from fluidnb.testing import run_op
from tests.ops.cases import Forward, family, values

P, A, B, C = (values(2, 3, seed=i) for i in range(4))


def case(counts, attrs, sums, after):
    """The inputs beside the sums A, B and C, and the outputs."""
    names = ("num_accumulates", "old_num_accumulates", "num_updates")
    return {
        "inputs": {"param": P, "in_sum_1": A, "in_sum_2": B, "in_sum_3": C,
                   **{f"in_{n}": np.array([v]) for n, v in zip(names, counts, strict=True)}},
        "attrs": attrs,
        "outputs": {**{f"out_sum_{i}": s for i, s in enumerate(sums, 1)},
                    **{f"out_{n}": np.array([v]) for n, v in zip(names, after, strict=True)}},
    }  # fmt: skip


WINDOW = {"average_window": 0.5, "min_average_window": 3, "max_average_window": 10}
ZERO = 0 * P

family(
    globals(),
    Forward,
    {
        "average_accumulates": case((1, 7, 4), WINDOW, (A + P, B, C), (2, 7, 5)),
        "average_accumulates/full": case((2, 7, 5), WINDOW, (ZERO, ZERO, A + B + P), (0, 3, 6)),
        "average_accumulates/share": case((5, 7, 30), WINDOW, (A + P, B, C), (6, 7, 31)),
        "average_accumulates/most": case((9, 7, 99), WINDOW, (ZERO, ZERO, A + B + P), (0, 10, 100)),
        "average_accumulates/moved": case(
            (20, 7, 16383), {**WINDOW, "max_average_window": 10**6}, (ZERO, A + B + P, C), (21, 7, 16384)
        ),
    },
)


def test_the_sums_hold_the_last_values():
    """Between the smallest and the largest window, the mean is over what was put aside and what came since."""
    rng = np.random.default_rng(0)
    state = {f"in_sum_{i}": np.zeros(1) for i in (1, 2, 3)}
    state |= {f"in_{n}": np.zeros(1, "int64") for n in ("num_accumulates", "old_num_accumulates", "num_updates")}
    seen = []
    for step in range(1, 30):
        seen.append(rng.uniform())
        out = run_op("average_accumulates", {"param": np.array(seen[-1:]), **state}, WINDOW)
        state = {name.replace("out_", "in_"): value for name, value in out.items()}
        held = int(out["out_num_accumulates"].item() + out["out_old_num_accumulates"].item())
        total = sum(out[f"out_sum_{i}"].item() for i in (1, 2, 3))
        assert total == pytest.approx(sum(seen[-held:])) and out["out_num_updates"].item() == step
    assert held < 20
