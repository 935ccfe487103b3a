"""Operator definitions as OpProto messages, as Fluid's documentation and tools read them."""

from fluidnb.op.attr import GENERATED
from fluidnb.op.define import OpDef, all_ops
from fluidnb.proto.framework_pb2 import OpProto

#: Outputs of versions after Fluid's. Its protos have none of them, and its tests create a variable for each.
LATER = {"MasterParamOut", "Beta1PowOut", "Beta2PowOut", "ReserveSpace", "OutputLength"}


def op_proto(definition: OpDef) -> OpProto:
    """The OpProto of an operator, without outputs that came after Fluid.

    Example:
        >>> from fluidnb.op import get_op
        >>> [v.name for v in op_proto(get_op("mul")).inputs]
        ['X', 'Y']
    """
    proto = OpProto(type=definition.type, comment=definition.doc.strip() or definition.type)
    for slots, field in ((definition.inputs, proto.inputs), (definition.outputs, proto.outputs)):
        for slot in (slot for slot in slots.values() if slot.name not in LATER):
            # An intermediate output is no result: Fluid's tests take every other one for a result.
            private = slot.intermediate or slots is definition.outputs and slot.dispensable
            field.add(
                name=slot.name, comment=slot.doc, duplicable=slot.duplicable, dispensable=slot.dispensable,
                intermediate=private,
            )  # fmt: skip
    for name, attr in definition.attrs.items():
        proto.attrs.add(name=name, type=attr.number, comment=attr.doc, generated=False)
    for name, number in GENERATED.items():
        proto.attrs.add(name=name, type=number, comment="who made the operator, and where", generated=True)
    return proto


def get_all_op_protos() -> list[OpProto]:
    """The OpProto of every operator that has one (gradient operators have none)."""
    return [op_proto(d) for d in all_ops() if not d.is_grad]
