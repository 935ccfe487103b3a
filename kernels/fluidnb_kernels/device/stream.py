"""The CUDA stream of a thread: runs of one thread are ordered, those of two are concurrent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from fluidnb_kernels.cuda import backend
from fluidnb_kernels.device.copies import PinnedStaging, device_errors, to_device

#: Larger arrays go straight to where they are wanted: pinned memory is scarce.
_LARGE = 1 << 24


class ThreadStream:
    """The blocking stream of a thread, entered for each run: the default stream comes after all runs before."""

    def __init__(self, streams: list[ref[ThreadStream]]) -> None:
        self._cuda = cuda = backend.cupy().cuda
        self.stream = cuda.Stream()
        self.turns = self.deep = 0
        self._streams, self._staging = streams, PinnedStaging()
        self._read, self._reading = cuda.Event(disable_timing=True), False
        self._seen: WeakKeyDictionary[ThreadStream, int] = WeakKeyDictionary()
        self._callers: list[Any] = []
        streams.append(ref(self, streams.remove))

    def __del__(self, over: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_reading", False) and not over():
            self._read.synchronize()  # the staging memory goes to somebody else now

    def __enter__(self) -> ThreadStream:
        if not self.deep and self._reading:
            with device_errors():
                self._read.synchronize()
            self._reading = False
            self._staging.clear()
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
        """Copy arrays of the host to the device; the sources may change as soon as this returns."""
        runtime = self._cuda.runtime
        with device_errors():
            for target, source in pairs:
                if source.nbytes > _LARGE or not target.flags.c_contiguous:
                    to_device(source, target)
                elif source.nbytes:
                    staged = self._staging.empty(source.shape, source.dtype)
                    np.copyto(staged, source)
                    kind = runtime.memcpyHostToDevice
                    self._reading = True
                    runtime.memcpyAsync(target.data.ptr, staged.ctypes.data, staged.nbytes, kind, self.stream.ptr)
            if self._reading:
                self._read.record(self.stream)

    def fetch(self, arrays: Sequence[Any]) -> list[Any]:
        """Copy to the host, and wait until all is there."""
        runtime = self._cuda.runtime
        fetched: list[Any] = []
        with device_errors():
            for array in arrays:
                out = staged = np.empty(array.shape, array.dtype)
                if array.nbytes > _LARGE:
                    array.get(stream=self.stream, out=out)
                elif array.nbytes:
                    staged, kind = self._staging.empty(array.shape, array.dtype), runtime.memcpyDeviceToHost
                    runtime.memcpyAsync(staged.ctypes.data, array.data.ptr, array.nbytes, kind, self.stream.ptr)
                fetched.append((out, staged))
            if fetched:
                self.stream.synchronize()
        for out, staged in fetched:
            if out is not staged:
                np.copyto(out, staged)
        if fetched and self.deep <= 1:  # nothing is under way
            self._reading = False
            self._staging.clear()
        return [out for out, _ in fetched]

    def come_after(self, other: ThreadStream) -> None:
        """Let what comes here wait for all that another stream has been given."""
        if not other.deep:  # a turn that is under way goes on to give it work
            self._seen[other] = other.turns
        self._after(other.stream)

    def take_memory(self) -> None:
        """Wait for every stream that may still use memory which has been given back, before it is used here."""
        for reference in list(self._streams):  # other threads add themselves at any moment
            other = reference()
            if other is not None and other is not self and (other.deep or self._seen.get(other) != other.turns):
                self.come_after(other)

    def _after(self, stream: Any) -> None:
        self.stream.wait_event(self._event(stream))

    def _event(self, stream: Any) -> Any:
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event
