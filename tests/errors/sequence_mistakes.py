"""Mistakes with sequences, recurrent networks, tagging and beam search (FEATURES C, D12 to D16)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError
from tests.errors.helpful import mistake

Steps = Generator[None, None, None]

BEFORE = "the layer checks before it appends one"


def text(width: int = 8, name: str = "text") -> Any:
    """Sequences of rows."""
    return fluid.layers.data(name, [width], lod_level=1)


def tensor(lengths: list[list[int]], width: int = 8, dtype: str = "float32") -> Any:
    """Zeros with sequences of these lengths."""
    return fluid.create_lod_tensor(np.zeros((sum(lengths[-1]), width), dtype), lengths, fluid.CPUPlace())


def run(fetch: Any, **feed: Any) -> None:
    """Run the default program."""
    fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[fetch], return_numpy=False)


@mistake(EnforceNotMet)
def rows_where_sequences_are_wanted() -> Steps:
    y = fluid.layers.sequence_pool(fluid.layers.data("row", [8]), "max")
    yield
    run(y, row=np.zeros((3, 8), "float32"))


@mistake(EnforceNotMet)
def sequences_of_another_depth() -> Steps:
    y = fluid.layers.sequence_expand_as(fluid.layers.data("row", [8]), fluid.layers.data("deep", [8], lod_level=2))
    yield
    run(y, row=np.zeros((2, 8), "float32"), deep=tensor([[2], [2, 1]]))


@mistake(OpValueError)
def pooling_to_the_median() -> Steps:
    x = text()
    yield
    fluid.layers.sequence_pool(x, "median")


@mistake(OpValueError)
def softmax_over_wide_rows() -> Steps:
    x = text()
    yield
    fluid.layers.sequence_softmax(x)


@mistake(EnforceNotMet)
def expanded_by_another_number_of_sequences() -> Steps:
    y = fluid.layers.sequence_expand(fluid.layers.data("row", [8]), text())
    yield
    run(y, row=np.zeros((3, 8), "float32"), text=tensor([[2, 1]]))


@mistake(EnforceNotMet)
def a_slice_beyond_its_sequence() -> Steps:
    start, size = (fluid.layers.data(n, [1], dtype="int64") for n in ("start", "size"))
    y = fluid.layers.sequence_slice(text(), start, size)
    yield
    run(y, text=tensor([[2, 3]]), start=np.array([[1], [0]]), size=np.array([[1], [4]]))


@mistake(OpValueError, op=BEFORE)
def filters_over_rows_of_unknown_width() -> Steps:
    x = text(-1)
    yield
    fluid.layers.sequence_conv(x, num_filters=4)


@mistake(OpValueError, op=BEFORE, slots="the size is what is wrong")
def an_lstm_whose_size_is_not_of_four_gates() -> Steps:
    x = text()
    yield
    fluid.layers.dynamic_lstm(x, size=10)


@mistake(OpValueError)
def an_lstm_without_its_projection() -> Steps:
    x = text()
    yield
    fluid.layers.dynamic_lstm(x, size=64)


@mistake(OpValueError, op=BEFORE, slots="the bias is what is missing")
def an_lstm_without_a_bias() -> Steps:
    x = text()
    yield
    fluid.layers.dynamic_lstm(x, size=8, bias_attr=False)


@mistake(OpTypeError, op=BEFORE, slots="one of the states is missing")
def an_lstm_with_one_first_state() -> Steps:
    x, h = text(), fluid.layers.data("h", [2])
    yield
    fluid.layers.dynamic_lstm(x, size=8, h_0=h)


@mistake(OpValueError, op=BEFORE)
def a_step_with_states_of_different_widths() -> Steps:
    x, h, c = (fluid.layers.data(n, [width]) for n, width in (("x", 3), ("h", 4), ("c", 5)))
    yield
    fluid.layers.lstm_unit(x, h, c)


@mistake(EnforceNotMet)
def first_states_for_another_number_of_sequences() -> Steps:
    x, h = text(6), fluid.layers.data("h", [2])
    y = fluid.layers.dynamic_gru(x, size=2, h_0=h)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    yield
    run(y, text=tensor([[2, 1]], 6), h=np.zeros((3, 2), "float32"))


@mistake(OpTypeError, op=BEFORE, slots="a parameter is what is missing")
def decoded_by_no_transition() -> Steps:
    x = text()
    yield
    fluid.layers.crf_decoding(x, param_attr=None)


@mistake(EnforceNotMet)
def a_tag_that_there_is_not() -> Steps:
    tag = fluid.layers.data("tag", [1], dtype="int64", lod_level=1)
    y = fluid.layers.linear_chain_crf(text(4), tag)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    words = fluid.create_lod_tensor(np.array([[0], [4]]), [[2]], fluid.CPUPlace())
    yield
    run(y, text=tensor([[2]], 4), tag=words)


@mistake(EnforceNotMet)
def a_beam_search_over_one_level() -> Steps:
    ids, score = fluid.layers.data("ids", [1], dtype="int64"), fluid.layers.data("score", [1])
    found, _ = fluid.layers.beam_search(ids, score, None, text(3, "chance"), beam_size=2, end_id=0)
    yield
    zeros = np.zeros((2, 1))
    run(found, ids=zeros.astype("int64"), score=zeros.astype("float32"), chance=tensor([[1, 1]], 3))
