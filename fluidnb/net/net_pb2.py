"""The protobuf messages of net.proto, in the descriptor pool of framework.proto."""

from pathlib import Path
from typing import Any

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

from fluidnb.proto import framework_pb2

_pool: Any = framework_pb2.DESCRIPTOR.pool
_pool.AddSerializedFile((Path(__file__).parent / "net.desc").read_bytes())
DESCRIPTOR = _pool.FindFileByName("net.proto")

OpDef = GetMessageClass(DESCRIPTOR.message_types_by_name["OpDef"])
State = GetMessageClass(DESCRIPTOR.message_types_by_name["State"])
NetDesc = GetMessageClass(DESCRIPTOR.message_types_by_name["NetDesc"])

ModelType = EnumTypeWrapper(DESCRIPTOR.enum_types_by_name["ModelType"])
NN, Recursive, Recurrent = (ModelType.Value(name) for name in ("NN", "Recursive", "Recurrent"))
