"""framework.proto, its descriptor, and the messages made from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from fluidnb.proto import framework_pb2 as pb2
from tests.tools import rebuild_protos

FOLDER = rebuild_protos.FOLDERS["framework"]
#: Field numbers as PaddlePaddle has them, the contract with every file it ever wrote.
NUMBERS = {
    "ProgramDesc": "blocks 1, op_compatible_map 3, version 4, op_version_map 5",
    "BlockDesc": "idx 1, parent_idx 2, vars 3, ops 4, forward_block_idx 5",
    "OpDesc": "inputs 1, outputs 2, type 3, attrs 4, is_target 5",
    "OpDesc.Var": "parameter 1, arguments 2",
    "OpDesc.Attr": "name 1, type 2, i 3, f 4, s 5, ints 6, floats 7, strings 8, b 10, bools 11, block_idx 12, l 13, "
    "blocks_idx 14, longs 15, float64s 16, var_name 17, vars_name 18, float64 19, scalar 20, scalars 21",
    "VarDesc": "name 1, type 2, persistable 3, need_check_feed 4, is_parameter 5, stop_gradient 6, attrs 7",
    "VarType": "type 1, selected_rows 2, lod_tensor 3, tensor_array 4, reader 5, tuple 7, string 8, strings 9, "
    "vocab 10, sparse_coo 11, sparse_csr 12",
    "VarType.TensorDesc": "data_type 1, dims 2",
    "VarType.LoDTensorDesc": "tensor 1, lod_level 2",
    "VarType.LoDTensorArrayDesc": "tensor 1, lod_level 2",
    "VarType.ReaderDesc": "lod_tensor 1",
    "VarType.Tuple": "element_type 1",
    "OpProto": "type 1, inputs 2, outputs 3, attrs 4, comment 5",
    "OpProto.Var": "name 1, comment 2, duplicable 3, intermediate 4, dispensable 5, extra 6, quant 7",
    "OpProto.Attr": "name 1, type 2, comment 3, generated 4, extra 5, quant 6, support_tensor 7",
    "Scalar": "type 1, b 2, i 3, r 4, c 5",
    "Complex": "r 1, i 2",
    "Version": "version 1",
    "OpVersionMap": "pair 1",
    "OpVersionMap.OpVersionPair": "op_name 1, op_version 2",
    "OpVersion": "version 1",
}
ATTR_TYPES = (
    "INT FLOAT STRING INTS FLOATS STRINGS BOOLEAN BOOLEANS BLOCK LONG BLOCKS LONGS FLOAT64S VAR VARS FLOAT64 SCALAR "
    "SCALARS"
)
VAR_TYPES = (
    "BOOL INT16 INT32 INT64 FP16 FP32 FP64 LOD_TENSOR SELECTED_ROWS FEED_MINIBATCH FETCH_LIST STEP_SCOPES "
    "LOD_RANK_TABLE LOD_TENSOR_ARRAY PLACE_LIST READER CHANNEL RAW TUPLE SIZE_T UINT8 INT8 BF16 COMPLEX64 COMPLEX128 "
    "STRING STRINGS VOCAB FEED_LIST PSTRING SPARSE_COO SPARSE_CSR"
)


@pytest.mark.parametrize("name", NUMBERS)
def test_fields_have_paddles_numbers(name: str) -> None:
    message = pb2
    for part in name.split("."):
        message = getattr(message, part)
    fields = message.DESCRIPTOR.fields  # type: ignore[attr-defined]
    assert ", ".join(f"{f.name} {f.number}" for f in sorted(fields, key=lambda f: f.number)) == NUMBERS[name]


def test_enums_have_paddles_numbers() -> None:
    assert dict(pb2.AttrType.items()) == {name: i for i, name in enumerate(ATTR_TYPES.split())}
    assert dict(pb2.VarType.Type.items()) == {name: i for i, name in enumerate(VAR_TYPES.split())}
    assert (pb2.INT, pb2.BLOCK, pb2.SCALARS) == (0, 8, 17)
    assert pb2.VarType.FP32 == 5


def test_descriptor_is_what_framework_proto_compiles_to() -> None:
    pytest.importorskip("grpc_tools", reason="grpcio-tools compiles framework.proto")
    compiled = descriptor_pb2.FileDescriptorProto.FromString(rebuild_protos.build("framework")["framework.desc"])
    checked_in = descriptor_pb2.FileDescriptorProto.FromString((FOLDER / "framework.desc").read_bytes())
    assert compiled == checked_in


def test_stub_declares_every_message() -> None:
    stub = (FOLDER / "framework_pb2.pyi").read_text()
    messages = list(pb2.DESCRIPTOR.message_types_by_name)
    assert len(messages) == 13
    assert [name for name in messages if f"\nclass {name}(" not in stub] == []
    assert [name for name in messages if not hasattr(pb2, name)] == []


CLASH = """
from google.protobuf import descriptor_pb2, descriptor_pool
theirs = descriptor_pb2.FileDescriptorProto(name="framework.proto", package="paddle.framework.proto", syntax="proto2")
theirs.message_type.add(name="ProgramDesc").field.add(name="elsewhere", number=1, type=3, label=1)
def register():
    descriptor_pool.Default().AddSerializedFile(theirs.SerializeToString())
def use():
    from fluidnb.proto import framework_pb2
    program = framework_pb2.ProgramDesc.FromString(bytes.fromhex("0a0408001000"))
    assert program.blocks[0].idx == 0, program
    found = descriptor_pool.Default().FindMessageTypeByName("paddle.framework.proto.ProgramDesc")
    assert [f.name for f in found.fields] == ["elsewhere"], found
"""


@pytest.mark.parametrize("calls", ["register(); use()", "import fluidnb.proto.framework_pb2; register(); use()"])
def test_other_definitions_of_the_same_names_do_no_harm(calls: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", CLASH + calls], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
