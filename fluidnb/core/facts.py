"""Queries of ``fluid.core``: names, counts and capabilities of this machine."""

from enum import IntEnum

from fluidnb import memory
from fluidnb.errors import EnforceNotMet
from fluidnb.op import kernels_of
from fluidnb.program import EMPTY_VAR_NAME, GRAD_VAR_SUFFIX, unique_name
from fluidnb.program import OpRole as _OpRole
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
    """The argument name of a slot that has no variable: ``@EMPTY@``."""
    return EMPTY_VAR_NAME


def grad_var_suffix() -> str:
    """The suffix of gradient variables' names: ``@GRAD``."""
    return GRAD_VAR_SUFFIX


def unique_integer(prefix: str) -> int:
    """The next number that no name with this prefix has yet (version 0.11).

    Returns:
        0, 1, 2, … by prefix.

    Example:
        >>> with unique_name.guard():
        ...     unique_integer("fc"), unique_integer("fc")
        (0, 1)
    """
    return unique_name.generator.count(prefix)


def is_compiled_with_cuda() -> bool:
    """Whether programs can run on ``CUDAPlace(0)`` here: there is a device, and what it takes to use it."""
    try:
        DeviceContext.get(CUDAPlace(0))
    except EnforceNotMet:
        return False
    return True


def get_cuda_device_count() -> int:
    """The number of usable CUDA devices."""
    return DeviceContext.get(CUDAPlace(0)).devices if is_compiled_with_cuda() else 0


def is_compile_gpu() -> bool:
    """`is_compiled_with_cuda` under its name of version 0.11."""
    return is_compiled_with_cuda()


def op_support_gpu(op_type: str) -> bool:
    """Whether an operator has a CUDA kernel and this machine has a GPU."""
    return any(key.place == CUDAPlace.kind for key in kernels_of(op_type)) and is_compiled_with_cuda()


def is_float16_supported(place: Place) -> bool:
    """Whether float16 is computed on a place: here on every one."""
    return isinstance(place, Place)


def is_compiled_with_mkldnn() -> bool:
    """Whether convolutions have kernels of oneDNN, formerly MKL-DNN: where the extra ``onednn`` is installed.

    ``FLAGS_use_mkldnn`` lets them compute.

    Example:
        >>> is_compiled_with_mkldnn() in (True, False)
        True
    """
    return any(key.library_type == "MKLDNN" for key in kernels_of("conv2d"))


def is_compiled_with_dist() -> bool:
    """Whether there are Paddle's own distributed programs; there are not.

    Example:
        >>> is_compiled_with_dist(), is_compiled_with_brpc(), is_compiled_with_ngraph()
        (False, False, False)
    """
    return False


#: Neither are there the libraries bRPC and nGraph.
is_compiled_with_brpc = is_compiled_with_ngraph = is_compiled_with_dist


def get_mem_usage(device: int) -> int:
    """The allocated bytes of a CUDA device's memory.

    Returns:
        The bytes; 0 before anything has run there.

    Raises:
        EnforceNotMet: there is no such device.
    """
    return memory.used(CUDAPlace(device))


def print_mem_usage() -> None:
    """Print what is handed out of the memory of every place that is used."""
    places: list[Place] = [CPUPlace()]
    if is_compiled_with_cuda():
        places.append(CUDAPlace(0))
    for place in places:
        print(memory.stats(place))


def __unittest_throw_exception__() -> None:
    """Raise an `EnforceNotMet`, as Fluid's core does for the tests of its exceptions."""
    raise EnforceNotMet("test exception", hint="only tests call this function.")


class op_proto_and_checker_maker:  # noqa: N801 - Fluid's name
    """A namespace: roles of operators, and the names of the attributes that say them.

    Example:
        >>> int(op_proto_and_checker_maker.OpRole.Optimize), op_proto_and_checker_maker.kOpRoleAttrName()
        (2, 'op_role')
    """

    OpRole = _OpRole
    kOpRoleAttrName = staticmethod(lambda: "op_role")
    kOpRoleVarAttrName = staticmethod(lambda: "op_role_var")  # the parameter of an operator and its gradient
    kOpNameScopeAttrName = staticmethod(lambda: "op_namescope")
    kOpCreationCallstackAttrName = staticmethod(lambda: "op_callstack")  # real Paddle writes it; here it is only read
