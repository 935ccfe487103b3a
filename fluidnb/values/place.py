"""Places, the devices of values. One object per device, so that places compare and hash fast."""

from __future__ import annotations

from inspect import Signature
from typing import Any, ClassVar, Self

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.utils.representations import repr_html


class Place:
    """A kind of device and its number; a subclass per kind, one object per number.

    Args:
        device: the device's number, from 0.

    Example:
        >>> class ToyPlace(Place):
        ...     kind = "toy"
        >>> ToyPlace(1), ToyPlace(1) is ToyPlace(1), ToyPlace(1) == ToyPlace(2)
        (ToyPlace(1), True, False)
    """

    #: The hint of messages where one is expected.
    argument_hint = "fluid.CPUPlace() and fluid.CUDAPlace(0) are places."

    __slots__ = ("_device",)

    #: The kind of device; kernels and allocators are found by it.
    kind: ClassVar[str] = "place"
    _device: int
    _made: ClassVar[dict[tuple[type[Place], int], Place]] = {}

    def __new__(cls, device: int = 0) -> Self:
        if isinstance(device, bool) or not isinstance(device, int):
            raise OpTypeError(f"{cls.__name__} takes a device number.", expected="an int", received=repr(device))
        if device < 0:
            raise OpValueError(f"{cls.__name__} takes a device number.", expected="0 or more", received=device)
        place = cls._made.get((cls, device))
        if place is None:
            place = super().__new__(cls)
            place._device = device
            place = cls._made.setdefault((cls, device), place)
        return place  # type: ignore[return-value]

    @property
    def device(self) -> int:
        """The device's number, from 0."""
        return self._device

    def get_device_id(self) -> int:
        """The device's number, in Fluid's spelling."""
        return self._device

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._device,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._device})"

    _repr_html_ = repr_html


class _HostPlace(Place):
    """A place of which there is one: no device number, and none in its text."""

    __slots__ = ()
    __signature__: ClassVar = Signature()

    def __new__(cls, *device: Any, **named: Any) -> Self:
        if device or named:
            given = ", ".join([*map(repr, device), *(f"{name}={value!r}" for name, value in named.items())])
            raise OpTypeError(
                f"{cls.__name__} takes no device number: there is one host.", expected=f"{cls.__name__}()",
                received=f"{cls.__name__}({given})", hint=f"write {cls.__name__}().",
            )  # fmt: skip
        return super().__new__(cls, 0)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def __repr__(self) -> str:
        return type(self).__name__


class CPUPlace(_HostPlace):
    """The host's memory and numpy.

    Example:
        >>> CPUPlace() == CPUPlace()
        True
    """

    __slots__ = ()
    kind = "cpu"


class CUDAPinnedPlace(_HostPlace):
    """The host's memory with locked pages, from which copies to a device are fastest.

    Example:
        >>> CUDAPinnedPlace()
        CUDAPinnedPlace
    """

    __slots__ = ()
    kind = "cuda_pinned"


class CUDAPlace(Place):
    """A CUDA device. Naming one needs no device; using one does.

    Args:
        device: the device's number, from 0.

    Example:
        >>> CUDAPlace(0)
        CUDAPlace(0)
    """

    __slots__ = ()
    kind = "cuda"
