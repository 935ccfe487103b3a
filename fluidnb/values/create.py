"""create_lod_tensor and create_random_int_lodtensor: tensors of sequences from plain data."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from fluidnb.arguments import checked, shown
from fluidnb.errors import OpAssertionError, OpTypeError, OpValueError
from fluidnb.values import lod
from fluidnb.values.place import CPUPlace, Place
from fluidnb.values.seeding import generator
from fluidnb.values.tensor import AXES, LoDTensor, integers


@checked
def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Place = CPUPlace()) -> LoDTensor:  # noqa: B008 - one object
    """A LoDTensor from rows and sequence lengths.

    Args:
        data: an array or LoDTensor whose rows are the steps; or a list of sequences of integers (words), lists or
            arrays, which becomes an int64 column. What gives a list in Python 2, a ``map`` for example, counts as one.
        recursive_seq_lens: lengths per level.
        place: where it shall live.

    Example:
        >>> create_lod_tensor(np.zeros((5, 30), "float32"), [[2, 3]])
        LoDTensor(shape=[5, 30], dtype=float32, lod=[[0, 2, 5]], place=CPUPlace)
        >>> create_lod_tensor([[1, 2], [3, 4, 5]], [[2, 3]]).shape()
        [5, 1]
    """
    if isinstance(data, Iterator):
        data = list(data)
    if isinstance(data, list):
        data = [s.tolist() if isinstance(s, np.ndarray) and s.ndim == 1 and s.dtype.kind in "iu" else s for s in data]
        lengths = [len(sequence) for sequence in data] if all(isinstance(s, (list, tuple)) for s in data) else None
        if lengths is None:
            raise OpTypeError("data should be a list of sequences.", expected="for example [[1, 2], [3, 4, 5]]")
        if lengths != list(recursive_seq_lens[-1] if recursive_seq_lens else ()):
            raise OpAssertionError(
                "data and recursive_seq_lens do not match.",
                expected=f"sequences of lengths {list(recursive_seq_lens[-1:])}",
                received=f"sequences of lengths {lengths}",
            )
        words = integers(list(chain.from_iterable(data)))
        if words is None:
            raise OpTypeError(
                "data should be a list of sequences of integers.", expected="for example [[1, 2], [3, 4, 5]]",
                received=shown(data), hint="an array may have other values: np.array(..., 'float32').",
            )  # fmt: skip
        data = words.reshape(-1, 1)
    elif not isinstance(data, (np.ndarray, LoDTensor)):
        raise OpTypeError("data should be either a LoDTensor, a Numpy array or a list.", received=type(data).__name__)
    array = np.asarray(data)
    height = len(array) if array.ndim else None
    offsets = lod.checked_lengths(lod.convert(recursive_seq_lens), height, kind=OpAssertionError)
    tensor = LoDTensor()
    tensor.set(array, place)
    tensor.lod_ = offsets
    return tensor


@checked
def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Place, low: int, high: int
) -> LoDTensor:
    """A LoDTensor of random integers, drawn from the host's generator (`fluid.seed`).

    Args:
        recursive_seq_lens: lengths per level.
        base_shape: shape of one row.
        place: where it shall live.
        low: smallest value.
        high: largest value, included.

    Example:
        >>> create_random_int_lodtensor([[2, 3]], [1], CPUPlace(), 0, 9).shape()
        [5, 1]
    """
    if not isinstance(base_shape, (list, tuple)):
        raise OpTypeError("base_shape should be a list.", received=type(base_shape).__name__)
    if low > high:
        raise OpValueError("There is no integer to draw.", expected="low <= high", received=f"low {low}, high {high}")
    if not len(recursive_seq_lens):
        raise OpValueError("There are no sequences to fill.", expected="for example [[2, 3]]", received="no lengths")
    rows = lod.checked_lengths(lod.convert(recursive_seq_lens), kind=OpAssertionError)[-1][-1]
    shape = rows, *map(int, base_shape)
    try:
        data = generator().integers(low, high, shape, np.int64, endpoint=True)
    except (MemoryError, ValueError) as e:
        raise OpValueError(
            f"Cannot draw integers from {low} to {high} of shape {list(shape)[:8]}.",
            expected=f"int64, and at most {AXES} sizes from 0 that fit into memory", received=str(e),
        ) from None  # fmt: skip
    return create_lod_tensor(data, recursive_seq_lens, place)
