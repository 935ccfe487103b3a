"""Networks: containers of operators that run in any scope, built from protobuf messages.

Source: design document "Network".
"""

from fluidnb.net.base import Error, Net, OpContext, OprAttr, OptAttrs, op_def, var_def
from fluidnb.net.builder import NetBuilder
from fluidnb.net.net_op import NetOp
from fluidnb.net.net_pb2 import NN, ModelType, NetDesc, OpDef, Recurrent, Recursive, State
from fluidnb.net.plain import PlainNet
from fluidnb.net.scope import Scope, copy
from fluidnb.net.stepped import RecurrentNet, RecursiveNet

Copy = copy

__all__ = [
    "Copy", "Error", "ModelType", "NN", "Net", "NetBuilder", "NetDesc", "NetOp", "OpContext", "OpDef", "OprAttr",
    "OptAttrs", "PlainNet", "Recurrent", "RecurrentNet", "Recursive", "RecursiveNet", "Scope", "State", "copy",
    "op_def", "var_def",
]  # fmt: skip
