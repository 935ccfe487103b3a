"""oneDNN by its C interface: primitives, which compute something of arrays with given shapes and strides.

The extra ``onednn`` installs the library, version 3 of oneDNN, into the environment. Numbers are float32.
"""

from __future__ import annotations

import ctypes
import logging
import os
import site
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fluidnb.errors import EnforceNotMet
from fluidnb.extras import command
from fluidnb.memory import OutOfMemory, flags
from fluidnb.op import Array
from fluidnb.op.define import registry

#: Arguments of a primitive, as in ``dnnl_types.h``.
SOURCE, TARGET, WEIGHTS, SOURCE_GRADIENT, TARGET_GRADIENT, WEIGHTS_GRADIENT = 1, 17, 33, 129, 145, 161
_WORKSPACE = 80
#: Questions to a primitive: the layout of an argument, and the name of the implementation.
_QUESTIONS = {SOURCE: 129, SOURCE_GRADIENT: 130, WEIGHTS: 131, WEIGHTS_GRADIENT: 132, TARGET: 133,
              TARGET_GRADIENT: 134, _WORKSPACE: 136}  # fmt: skip
_IMPLEMENTATION, _OUT_OF_MEMORY = 8, 1
_FLOAT32, _ANY_LAYOUT, _ON_CPU, _IN_ORDER, _WORKSPACE_OF_CALLER = 3, 1, 1, 1, 1

_Handle = ctypes.c_void_p
_Made = TypeVar("_Made")
#: Functions that empty the caches of primitives.
clear_caches: list[Callable[[], None]] = []


def cached(make: Callable[..., _Made]) -> Callable[..., _Made]:
    """A function that makes a primitive, with a cache of the last 512."""
    with_cache = lru_cache(512)(make)
    clear_caches.append(with_cache.cache_clear)
    return with_cache


@cache
def path() -> Path | None:
    """The file of the library in this environment; None where the extra is not installed."""
    if find_spec("xxhash") is None:
        return None
    folders = (sys.prefix, site.getuserbase() or sys.prefix)
    found = (Path(folder, "lib", "libdnnl.so.3") for folder in folders)
    return next((file for file in found if file.is_file()), None)


def say_if_absent() -> None:
    """Say that FLAGS_use_mkldnn has no effect where the library is not installed."""
    if flags.values["use_mkldnn"] and path() is None:
        logging.getLogger("fluidnb").warning(
            "FLAGS_use_mkldnn has no effect: %s installs oneDNN, for Linux on x86-64.", command("onednn")
        )


flags.when_set["use_mkldnn"] = say_if_absent
say_if_absent()


@cache
def _api() -> Any:
    """The library with a device and a stream, which all primitives share."""
    try:
        api: Any = ctypes.CDLL(str(path()))
    except OSError as error:
        raise EnforceNotMet(
            "oneDNN cannot be loaded.", expected="a library and what it needs, such as libgomp.so.1",
            received=str(error), hint="install libgomp1 with the system's packages, or set FLAGS_use_mkldnn=0.",
        ) from error  # fmt: skip
    api.dnnl_primitive_desc_query_md.restype = _Handle
    api.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
    api.dnnl_memory_desc_get_size.argtypes = [_Handle]
    api.dnnl_memory_set_data_handle.argtypes = [_Handle, _Handle]
    api.device, api.stream = _Handle(), _Handle()
    _check(api.dnnl_engine_create(ctypes.byref(api.device), _ON_CPU, ctypes.c_size_t(0)))
    _check(api.dnnl_stream_create(ctypes.byref(api.stream), api.device, _IN_ORDER))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_alone)
    if flags.values["num_threads"]:
        flags.when_set.get("num_threads", int)()  # now its threads can be counted too
    return api


def _alone() -> None:
    """In a forked process, use one thread, and new primitives: the threads of before, for which they wait, are gone."""
    _api().omp_set_num_threads(1)
    for clear in clear_caches:
        clear()
    registry.version += 1  # what is bound has primitives of before


def _check(status: int) -> None:
    if status == _OUT_OF_MEMORY:
        raise OutOfMemory(
            "Out of memory: oneDNN cannot allocate what it needs.",
            hint="FLAGS_use_mkldnn=0 computes it without oneDNN.",
        )
    if status:
        raise EnforceNotMet(
            "oneDNN could not compute this.", expected="status 0", received=f"status {status}",
            hint="FLAGS_use_mkldnn=0 computes it without oneDNN.",
        )  # fmt: skip


