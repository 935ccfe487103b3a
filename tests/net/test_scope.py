"""Copying between scopes."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound, OpTypeError
from fluidnb.net import Copy, Scope, copy
from tests.net.nets import CPU, held, put, scope


def test_copies_are_independent_and_keep_lod() -> None:
    source, target = put(scope(), a=[1.0, 2.0]), fluid.Scope()
    source.var("words").value = fluid.create_lod_tensor(np.arange(3, dtype="float32").reshape(3, 1), [[1, 2]], CPU)
    Copy(source.new_scope(), target, ["a", "words"])
    source.find_var("a").get_tensor().set(np.zeros(2, "float32"), CPU)
    np.testing.assert_array_equal(held(target, "a"), [1, 2])
    assert target.find_var("words").get_tensor().recursive_sequence_lengths() == [[1, 2]]
    copy(source, target, ["a"])
    assert not held(target, "a").any()


def test_arrays_of_tensors_are_copied_too() -> None:
    source, target = scope(), scope()
    tensor = fluid.LoDTensor()
    tensor.set(np.ones(2, "float32"), CPU)
    source.var("list").get_lod_tensor_array().append(tensor)
    copy(source, target, {"list": "other"})
    got = target.find_var("other").get_lod_tensor_array()
    tensor.set(np.zeros(2, "float32"), CPU)
    assert len(got) == 1 and np.array(got[0]).sum() == 2


def test_what_is_missing_is_named_and_nothing_is_copied() -> None:
    source, target = put(scope(), hidden=[1.0]), scope()
    with pytest.raises(NotFound, match='The scope has no variable "hiden".') as caught:
        copy(source, target, ["hidden", "hiden"])
    assert caught.value.hint == 'Did you mean "hidden"?' and target.local_var_names() == []
    source.var("empty")
    with pytest.raises(NotFound, match='"empty" has no value in this scope.'):
        copy(source, target, ["empty"])


def test_a_place_that_is_none() -> None:
    with pytest.raises(OpTypeError, match="runs on a place"):
        Scope("cpu")  # type: ignore[arg-type]
