"""Device contexts: what one device offers to those who compute on it, and how a new kind of device joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from time import perf_counter_ns
from typing import Any

import numpy as np

from fluidnb import memory
from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.values import kernel_packages
from fluidnb.values.copies import copy_between, is_on_device, on_host
from fluidnb.values.dtypes import np_dtype
from fluidnb.values.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place

Array = np.ndarray[Any, Any]


class DeviceContext:
    """The host's context, and the base of every other: new arrays, copies in and out, waiting.

    Args:
        place: the device.

    Attributes:
        name: what the device is called; empty on the host.
        backend: what drives it, with its version; empty on the host.
        devices: how many devices of its kind there are.

    Source: Fluid's platform::DeviceContext.

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
        """The context of a place: always the same one (Fluid's name for `get`).

        Args:
            place: the device.

        Returns:
            Its context.

        Raises:
            EnforceNotMet: the place cannot be used here.
        """
        return DeviceContext.get(place)

    @staticmethod
    def get(place: Place) -> DeviceContext:
        """The context of a place; there is one for each, made at the first call.

        Args:
            place: the device.

        Returns:
            Its context.

        Raises:
            OpTypeError: `place` is no place.
            EnforceNotMet: the place cannot be used here, with what to do instead.

        Example:
            >>> DeviceContext.get(CPUPlace()) is DeviceContext.get(CPUPlace())
            True
        """
        found = _contexts.get(place)
        if found is None:
            if not isinstance(place, Place):
                raise OpTypeError("place should be a Place.", expected="fluid.CPUPlace()", received=repr(place))
            if type(place) not in _factories:
                raise EnforceNotMet(
                    f"Cannot run operator on place {place}: no device context is registered for it.",
                    hint="register_place(PlaceClass, context_factory) adds one; use fluid.CPUPlace() otherwise.",
                )
            found = _contexts.setdefault(place, _factories[type(place)](place))
        return found

    def empty(self, shape: Sequence[int], dtype: Any, order: Sequence[int] | None = None) -> Array:
        """A new array on the device.

        Args:
            shape: its sizes.
            dtype: any spelling of an element type.
            order: axes from outermost to innermost in memory; None is C order.

        Returns:
            The array, its content undefined.
        """
        return memory.empty(self.place, shape, np_dtype(dtype), order)

    def sketch(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """A placeholder for an array of a run, given an address in a memory arena before it is used.

        Args:
            shape: its sizes.
            dtype: numpy dtype.

        Returns:
            An array without memory; None where each device array has separate memory.
        """
        return None

    def from_host(self, array: Any) -> Array:
        """Copy a host array to the device.

        Args:
            array: anything numpy makes an array of.

        Returns:
            A new array on the device.
        """
        source = np.asarray(array)
        made = self.empty(source.shape, source.dtype)
        copy_between("cpu", self.place.kind)(source, made)
        return made

    def to_host(self, array: Array) -> Array:
        """A device array as a numpy array; on the CPU that is the array itself.

        Args:
            array: an array of this device.

        Returns:
            A numpy array.
        """
        kind = self.place.kind
        if kind == CPUPlace.kind:
            return array
        made = memory.empty(CPUPlace(), array.shape, array.dtype)
        copy_between(kind, CPUPlace.kind)(array, made)
        return made

    def fill(self, target: Array, source: Any) -> None:
        """Copy into an array of the device.

        Args:
            target: the array.
            source: an array of the host, or of the same kind of device, of its shape and dtype.
        """
        kind = self.place.kind
        if isinstance(source, np.ndarray):
            copy_between(CPUPlace.kind, kind)(source, target)
        elif kind == CPUPlace.kind:
            copy_between(kind, kind)(on_host(source), target)
        else:
            copy_between(kind, kind)(source, target)

    def fill_all(self, pairs: Sequence[tuple[Array, Any]]) -> None:
        """Copy into arrays of the device, in a run's turn.

        Args:
            pairs: (target, source), as for `fill`.
        """
        for target, source in pairs:
            self.fill(target, source)

    def fetch_all(self, arrays: Sequence[Array]) -> list[Array]:
        """Arrays of the device as new ones of numpy's, when all is done that they wait for.

        Args:
            arrays: arrays of the device.

        Returns:
            Copies.
        """
        return [np.array(self.to_host(array), order="C") for array in arrays]

    def turn(self, *about: Any) -> AbstractContextManager[Any]:
        """Context in which a run submits work to the device; runs of two threads may overlap.

        Args:
            about: what the run works on (its plan, its scope): it comes after runs of other threads about the same.

        Returns:
            A context manager; on the host it does nothing.
        """
        return _NOTHING

    def clear(self, target: Array) -> None:
        """Write zeros.

        Args:
            target: an array of the device, without gaps.
        """
        target.fill(0)

    def add(self, total: Array, array: Array) -> None:
        """Add an array to another one.

        Args:
            total: an array of the device, changed.
            array: one of its shape and dtype.
        """
        np.add(total, array, total)

    def add_rows(self, total: Array, rows: Any) -> None:
        """Add SelectedRows to the array of which they are rows.

        Args:
            total: an array of the device, changed.
            rows: the rows, of this device too.
        """
        np.add.at(total, rows.rows_, rows.value.array)

    def joined(self, calls: list[Any], ops: list[Any]) -> tuple[list[Any], list[Any]]:
        """The calls of a plan as this device makes them best, several of them as one where that is quicker.

        Args:
            calls: (function, arguments) one after the other.
            ops: the operator of each.

        Returns:
            Calls, and the (first) operator of each; on the host those given.
        """
        return calls, ops

    def use(self) -> None:
        """Let what this thread does next go to this device; on the host there is nothing to choose."""

    def mark(self) -> Any:
        """A point in the device's work, for `times`."""
        return perf_counter_ns()

    def times(self, marks: Sequence[Any]) -> list[int]:
        """When points in its work came; waits for the last one.

        Args:
            marks: what `mark` gave, in order.

        Returns:
            Nanoseconds on the clock of ``time.perf_counter_ns``.
        """
        return list(marks)

    def wait(self) -> None:
        """Blocks until all submitted work of the device is done; a no-op on the host."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place})"


_NOTHING = nullcontext()
_factories: dict[type[Place], Callable[[Any], DeviceContext]] = {}
_contexts: dict[Place, DeviceContext] = {}


def register_place(cls: type[Place], context_factory: Callable[[Any], DeviceContext]) -> None:
    """Add a kind of place, or replace how its contexts are made: the first of three steps to a new device.

    The other two are kernels for it (``fluidnb.op.kernel(type, place=cls.kind)``) and the copies between it and the CPU
    (``fluidnb.op.register_copy``). Operators without a kernel for it run on the CPU, between copies.

    Args:
        cls: a subclass of Place with its own `kind`.
        context_factory: place -> DeviceContext; called once per place.

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
    """The first device of a kind, of the class that was registered last.

    Args:
        kind: the kind.

    Returns:
        Its place.

    Raises:
        EnforceNotMet: no registered place is of this kind.

    Example:
        >>> place_of("cpu")
        CPUPlace
    """
    for cls in reversed(_factories):  # the newest wins, as among kernels
        if cls.kind == kind:
            return cls()
    raise EnforceNotMet(
        f"There is no place of kind {kind}.", expected=f"one of {', '.join(c.kind for c in _factories)}", received=kind,
        hint="fluidnb.values.register_place adds one.",
    )  # fmt: skip


def copy_of(array: Any) -> Any:
    """A copy of an array on its device, allocated in the pool of its place.

    Args:
        array: of the host, or of a device.

    Returns:
        A new array.

    Example:
        >>> a = np.zeros(2); b = copy_of(a); b[0] = 1; a
        array([0., 0.])
    """
    if not is_on_device(array):
        return array.copy()
    context = DeviceContext.get(CUDAPlace(array.data.device_id))
    made = context.empty(array.shape, array.dtype)
    context.fill(made, array)
    return made


def _cuda(place: CUDAPlace) -> DeviceContext:
    """The context of a CUDA device: the kernel packages, which register it in place of this function, are loaded."""
    with suppress(ImportError):
        kernel_packages.load()
    factory = _factories[CUDAPlace]
    if factory is _cuda:
        raise EnforceNotMet(
            f"Cannot run operator on place {place}: no CUDA kernels are installed.",
            expected="a place that can be used here: CPUPlace", received=str(place), hint="use fluid.CPUPlace().",
        )  # fmt: skip
    return factory(place)


register_place(CPUPlace, DeviceContext)
register_place(CUDAPinnedPlace, DeviceContext)
register_place(CUDAPlace, _cuda)
