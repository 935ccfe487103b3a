"""pd.evaluate: the value of a variable, with parameters initialised when they must be."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import compat
from fluidnb.errors import OpTypeError


def test_a_variable_or_several() -> None:
    one = fluid.layers.fill_constant([2], "float32", 3.0)
    assert compat.evaluate(one).tolist() == [3, 3]
    both = compat.evaluate([one, one.name])
    assert isinstance(both, list) and [b.tolist() for b in both] == [[3, 3], [3, 3]]
    assert compat.evaluate(one * 2 + 1).tolist() == [7, 7]


def test_feeds_and_sequences() -> None:
    words = fluid.layers.data("words", shape=[1], lod_level=1)
    sentence = fluid.create_lod_tensor(np.ones((3, 1), "float32"), [[1, 2]], fluid.CPUPlace())
    assert compat.evaluate(fluid.layers.scale(words, scale=2.0), feed={"words": sentence}).tolist() == [[2]] * 3


def test_parameters_are_initialised_once_and_trained_values_stay() -> None:
    x = fluid.layers.data("x", shape=[3])
    h = fluid.layers.fc(x, size=2)
    feed = {"x": np.ones((1, 3), "float32")}
    first = compat.evaluate(h, feed)
    assert compat.evaluate(h, feed).tobytes() == first.tobytes()
    weight = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    weight.set(np.zeros((3, 2), "float32"), fluid.CPUPlace())
    more = fluid.layers.fc(h, size=4)  # a new layer must not start the old ones anew
    assert compat.evaluate([h, more], feed)[0].tolist() == [[0, 0]]
    assert fluid.global_scope().find_var("fc_1.w_0").get_tensor().shape() == [2, 4]


def test_another_program_is_run_as_it_is() -> None:
    program = fluid.Program()
    out = program.global_block().create_var(name="out", shape=[1], dtype="float32")
    attrs = {"shape": [1], "dtype": "float32", "value": 4.0}
    program.global_block().append_op("fill_constant", {}, {"Out": out}, attrs)
    assert compat.evaluate(out).tolist() == [4]


def test_arrays_of_tensors_are_given_as_they_are() -> None:
    array = fluid.layers.array_write(fluid.layers.ones([2], "float32"), fluid.layers.zeros([1], "int64"))
    (tensor,) = compat.evaluate(array)
    assert np.array(tensor).tolist() == [1, 1]


def test_what_is_no_variable_is_named() -> None:
    with pytest.raises(OpTypeError, match="evaluate takes Variables") as caught:
        compat.evaluate([fluid.layers.ones([1], "float32"), 3])
    assert caught.value.received == "3 (int)"
