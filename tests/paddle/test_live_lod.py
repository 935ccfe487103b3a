"""Operators over sequences and arrays, with our backward: PaddlePaddle trains the same programs to the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fluidnb import layers
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import require_paddle, train_in_paddle
from tests.paddle.programs_control_flow import SHAPE, trained

pytestmark = pytest.mark.paddle

L: Any = layers


def _rows() -> Any:
    return L.fc(L.data("x", shape=list(SHAPE), append_batch_size=False), 3)


def _number(value: int) -> Any:
    return L.fill_constant([1], "int64", value)


def _sequences(*offsets: int) -> Any:
    """Six rows as four sequences; Paddle cannot take an empty one out of them."""
    return L.lod_reset(_rows(), target_lod=offsets or [0, 2, 3, 5, 6])


def _groups(*offsets: int) -> Any:
    """Six rows as six sequences, two of them empty, in three groups. Fluid has no layer that adds a level."""
    x = L.lod_reset(_rows(), target_lod=[0, 1, 4, 6])
    out = x.block.create_var(name="groups", dtype="float32")
    x.block.append_op(
        type="lod_reset", inputs={"X": [x]}, outputs={"Out": [out]},
        attrs={"target_lod": offsets or [0, 2, 2, 3, 4, 6, 6], "append": True},
    )  # fmt: skip
    return out


def _mask(*bits: int) -> Any:
    numbers = L.assign(np.array(bits, "float32").reshape(-1, 1))
    return L.less_than(L.fill_constant([len(bits), 1], "float32", 0.5), numbers)


def _both_ways(x: Any, mask: Any, level: int = 0) -> Any:
    true, false = L.split_lod_tensor(x, mask, level)
    return L.merge_lod_tensor(L.tanh(true), L.scale(false, 3.0), x, mask, level)


def rows_both_ways() -> Any:
    return _both_ways(_rows(), _mask(1, 0, 0, 1, 1, 0))


def all_rows_one_way() -> Any:
    return _both_ways(_rows(), _mask(0, 0, 0, 0, 0, 0))


def sequences_both_ways() -> Any:
    return _both_ways(_sequences(), _mask(1, 1, 0, 1))


def groups_both_ways() -> Any:
    return _both_ways(_groups(), _mask(1, 0, 1))


def sequences_of_groups_both_ways() -> Any:
    return _both_ways(_groups(*range(7)), _mask(1, 0, 1, 1, 0, 1), 1)


def steps_and_back() -> Any:
    x = _sequences(0, 2, 2, 5, 6)
    table = L.lod_rank_table(x)
    return L.tanh(L.array_to_lod_tensor(L.lod_tensor_to_array(x, table), table))


def steps_of_groups() -> Any:
    """What a step of groups holds is sequences."""
    x = _groups()
    table = L.lod_rank_table(x)
    array = L.lod_tensor_to_array(x, table)
    first = L.array_read(array, _number(0))
    L.array_write(L.tanh(first), _number(0), array)
    return L.array_to_lod_tensor(array, table)


def steps_of_the_sequences_of_groups() -> Any:
    x = _groups()
    table = L.lod_rank_table(x, level=1)
    return L.tanh(L.array_to_lod_tensor(L.lod_tensor_to_array(x, table), table))


def sequences_by_another_rank() -> Any:
    """Four sequences in the order that four others have, each row another weight."""
    table = L.lod_rank_table(L.lod_reset(_rows(), target_lod=[0, 1, 3, 3, 6]))
    weights = L.assign(np.arange(18, dtype="float32").reshape(6, 3))
    return L.elementwise_mul(L.reorder_lod_tensor_by_rank(_sequences(), table), weights)


def rows_by_rank_that_shrink() -> Any:
    x = _sequences()
    table = L.lod_rank_table(x)
    rows = L.reorder_lod_tensor_by_rank(L.sequence_pool(x, "sum"), table)
    return L.reduce_sum(L.concat([L.shrink_memory(rows, _number(i), table) for i in range(2)]), dim=0)


def elements_joined() -> Any:
    x = _rows()
    array = L.create_array("float32")
    for i, scale in enumerate((1.0, -2.0, 0.5)):
        L.array_write(L.scale(x, scale), _number(i), array)
    return L.tensor_array_to_tensor(array, axis=1)[0]


PROGRAMS = [
    rows_both_ways, all_rows_one_way, sequences_both_ways, groups_both_ways, sequences_of_groups_both_ways,
    steps_and_back, steps_of_groups, steps_of_the_sequences_of_groups, sequences_by_another_rank,
    rows_by_rank_that_shrink, elements_joined,
]  # fmt: skip


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_training_agrees(build: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    main, startup, loss = trained(build)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(3)}
    params = ours.initial(main, startup)
    mine, after = ours.train(main, params, feeds, loss)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-5, atol=1e-7)
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-4, atol=1e-5, err_msg=name)
    assert any(np.abs(after[n] - params[n]).max() > 1e-3 for n in params)
