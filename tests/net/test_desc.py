"""The messages of net.proto, and what is written with them."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2

from fluidnb.net import NetDesc, OpDef, net_pb2, op_def, var_def
from fluidnb.proto import framework_pb2
from fluidnb.proto.desc import OpDesc
from tests.tools import rebuild_protos


def test_descriptor_is_what_net_proto_compiles_to() -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools compiles net.proto")
    compiled = descriptor_pb2.FileDescriptorProto.FromString(rebuild_protos.build("net")["net.desc"])
    path = rebuild_protos.FOLDERS["net"] / "net.desc"
    checked_in = descriptor_pb2.FileDescriptorProto.FromString(path.read_bytes())
    assert compiled == checked_in


def test_stub_declares_every_message() -> None:
    stub = (rebuild_protos.FOLDERS["net"] / "net_pb2.pyi").read_text()
    assert list(net_pb2.DESCRIPTOR.message_types_by_name) == ["OpDef", "State", "NetDesc"]
    assert all(f"\nclass {name}(" in stub and hasattr(net_pb2, name) for name in ("OpDef", "State", "NetDesc"))


def test_an_operators_bytes_are_those_of_an_op_desc() -> None:
    made = op_def("concat", {"X": ["a", "b"]}, {"Out": "c"}, {"axis": 1, "names": ["p", "q"], "rate": 0.5})
    desc = OpDesc.parse_from_string(made.SerializeToString())
    assert (desc.type(), desc.input("X"), desc.output("Out")) == ("concat", ["a", "b"], ["c"])
    assert desc.attrs == {"axis": 1, "names": ["p", "q"], "rate": 0.5}
    assert OpDef.FromString(desc.serialize_to_string()) == made


def test_variables_are_those_of_framework_proto() -> None:
    made = var_def("w", [2, 3], "int64", lod_level=1)
    assert isinstance(made, framework_pb2.VarDesc) and not made.persistable and not made.is_parameter
    tensor = NetDesc(vars=[made]).vars[0].type.lod_tensor
    assert (list(tensor.tensor.dims), tensor.tensor.data_type, tensor.lod_level) == ([2, 3], 3, 1)
    assert var_def("w", [1], parameter=True).is_parameter
