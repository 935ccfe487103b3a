"""Python API of Fluid's C++ core: scopes, values, places, descriptions, operator protos.

Example:
    >>> from fluidnb import core
    >>> t = core.Tensor(); t.set(np.ones((2, 3), "float32"), core.CPUPlace()); t.shape()
    [2, 3]
    >>> core.VarDesc.VarType.FP32, core.AttrType.INTS.name
    (5, 'INTS')
"""

from typing import TYPE_CHECKING, Any

from fluidnb import memory
from fluidnb.absent import CORE, absent
from fluidnb.core.backward import backward as _backward
from fluidnb.core.facts import (
    AttrType,
    __unittest_throw_exception__,
    empty_var_name,
    get_cuda_device_count,
    get_mem_usage,
    grad_var_suffix,
    is_compile_gpu,
    is_compiled_with_brpc,
    is_compiled_with_cuda,
    is_compiled_with_dist,
    is_compiled_with_mkldnn,
    is_compiled_with_ngraph,
    is_float16_supported,
    op_proto_and_checker_maker,
    op_support_gpu,
    print_mem_usage,
    unique_integer,
)
from fluidnb.core.flags import init_devices, init_gflags, init_glog
from fluidnb.core.flags import set_eager_deletion_mode as _set_eager_deletion_mode  # noqa: F401
from fluidnb.core.net import Net
from fluidnb.core.operator import Operator
from fluidnb.core.profiling import (
    EventSortingKey,
    ProfilerState,
    disable_profiler,
    enable_profiler,
    is_profiler_enabled,
    reset_profiler,
)
from fluidnb.core.programs import get_all_op_protos, get_grad_op_desc, inference_optimize, prune
from fluidnb.core.run import Executor, get_fetch_variable, set_feed_variable
from fluidnb.errors import EnforceNotMet, near
from fluidnb.op import OpKernelType
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.runtime import Scope
from fluidnb.values import (
    CPUPlace,
    CUDAPinnedPlace,
    CUDAPlace,
    DeviceContext,
    LoDTensor,
    LoDTensorArray,
    Place,
    SelectedRows,
    Variable,
)
from fluidnb.values import LoDRankTable as LodRankTable
from fluidnb.values import VarType as DataType
from fluidnb.values.reader import EOFException

#: Other names of the same things, some of version 0.11.
Tensor = LoDTensor
GPUPlace = CUDAPlace
_Scope = Scope
Operator.backward = staticmethod(_backward)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in CORE:
            return absent(f"core.{name}")
        raise AttributeError(f"fluid.core has no {name}. {near(name, __all__)}".rstrip())


__all__ = [
    "AttrType", "BlockDesc", "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DataType", "DeviceContext", "EOFException",
    "EnforceNotMet", "EventSortingKey", "Executor", "GPUPlace", "LoDTensor", "LoDTensorArray", "LodRankTable", "Net",
    "OpDesc", "OpKernelType", "Operator", "Place", "ProfilerState", "ProgramDesc", "Scope", "SelectedRows", "Tensor",
    "VarDesc", "Variable", "__unittest_throw_exception__", "disable_profiler", "empty_var_name", "enable_profiler",
    "get_all_op_protos", "get_cuda_device_count", "get_fetch_variable", "get_grad_op_desc", "get_mem_usage",
    "grad_var_suffix", "inference_optimize", "init_devices", "init_gflags", "init_glog", "is_compile_gpu",
    "is_compiled_with_brpc", "is_compiled_with_cuda", "is_compiled_with_dist", "is_compiled_with_mkldnn",
    "is_compiled_with_ngraph", "is_float16_supported", "is_profiler_enabled", "memory", "op_proto_and_checker_maker",
    "op_support_gpu", "print_mem_usage", "prune", "reset_profiler", "set_feed_variable", "unique_integer",
]  # fmt: skip
