"""A restricted unpickler: plain values and numpy arrays, nothing else; no name in the file is imported or called.

Pickles come with data sets (CIFAR's batches, written by Python 2), RecordIO files and parts of readers. The few names
that they need (numpy's array, dtype and scalar, sets) map to small classes of this file; any other name is refused.
"""

import codecs
import io
import os
import pickle
import pickletools
import re
from functools import partial
from typing import Any, BinaryIO

import numpy as np

from fluidnb.errors import EnforceNotMet

#: The opcode LONG_BINPUT with its index; the C unpickler allocates a table of that size.
_MEMO_INDEX = re.compile(rb"r(?=(....))", re.DOTALL)
#: The opcode PUT with its index, in text.
_MEMO_TEXT = re.compile(rb"p\d{7}")


#: Bytes from which on the data of an array stays in the file until the array is created.
_LARGE = 1 << 16
#: Bytes of text that are decoded at once.
_CHUNK = 1 << 20


class _Stored:
    """Bytes or text in a file; protocols 0 to 2 have bytes as text. An array reads them without a copy."""

    def __init__(self, file: BinaryIO, start: int, size: int, is_text: bool, encoded: bool = False) -> None:
        self.file, self.start, self.size, self.is_text, self.encoded = file, start, size, is_text, encoded

    def value(self) -> bytes | str:
        """The bytes or the text."""
        self.file.seek(self.start)
        data = self.file.read(self.size)
        text = str(data, "utf-8", "surrogatepass") if self.is_text else ""
        return text.encode("latin1") if self.encoded else text if self.is_text else data

    def numbers(self, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
        """The bytes as numbers of a dtype."""
        if count < 0 or count * dtype.itemsize > self.size or not self.is_text and count * dtype.itemsize != self.size:
            raise pickle.UnpicklingError(f"an array in it has {self.size} bytes for {count} numbers")
        numbers = np.empty(count, dtype)
        into, filled, left = numbers.view(np.uint8).data, 0, self.size
        self.file.seek(self.start)
        decode = codecs.getincrementaldecoder("utf-8")().decode
        while left:
            chunk = self.file.read(min(left, _CHUNK))
            if not chunk:
                raise pickle.UnpicklingError("it breaks off")
            left -= len(chunk)
            data = decode(chunk, final=not left).encode("latin1") if self.is_text else chunk
            into[filled : filled + len(data)] = data  # too many bytes are a ValueError
            filled += len(data)
        if filled != len(into):
            raise pickle.UnpicklingError(f"an array in it has {filled} bytes for {count} numbers")
        return numbers


class _Dtype:
    """A ``numpy.dtype`` of plain numbers while it is read."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else str(code)
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def dtype(self) -> np.dtype[Any]:
        if self.code[:1] not in "uifb" or not self.code[1:].isdigit() or self.order not in "<>|=":
            raise pickle.UnpicklingError(f"arrays of {self.code} are not plain numbers")
        return np.dtype(self.order + self.code)


class _Array:
    """A ``numpy.ndarray`` while it is read: created empty, then given its state."""

    state: tuple[Any, ...] = ()

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def value(self) -> np.ndarray[Any, Any]:
        try:
            _, shape, kind, by_columns, data = self.state
            dtype = kind.dtype()
            if isinstance(data, _Stored):
                count = 1
                for n in shape:
                    count *= n
                flat = data.numbers(dtype, count)
            else:
                flat = np.frombuffer(data, dtype)
            return flat.reshape(shape, order="F" if by_columns else "C")
        except (AttributeError, TypeError, ValueError) as e:
            raise pickle.UnpicklingError(f"an array in it has no valid state ({e})") from None


class _Scalar:
    """A numpy scalar while it is read."""

    def __init__(self, kind: Any, data: Any = None, *_: Any) -> None:
        self.kind, self.data = kind, data

    def value(self) -> Any:
        try:
            (number,) = np.frombuffer(self.data, self.kind.dtype())
            return number
        except (AttributeError, TypeError, ValueError) as e:
            raise pickle.UnpicklingError(f"a number in it has no valid state ({e})") from None


class _Unset:
    """The class ``numpy.ndarray``, which a pickle only mentions."""


def _encode(text: Any, encoding: str) -> Any:
    """Encodes text as Python 3 encodes bytes in pickle protocols 0 to 2."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in {encoding}")
    if isinstance(text, _Stored):
        return _Stored(text.file, text.start, text.size, text.is_text, encoded=True)
    return text.encode("latin1")


def _bytearray(data: bytes | str = b"", encoding: str = "latin-1") -> bytearray:
    """``bytearray`` of bytes or text; the built-in one would allocate any number that it is given."""
    if isinstance(data, str) and encoding == "latin-1":
        return bytearray(data, encoding)
    if not isinstance(data, bytes):
        raise pickle.UnpicklingError(f"a bytearray of {type(data).__name__}")
    return bytearray(data)


