"""Checks of an operator's description at the moment it is built: slots, arguments, attributes."""

from collections.abc import Iterable, Mapping
from typing import Any

from fluidnb.errors import EnforceNotMet, NotFound, OpValueError, near
from fluidnb.op.attr import GENERATED, REQUIRED, SWITCHES, Attr
from fluidnb.op.define import OpDef, Slot, forward_of, get_op
from fluidnb.proto import hooks
from fluidnb.proto.desc import OpDesc
from fluidnb.values import strict_feeds as declared


class SlotError(EnforceNotMet, OpValueError):
    """A slot without its argument, or with too many."""


def _signature(slots: dict[str, Slot]) -> str:
    """The slots of one side in words: ``X, Y (may be left out)``."""
    words = []
    for name, slot in slots.items():
        marks = ["a list"] * slot.duplicable + ["may be left out"] * slot.dispensable
        words.append(f"{name} ({', '.join(marks)})" if marks else name)
    return ", ".join(words) or "none"


def check_desc(definition: OpDef, desc: OpDesc) -> None:
    """Checks an operator that a user builds, and writes the defaults of attributes that were left out.

    Example:
        >>> from fluidnb.op import get_op
        >>> desc = OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0})
        >>> check_desc(get_op("scale"), desc); desc.attr("bias")
        0.0
    """
    if definition.is_grad:
        return
    _check_slots(definition, "Input", definition.inputs, desc.ins)
    _check_slots(definition, "Output", definition.outputs, desc.outs)
    check_attrs(definition, desc)


def _check_slots(definition: OpDef, side: str, slots: dict[str, Slot], names_of: dict[str, list[str]]) -> None:
    for name in names_of:
        if name not in slots and names_of[name]:
            have = ", ".join(slots) or "none"
            raise NotFound(
                f"{definition.type} has no {side.lower()} {name}.", expected=f"{side.lower()}s {have}", received=name,
                hint=near(name, slots) or f"{definition.type} takes {_signature(slots)}.",
            )  # fmt: skip
    for name, slot in slots.items():
        arguments = names_of.get(name) or []
        if not arguments and not slot.dispensable:
            raise missing(definition, slot, names_of)
        if len(arguments) > 1 and not slot.duplicable:
            raise SlotError(
                f"{side} {name} of {definition.type} expects only one {side.lower()}, but {len(arguments)} are given.",
                expected="one variable", received=", ".join(arguments),
                hint=f"{definition.type} takes {_signature(slots)}.",
            )  # fmt: skip


def check_inputs(definition: OpDef, desc: OpDesc) -> None:
    """Checks that an operator that is no gradient has its inputs, before its shape rule.

    Example:
        >>> check_inputs(get_op("relu"), OpDesc("relu", {"X": ["x"]}))
    """
    for name, slot in definition.inputs.items():
        if not slot.dispensable and not desc.ins.get(name) and not definition.is_grad:
            raise missing(definition, slot, desc.ins)


def missing(definition: OpDef, slot: Slot, present: Iterable[str]) -> SlotError:
    """The error about a slot that must have an argument and has none."""
    if definition.outputs.get(slot.name) is slot:
        return SlotError(
            f"Incorrect setting for output(s) of operator {definition.type}: {slot.name} is missing.",
            expected=f"outputs {', '.join(definition.outputs)}", received=", ".join(present) or "none", hint=slot.doc,
        )  # fmt: skip
    return SlotError(
        f"Input {slot.name} of {definition.type} not found.",
        expected=f"a variable for {slot.name} ({slot.doc})", received=f"{', '.join(present) or 'no inputs'}",
        hint=f"{definition.type} takes {_signature(definition.inputs)}.",
    )  # fmt: skip


def check_attrs(definition: OpDef, desc: OpDesc) -> None:
    """Checks and completes the attributes of an operator, as `check_desc`."""
    attrs = desc.attrs
    for name in list(attrs):
        spec = definition.attrs.get(name)
        if spec is not None:
            value = spec.convert(definition.type, name, attrs[name])
            if desc.attr_type(name) != spec.number or value != attrs[name]:
                desc.set_attr(name, value, spec.number)
        elif declared.binding and name not in GENERATED and name not in SWITCHES:  # Fluid passed over the others
            raise NotFound(
                f"{definition.type} has no attribute {name}.",
                attrs={name: attrs[name]}, expected=", ".join(definition.attrs) or "no attributes",
                hint=near(name, definition.attrs) or "what an operator does not know would have no effect.",
            )  # fmt: skip
    defaults: dict[str, Any] = {}
    for name, spec in definition.attrs.items():
        if name not in attrs:
            if spec.default is REQUIRED:
                raise _required(name, spec, {**attrs, **defaults})
            if spec.default is not None:
                defaults[name] = spec.default
    if defaults:
        desc._add_attrs(defaults, {name: definition.attrs[name].number for name in defaults})
    _check_together(definition, desc.attrs)


def check_loaded(definition: OpDef, desc: OpDesc) -> None:
    """Checks the attributes of an operator before it runs; a gradient operator has those of its forward operator.

    Example:
        >>> check_loaded(get_op("conv2d_grad"), OpDesc("conv2d_grad", attrs={"strides": [1, 1]}))
    """
    forward, attrs, types = forward_of(definition), desc.read_attrs, desc.attr_types
    for name, spec in forward.attrs.items():
        if spec.any_value and types.get(name) == spec.number:
            continue  # three of four attributes; a protobuf field has its type and its 32 bits
        value = attrs.get(name)
        if value is not None:
            # older files have one number where a list is declared
            spec.convert(definition.type, name, [value] if spec.is_list and not isinstance(value, list) else value)
        elif spec.default is REQUIRED and not definition.is_grad:
            raise _required(name, spec, attrs)
    if forward.check is not None:
        defaults = {n: s.default for n, s in forward.attrs.items() if s.default is not None}
        if not any(defaults[n] is REQUIRED and n not in attrs for n in defaults):
            _check_together(forward, {**defaults, **attrs})


def _required(name: str, spec: Attr, present: Iterable[str]) -> OpValueError:
    return OpValueError(
        f"Attribute '{name}' is required!", expected=f"{name}: {spec.kind} ({spec.doc})",
        received=", ".join(n for n in present if n not in GENERATED) or "no attributes",
        hint=f'give it: attrs={{"{name}": ...}}.',
    )  # fmt: skip


def _check_together(definition: OpDef, attrs: Mapping[str, Any]) -> None:
    """Evaluates an operator's rule over all attributes."""
    wrong = None if definition.check is None else definition.check(attrs)
    if wrong is not None:
        raise OpValueError(
            wrong, attrs={n: attrs.get(n) for n in definition.attrs}, expected="attributes that fit each other",
            hint=f"change {' or '.join(definition.attrs)}.",
        )  # fmt: skip


def _check_bare(desc: OpDesc) -> None:
    definition = get_op(desc.optype)
    if not definition.is_grad:
        check_attrs(definition, desc)


hooks.check_attrs = _check_bare
