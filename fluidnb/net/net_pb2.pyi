# ruff: noqa
from fluidnb.proto import framework_pb2 as _framework_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import Any as _Any, ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ModelType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NN: _ClassVar[ModelType]
    Recursive: _ClassVar[ModelType]
    Recurrent: _ClassVar[ModelType]

NN: ModelType
Recursive: ModelType
Recurrent: ModelType

class OpDef(_message.Message):
    __slots__ = ("inputs", "outputs", "type", "attrs")
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRS_FIELD_NUMBER: _ClassVar[int]
    inputs: _containers.RepeatedCompositeFieldContainer[_framework_pb2.OpDesc.Var]
    outputs: _containers.RepeatedCompositeFieldContainer[_framework_pb2.OpDesc.Var]
    type: str
    attrs: _containers.RepeatedCompositeFieldContainer[_framework_pb2.OpDesc.Attr]
    def __init__(
        self,
        inputs: _Optional[_Iterable[_Union[_framework_pb2.OpDesc.Var, _Mapping[str, _Any]]]] = ...,
        outputs: _Optional[_Iterable[_Union[_framework_pb2.OpDesc.Var, _Mapping[str, _Any]]]] = ...,
        type: _Optional[str] = ...,
        attrs: _Optional[_Iterable[_Union[_framework_pb2.OpDesc.Attr, _Mapping[str, _Any]]]] = ...,
    ) -> None: ...

class State(_message.Message):
    __slots__ = ("name", "previous", "boot")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    name: str
    previous: str
    boot: str
    def __init__(
        self, name: _Optional[str] = ..., previous: _Optional[str] = ..., boot: _Optional[str] = ...
    ) -> None: ...

class NetDesc(_message.Message):
    __slots__ = ("model_type", "ops", "vars", "init_ops", "inlinks", "outlinks", "states", "parents")
    MODEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    OPS_FIELD_NUMBER: _ClassVar[int]
    VARS_FIELD_NUMBER: _ClassVar[int]
    INIT_OPS_FIELD_NUMBER: _ClassVar[int]
    INLINKS_FIELD_NUMBER: _ClassVar[int]
    OUTLINKS_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    model_type: ModelType
    ops: _containers.RepeatedCompositeFieldContainer[OpDef]
    vars: _containers.RepeatedCompositeFieldContainer[_framework_pb2.VarDesc]
    init_ops: _containers.RepeatedCompositeFieldContainer[OpDef]
    inlinks: _containers.RepeatedScalarFieldContainer[str]
    outlinks: _containers.RepeatedScalarFieldContainer[str]
    states: _containers.RepeatedCompositeFieldContainer[State]
    parents: str
    def __init__(
        self,
        model_type: _Optional[_Union[ModelType, str]] = ...,
        ops: _Optional[_Iterable[_Union[OpDef, _Mapping[str, _Any]]]] = ...,
        vars: _Optional[_Iterable[_Union[_framework_pb2.VarDesc, _Mapping[str, _Any]]]] = ...,
        init_ops: _Optional[_Iterable[_Union[OpDef, _Mapping[str, _Any]]]] = ...,
        inlinks: _Optional[_Iterable[str]] = ...,
        outlinks: _Optional[_Iterable[str]] = ...,
        states: _Optional[_Iterable[_Union[State, _Mapping[str, _Any]]]] = ...,
        parents: _Optional[str] = ...,
    ) -> None: ...