def integers(numbers: Sequence[int]) -> Any:
    """Numbers as an array of C."""
    return (ctypes.c_int64 * len(numbers))(*numbers)


class Layout:
    """The places of an array's elements in memory, for oneDNN.

    Args:
        handle: what oneDNN knows it by; it is dropped with this object.
    """

    def __init__(self, handle: Any) -> None:
        self.handle, self._api = handle, _api()

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int] | None) -> Layout:
        """The layout of a shape with strides in bytes; None for strides that oneDNN likes best."""
        api, handle, rank, lengths = _api(), _Handle(), len(shape), integers(shape)
        at = ctypes.byref(handle)
        if strides is None:
            _check(api.dnnl_memory_desc_create_with_tag(at, rank, lengths, _FLOAT32, _ANY_LAYOUT))
        else:
            steps = integers([step // 4 for step in strides])
            _check(api.dnnl_memory_desc_create_with_strides(at, rank, lengths, _FLOAT32, steps))
        return cls(handle)

    @property
    def size(self) -> int:
        """The bytes of an array."""
        return int(self._api.dnnl_memory_desc_get_size(self.handle))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and bool(self._api.dnnl_memory_desc_equal(self.handle, other.handle))

    __hash__ = None  # type: ignore[assignment]

    def __del__(self) -> None:
        self._api.dnnl_memory_desc_destroy(self.handle)


class Step(NamedTuple):
    """A step of what is computed of each element of a result.

    With a shape, ``function`` of ``dnnl_binary_…`` takes the element and one of an array with this shape and these
    strides; without, one of ``dnnl_eltwise_…`` has two numbers as parameters.
    """

    function: int
    numbers: tuple[float, float] = (0.0, 0.0)
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


#: Functions of an element and of two numbers: the larger of it and 0, a · x + b, x limited to [a, b], and x times
#: a · x + b limited to [0, 1].
RELU, LINEAR, CLIP, HARD_SWISH = 0x20, 0x26, 0x2E, 0x34
#: Functions of two elements.
ADD, MULTIPLY, LARGER, SMALLER, DIVIDE, SUBTRACT = range(0x1FFF0, 0x1FFF6)


def operand_of(step: int) -> int:
    """The argument for the array of a step, by its position among the steps."""
    return 32768 * (step + 1) | 2


@contextmanager
def _attributes(steps: Sequence[Step]) -> Iterator[Any]:
    """The attributes of a primitive: its workspace is the caller's, and steps follow."""
    api, attributes, chain = _api(), _Handle(), _Handle()
    _check(api.dnnl_primitive_attr_create(ctypes.byref(attributes)))
    _check(api.dnnl_post_ops_create(ctypes.byref(chain)))
    try:
        for step in steps:
            if step.shape:
                layout = Layout.of(step.shape, step.strides)
                _check(api.dnnl_post_ops_append_binary(chain, step.function, layout.handle))
            else:
                numbers = map(ctypes.c_float, step.numbers)
                _check(api.dnnl_post_ops_append_eltwise(chain, step.function, *numbers))
        _check(api.dnnl_primitive_attr_set_post_ops(attributes, chain))
        _check(api.dnnl_primitive_attr_set_scratchpad_mode(attributes, _WORKSPACE_OF_CALLER))
        yield attributes
    finally:
        api.dnnl_post_ops_destroy(chain)
        api.dnnl_primitive_attr_destroy(attributes)


class Primitive:
    """A computation of oneDNN, compiled for given layouts.

    Args:
        kind: what ``dnnl_KIND_primitive_desc_create`` describes.
        arguments: those of that function but the device before and the attributes behind them.
        steps: what is computed of each element of the result.

    Attributes:
        description: what oneDNN says of it.
        handle: the primitive, once it is compiled.

    Raises:
        NotImplementedError: oneDNN has nothing for these layouts.
    """

    def __init__(self, kind: str, *arguments: Any, steps: Sequence[Step] = ()) -> None:
        api = self._api = _api()
        self.description, self.handle = _Handle(), _Handle()
        describe = getattr(api, f"dnnl_{kind}_primitive_desc_create")
        before = () if kind == "reorder" else (api.device,)
        with _attributes(steps) as attributes:
            if describe(ctypes.byref(self.description), *before, *arguments, attributes):
                raise NotImplementedError(kind)

    def compile(self) -> Any:
        """The primitive that runs; its code is made at the first call."""
        if not self.handle:
            _check(self._api.dnnl_primitive_create(ctypes.byref(self.handle), self.description))
        return self.handle

    @property
    def name(self) -> str:
        """The implementation that oneDNN has chosen, for example ``brgconv:avx2``."""
        name = ctypes.c_char_p()
        _check(self._api.dnnl_primitive_desc_query(self.description, _IMPLEMENTATION, 0, ctypes.byref(name)))
        return (name.value or b"").decode()

    def layout(self, argument: int) -> Layout:
        """The layout of an argument."""
        found, copy = self._api.dnnl_primitive_desc_query_md(self.description, _QUESTIONS[argument], 0), _Handle()
        _check(self._api.dnnl_memory_desc_clone(ctypes.byref(copy), _Handle(found)))
        return Layout(copy)

    def layouts(self, *arguments: int, more: Mapping[int, Layout] | None = None) -> dict[int, Layout]:
        """The layouts of arguments, those of ``more``, and that of the workspace."""
        return {**{one: self.layout(one) for one in arguments}, **(more or {}), _WORKSPACE: self.layout(_WORKSPACE)}

    def call(self, *arguments: int) -> Call:
        """A function of the arrays for these arguments and a workspace of `workspace` bytes."""
        return Call(self, self.layouts(*arguments))

    @property
    def workspace(self) -> int:
        """The bytes that it needs beside its arguments."""
        return self.layout(_WORKSPACE).size

    def __del__(self) -> None:
        if self.handle:
            self._api.dnnl_primitive_destroy(self.handle)
        self._api.dnnl_primitive_desc_destroy(self.description)


class Conversion(Primitive):
    """The copy from one layout into another."""

    def __init__(self, source: Layout, target: Layout) -> None:
        device = _api().device
        super().__init__("reorder", source.handle, device, target.handle, device)
        self._layouts = source, target

    def call(self, *_: int) -> Call:
        """A function of source, target and workspace."""
        source, target = self._layouts
        return Call(self, self.layouts(more={SOURCE: source, TARGET: target}))


class _Argument(ctypes.Structure):
    """``dnnl_exec_arg_t``."""

    _fields_ = (("argument", ctypes.c_int), ("memory", _Handle))


class Call:
    """A function of arrays that runs a primitive.

    Args:
        primitive: what it runs.
        layouts: argument -> layout, in the order of the arrays; the last is the workspace.
    """

    def __init__(self, primitive: Primitive, layouts: Mapping[int, Layout]) -> None:
        api = self._api = _api()
        self.primitive, self._memories = primitive, [_Handle() for _ in layouts]
        for memory, layout in zip(self._memories, layouts.values(), strict=True):
            _check(api.dnnl_memory_create(ctypes.byref(memory), layout.handle, api.device, None))
        rows = zip(layouts, self._memories, strict=True)
        self._arguments = (_Argument * len(layouts))(*(_Argument(one, memory) for one, memory in rows))
        self._arrays: tuple[Array, ...] = ()
        self._sizes = [layout.size for layout in layouts.values()]
        self._count = len(layouts) - (layouts[_WORKSPACE].size == 0)  # oneDNN wants none where it needs none

    def __call__(self, *arrays: Array) -> None:
        """Compute; arrays that are the same as before need no new addresses."""
        before, api = self._arrays, self._api
        if len(before) != len(arrays) or any(a is not b for a, b in zip(arrays, before, strict=True)):
            for memory, array, size in zip(self._memories, arrays, self._sizes, strict=True):
                if array.nbytes < size:  # oneDNN trusts what it is told
                    raise EnforceNotMet(
                        "An array is too small for a primitive of oneDNN.", expected=f"{size} bytes",
                        received=f"{array.nbytes} bytes", hint="FLAGS_use_mkldnn=0 computes it without oneDNN.",
                    )  # fmt: skip
                _check(api.dnnl_memory_set_data_handle(memory, address(array)))
            self._arrays = arrays
        status = api.dnnl_primitive_execute(self.primitive.compile(), api.stream, self._count, self._arguments)
        if status:
            _check(status)

    def __del__(self) -> None:
        for memory in self._memories:
            self._api.dnnl_memory_destroy(memory)


def address(array: Array) -> int:
    """The address of an array's first element."""
    return int(array.__array_interface__["data"][0])
