"""Models over sequences with our backward: PaddlePaddle trains the same programs to the same values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from tests.paddle import fluidnb_side as ours
from tests.paddle.harness import require_paddle, train_in_paddle
from tests.paddle.programs_control_flow import SHAPE, trained

pytestmark = pytest.mark.paddle

L: Any = layers


def _text(width: int = 4, *offsets: int) -> Any:
    """Six rows as sequences: embeddings of a text."""
    rows = L.fc(L.data("x", shape=list(SHAPE), append_batch_size=False), width, act="tanh")
    return L.lod_reset(rows, target_lod=offsets or [0, 2, 5, 6])


def _labels(*numbers: int, offsets: tuple[int, ...] = (0, 2, 5, 6), dtype: str = "int64") -> Any:
    return L.lod_reset(L.assign(np.array(numbers, dtype)[:, None]), target_lod=list(offsets))


def a_convolution_and_a_pooling() -> Any:
    return fluid.nets.sequence_conv_pool(_text(), num_filters=3, filter_size=3, act="tanh", pool_type="sqrt")


def stacked_lstms() -> Any:
    """The Book's model of sentiment: every second one runs backwards."""
    x = L.fc(_text(), 12)
    hidden, _ = L.dynamic_lstm(x, size=12)
    for i in range(2):
        x = L.fc([x, hidden], 12)
        hidden, _ = L.dynamic_lstm(x, size=12, is_reverse=i == 0)
    return L.fc([L.sequence_pool(v, "max") for v in (x, hidden)], 2, act="softmax")


def grus_both_ways() -> Any:
    x = _text()
    there, back = (L.dynamic_gru(L.fc(x, 9), 3, is_reverse=r, origin_mode=r) for r in (False, True))
    return L.concat([L.sequence_last_step(there), L.sequence_first_step(back)], axis=1)


def a_gru_from_a_state() -> Any:
    x = _text()
    first = L.fc(L.sequence_pool(x, "average"), 3, act="tanh")
    return L.dynamic_gru(L.fc(x, 9), 3, h_0=first)


def steps_of_a_gru() -> Any:
    x = _text()
    state = L.sequence_first_step(x)
    for step in (L.sequence_last_step(x), L.sequence_pool(x, "sum")):
        state, _, _ = L.gru_unit(L.fc(step, 12), state, size=12)
    return state


def attention() -> Any:
    """A query for each sequence, and what its rows answer."""
    x = _text()
    query = L.sequence_expand(L.fc(L.sequence_last_step(x), 4), x)
    weight = L.sequence_softmax(L.fc(L.tanh(L.elementwise_add(x, query)), 1, bias_attr=False))
    return L.sequence_pool(L.elementwise_mul(x, L.reshape(weight, [-1]), axis=0), "sum")


def tags_by_a_random_field() -> Any:
    score = _text(3)
    return L.linear_chain_crf(score, _labels(0, 2, 1, 1, 0, 2), param_attr=fluid.ParamAttr(name="crf"))


def what_is_said_in_time() -> Any:
    logits = L.fc(_text(4, 0, 4, 6), 4)
    return L.warpctc(logits, _labels(1, 2, 1, offsets=(0, 2, 3), dtype="int32"), blank=0, norm_by_times=True)


def parts_of_sequences() -> Any:
    x = _text(4)
    both = L.sequence_concat([x, L.sequence_reverse(L.tanh(x))])
    square, length = L.sequence_pad(both, L.fill_constant([1], "float32", 0.5))
    return L.sequence_reshape(L.sequence_unpad(L.sigmoid(square), length), new_dim=2)


def rows_that_look_ahead() -> Any:
    return L.row_conv(_text(), future_context_size=2, act="tanh")


def updates_by_sequence() -> Any:
    x = _text(1)
    table = L.fc(L.sequence_pool(x, "sum"), 5)
    return L.sequence_scatter(table, _labels(0, 4, 1, 1, 3, 2), x)


PROGRAMS = [
    a_convolution_and_a_pooling, stacked_lstms, grus_both_ways, a_gru_from_a_state, steps_of_a_gru, attention,
    tags_by_a_random_field, what_is_said_in_time, parts_of_sequences, rows_that_look_ahead, updates_by_sequence,
]  # fmt: skip


@pytest.mark.parametrize("build", PROGRAMS, ids=lambda build: build.__name__)
def test_training_agrees(build: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    require_paddle()
    main, startup, loss = trained(build)
    feeds = {f"{step}/x": rng.standard_normal(SHAPE, np.float32) for step in range(4)}
    params = ours.initial(main, startup)
    mine, after = ours.train(main, params, feeds, loss)
    theirs = train_in_paddle(tmp_path, main.desc.serialize_to_string(), params, feeds, [loss])
    np.testing.assert_allclose(mine, theirs.losses, rtol=1e-4, atol=1e-6)
    for name, value in after.items():
        np.testing.assert_allclose(value, theirs.after[name], rtol=1e-3, atol=1e-5, err_msg=name)
    assert any(np.abs(after[n] - params[n]).max() > 1e-3 for n in params)
