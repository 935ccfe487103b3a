"""The CUDA stream of a thread: runs of one thread are ordered, those of two are concurrent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device.copies import to_device, told
from fluidnb_kernels.device.pinned_staging import Desk

#: Larger arrays go straight to where they are wanted: pinned memory is scarce.
_LARGE = 1 << 24


class Lane:
    """A stream with what belongs to it, entered for each run.

    Its stream is one that blocks: what is done outside of runs goes into the default stream, and so comes after all
    runs that were begun before, and before those that are begun later.

    Args:
        lanes: those of the device, as weak references; it adds itself.

    Attributes:
        stream: cupy's.
        turns: how many runs it has been given.
        deep: how many of them are under way, one inside the other.
    """

    def __init__(self, lanes: list[ref[Lane]]) -> None:
        self._cuda = cuda = backend.cupy().cuda
        self.stream = cuda.Stream()
        self.turns = self.deep = 0
        self._lanes, self._desk = lanes, Desk()
        self._read, self._reading = cuda.Event(disable_timing=True), False
        self._seen: WeakKeyDictionary[Lane, int] = WeakKeyDictionary()
        self._callers: list[Any] = []
        lanes.append(ref(self, lanes.remove))

    def __del__(self, over: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_reading", False) and not over():
            self._read.synchronize()  # the desk goes to somebody else now

    def __enter__(self) -> Lane:
        if not self.deep and self._reading:
            with told():
                self._read.synchronize()
            self._reading = False
            self._desk.clear()
        caller = self._cuda.get_current_stream()
        apart = caller.ptr not in (0, self.stream.ptr)
        if apart:  # what the user has asked of a stream of his own comes before
            self._after(caller)
        self.stream.__enter__()
        self._callers.append(caller if apart else None)
        self.deep += 1
        self.turns += 1
        return self

    def __exit__(self, *error: Any) -> None:
        self.deep -= 1
        caller = self._callers.pop()
        self.stream.__exit__(*error)
        if caller is not None:
            caller.wait_event(self._event(self.stream))

    def fill(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Copy to the device; the sources may change as soon as this returns.

        Args:
            pairs: (array of the device, array of its shape and dtype of the host).
        """
        runtime = self._cuda.runtime
        with told():
            for target, source in pairs:
                if source.nbytes > _LARGE or not target.flags.c_contiguous:
                    to_device(source, target)
                elif source.nbytes:
                    held = self._desk.room(source.shape, source.dtype)
                    np.copyto(held, source)
                    kind = runtime.memcpyHostToDevice
                    self._reading = True
                    runtime.memcpyAsync(target.data.ptr, held.ctypes.data, held.nbytes, kind, self.stream.ptr)
            if self._reading:
                self._read.record(self.stream)

    def fetch(self, arrays: Sequence[Any]) -> list[Any]:
        """Copy to the host, and wait until all is there.

        Args:
            arrays: of the device, without gaps.

        Returns:
            New arrays.
        """
        runtime = self._cuda.runtime
        made: list[Any] = []
        with told():
            for array in arrays:
                out = held = np.empty(array.shape, array.dtype)
                if array.nbytes > _LARGE:
                    array.get(stream=self.stream, out=out)
                elif array.nbytes:
                    held, kind = self._desk.room(array.shape, array.dtype), runtime.memcpyDeviceToHost
                    runtime.memcpyAsync(held.ctypes.data, array.data.ptr, array.nbytes, kind, self.stream.ptr)
                made.append((out, held))
            if made:
                self.stream.synchronize()
        for out, held in made:
            if out is not held:
                np.copyto(out, held)
        if made and self.deep <= 1:  # nothing is under way
            self._reading = False
            self._desk.clear()
        return [out for out, _ in made]

    def come_after(self, other: Lane) -> None:
        """Let what comes here wait for all that another lane has been given.

        Args:
            other: the lane.
        """
        if not other.deep:  # a turn that is under way goes on to give it work
            self._seen[other] = other.turns
        self._after(other.stream)

    def take_memory(self) -> None:
        """Wait for every lane that may still use memory which has been given back, before it is used here."""
        for found in list(self._lanes):  # other threads add themselves at any moment
            other = found()
            if other is not None and other is not self and (other.deep or self._seen.get(other) != other.turns):
                self.come_after(other)

    def _after(self, stream: Any) -> None:
        self.stream.wait_event(self._event(stream))

    def _event(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event
