"""numpy arrays in a pool's memory, which is freed with the last view of them."""

import sys
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.memory import flags
from fluidnb.memory.buddy import BuddyAllocator
from fluidnb.memory.pools import PlaceLike, pool
from fluidnb.memory.views import view_of

Array: TypeAlias = np.ndarray[Any, Any]


class Block:
    """A block of a pool as an object: numpy keeps it as the base of arrays over it, and its end frees the memory.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> np.asarray(Block(pool(CPUPlace()), 100)).shape
        (100,)
    """

    __slots__ = ("__array_interface__", "__weakref__", "nbytes", "pool", "ptr")

    def __init__(self, pool: BuddyAllocator, nbytes: int) -> None:
        self.pool, self.nbytes = pool, nbytes
        self.ptr = pool.alloc(nbytes)
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (self.ptr, False)}

    def __del__(self, over: Callable[[], bool] = sys.is_finalizing) -> None:
        ptr = getattr(self, "ptr", None)  # missing when alloc failed
        if ptr is not None and not over():  # the pool's own module may be gone when the interpreter ends
            self.pool.free_later(ptr)

    @property
    def tag(self) -> str:
        """The owner's label of the block, for statistics and pictures; settable."""
        return self.pool.tags.get(self.ptr, "")

    @tag.setter
    def tag(self, text: str) -> None:
        self.pool.tags[self.ptr] = text

    def __repr__(self) -> str:
        return f"Block({self.pool.label}, {self.nbytes} bytes at {self.ptr:#x}{', ' + self.tag if self.tag else ''})"


def empty(place: PlaceLike, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Array:
    """A new array in the memory of a host place; freed with the last array or view over it.

    Args:
        dtype: what `np.dtype` understands; no Python objects.
        order: axes from the outermost to the innermost in memory; None is C order. (1, 2, 3, 0) keeps the batch
            of an NCHW array innermost.

    Returns:
        The array, 64-byte aligned, its content undefined (NaN or 0xAA under FLAGS_init_allocated_mem).

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> empty(CPUPlace(), (2, 3), "float32").strides
        (12, 4)
        >>> empty(CPUPlace(), (2, 3), "float32", order=(1, 0)).strides
        (4, 8)
    """
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise OpTypeError("Tensors hold numbers, not Python objects.", received=f"dtype {dtype}")
    shape = tuple(shape)
    if shape and min(shape) < 0:
        raise OpValueError(f"Cannot make an array of shape {list(shape)}.", expected="sizes of 0 or more")
    strides = None if order is None else _strides(shape, dtype.itemsize, order)
    block = Block(pool(place), dtype.itemsize * prod(shape))
    array = view_of(np.asarray(block), shape, dtype, 0, strides)
    if flags.values["init_allocated_mem"]:
        poison(array)
    return array


def raw(place: PlaceLike, nbytes: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Allocates bytes in the memory of a host place: a uint8 array, 64-byte aligned, freed like one of `empty`.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> raw(CPUPlace(), 100).view("float32").shape
        (25,)
    """
    return empty(place, (nbytes,), np.uint8)


def owner(array: Any) -> Block | None:
    """The block under an array, through any chain of views; None when its memory is not a pool's.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> a = empty(CPUPlace(), (4, 4), "float32")
        >>> owner(a[1:].T) is owner(a), owner(np.ones(3))
        (True, None)
    """
    while array is not None:
        if type(array) is Block:
            return array
        if not isinstance(array, np.ndarray | memoryview) and hasattr(array, "data"):  # of a device
            block = getattr(getattr(array.data, "mem", None), "_owner", None)
            return block if type(block) is Block else None
        # as_strided puts a helper with .base between; a memoryview calls it .obj
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    return None


def contains(place: PlaceLike, ptr: int) -> bool:
    """Whether an address belongs to the memory of a place's pool."""
    return pool(place).contains(ptr)


def tag(array: Any, text: str) -> None:
    """Labels the memory of an array with its owner (variable, operator, cell); ignores memory outside the pools.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> a = empty(CPUPlace(), (3,), "int64"); tag(a, "fc_0.b_0"); owner(a).tag
        'fc_0.b_0'
    """
    block = owner(array)
    if block is not None:
        block.tag = text


def poison(array: Array) -> None:
    """Fills with values that show up when used: NaN, or 0xAA in every byte where the dtype has no NaN.

    Example:
        >>> a = np.zeros(2, "uint8"); poison(a); a
        array([170, 170], dtype=uint8)
    """
    if array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
        array[...] = np.nan
    elif array.dtype.kind == "b":
        array[...] = True
    else:
        array[...] = np.frombuffer(b"\xaa" * array.itemsize, array.dtype)[0]


def _strides(shape: tuple[int, ...], itemsize: int, order: Sequence[int]) -> tuple[int, ...]:
    if sorted(order) != list(range(len(shape))):
        raise OpValueError(
            f"order {tuple(order)} does not fit shape {list(shape)}.", expected=f"each of 0..{len(shape) - 1} once"
        )
    strides, step = [0] * len(shape), itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)
