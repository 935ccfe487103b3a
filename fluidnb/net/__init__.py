"""Networks: containers of operators that run in any scope, built from protobuf messages.

Example:
    >>> from fluidnb.net import Net, NetDesc, Scope, op_def
    >>> ops = [op_def("fill_constant", {}, {"Out": "x"}, {"shape": [2], "dtype": 5, "value": 3.0})]
    >>> Net.create(NetDesc(ops=ops)).run(Scope())
    <Error: none>

Source: design document "Network".
"""

from fluidnb.net.base import Net
from fluidnb.net.builder import NetBuilder
from fluidnb.net.desc import OprAttr, op_def, var_def
from fluidnb.net.net_op import NetOp
from fluidnb.net.net_pb2 import NN, ModelType, NetDesc, OpDef, Recurrent, Recursive, State
from fluidnb.net.plain import PlainNet
from fluidnb.net.result import Error, OpContext, OptAttrs
from fluidnb.net.scope import Scope, copy
from fluidnb.net.stepped import RecurrentNet, RecursiveNet

Copy = copy

__all__ = [
    "Copy",
    "Error",
    "ModelType",
    "NN",
    "Net",
    "NetBuilder",
    "NetDesc",
    "NetOp",
    "OpContext",
    "OpDef",
    "OprAttr",
    "OptAttrs",
    "PlainNet",
    "Recurrent",
    "RecurrentNet",
    "Recursive",
    "RecursiveNet",
    "Scope",
    "State",
    "copy",
    "op_def",
    "var_def",
]
