"""Batches drawn with dots and brackets, and the errors that show them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet, OpAssertionError, OpValueError
from fluidnb.values import LoDTensor, lod
from fluidnb.values.lod_text import draw, draw_all, draw_wrong

PLACE = fluid.CPUPlace()


@pytest.mark.parametrize(
    ("lengths", "picture", "words"),
    [
        ([[2, 3]], "[··][···]", "2 sequences of 2 and 3 rows"),
        ([[0, 1]], "[][·]", "2 sequences of 0 and 1 rows"),
        ([[2, 1], [2, 0, 1]], "[[··][]][[·]]", "2 sequences of 2 and 1 sequences of 2, 0 and 1 rows"),
        ([[9]], "[·9·]", "1 sequence of 9 rows"),
        ([[1] * 12], "[·]" * 10 + "…", "12 sequences of " + "1, " * 10 + "… rows"),
        (
            [[2], [1, 1], [3, 1]], "[[[···]][[·]]]",
            "1 sequence of 2 sequences of 1 and 1 sequences of 3 and 1 rows",
        ),
    ],
)  # fmt: skip
def test_a_batch(lengths: list[list[int]], picture: str, words: str) -> None:
    assert draw(lod.from_lengths(lengths), sum(lengths[-1])) == (picture, words)


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=1))
def test_every_row_of_a_small_batch_is_a_dot(lengths: list[list[int]]) -> None:
    picture, _ = draw(lod.from_lengths(lengths), sum(lengths[0]))
    assert [part.count("·") for part in picture[1:].split("[")] == lengths[0]


def test_batches_stand_below_each_other() -> None:
    assert draw_all([("text", ((0, 2, 5),), 5), ("y", ((0, 3, 5),), 5), ("h", (), 3)]) == [
        "text  [··][···]  2 sequences of 2 and 3 rows",
        "y     [···][··]  2 sequences of 3 and 2 rows",
        "h     ···        3 rows, no sequences",
    ]


@pytest.mark.parametrize(
    ("offsets", "height", "lines"),
    [
        (((0, 2, 5),), 7, ["[··][···]··  2 rows are in no sequence"]),
        (((0, 2, 5),), 4, ["[··][··?]  1 row is missing: the tensor has 4"]),
        (((0, 2, 5),), 1, ["[·?][???]  4 rows are missing: the tensor has 1"]),
        (((0, 1), (0, 1, 2)), 2, ["level 0  [·]·  1 sequence is in no sequence", "level 1  [·][·]"]),
        (((0, 3, 2),), 2, []),
        (((1, 2),), 2, []),
        (((0,),), 2, []),
    ],
)  # fmt: skip
def test_what_does_not_fit(offsets: lod.Offsets, height: int, lines: list[str]) -> None:
    assert draw_wrong(offsets, height) == lines


def held(rows: int) -> LoDTensor:
    tensor = LoDTensor()
    tensor.set(np.zeros((rows, 1), "f"), PLACE)
    return tensor


def said(kind: type[Exception], call: object, *args: object, **kw: object) -> str:
    assert callable(call)
    with pytest.raises(kind) as e:
        call(*args, **kw)
    return str(e.value)


def test_offsets_that_do_not_fit_are_drawn_and_told_apart() -> None:
    short = said(OpValueError, held(6).set_lod, [[0, 2, 5]])
    assert "[··][···]·  1 row is in no sequence" in short
    nested = said(OpValueError, held(6).set_lod, [[0, 2, 4], [0, 1, 3, 6]])
    assert "level 0  [··][·?]  1 sequence is missing: level 1 has 3\n" in nested
    lengths = said(OpValueError, held(5).set_lod, [[2, 3]])
    assert "these look like lengths" in lengths and "[[0, 2, 5]]" in lengths
    absolute = said(OpValueError, held(8).set_lod, [[0, 5, 8], [0, 2, 5, 8]])
    assert "[[··][···]][[···]]" in absolute and "relative equivalent is [[0, 2, 3], [0, 2, 5, 8]]" in absolute
    tensor = held(8)
    tensor.set_lod([[0, 5, 8], [0, 2, 5, 8]], absolute=True)
    assert tensor.recursive_sequence_lengths() == [[2, 1], [2, 3, 3]]


def test_lengths_that_do_not_fit_are_drawn_and_told_apart() -> None:
    tensor = held(5)
    offsets = said(OpValueError, tensor.set_recursive_sequence_lengths, [[0, 2, 5]])
    assert "these look like offsets, which set_lod takes; the lengths are [[2, 3]]" in offsets
    assert not tensor.lod_
    rows = said(OpAssertionError, fluid.create_lod_tensor, np.zeros((6, 1)), [[2, 3]], PLACE)
    assert "[··][···]·  1 row is in no sequence" in rows and "received: lengths [[2, 3]]" in rows
    levels = said(OpAssertionError, fluid.create_lod_tensor, np.zeros((6, 1)), [[2, 2], [2, 3, 1]], PLACE)
    assert "level 0  [··][·?]" in levels
    below = said(OpAssertionError, fluid.create_lod_tensor, np.zeros((2, 1)), [[3, -1]], PLACE)
    assert "a sequence of -1 rows" in below
    random = fluid.create_random_int_lodtensor
    assert "no sequences to fill" in said(OpValueError, random, [], [1], PLACE, 0, 9)
    assert "level 0  [··][·?]" in said(OpAssertionError, random, [[2, 2], [2, 3, 1]], [1], PLACE, 0, 9)


def test_a_tensor_from_lengths_as_from_offsets() -> None:
    assert LoDTensor([[2, 3]]).lod() == LoDTensor([[0, 2, 5]]).lod() == [[0, 2, 5]]
    assert LoDTensor([[2, 1], [2, 3, 1]]).recursive_sequence_lengths() == [[2, 1], [2, 3, 1]]


L = fluid.layers


def sequences(name: str = "x", width: int = 1, dtype: str = "float32", level: int = 1) -> fluid.framework.Variable:
    return L.data(name, [width], dtype=dtype, lod_level=level)


def run(fetch: object, **feed: object) -> None:
    fluid.Executor(PLACE).run(feed=feed, fetch_list=[fetch])


def batch(*lengths: list[int], width: int = 1, dtype: str = "float32") -> LoDTensor:
    return fluid.create_lod_tensor(np.zeros((sum(lengths[-1]), width), dtype), list(lengths), PLACE)


def test_a_tensor_that_changed_after_its_lod() -> None:
    tensor = batch([2, 3])
    tensor.set(np.zeros((6, 1), "f"), PLACE)
    with fluid.fresh():
        text = said(OpValueError, run, L.sequence_pool(sequences(), "sum"), x=tensor)
    assert "The provided LoD of x is invalid" in text and "[··][···]·  1 row is in no sequence" in text


def test_rows_without_sequences_are_drawn_as_such() -> None:
    with fluid.fresh():
        text = said(EnforceNotMet, run, L.sequence_pool(sequences(), "sum"), x=np.zeros((3, 1), "f"))
    assert "batch:    x  ···  3 rows, no sequences\n" in text


def tags(name: str) -> fluid.framework.Variable:
    return sequences(name, dtype="int64")


def stepped() -> object:
    net = L.DynamicRNN()
    x, y = sequences("x"), sequences("y")
    with net.block():
        net.output(net.step_input(x) + net.step_input(y))
    return net()


X, THREES, TWOS = [2, 4], ("[···][···]", [3, 3]), ("[··][··][··]", [2, 2, 2])

#: Operators over two batches, their dtypes and widths, and a second batch that does not go with the first.
PAIRS = {
    "sequence_concat": (lambda: L.sequence_concat([sequences("x"), sequences("y")]), "ff", 1, TWOS),
    "chunk_eval": (lambda: L.chunk_eval(tags("x"), tags("y"), "IOB", 2)[0], "ll", 1, THREES),
    "edit_distance": (lambda: L.edit_distance(tags("x"), tags("y"))[0], "ll", 1, TWOS),
    "linear_chain_crf": (lambda: L.linear_chain_crf(sequences("x", 3), tags("y")), "fl", 3, THREES),
    "lod_tensor_to_array": (stepped, "ff", 1, THREES),
}


@pytest.mark.parametrize("op", PAIRS)
def test_batches_that_do_not_go_together_are_drawn(op: str) -> None:
    build, dtypes, width, (picture, lengths) = PAIRS[op]
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        y = build()
        fluid.Executor(PLACE).run(fluid.default_startup_program())
        text = said(EnforceNotMet, run, y, x=batch(X, width=width, dtype=dtypes[0]), y=batch(lengths, dtype=dtypes[1]))
    shown = [line.removeprefix("  batch:").split() for line in text.splitlines()]
    assert f"({op})" in text and ["y", picture] in [words[:2] for words in shown]
    assert (["x", "[··][····]"] in [words[:2] for words in shown]) == (op != "lod_tensor_to_array")


#: A chain of operators, none of which changes the rows.
STEPS = {
    "embedding": lambda x: L.embedding(x, [9, 4]),
    "fc": lambda x: L.fc(x, 4),
    "conv": lambda x: L.sequence_conv(x, 4),
    "softmax": lambda x: L.softmax(x),
    "scale": lambda x: L.scale(x, 2.0),
    "dropout": lambda x: L.dropout(x, 0.5),
    "plus": lambda x: x + L.fill_constant([4], "float32", 1.0),
    "cast": lambda x: L.cast(x, "float64"),
    "joined": lambda x: L.concat([x, x], axis=1),
    "reversed": lambda x: L.sequence_reverse(x),
}


def test_sequences_go_through_a_network() -> None:
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        x = sequences("x", dtype="int64")
        made = []
        for make in STEPS.values():
            x = make(x)
            made.append(x)
        lost = [L.mean(x), L.transpose(x, [1, 0]), L.reduce_sum(x, dim=0), L.sequence_pool(x, "sum")]
        assert [v.lod_level for v in made] == [1] * len(made)
        exe = fluid.Executor(PLACE)
        exe.run(fluid.default_startup_program())
        feed = {"x": batch([2, 0, 3], dtype="int64")}
        found = exe.run(feed=feed, fetch_list=[*made, *lost], return_numpy=False)
    assert [t.recursive_sequence_lengths() for t in found[: len(made)]] == [[[2, 0, 3]]] * len(made)
    assert [t.lod() for t in found[len(made) :]] == [[]] * len(lost)


def test_levels_go_and_come() -> None:
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        x = sequences("x", level=2)
        upper = L.sequence_pool(x, "sum")
        top = L.sequence_last_step(upper)
        made = [upper, top, L.sequence_expand(upper, x, ref_level=0), L.lod_reset(x, y=None, target_lod=[0, 1, 6])]
        found = fluid.Executor(PLACE).run(feed={"x": batch([2, 1], [2, 3, 1])}, fetch_list=made, return_numpy=False)
    assert [t.recursive_sequence_lengths() for t in found] == [[[2, 1]], [], [[2, 2, 1]], [[1, 5]]]
