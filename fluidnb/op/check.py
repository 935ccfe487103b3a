"""Checks of an operator's description at the moment it is built: slots, arguments, attributes."""

from __future__ import annotations

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
    """Check an operator that a user builds, and write the defaults of attributes that were left out.

    Args:
        definition: its OpDef.
        desc: its OpDesc; attributes are converted and completed.

    Raises:
        SlotError: a slot lacks its argument or has too many.
        NotFound: a slot or an attribute that the operator does not have.
        OpTypeError: an attribute of another type.
        OpValueError: an attribute out of bounds, missing, or at odds with another.

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


def _check_slots(definition: OpDef, side: str, slots: dict[str, Slot], given: dict[str, list[str]]) -> None:
    for name in given:
        if name not in slots and given[name]:
            have = ", ".join(slots) or "none"
            raise NotFound(
                f"{definition.type} has no {side.lower()} {name}.",
                expected=f"{side.lower()}s {have}", received=name,
                hint=near(name, slots) or f"{definition.type} takes {_signature(slots)}.",
            )  # fmt: skip
    for name, slot in slots.items():
        arguments = given.get(name) or []
        if not arguments and not slot.dispensable:
            raise missing(definition, slot, given)
        if len(arguments) > 1 and not slot.duplicable:
            raise SlotError(
                f"{side} {name} of {definition.type} expects only one {side.lower()}, but {len(arguments)} are given.",
                expected="one variable", received=", ".join(arguments),
                hint=f"{definition.type} takes {_signature(slots)}.",
            )  # fmt: skip


def missing(definition: OpDef, slot: Slot, given: Iterable[str]) -> SlotError:
    """The error about a slot that must have an argument and has none.

    Args:
        definition: the operator's OpDef.
        slot: one of its inputs or outputs.
        given: the slots of that side that have arguments.
    """
    if definition.outputs.get(slot.name) is slot:
        return SlotError(
            f"Incorrect setting for output(s) of operator {definition.type}: {slot.name} is missing.",
            expected=f"outputs {', '.join(definition.outputs)}", received=", ".join(given) or "none", hint=slot.doc,
        )  # fmt: skip
    return SlotError(
        f"Input {slot.name} of {definition.type} not found.",
        expected=f"a variable for {slot.name} ({slot.doc})", received=f"{', '.join(given) or 'no inputs'}",
        hint=f"{definition.type} takes {_signature(definition.inputs)}.",
    )  # fmt: skip


def check_attrs(definition: OpDef, desc: OpDesc) -> None:
    """Check the attributes of an operator alone; as `check_desc`.

    Args:
        definition: its OpDef.
        desc: its OpDesc; attributes are converted and completed.

    Raises:
        NotFound: an attribute that the operator does not have.
        OpTypeError: an attribute of another type.
        OpValueError: an attribute out of bounds, missing, or at odds with another.
    """
    given = desc.attrs
    for name in list(given):
        spec = definition.attrs.get(name)
        if spec is not None:
            value = spec.convert(definition.type, name, given[name])
            if desc.attr_type(name) != spec.number or value != given[name]:
                desc.set_attr(name, value, spec.number)
        elif declared.binding and name not in GENERATED and name not in SWITCHES:  # Fluid passed over the others
            raise NotFound(
                f"{definition.type} has no attribute {name}.",
                attrs={name: given[name]}, expected=", ".join(definition.attrs) or "no attributes",
                hint=near(name, definition.attrs) or "what an operator does not know would have no effect.",
            )  # fmt: skip
    for name, spec in definition.attrs.items():
        if name not in given:
            if spec.default is REQUIRED:
                raise _required(name, spec, given)
            if spec.default is not None:
                desc.set_attr(name, spec.default, spec.number)
    _check_together(definition, desc.attrs)


def check_loaded(definition: OpDef, attrs: Mapping[str, Any]) -> None:
    """Check the attributes of an operator that is about to run, wherever it came from; nothing is changed.

    A gradient operator carries those of its forward operator.

    Args:
        definition: its OpDef.
        attrs: its attributes; what it does not know is passed over.

    Raises:
        OpTypeError: an attribute of another type.
        OpValueError: an attribute out of bounds, missing, or at odds with another.

    Example:
        >>> check_loaded(get_op("conv2d_grad"), {"strides": [1, 1]})
    """
    forward = forward_of(definition)
    for name, spec in forward.attrs.items():
        value = attrs.get(name)
        if value is not None:
            # what is a list now was one number in old files
            spec.convert(definition.type, name, [value] if spec.is_list and not isinstance(value, list) else value)
        elif spec.default is REQUIRED and not definition.is_grad:
            raise _required(name, spec, attrs)
    if forward.check is not None:
        defaults = {n: s.default for n, s in forward.attrs.items() if s.default is not None}
        if not any(defaults[n] is REQUIRED and n not in attrs for n in defaults):
            _check_together(forward, {**defaults, **attrs})


def _required(name: str, spec: Attr, given: Iterable[str]) -> OpValueError:
    return OpValueError(
        f"Attribute '{name}' is required!", expected=f"{name}: {spec.kind} ({spec.doc})",
        received=", ".join(n for n in given if n not in GENERATED) or "no attributes",
        hint=f'give it: attrs={{"{name}": ...}}.',
    )  # fmt: skip


def _check_together(definition: OpDef, attrs: Mapping[str, Any]) -> None:
    """Evaluate an operator's rule over all attributes."""
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
