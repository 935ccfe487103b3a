"""LoDTensor, an array on a place with the LoD of its rows, and LoDTensorArray, a list of them that grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Annotated, Any, Never, NoReturn, Self, SupportsIndex, overload

import numpy as np

from fluidnb import memory
from fluidnb.arguments import Count, Rule, checked, refuse_unknown, shown
from fluidnb.errors import ArgumentError, EnforceNotMet, FluidError, OpIndexError, OpTypeError, OpValueError
from fluidnb.utils.representations import repr_html
from fluidnb.values import invalidation as epoch
from fluidnb.values import strict_feeds as declared
from fluidnb.values.copies import copy_between, is_on_device, on_host, put
from fluidnb.values.device_array import part_of, printed
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.dtypes import VarType, dtype_name, np_dtype, var_type
from fluidnb.values.lod import (
    LoD,
    Offsets,
    are_lengths,
    check,
    checked_lengths,
    convert,
    from_absolute,
    from_lengths,
    problem,
    to_lengths,
)
from fluidnb.values.place import CPUPlace, Place

Array = np.ndarray[Any, Any]
#: A size of a dimension.
Size = Annotated[int, Rule("an int from 0", lambda n: n >= 0, "ints from 0")]
_CPU = CPUPlace()
#: Axes that numpy's arrays can have.
AXES = 64


class LoDTensor:
    """An array on a place, with the LoD of its rows; `core.Tensor` is the same class.

    `array` is the value (None before the first `set`), `lod_` its offsets, `place` its device, `name` the variable
    that holds it (for errors), `bound` whether a program remembers its array (then `epoch` counts replacements).

    Args:
        array: a value to hold without copying, or None; or a list with the offsets per level, as in version 0.11, or
            with the lengths, as in later ones: those do not begin with 0.
        lod_: offsets per level.
        place: the device of `array`.
        name: the variable that holds it.

    Example:
        >>> t = LoDTensor()
        >>> t.set(np.arange(6, dtype="float32").reshape(3, 2), CPUPlace())
        >>> t.set_lod([[0, 1, 3]])
        >>> t
        LoDTensor(shape=[3, 2], dtype=float32, lod=[[0, 1, 3]], place=CPUPlace)
    """

    #: The hint of messages where one is expected.
    argument_hint = "fluid.create_lod_tensor() makes one."

    __slots__ = ("__weakref__", "_dims", "array", "bound", "lod_", "name", "place")

    def __init__(
        self, array: Array | np.generic | list[Any] | tuple[Any, ...] | None = None, lod_: Offsets | list[Any] = (),
        place: Place = _CPU, name: str = "", **unknown: Never,
    ) -> None:  # fmt: skip
        if unknown:
            refuse_unknown(LoDTensor.__init__, self, unknown)
        # Arrays of other devices are recognized by attributes: a device may have a separate class.
        if isinstance(array, np.generic):
            array = np.asarray(array)
        if type(array) is not np.ndarray and array is not None and not _is_array(array):
            if not isinstance(array, list | tuple):
                _refuse_argument("array", "an array, a list of offsets or None", array, "set() takes other values.")
            array, lod_ = None, convert(array)
            if lod_ and are_lengths(lod_):
                lod_ = from_lengths(lod_)
            check_form(lod_, None, name)
        elif not isinstance(lod_, tuple) or (lod_ and not isinstance(lod_[0], tuple)):
            lod_ = convert(lod_)
        if not isinstance(place, Place):
            _refuse_argument("place", "a Place", place, "for example fluid.CPUPlace().")
        if not isinstance(name, str):
            _refuse_argument("name", "a text", name, "left out, it is ''.")
        self.array: Array | None = array  # type: ignore[assignment]  # mypy does not narrow by `type() is not`
        self.lod_ = lod_
        self.place = place
        self.name = name
        self.bound = False
        self._dims: tuple[int, ...] = (0,)

    # Values in and out.

    def set(self, array: Any, place: Place = _CPU, **unknown: Never) -> None:
        """Copies a value in; its memory is kept while shape, dtype and place are.

        Args:
            array: anything numpy makes a numeric array of; uint16 is read as the bits of float16.
            place: where the value shall live.

        Example:
            >>> t = LoDTensor(); t.set([[1, 2]], CPUPlace()); t.shape()
            [1, 2]
        """
        if unknown:
            refuse_unknown(LoDTensor.set, self, unknown)
        if not isinstance(place, Place):
            raise OpTypeError("place should be a Place.", expected="for example fluid.CPUPlace()", received=repr(place))
        source = _numbers(array, self.name)
        old = self.array
        if old is None or old.shape != source.shape or old.dtype != source.dtype or self.place is not place:
            try:
                target = DeviceContext.get(place).empty(source.shape, source.dtype)
            except FluidError as e:
                e.with_context(slots=[("tensor", self.name or "without a name", str(source.dtype), source.shape)])
                raise
            self._replace(target, place)
            if self.name:
                memory.tag(self.array, self.name)
        copy_between(_CPU.kind, place.kind)(source, self._held())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """The value as a numpy array: np.asarray(t) shares memory where the host can reach it, np.array(t) copies."""
        array = self._held()
        if self.place is not _CPU:
            if copy is False:
                raise ValueError(f"a tensor on {self.place} reaches the host as a copy")
            array, copy = DeviceContext.get(self.place).to_host(array), None
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("a change of dtype needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __getitem__(self, index: Any) -> LoDTensor:
        """A part of the value, sharing its memory where numpy does; without LoD."""
        try:
            part = part_of(self.array, index) if is_on_device(self.array) else np.asarray(self)[index]
        except (IndexError, TypeError, ValueError) as e:
            if isinstance(e, FluidError):
                raise
            raise (OpTypeError if isinstance(e, TypeError) else OpIndexError)(
                f"Cannot index {self._who()} with {shown(index)}.", expected=f"within shape {self.shape()}",
                received=str(e),
            ) from None  # fmt: skip
        return LoDTensor(np.asarray(part), (), _CPU, self.name)

    def __iter__(self) -> Iterator[LoDTensor]:
        self._held()
        return (self[i] for i in range(len(self)))

    @checked
    def _slice(self, begin: int, end: int) -> LoDTensor:
        """Rows `begin` to `end` (not included), sharing memory."""
        self._held()
        rows = len(self)
        if not 0 <= begin <= rows or not 0 <= end <= rows:
            raise OpValueError(f"Cannot slice {self._who()}.", expected=f"rows 0..{rows}", received=f"{begin}:{end}")
        if begin >= end:
            raise OpValueError("The start row index must be lesser than the end row index.", received=f"{begin}:{end}")
        return self[begin:end]

    @checked
    def _share_data_with(self, other: LoDTensor) -> None:
        """Shares the memory of another tensor; the LoD stays."""
        self._replace(other._held(), other.place)

    def _copy(self, place: Place = _CPU) -> LoDTensor:
        """A deep copy with the same value and LoD."""
        copy = LoDTensor(name=self.name)
        copy.set(np.asarray(self), place)
        copy.lod_ = self.lod_
        return copy

    # Shape, dtype, memory.

    def shape(self) -> list[int]:
        """The sizes, as a list; without a value those of `set_dims`, or [0]."""
        return list(self._dims if self.array is None else self.array.shape)

    get_dims = shape

    @checked
    def set_dims(self, dims: Sequence[Size]) -> None:
        """Sets the shape for `alloc_float` and its like, and the shape of the value.

        Args:
            dims: the sizes. For fewer elements than there are, the first ones stay the value; where more are requested,
                the value goes, and `set` or an ``alloc_…`` gives the next one.

        Example:
            >>> t = LoDTensor(); t.set([[0, 1, 2], [3, 4, 5]]); t.set_dims([2, 2]); np.array(t)
            array([[0, 1],
                   [2, 3]])
            >>> t.set_dims([4, 2]); t, t.shape()
            (LoDTensor(no value), [4, 2])
        """
        if len(dims) > AXES:
            raise OpValueError(
                "A tensor cannot have so many axes.", expected=f"at most {AXES}", received=f"{len(dims)} sizes"
            )
        if prod(n or 1 for n in dims) >= 2**60:  # zeros too: numpy refuses an empty array of such sizes
            raise OpValueError(
                "A tensor cannot have so many elements.", expected="less than 2**60", received=f"sizes {list(dims)}"
            )
        self._dims = tuple(int(n) for n in dims)
        if self.array is not None:
            count = prod(self._dims)
            flat = self.array if count == self.array.size else self.array.reshape(-1)[:count]
            self._replace(flat.reshape(self._dims) if count <= self.array.size else None, self.place)

    @checked
    def alloc_float(self, place: Place = _CPU) -> None:
        """Allocates float32 memory for the shape of `set_dims`."""
        self._alloc(np.float32, place)

    @checked
    def alloc_int(self, place: Place = _CPU) -> None:
        """Allocates int32 memory for the shape of `set_dims`."""
        self._alloc(np.int32, place)

    @checked
    def alloc_double(self, place: Place = _CPU) -> None:
        """Allocates float64 memory for the shape of `set_dims`."""
        self._alloc(np.float64, place)

    # From version 1.3 on, their names begin with an underscore.
    _get_dims, _set_dims = shape, set_dims
    _alloc_float, _alloc_int, _alloc_double = alloc_float, alloc_int, alloc_double

    def _clear(self) -> None:
        """Removes the value."""
        self._replace(None, self.place)

    def _alloc(self, dtype: Any, place: Place) -> None:
        self._replace(DeviceContext.get(place).empty(self.shape(), dtype), place)

    def _dtype(self) -> VarType:
        """The VarType number of the elements."""
        return var_type(self._held().dtype)

    def _place(self) -> Place:
        """The device of the value."""
        return self.place

    def _is_initialized(self) -> bool:
        """Whether there is a value."""
        return self.array is not None

    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape())

    # One element at a time, as Fluid's gradient checkers do it; `i` counts in row-major order.

    @checked
    def _set_float_element(self, i: int, value: float) -> None:
        self._set_element(np.float32, i, value)

    @checked
    def _get_float_element(self, i: int) -> float:
        return self._element(np.float32, i)

    @checked
    def _set_double_element(self, i: int, value: float) -> None:
        self._set_element(np.float64, i, value)

    @checked
    def _get_double_element(self, i: int) -> float:
        return self._element(np.float64, i)

    # The same in version 0.11.
    dtype = _dtype
    set_float_element, get_float_element = _set_float_element, _get_float_element
    set_double_element, get_double_element = _set_double_element, _get_double_element

    # Sequences.

    def lod(self) -> LoD:
        """The offsets of the sequences, a list per level; empty without sequences."""
        user = LoD()
        user.extend(map(list, self.lod_))  # checked by `set_lod`
        return user

    @checked
    def set_lod(self, lod: Any, absolute: bool = False) -> None:
        """Sets the sequences by their offsets.

        Args:
            lod: offsets per level, or a flat list for one level.
            absolute: the offsets of every level count rows, as in older texts.

        Example:
            >>> t = LoDTensor(np.zeros((14, 1)))
            >>> t.set_lod([[0, 5, 8, 10, 14], [0, 2, 3, 5, 7, 8, 10, 13, 14]], absolute=True)
            >>> t.lod()
            LoD([[0, 3, 5, 6, 8], [0, 2, 3, 5, 7, 8, 10, 13, 14]])
        """
        offsets = convert(lod)
        if offsets == ((),):  # Fluid's notation for no sequences
            offsets = ()
        if absolute:
            offsets = from_absolute(offsets)
        check_form(offsets, self._height(), self.name)
        self._take_offsets(offsets)

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of the sequences, a list per level."""
        return to_lengths(self.lod_)

    def set_recursive_sequence_lengths(self, recursive_sequence_lengths: Any) -> None:
        """Sets the sequences by their lengths.

        Args:
            recursive_sequence_lengths: a list per level, for example ``[[2, 1], [2, 3, 1]]``.

        Example:
            >>> t = LoDTensor(np.zeros((5, 1))); t.set_recursive_sequence_lengths([[2, 3]]); t.lod()
            LoD([[0, 2, 5]])
        """
        self._take_offsets(checked_lengths(convert(recursive_sequence_lengths), self._height(), self.name))

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the sequences fit the current rows (a later `set` may have changed those)."""
        return problem(self.lod_, self._height()) is None

    def _set_offsets(self, offsets: Offsets) -> None:
        check(offsets, self._height(), self.name)
        self._take_offsets(offsets)

    def _take_offsets(self, offsets: Offsets) -> None:
        if self.bound and offsets != self.lod_:
            epoch.value += 1
        self.lod_ = offsets

    def _height(self) -> int | None:
        return self.array.shape[0] if self.array is not None and self.array.ndim else None

    # Inside.

    def _replace(self, array: Array | None, place: Place) -> None:
        self.array, self.place = array, place
        if self.bound:
            epoch.value += 1

    def _held(self) -> Array:
        if self.array is None:
            self._no_value()
        return self.array

    def _set_element(self, dtype: Any, i: int, value: float) -> None:
        array: Any = self._of(dtype, i)
        if isinstance(array, np.ndarray):
            array.flat[i] = value
        else:
            put(array.reshape(-1)[i], np.asarray(value, dtype))

    def _element(self, dtype: Any, i: int) -> float:
        array: Any = self._of(dtype, i)
        return float(array.flat[i] if isinstance(array, np.ndarray) else on_host(array.reshape(-1)[i]))

    def _of(self, dtype: Any, i: int) -> Array:
        array = self._held()
        if not -array.size <= i < array.size:
            raise OpIndexError(f"{self._who(capital=True)} has no element {i}.", expected=f"0..{array.size - 1}")
        if array.dtype != dtype:
            raise EnforceNotMet(
                f"Tensor holds the wrong type: {self._who()} holds {array.dtype}.", expected=dtype_name(dtype)
            )
        return array

    def _no_value(self) -> NoReturn:
        raise EnforceNotMet(
            f"{self._who(capital=True)} holds no memory: nothing was ever written to it.",
            hint="feed it; a parameter needs the startup program, a tensor that you created set().",
        )

    def _who(self, capital: bool = False) -> str:
        text = f'variable "{self.name}"' if self.name else "the tensor"
        return text[0].upper() + text[1:] if capital else text

    def __len__(self) -> int:
        try:
            return self.shape()[0]
        except IndexError:
            raise OpTypeError(
                f"{self._who(capital=True)} is a single value, which has no rows.", expected="1 axis or more",
                received="no axes", hint="np.asarray(tensor).item() is the value.",
            ) from None  # fmt: skip

    def __repr__(self) -> str:
        if self.array is None:
            return "LoDTensor(no value)"
        levels = f", lod={[list(level) for level in self.lod_]}" if self.lod_ else ""
        return f"LoDTensor(shape={self.shape()}, dtype={self.array.dtype}{levels}, place={self.place})"

    def __str__(self) -> str:
        if self.array is None:
            return repr(self)
        shown = printed(self.array, threshold=100) if is_on_device(self.array) else np.asarray(self)
        return f"{self!r}\n{np.array2string(shown, threshold=100)}"

    _repr_html_ = repr_html


@checked
class LoDTensorArray(list[LoDTensor]):
    """A list of LoDTensors that operators write and read by index.

    Args:
        tensors: what it starts with; arrays are copied into tensors.

    Example:
        >>> array = LoDTensorArray()
        >>> array.append(np.ones(2)); array.write(2, np.zeros(2))
        >>> len(array), array[1]
        (3, LoDTensor(no value))
    """

    __slots__ = ()

    def __init__(self, tensors: Iterable[Any] = ()) -> None:
        super().__init__(map(_tensor, tensors))

    def append(self, tensor: Any) -> None:
        """Adds a LoDTensor, or a copy of an array, at the end."""
        super().append(_tensor(tensor))

    def extend(self, tensors: Iterable[Any]) -> None:
        """Adds LoDTensors, or copies of arrays, at the end."""
        super().extend([_tensor(t) for t in tensors])

    def insert(self, index: SupportsIndex, tensor: Any) -> None:
        """Adds a LoDTensor, or a copy of an array, before an index."""
        taken = _tensor(tensor)
        try:
            super().insert(index, taken)
        except (TypeError, OverflowError) as e:
            self._refuse_index(index, e)

    def copy(self) -> LoDTensorArray:
        """Another array with the same tensors."""
        return LoDTensorArray(self)

    def __add__(self, tensors: Any) -> LoDTensorArray:  # type: ignore[override]  # a list gives a list
        return LoDTensorArray([*self, *LoDTensorArray(tensors)])

    def __iadd__(self, tensors: Any) -> Self:  # type: ignore[override]  # arrays become tensors
        self.extend(tensors)
        return self

    @overload
    def __getitem__(self, index: SupportsIndex) -> LoDTensor: ...
    @overload
    def __getitem__(self, index: slice) -> list[LoDTensor]: ...
    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except (IndexError, TypeError) as e:
            self._refuse_index(index, e)

    def __setitem__(self, index: Any, value: Any) -> None:
        taken: Any = LoDTensorArray(value) if isinstance(index, slice) else _tensor(value)
        try:
            super().__setitem__(index, taken)
        except (IndexError, TypeError, ValueError) as e:
            self._refuse_index(index, e)

    def _refuse_index(self, index: Any, error: Exception) -> NoReturn:
        kind = OpTypeError if isinstance(error, TypeError) else OpIndexError
        raise kind(
            f"Cannot index a LoDTensorArray of size {len(self)} with {shown(index)}.",
            expected="an index of a tensor, or a slice", received=str(error),
            hint="append(tensor) adds one at the end.",
        ) from None  # fmt: skip

    def write(self, i: Count, tensor: Any) -> None:
        """Puts a LoDTensor, or a copy of an array, at an index; the list grows with empty tensors."""
        if i < 0:
            raise OpValueError(f"Cannot write at index {i} of a LoDTensorArray.", expected="0 or more")
        value = _tensor(tensor)
        while len(self) <= i:
            super().append(LoDTensor())
        self[i] = value

    def read(self, i: int) -> LoDTensor:
        """The tensor at an index from 0 to size - 1."""
        if not 0 <= i < len(self):
            raise EnforceNotMet(
                f"Cannot read index {i} of a LoDTensorArray of size {len(self)}.",
                hint="array_write fills it; indices start at 0.",
            )
        return self[i]

    def size(self) -> int:
        """The number of tensors."""
        return len(self)

    def stack(self) -> LoDTensor:
        """All tensors, of equal shapes, along a new first axis."""
        try:
            stacked = np.stack([np.asarray(t) for t in self])
        except ValueError as e:
            shapes = [t.shape() for t in self]
            raise OpValueError(
                "Cannot stack this LoDTensorArray.", expected="equal shapes", received=str(shapes)[:200], hint=str(e)
            ) from None
        whole = LoDTensor()
        whole.set(stacked)
        return whole

    @classmethod
    def unstack(cls, tensor: Any) -> LoDTensorArray:
        """The rows of a tensor, one by one.

        Example:
            >>> LoDTensorArray.unstack(np.eye(3)).size()
            3
        """
        rows = np.asarray(tensor)
        if not rows.ndim:
            raise OpValueError("A single value has no rows.", expected="1 dimension or more", received=shown(tensor))
        return cls(rows)

    def __repr__(self) -> str:
        return f"LoDTensorArray({super().__repr__() if len(self) < 10 else f'{len(self)} tensors'})"

    _repr_html_ = repr_html


def _refuse_argument(name: str, expected: str, value: Any, hint: str) -> NoReturn:
    """Refuses an argument of the constructor, which runs too often for `checked`."""
    headline = f"{name} of LoDTensor must be {expected}."
    raise ArgumentError(headline, expected=expected, received=shown(value), hint=hint)


def _is_array(value: Any) -> bool:
    """Whether a value has what arrays of devices have; a dtype alone is also that of a Variable."""
    return not isinstance(value, type) and hasattr(value, "dtype") and hasattr(value, "nbytes")


def array_of(value: Any) -> Array | None:
    """The array of a tensor, on its device; None of another value, and of a tensor without one."""
    return value.array if isinstance(value, LoDTensor) else None


def _tensor(value: Any) -> LoDTensor:
    if isinstance(value, LoDTensor):
        return value
    if not isinstance(value, (np.ndarray, np.generic)):
        raise OpTypeError("A LoDTensorArray holds LoDTensors.", received=type(value).__name__)
    tensor = LoDTensor()
    tensor.set(value)
    return tensor


def check_form(offsets: Offsets, height: int | None, name: str) -> None:
    """Refuses offsets that are not a LoD; without strict feeds the row count is not checked."""
    check(offsets, height if declared.binding or problem(offsets) else None, name)


def integers(values: Any) -> Array | None:
    """Values as an array of int64; None where they are no integers, or lists of unequal lengths."""
    try:
        given = np.asarray(values)
    except ValueError:
        return None
    if given.dtype == np.int64:
        return given
    if given.size and given.dtype.kind not in "biuf":
        return None
    with np.errstate(invalid="ignore"):  # infinite, or too large
        taken = given.astype(np.int64)
    return taken if np.array_equal(taken, given) else None


def _numbers(array: Any, name: str) -> Array:
    try:
        source = np.asarray(on_host(array) if is_on_device(array) else array)
    except ValueError as e:  # unequal lengths; numpy's words for it are about itself
        if isinstance(e, FluidError) or not isinstance(array, list | tuple):
            raise
        source = np.empty(0, object)
    if source.dtype == np.uint16:
        return source.view(np.float16)
    try:
        np_dtype(source.dtype)
    except OpValueError:
        whose = f' of variable "{name}"' if name else ""
        raise OpTypeError(
            f"The value{whose} is not an array of numbers that Fluid computes on.",
            expected="bool, int8 to int64, uint8, float16, bfloat16, float32, float64 or complex",
            received=f"{type(array).__name__} of {source.dtype}",
            hint="nested lists must be of equal lengths; for sequences use fluid.create_lod_tensor."
            if source.dtype == object
            else "convert it with array.astype(...).",
        ) from None
    return source
