"""The protobuf messages of framework.proto, in a private descriptor pool.

Real Paddle registers the same full names in protobuf's default pool, where a second definition is an error. A private
pool lets both live in one process. Nothing here is generated code, so any protobuf runtime from 4 on will do.

Example:
    >>> from fluidnb.proto import framework_pb2
    >>> op = framework_pb2.OpDesc(type="relu")
    >>> op.SerializeToString()
    b'\\x1a\\x04relu'
    >>> framework_pb2.AttrType.Name(1)
    'FLOAT'
"""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

_pool = DescriptorPool()
_pool.AddSerializedFile((Path(__file__).parent / "framework.desc").read_bytes())
DESCRIPTOR = _pool.FindFileByName("framework.proto")


def _with_nested(descriptor: Any) -> Any:
    """The class of a message, with the messages declared inside it as attributes; only the C runtime does so itself."""
    message = GetMessageClass(descriptor)
    for nested in descriptor.nested_types:
        if not hasattr(message, nested.name):
            setattr(message, nested.name, _with_nested(nested))
    return message


def _message(name: str) -> Any:
    return _with_nested(DESCRIPTOR.message_types_by_name[name])


Version = _message("Version")
Complex = _message("Complex")
Scalar = _message("Scalar")
OpDesc = _message("OpDesc")
OpProto = _message("OpProto")
VarType = _message("VarType")
VarDesc = _message("VarDesc")
BlockDesc = _message("BlockDesc")
OpVersion = _message("OpVersion")
OpVersionMap = _message("OpVersionMap")
CompatibleInfo = _message("CompatibleInfo")
OpCompatibleMap = _message("OpCompatibleMap")
ProgramDesc = _message("ProgramDesc")

AttrType = EnumTypeWrapper(DESCRIPTOR.enum_types_by_name["AttrType"])
globals().update(AttrType.items())
