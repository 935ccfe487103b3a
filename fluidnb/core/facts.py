"""Queries of ``fluid.core``: names, counts and capabilities of this machine."""

from __future__ import annotations

from enum import IntEnum

from fluidnb import memory
from fluidnb.errors import EnforceNotMet
from fluidnb.op import kernels_of
from fluidnb.program import EMPTY_VAR_NAME, GRAD_VAR_SUFFIX, unique_name
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.values import CPUPlace, CUDAPlace, DeviceContext, Place


class AttrType(IntEnum):
    """The types of operator attributes by their numbers on the wire, in the core's spelling.

    Example:
        >>> AttrType.FLOATS, AttrType.BOOL == AttrType.BOOLEAN
        (<AttrType.FLOATS: 4>, True)
    """

    INT = pb2.AttrType.Value("INT")
    FLOAT = pb2.AttrType.Value("FLOAT")
    STRING = pb2.AttrType.Value("STRING")
    INTS = pb2.AttrType.Value("INTS")
    FLOATS = pb2.AttrType.Value("FLOATS")
    STRINGS = pb2.AttrType.Value("STRINGS")
    BOOL = pb2.AttrType.Value("BOOLEAN")
    BOOLS = pb2.AttrType.Value("BOOLEANS")
    BLOCK = pb2.AttrType.Value("BLOCK")
    LONG = pb2.AttrType.Value("LONG")
    BLOCKS = pb2.AttrType.Value("BLOCKS")
    LONGS = pb2.AttrType.Value("LONGS")
    FLOAT64S = pb2.AttrType.Value("FLOAT64S")
    FLOAT64 = pb2.AttrType.Value("FLOAT64")
    #: As the file format spells them.
    BOOLEAN = BOOL
    BOOLEANS = BOOLS


def empty_var_name() -> str:
    """The argument name of a slot that wants no variable.

    Example:
        >>> empty_var_name()
        '@EMPTY@'
    """
    return EMPTY_VAR_NAME


def grad_var_suffix() -> str:
    """The suffix of gradient variables' names.

    Example:
        >>> grad_var_suffix()
        '@GRAD'
    """
    return GRAD_VAR_SUFFIX


def unique_integer(prefix: str) -> int:
    """The next number that no name with this prefix has yet (version 0.11).

    Args:
        prefix: the start of the names.

    Returns:
        0, 1, 2, … by prefix.

    Example:
        >>> with unique_name.guard():
        ...     unique_integer("fc"), unique_integer("fc")
        (0, 1)
    """
    return unique_name.generator.count(prefix)


def is_compiled_with_cuda() -> bool:
    """Whether programs can run on ``CUDAPlace(0)`` here: there is a device, and what it takes to use it.

    Example:
        >>> is_compiled_with_cuda() in (True, False)
        True
    """
    try:
        DeviceContext.get(CUDAPlace(0))
    except EnforceNotMet:
        return False
    return True


def get_cuda_device_count() -> int:
    """The number of usable CUDA devices.

    Example:
        >>> (get_cuda_device_count() > 0) == is_compiled_with_cuda()
        True
    """
    return DeviceContext.get(CUDAPlace(0)).devices if is_compiled_with_cuda() else 0


def is_compile_gpu() -> bool:
    """`is_compiled_with_cuda` under its name of version 0.11."""
    return is_compiled_with_cuda()


def op_support_gpu(op_type: str) -> bool:
    """Whether an operator has a CUDA kernel and this machine has a GPU.

    Args:
        op_type: the operator.

    Raises:
        NotFound: there is no such operator.

    Example:
        >>> op_support_gpu("sum") is is_compiled_with_cuda()
        True
    """
    return any(key.place == CUDAPlace.kind for key in kernels_of(op_type)) and is_compiled_with_cuda()


def is_float16_supported(place: Place) -> bool:
    """Whether float16 is computed on a place: here on every one.

    Args:
        place: the place.

    Example:
        >>> from fluidnb.values import CPUPlace
        >>> is_float16_supported(CPUPlace())
        True
    """
    return isinstance(place, Place)


def is_compiled_with_mkldnn() -> bool:
    """Whether operators have kernels of the MKL-DNN library: they do not, numpy computes.

    Example:
        >>> is_compiled_with_mkldnn(), is_compiled_with_dist(), is_compiled_with_brpc(), is_compiled_with_ngraph()
        (False, False, False, False)
    """
    return False


def is_compiled_with_dist() -> bool:
    """Whether programs can be split over several machines."""
    return False


def is_compiled_with_brpc() -> bool:
    """Whether machines talk by the bRPC library."""
    return False


def is_compiled_with_ngraph() -> bool:
    """Whether parts of programs go to the nGraph library."""
    return False


def get_mem_usage(device: int) -> int:
    """The allocated bytes of a CUDA device's memory.

    Args:
        device: its number.

    Returns:
        The bytes; 0 before anything has run there.

    Raises:
        EnforceNotMet: there is no such device.
    """
    return memory.used(CUDAPlace(device))


def print_mem_usage() -> None:
    """Print what is handed out of the memory of every place that is used.

    Example:
        >>> print_mem_usage()
        CPUPlace: ... used, peak ...
    """
    places: list[Place] = [CPUPlace()]
    if is_compiled_with_cuda():
        places.append(CUDAPlace(0))
    for place in places:
        print(memory.stats(place))


def __unittest_throw_exception__() -> None:
    """Raise an `EnforceNotMet`, as Fluid's core does for the tests of its exceptions.

    Raises:
        EnforceNotMet: always.
    """
    raise EnforceNotMet("test exception", hint="only tests call this function.")