_NAMES: dict[tuple[str, str], Any] = {("numpy", "ndarray"): _Unset, ("numpy", "dtype"): _Dtype}
_NAMES |= {(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")}
_NAMES |= {(f"numpy.{core}.multiarray", "scalar"): _Scalar for core in ("core", "_core")}
for _builtins in ("builtins", "__builtin__"):  # in Python 3 and 2
    _NAMES |= {(_builtins, kind.__name__): kind for kind in (set, frozenset, complex)}
    _NAMES[_builtins, "bytearray"] = _bytearray
_NAMES["_codecs", "encode"] = _encode


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it references {module}.{name}, which is not plain data")
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside of it")


class _Bounded:
    """A file for an unpickler: a damaged pickle reads at most what the file has."""

    def __init__(self, file: BinaryIO) -> None:
        begin = file.tell()
        self.file, self.size = file, file.seek(0, os.SEEK_END)
        self.readline = file.readline
        file.seek(begin)

    def read(self, size: int) -> bytes:
        """At most that many bytes."""
        return self.file.read(min(size, self.size - self.file.tell()))


class _Streaming(pickle._Unpickler):  # the unpickler in C cannot leave data in the file
    """A restricted unpickler that leaves the data of large arrays in the file until they are created."""

    dispatch = dict(pickle._Unpickler.dispatch)
    find_class = _Plain.find_class
    persistent_load = _Plain.persistent_load

    def __init__(self, file: BinaryIO) -> None:
        self.stored = file
        super().__init__(_Bounded(file))

    def large(self: Any, opcode: bytes) -> None:  # stubs have nothing of the base class but its methods
        """Bytes or text with its size before it."""
        width, is_text = _SIZED[opcode]
        size = int.from_bytes(self.read(width), "little")
        if size < _LARGE or self._unframer.current_frame is not None:
            data = self.read(size)
            if len(data) != size:
                raise pickle.UnpicklingError("it breaks off")
            self.append(str(data, "utf-8", "surrogatepass") if is_text else data)
            return
        start = self.stored.tell()
        if start + size > self.stored.seek(0, os.SEEK_END):
            raise pickle.UnpicklingError("it breaks off")
        self.stored.seek(start + size)
        self.append(_Stored(self.stored, start, size, is_text))


#: Opcodes of bytes and text -> bytes of their size, and whether it is text.
_SIZED = {pickle.BINBYTES: (4, False), pickle.BINBYTES8: (8, False), pickle.BINUNICODE: (4, True)}
for _opcode in _SIZED:
    _Streaming.dispatch[_opcode[0]] = partial(_Streaming.large, opcode=_opcode)


def loads(data: bytes, source: str, encoding: str = "ASCII") -> Any:
    """Plain value of a pickle: numbers, text, bytes, containers of them, numpy arrays and scalars.

    Args:
        encoding: for text of Python 2; "bytes" keeps it as bytes.
    """
    try:
        _check_memo(data)
        return _resolved(_Plain(io.BytesIO(data), encoding=encoding).load(), {})
    except Exception as e:  # a damaged pickle can raise anything
        raise _refused(source, e) from None


def load(file: BinaryIO) -> Any:
    """Plain value of a pickle in an open file; a safe ``pickle.load``. Large arrays are read without a copy."""
    try:
        return _resolved(_Streaming(file).load(), {})
    except Exception as e:  # a damaged pickle can raise anything
        raise _refused(str(getattr(file, "name", "a file")), e) from None


def _refused(source: str, error: Exception) -> EnforceNotMet:
    return EnforceNotMet(
        f"{source} is not plain data: {error}.", hint="reading stopped there; do not use files of unknown origin."
    )


def _check_memo(data: bytes) -> None:
    """Refuse indexes of the memo that are larger than the pickle: a table of that size would be allocated."""
    suspects = (int.from_bytes(m[1], "little") for m in _MEMO_INDEX.finditer(data))
    if not any(index > len(data) for index in suspects) and not _MEMO_TEXT.search(data):
        return
    for opcode, argument, _ in pickletools.genops(data):  # slower: the bytes may as well be part of a string
        if opcode.name in ("LONG_BINPUT", "PUT") and int(argument or 0) > len(data):
            raise pickle.UnpicklingError(f"it has {argument} as an index of an object")


def _resolved(value: Any, known: dict[int, Any]) -> Any:
    """The value with arrays and scalars in place of what was created while reading."""
    if type(value) in (int, float, str, bytes, bool, type(None)):
        return value
    if isinstance(value, _Array | _Scalar | _Stored):
        if id(value) not in known:
            known[id(value)] = value.value()
        return known[id(value)]
    if isinstance(value, list | tuple | set | frozenset | dict):
        if id(value) not in known:
            if isinstance(value, dict):
                pairs = value.items()
                known[id(value)] = {_resolved(k, known): _resolved(v, known) for k, v in pairs}
            else:
                known[id(value)] = type(value)(_resolved(v, known) for v in value)
        return known[id(value)]
    if isinstance(value, _Dtype | _Unset) or value in _NAMES.values():
        raise pickle.UnpicklingError("it holds a type, no value")
    return value
