"""ParallelDo and get_places: how versions 0.11 to 0.14 put a part of a program on several devices. Here it is one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fluidnb.arguments import Count, checked
from fluidnb.errors import OpValueError
from fluidnb.program import Variable
from fluidnb.values.place import CPUPlace, CUDAPlace, Place

__all__ = ["ParallelDo", "get_places"]


@checked
def get_places(device_count: Count | None = None, device_type: str | None = None) -> list[Place]:
    """Lists the devices for `ParallelDo`.

    Args:
        device_count: how many; 0 or None for those that there are, which is one.
        device_type: ``CPU`` or ``CUDA``; default the CPU.

    Returns:
        The places.

    Example:
        >>> fluid.layers.get_places()
        [CPUPlace]
    """
    kind = (device_type or "CPU").upper()
    if kind not in ("CPU", "CUDA", "GPU"):
        raise OpValueError("There is no such type of device.", expected='"CPU" or "CUDA"', received=repr(device_type))
    count = device_count or 1
    if count < 0:
        raise OpValueError("device_count is a number of devices.", expected="0 or more", received=device_count)
    return [CPUPlace() if kind == "CPU" else CUDAPlace(i) for i in range(count)]


@checked
class ParallelDo:
    """Runs a part of a program on several devices, each with a share of the batch; here one device runs the whole.

    What is built inside ``do()`` is appended to the block around it.

    Args:
        places: the devices.
        use_nccl: ignored (compatibility).
        name: ignored (compatibility).

    Example:
        >>> x = fluid.layers.data("x", [4])
        >>> pd = fluid.layers.ParallelDo(fluid.layers.get_places())
        >>> with pd.do():
        ...     pd.write_output(fluid.layers.scale(pd.read_input(x), scale=2.0))
        >>> pd().shape
        (-1, 4)
    """

    def __init__(self, places: Any, use_nccl: bool = False, name: str | None = None) -> None:
        self._outputs: list[Variable] = []

    @contextmanager
    def do(self) -> Iterator[None]:
        """The ``with`` in which the part is built."""
        yield

    def read_input(self, var: Variable) -> Variable:
        """Gives the share of a variable that a device takes: all of it."""
        return var

    def write_output(self, var: Variable) -> None:
        """Makes a variable a result of the part."""
        self._outputs.append(var)

    def __call__(self) -> Any:
        """The results of the part, put together from all devices: a variable, or a list of several."""
        if not self._outputs:
            raise OpValueError("This ParallelDo has no output.", hint="call write_output(variable) inside do().")
        return self._outputs[0] if len(self._outputs) == 1 else list(self._outputs)
