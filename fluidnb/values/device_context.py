"""Device contexts: operations of one device, and registration of new kinds of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.values import kernel_packages
from fluidnb.values.copies import copy_between, is_on_device, on_host
from fluidnb.values.dtypes import np_dtype
from fluidnb.values.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place

Array = np.ndarray[Any, Any]


class JoinedOps(NamedTuple):
    """Operators that one kernel computes, which was made for them.

    Attributes:
        ops: the operators, in order.
        replaced: how many launches it replaces.
        text: its CUDA C++.
    """

    ops: list[Any]
    replaced: int
    text: str


class Joined(NamedTuple):
    """The calls of a compiled program as a device runs them.

    Attributes:
        calls: function and arguments of each.
        ops: the operator of each, or the first of several.
        made: what kernels were made for.
    """

    calls: list[Any]
    ops: list[Any]
    made: list[JoinedOps]


class DeviceContext:
    """The host's context, and the base of every other: new arrays, copies in and out, waiting.

    Attributes:
        name: the device's name; empty on the host.
        backend: its driver with its version; empty on the host.
        devices: number of devices of its kind.

    Example:
        >>> ctx = DeviceContext.get(CPUPlace())
        >>> ctx.to_host(ctx.from_host([1.0, 2.0]))
        array([1., 2.])
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name, self.backend, self.devices = "", "", 1

    @staticmethod
    def create(place: Place) -> DeviceContext:
        """The context of a place (Fluid's name for `get`)."""
        return DeviceContext.get(place)

    @staticmethod
    def get(place: Place) -> DeviceContext:
        """The context of a place; there is one for each, created at the first call."""
        context = _contexts.get(place)
        if context is None:
            if not isinstance(place, Place):
                raise OpTypeError("place should be a Place.", expected="fluid.CPUPlace()", received=repr(place))
            if type(place) not in _factories:
                raise EnforceNotMet(
                    f"Cannot run operator on place {place}: no device context is registered for it.",
                    hint="register_place(PlaceClass, context_factory) adds one; use fluid.CPUPlace() otherwise.",
                )
            context = _contexts.setdefault(place, _factories[type(place)](place))
        return context

    def empty(self, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Array:
        """A new array on the device, its content undefined.

        Args:
            dtype: any spelling of an element type.
            order: axes from outermost to innermost in memory; None is C order.
        """
        return memory.empty(self.place, shape, np_dtype(dtype), order)

    def sketch(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A placeholder for an array of a run, given an address in a memory arena before it is used.

        Returns:
            An array without memory; None where each device array has separate memory.
        """
        return None

    def from_host(self, array: Any) -> Array:
        """A new array on the device with the values of a host array."""
        source = np.asarray(array)
        target = self.empty(source.shape, source.dtype)
        copy_between("cpu", self.place.kind)(source, target)
        return target

    def to_host(self, array: Array) -> Array:
        """A device array as a numpy array; on the CPU that is the array itself."""
        kind = self.place.kind
        if kind == CPUPlace.kind:
            return array
        target = memory.empty(CPUPlace(), array.shape, array.dtype)
        copy_between(kind, CPUPlace.kind)(array, target)
        return target

    def fill(self, target: Array, source: Any) -> None:
        """Copies an array of the host or of the same kind of device into an array of the device."""
        kind = self.place.kind
        if isinstance(source, np.ndarray):
            copy_between(CPUPlace.kind, kind)(source, target)
        elif kind == CPUPlace.kind:
            copy_between(kind, kind)(on_host(source), target)
        else:
            copy_between(kind, kind)(source, target)

    def fill_all(self, pairs: Sequence[tuple[Array, Any]]) -> None:
        """Copies several (target, source) pairs as `fill`, in a run's turn."""
        for target, source in pairs:
            self.fill(target, source)

    def fetch_all(self, arrays: Sequence[Array]) -> list[Array]:
        """Copies of arrays of the device as numpy arrays, after the work that they wait for."""
        return [np.array(self.to_host(array), order="C") for array in arrays]

    def turn(self, *about: Any) -> AbstractContextManager[Any]:
        """Context in which a run submits work to the device; runs of two threads may overlap.

        Args:
            about: the objects of the run (its program, its scope); runs of other threads with the same come one by one.
        """
        return _NOTHING

    def clear(self, target: Array) -> None:
        """Writes zeros to a contiguous array of the device."""
        target.fill(0)

    def add(self, total: Array, array: Array) -> None:
        """Adds an array of the same shape and dtype to an array of the device."""
        np.add(total, array, total)

    def add_rows(self, total: Array, rows: Any) -> None:
        """Adds SelectedRows of this device to the array of which they are rows."""
        np.add.at(total, rows.rows_, rows.value.array)

    def joined(self, calls: list[Any], ops: list[Any], lives: Mapping[int, Any] | None = None) -> Joined:
        """The calls of a compiled program as this device runs them fastest, several merged into one.

        Args:
            calls: function and arguments of each.
            ops: the operator of each.
            lives: identity of an array -> which calls touch its buffer; None where native code is not asked for.

        Returns:
            What a run makes; on the host the calls passed in.
        """
        return Joined(calls, ops, [])

    def use(self) -> None:
        """Makes this thread's next work go to this device; a no-op on the host."""

    def mark(self) -> Any:
        """A point in the device's work, for `times`."""
        return perf_counter_ns()

    def times(self, marks: Sequence[Any]) -> list[int]:
        """The times of `mark` results in nanoseconds of ``time.perf_counter_ns``; waits for the last one."""
        return list(marks)

    def wait(self) -> None:
        """Blocks until all submitted work of the device is done; a no-op on the host."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place})"


_NOTHING = nullcontext()
_factories: dict[type[Place], Callable[[Any], DeviceContext]] = {}
_contexts: dict[Place, DeviceContext] = {}


def register_place(cls: type[Place], context_factory: Callable[[Any], DeviceContext]) -> None:
    """Registers the contexts of a kind of place: the first of three steps to a new device.

    The other two are kernels for it (``fluidnb.op.kernel(type, place=cls.kind)``) and the copies between it and the CPU
    (``fluidnb.op.register_copy``). Operators without a kernel for it run on the CPU, between copies.

    Example:
        >>> class ToyPlace(Place):
        ...     kind = "toy"
        >>> memory.register_allocator("toy", lambda device: memory.CPUAllocator())
        >>> register_place(ToyPlace, DeviceContext)
        >>> DeviceContext.get(ToyPlace(0)).empty((2,), "int32").shape
        (2,)
    """
    for place in [p for p in _contexts if type(p) is cls]:
        del _contexts[place]
    _factories[cls] = context_factory


def place_of(kind: str) -> Place:
    """The first device of a kind, of the class that was registered last."""
    for cls in reversed(_factories):  # the newest wins, as among kernels
        if cls.kind == kind:
            return cls()
    raise EnforceNotMet(
        f"There is no place of kind {kind}.", expected=f"one of {', '.join(c.kind for c in _factories)}", received=kind,
        hint="fluidnb.values.register_place adds one.",
    )  # fmt: skip


def copy_of(array: Any) -> Any:
    """A copy of an array on its device, allocated in the pool of its place."""
    if not is_on_device(array):
        return array.copy()
    context = DeviceContext.get(CUDAPlace(array.data.device_id))
    target = context.empty(array.shape, array.dtype)
    context.fill(target, array)
    return target


_cuda_factory: Callable[[Any], DeviceContext] | None = None


def provide_cuda(context_factory: Callable[[Any], DeviceContext]) -> None:
    """Registers contexts of CUDA devices for kernel packages, unless `register_place` has registered others."""
    global _cuda_factory
    _cuda_factory = context_factory


def _load_kernels() -> None:
    """Loads the kernel packages, if there are any."""
    with suppress(ImportError):
        kernel_packages.load()


def _cuda(place: CUDAPlace) -> DeviceContext:
    """The context of a CUDA device; the kernel packages, which provide it, are loaded first."""
    _load_kernels()
    if _cuda_factory is None:
        raise EnforceNotMet(
            f"Cannot run operator on place {place}: no CUDA kernels are installed.",
            expected="a place that can be used here: CPUPlace", received=str(place), hint="use fluid.CPUPlace().",
        )  # fmt: skip
    return _cuda_factory(place)


memory.pools.load_by(_load_kernels)
register_place(CPUPlace, DeviceContext)
register_place(CUDAPinnedPlace, DeviceContext)
register_place(CUDAPlace, _cuda)
