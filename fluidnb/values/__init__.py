"""Values: what operators compute on, and where. Element types, places, LoD, tensors, variables.

Example:
    >>> import numpy as np
    >>> from fluidnb.values import CPUPlace, create_lod_tensor
    >>> create_lod_tensor(np.zeros((3, 2), "float32"), [[1, 2]], CPUPlace())
    LoDTensor(shape=[3, 2], dtype=float32, lod=[[0, 1, 3]], place=CPUPlace)
"""

from fluidnb.values import invalidation as epoch
from fluidnb.values import lod, seeding
from fluidnb.values import strict_feeds as declared
from fluidnb.values.create import create_lod_tensor, create_random_int_lodtensor
from fluidnb.values.device_context import DeviceContext, register_place
from fluidnb.values.dtypes import VarType, dtype_name, is_floating, np_dtype, var_type
from fluidnb.values.lod import LoD
from fluidnb.values.place import CPUPlace, CUDAPinnedPlace, CUDAPlace, Place
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray
from fluidnb.values.variable import Variable

__all__ = [
    "CPUPlace", "CUDAPinnedPlace", "CUDAPlace", "DeviceContext", "LoD", "LoDRankTable", "LoDTensor", "LoDTensorArray",
    "Place", "SelectedRows", "VarType", "Variable", "create_lod_tensor", "create_random_int_lodtensor", "declared",
    "dtype_name", "epoch", "is_floating", "lod", "np_dtype", "register_place", "seeding", "var_type",
]  # fmt: skip
