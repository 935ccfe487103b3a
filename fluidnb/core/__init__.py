"""What Fluid's C++ core shows to Python: scopes, values, places, descriptions, operator protos, under its own names.

Example:
    >>> from fluidnb import core
    >>> t = core.Tensor(); t.set(np.ones((2, 3), "float32"), core.CPUPlace()); t.shape()
    [2, 3]
    >>> core.VarDesc.VarType.FP32, core.AttrType.INTS.name
    (5, 'INTS')

Source: Fluid's pybind module.
"""

from fluidnb import memory
from fluidnb.core.facts import (
    AttrType,
    empty_var_name,
    get_cuda_device_count,
    grad_var_suffix,
    is_compile_gpu,
    is_compiled_with_cuda,
    is_float16_supported,
    op_support_gpu,
    unique_integer,
)
from fluidnb.core.flags import init_devices, init_gflags, init_glog
from fluidnb.core.programs import get_all_op_protos, get_grad_op_desc, inference_optimize, prune
from fluidnb.core.roles import op_proto_and_checker_maker
from fluidnb.core.run import Executor, get_fetch_variable, set_feed_variable
from fluidnb.errors import EnforceNotMet
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

#: Other names of the same things, some of version 0.11.
Tensor = LoDTensor
GPUPlace = CUDAPlace
_Scope = Scope

__all__ = [
    "AttrType",
    "BlockDesc",
    "CPUPlace",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "DataType",
    "DeviceContext",
    "EnforceNotMet",
    "Executor",
    "GPUPlace",
    "LoDTensor",
    "LoDTensorArray",
    "LodRankTable",
    "OpDesc",
    "OpKernelType",
    "Place",
    "ProgramDesc",
    "Scope",
    "SelectedRows",
    "Tensor",
    "VarDesc",
    "Variable",
    "empty_var_name",
    "get_all_op_protos",
    "get_cuda_device_count",
    "get_fetch_variable",
    "get_grad_op_desc",
    "grad_var_suffix",
    "inference_optimize",
    "init_devices",
    "init_gflags",
    "init_glog",
    "is_compile_gpu",
    "is_compiled_with_cuda",
    "is_float16_supported",
    "memory",
    "op_proto_and_checker_maker",
    "op_support_gpu",
    "prune",
    "set_feed_variable",
    "unique_integer",
]
