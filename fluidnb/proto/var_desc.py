"""VarDesc: the declaration of a variable: name, type, shape, dtype and persistence."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.wire import parse, text_of, uninitialized

if TYPE_CHECKING:
    from fluidnb.proto.block_desc import BlockDesc

_LOD_TENSOR, _SELECTED_ROWS = pb2.VarType.LOD_TENSOR, pb2.VarType.SELECTED_ROWS
_LEAST, _MOST = -(2**63), 2**63 - 1
_NUMBERS = frozenset(pb2.VarType.Type.values())
_ARRAY, _READER = pb2.VarType.LOD_TENSOR_ARRAY, pb2.VarType.READER


#: Why a variable is taken as fed: not at all, `set_is_data`, or because nothing in a program that was read writes it.
Data = Literal["", "declared", "inferred"]


#: How many sets of elements are remembered.
_MOST_ELEMENTS = 4096


class Elements(NamedTuple):
    """Type, dtype, sizes and LoD level of a LOD_TENSOR as they were written once, for the next variable with the same.

    Most variables of a program share theirs; a message for each of them was an eighth of the time that building takes.
    """

    data: bytes  # a VarType message
    dims: tuple[int, ...]
    dtype: int
    level: int


#: VarType message -> what it says; None for one that is no LOD_TENSOR.
_elements: dict[bytes, Elements | None] = {}


def _elements_of(data: bytes) -> Elements | None:
    """The elements that the bytes of a VarType message declare; None for one that is no LOD_TENSOR."""
    if data in _elements:
        return _elements[data]
    message = pb2.VarType()
    message.MergeFromString(data)
    found = None
    if message.type == _LOD_TENSOR:
        tensor = message.lod_tensor.tensor
        found = Elements(data, tuple(tensor.dims), tensor.data_type, message.lod_tensor.lod_level)
    if len(_elements) >= _MOST_ELEMENTS:
        _elements.clear()
    _elements[data] = found
    return found


class VarDesc:
    """The declaration of a variable.

    Args:
        name: its name.
        type: a VarType number; a LOD_TENSOR by default.

    Example:
        >>> x = VarDesc("x"); x.set_dtype(pb2.VarType.FP32); x.set_shape([-1, 13])
        >>> x.shape(), x.lod_level(), x.persistable()
        ([-1, 13], 0, False)
        >>> x
        VarDesc(x: LOD_TENSOR FP32[-1, 13])
    """

    __slots__ = (
        "__weakref__", "_data", "_elements", "_is_parameter", "_name", "_pb", "_persistable", "_stop_gradient", "block",
        "saved", "view",
    )  # fmt: skip

    #: The numbers of types and dtypes, where Fluid has them.
    VarType = pb2.VarType

    _name: str
    _pb: pb2.VarDesc | None
    #: Type, dtype, sizes and LoD level; None where only the message says them.
    _elements: Elements | None
    # Marks, None where not set, while there is no message.
    _persistable: bool | None
    _stop_gradient: bool | None
    _is_parameter: bool | None

    #: The block that declares the variable, None while none does.
    block: BlockDesc | None
    #: The Variable over it, created on demand.
    view: Any
    #: What a snapshot stored of it and of its Variable; None since the last edit.
    saved: Any

    def __init__(self, name: str, type: int = _LOD_TENSOR) -> None:
        self._start(var_name(name), pb2.VarType(type=_type(type)).SerializePartialToString())  # type: ignore[arg-type]

    @classmethod
    def over(cls, pb: pb2.VarDesc, block: BlockDesc | None = None) -> VarDesc:
        """A VarDesc over a message, which it owns from now on."""
        self = cls.__new__(cls)
        self._pb, self._name, self.block, self._data = pb, pb.name, block, ""
        self.view = self.saved = self._elements = None
        self._persistable = self._stop_gradient = self._is_parameter = None
        return self

    @classmethod
    def _like(cls, name: str, data: bytes, persistable: bool | None = None) -> VarDesc:
        """A new variable with the bytes of another one's type."""
        self = cls.__new__(cls)
        self._start(name, data)
        if persistable is not None:
            self.set_persistable(persistable)
        return self

    def _start(self, name: str, data: bytes) -> None:
        self._name, self._data, self._elements = name, "", _elements_of(data)
        self._pb = self.block = self.view = self.saved = None
        self._persistable = self._stop_gradient = self._is_parameter = None
        if self._elements is None:
            self._pb = pb2.VarDesc(name=name, type=pb2.VarType.FromString(data))

    @property
    def pb(self) -> pb2.VarDesc:
        """The message, made at the first use: building and running a program does not need it. To read only."""
        if self._pb is None:
            assert self._elements is not None
            pb = pb2.VarDesc(
                name=self._name, persistable=self._persistable, stop_gradient=self._stop_gradient,
                is_parameter=self._is_parameter,
            )  # fmt: skip
            pb.type.MergeFromString(self._elements.data)
            self._pb = pb  # whole: another thread may ask at the same time
        return self._pb

    def _restore(self, data: bytes) -> None:
        """Makes it what it was when its message gave these bytes."""
        if self.pb.SerializePartialToString() != data:
            self.pb.Clear()
            self.pb.MergeFromString(data)
            self._name, self._elements, self.saved = self.pb.name, None, None

    def __repr__(self) -> str:
        text = f"VarDesc({self.name()}: {pb2.VarType.Type.Name(self.pb.type.type)}"
        tensors = self._tensors()
        if len(tensors) == 1 and tensors[0].HasField("data_type"):
            text += f" {pb2.VarType.Type.Name(tensors[0].data_type)}{list(tensors[0].dims)}"
        return text + ")"

    def name(self) -> str:
        """Its name."""
        return self._name

    def set_name(self, name: str) -> None:
        """Renames it; in a block, the operations that read and write it follow."""
        if self.block is None:
            self._rename(var_name(name))
        elif name != self._name:
            self.block.rename_var(self._name, name)

    def _rename(self, name: str) -> None:
        """Changes the name, here alone."""
        self._name, self.saved = name, None
        if self._pb is not None:
            self._pb.name = name

    def type(self) -> int:
        """Its type: the number of LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY, STEP_SCOPES, ..."""
        return self.pb.type.type if self._elements is None else _LOD_TENSOR

    def set_type(self, type: int) -> None:
        """Changes its type; dtype, shape and LoD level are kept where the new type has them."""
        type = _type(type)
        if type == self.type():
            return
        old = self._tensors()
        tensor = pb2.VarType.TensorDesc()
        if len(old) == 1:
            tensor.CopyFrom(old[0])
        leveled = self._leveled()
        level = leveled[0].lod_level if len(leveled) == 1 else 0
        self.pb.type.Clear()
        self.pb.type.type = type  # type: ignore[assignment]
        if tensor.ListFields() and (new := self._tensors()):
            new[0].CopyFrom(tensor)
        if level and (leveled := self._leveled()):
            leveled[0].lod_level = level
        self._edited()

    def _type_bytes(self) -> bytes:
        """Type, dtype, sizes and LoD levels, as in the message."""
        if self._elements is None:
            data: bytes = self.pb.type.SerializePartialToString()
            self._elements = _elements_of(data)
            return data
        return self._elements.data

    def _set_type_bytes(self, data: bytes) -> None:
        """Sets type, dtype, sizes and LoD levels at once."""
        elements = _elements_of(data)
        if self._pb is not None or elements is None:  # a message says what is no LOD_TENSOR
            self.pb.type.Clear()
            self.pb.type.MergeFromString(data)
        self._elements = elements
        self._marked()

    # Its value.

    def shape(self) -> list[int]:
        """Its sizes, -1 where unknown before a run; empty for a scalar, and before they are set."""
        if self._elements is not None:
            return list(self._elements.dims)
        return self._tensor("shape").dims[:]  # five times as fast as list()

    def set_shape(self, shape: Sequence[int]) -> None:
        """Sets its sizes, -1 for unknown."""
        dims = _dims(self._name, shape)
        self._tensor("shape").dims[:] = dims
        self._edited()

    def dtype(self) -> int:
        """The VarType number of its elements, for example FP32; 0 (BOOL) before it is set."""
        return self._tensor("dtype").data_type if self._elements is None else self._elements.dtype

    def set_dtype(self, dtype: int) -> None:
        """Sets the VarType number of its elements."""
        self._tensor("dtype").data_type = _type(dtype)  # type: ignore[assignment]
        self._edited()

    def lod_level(self) -> int:
        """The number of LoD levels."""
        if self._elements is not None:
            return self._elements.level
        level: int = self._one(self._leveled(), "LoD level").lod_level
        return level

    def set_lod_level(self, level: int) -> None:
        """Sets the number of LoD levels."""
        if _integer(self._name, "LoD level", level) < 0:
            raise OpValueError(f'The LoD level of "{self._name}" cannot be negative.', received=level)
        self._one(self._leveled(), "LoD level").lod_level = operator.index(level)
        self._edited()

    # A reader has several tensors.

    def shapes(self) -> list[list[int]]:
        """The shapes of the tensors of a reader."""
        return [t.dims[:] for t in self._tensors()]

    def set_shapes(self, shapes: Iterable[Sequence[int]]) -> None:
        """Sets the shapes of the tensors of a reader."""
        all_dims = [_dims(self._name, shape) for shape in shapes]
        for tensor, dims in zip(self._sized(len(all_dims)), all_dims, strict=True):
            tensor.tensor.dims[:] = dims
        self._edited()

    def dtypes(self) -> list[int]:
        """The dtypes of the tensors of a reader."""
        return [t.data_type for t in self._tensors()]

    def set_dtypes(self, dtypes: Iterable[int]) -> None:
        """Sets the dtypes of the tensors of a reader."""
        kinds = [_type(d) for d in dtypes]
        for tensor, kind in zip(self._sized(len(kinds)), kinds, strict=True):
            tensor.tensor.data_type = kind
        self._edited()

    def lod_levels(self) -> list[int]:
        """The LoD levels of the tensors of a reader."""
        return [t.lod_level for t in self._leveled()]

    def set_lod_levels(self, levels: Iterable[int]) -> None:
        """Sets the LoD levels of the tensors of a reader."""
        numbers = [_integer(self._name, "LoD level", level) for level in levels]
        for tensor, level in zip(self._sized(len(numbers)), numbers, strict=True):
            tensor.lod_level = level
        self._edited()

    # How it is treated.

    def persistable(self) -> bool:
        """Whether it outlives a run, as parameters do."""
        return bool(self._persistable) if self._pb is None else self._pb.persistable

    def set_persistable(self, persistable: bool) -> None:
        """Sets whether it outlives a run."""
        if self._pb is None:
            self._persistable = bool(persistable)
        else:
            self._pb.persistable = bool(persistable)
        self._marked()

    def stop_gradient(self) -> bool:
        """Whether gradients end here."""
        return bool(self._stop_gradient) if self._pb is None else self._pb.stop_gradient

    def set_stop_gradient(self, stop: bool) -> None:
        """Sets whether gradients end here."""
        if self._pb is None:
            self._stop_gradient = bool(stop)
        else:
            self._pb.stop_gradient = bool(stop)
        self._marked()

    def is_data(self) -> bool:
        """Whether a run feeds it. Not in the bytes: Paddle would compare feeds with its sizes."""
        return self._data != "" or self.need_check_feed()

    def has_checked_sizes(self) -> bool:
        """Whether feeds are compared with its sizes: not in a parsed program without Paddle's own mark."""
        return self._data == "declared" or self.need_check_feed()

    def set_is_data(self, is_data: bool) -> None:
        """Sets whether a run feeds it; False clears `need_check_feed` too."""
        self._data = "declared" if is_data else ""
        if not is_data:
            self.pb.need_check_feed = False
        self._marked()

    def need_check_feed(self) -> bool:
        """Paddle's own mark, in the bytes: whether a feed is compared with its shape and dtype."""
        return self._pb is not None and self._pb.need_check_feed

    def set_need_check_feed(self, check: bool) -> None:
        """Sets Paddle's own mark, in the bytes: whether a feed is compared with its shape and dtype."""
        self.pb.need_check_feed = bool(check)
        self._marked()

    def is_parameter(self) -> bool:
        """Whether it is a parameter."""
        return bool(self._is_parameter) if self._pb is None else self._pb.is_parameter

    def set_is_parameter(self, is_parameter: bool) -> None:
        """Sets whether it is a parameter."""
        if self._pb is None:
            self._is_parameter = bool(is_parameter)
        else:
            self._pb.is_parameter = bool(is_parameter)
        self._marked()

    # As a whole.

    def clone(self) -> VarDesc:
        """An equal declaration that is in no block."""
        pb = pb2.VarDesc()
        pb.CopyFrom(self.pb)
        copy = VarDesc.over(pb)
        copy._data = self._data
        return copy

    def serialize_to_string(self) -> bytes:
        """The bytes of the message."""
        if not self.pb.IsInitialized():
            raise uninitialized(self.pb, f'variable "{self._name}"')
        return self.pb.SerializeToString()

    @classmethod
    def parse_from_string(cls, data: bytes) -> VarDesc:
        """A declaration from the bytes of its message."""
        return cls.over(parse(pb2.VarDesc, data, "var_desc"))

    def _leveled(self) -> Any:
        kind, type_pb = self.pb.type.type, self.pb.type
        if kind == _LOD_TENSOR:
            return [type_pb.lod_tensor]
        if kind == _ARRAY:
            return [type_pb.tensor_array]
        return type_pb.reader.lod_tensor if kind == _READER else []

    def _tensors(self) -> list[pb2.VarType.TensorDesc]:
        if self.pb.type.type == _SELECTED_ROWS:
            return [self.pb.type.selected_rows]
        return [each.tensor for each in self._leveled()]

    def _tensor(self, what: str) -> pb2.VarType.TensorDesc:
        type_pb = self.pb.type
        if type_pb.type == _LOD_TENSOR:  # nearly every variable
            return type_pb.lod_tensor.tensor
        tensor: pb2.VarType.TensorDesc = self._one(self._tensors(), what)
        return tensor

    def _one(self, tensors: Any, what: str) -> Any:
        if len(tensors) != 1:
            kind = pb2.VarType.Type.Name(self.pb.type.type)
            raise OpValueError(f'Variable "{self._name}" is a {kind}, which has no {what}.')
        return tensors[0]

    def _sized(self, count: int) -> Any:
        """The tensors of a reader, made as many as ``count``."""
        if self.pb.type.type != _READER:
            raise OpValueError(f'Variable "{self._name}" is no READER.')
        tensors = self.pb.type.reader.lod_tensor
        while len(tensors) < count:
            tensors.add().tensor.SetInParent()
        del tensors[count:]
        return tensors

    def _edited(self) -> None:
        """After a change of the message's type."""
        self._elements = None
        self._marked()

    def _marked(self) -> None:
        """After another change."""
        self.saved = None
        if self.block is not None:
            self.block.program.version += 1


def var_name(name: Any) -> str:
    """Checks the name of a variable: a text, or its bytes."""
    if type(name) is str:
        return name
    name = text_of(name)
    if not isinstance(name, str):
        raise OpTypeError("The name of a variable is a text.", received=f"{name!r}, a {type(name).__name__}")
    return str(name)


def _type(number: int) -> int:
    if number not in _NUMBERS:
        raise OpValueError("There is no such VarType.", received=repr(number))
    return int(number)


def _integer(name: str, what: str, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise OpTypeError(
            f'The {what} of "{name}" must be a list of integers.', received=f"{value!r}, a {type(value).__name__}"
        ) from None
    if not _LEAST <= number <= _MOST:
        raise OpValueError(f'The {what} of "{name}" needs more than 64 bits.', received=repr(value))
    return number


def _dims(name: str, shape: Iterable[Any]) -> list[int]:
    if type(shape) is not list and not isinstance(shape, Iterable):
        raise OpTypeError(f'The shape of "{name}" is a list.', received=f"{shape!r}, a {type(shape).__name__}")
    return [_integer(name, "shape", size) for size in shape]
