"""Reference of an operator type as plain data: documentation, slots, attributes, kernels, gradient."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fluidnb.op import GRAD, OpDef, OpDesc, get_op, has_grad, has_op, kernels_of, make_grad
from fluidnb.op.attr import REQUIRED, Attr
from fluidnb.op.define import Slot
from fluidnb.values import dtypes

#: Kind of an attribute -> a value for required ones; any other kind is a list.
_ANY: dict[str, Any] = {"int": 1, "long": 1, "dtype": 5, "float": 1.0, "float64": 1.0, "string": "", "bool": False}


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """An input or output slot."""

    name: str
    doc: str  # one phrase
    marks: tuple[str, ...] = ()  # ``list``, ``optional``, ``for the gradient``


@dataclass(frozen=True, slots=True)
class AttrFacts:
    """An attribute."""

    name: str
    type: str  # for example ``float = 0.5`` or ``ints, required``
    doc: str  # one phrase, with the bounds or the values that are allowed


@dataclass(frozen=True, slots=True)
class GradientFacts:
    """One of the operators that compute the gradient."""

    type: str
    reads: tuple[str, ...]  # its input slots, with the variable where its name differs
    gives: tuple[str, ...]  # its output slots, likewise
    doc: str  # what it computes


@dataclass(frozen=True, slots=True)
class OpSheet:
    """Reference of an operator type."""

    type: str
    family: str  # the kernel folder that defines it; the module for one of a user
    module: str  # where it is defined
    doc: tuple[str, ...]  # the paragraphs of its documentation; indented ones are preformatted
    inputs: tuple[SlotFacts, ...] = ()
    outputs: tuple[SlotFacts, ...] = ()
    attrs: tuple[AttrFacts, ...] = ()
    notes: tuple[str, ...] = ()  # its properties
    # (place, with library and layout if not the default; dtypes) of each kernel
    kernels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    gradient: tuple[GradientFacts, ...] = ()  # the operators that compute its gradient
    example: tuple[str, ...] = ()  # lines of an example, or none
    source: str = ""


def read_op(type: str) -> OpSheet:
    """Reads the reference of an operator type."""
    d = get_op(type)
    doc, example, source = _documentation(d)
    ins, outs = (tuple(map(_slot, slots.values())) for slots in (d.inputs, d.outputs))
    base = type.removesuffix("_grad")
    forward = base if d.is_grad and base != type and has_op(base) else ""
    if forward:
        gradient = next((g for g in _gradient(forward) if g.type == type), None)
        names = (gradient.reads, gradient.gives) if gradient else ((), ())
        ins, outs = (tuple(SlotFacts(n, _of(n)) for n in slots) for slots in names)
    attrs = tuple(_attr(name, attr) for name, attr in (get_op(forward) if forward else d).attrs.items())
    return OpSheet(
        type, family_of(d), d.module, doc, ins, outs, attrs, tuple(_notes(d, forward)), tuple(_kernels(d)),
        _gradient(type), example, source,
    )  # fmt: skip


def family_of(d: OpDef) -> str:
    """The kernel folder of an operator; the module for one of a user."""
    head, _, rest = d.module.partition(".")
    return rest.partition(".")[0] if head == "fluidnb_kernels" else d.module


def _documentation(d: OpDef) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """(paragraphs, example lines, source) of a docstring."""
    sections: dict[str, list[str]] = {"": []}
    part = ""
    for line in inspect.cleandoc(d.doc).splitlines():
        head, _, rest = line.partition(":")
        if head in ("Example", "Source") and not line.startswith(" "):
            part = head
            sections[part] = [rest.strip()] if rest.strip() else []
        else:
            sections[part].append(line)
    text = "\n".join(sections[""]).strip()
    text = re.sub(r"(?<=\S)::$", ":", text.replace("``", "`"), flags=re.MULTILINE)
    paragraphs = tuple(p.strip("\n") for p in re.split(r"\n\s*\n", text) if p.strip(" \n:"))
    example = tuple(inspect.cleandoc("\n".join(sections.get("Example", ()))).splitlines())
    return paragraphs, example, " ".join(" ".join(sections.get("Source", ())).split())


def _slot(slot: Slot) -> SlotFacts:
    marks = {
        "list": slot.duplicable, "for the gradient": slot.intermediate,
        "optional": slot.dispensable and not slot.intermediate,
    }  # fmt: skip
    return SlotFacts(slot.name, slot.doc, tuple(mark for mark, is_set in marks.items() if is_set))


def _of(slot: str) -> str:
    """Description of a slot of a gradient operator."""
    name = slot.removesuffix(GRAD)
    return f"the gradient of {name}" if slot.endswith(GRAD) else f"{name} of the operator"


def _attr(name: str, attr: Attr) -> AttrFacts:
    value: Any = attr.default
    doc, default = attr.doc, f"{value:g}" if isinstance(value, float) else str(value)
    if attr.kind == "dtype" and value is not REQUIRED:
        default = "none" if value < 0 else dtypes.dtype_name(value)
    elif isinstance(value, str):
        default = f'"{value}"'
    if attr.enum is not None and not all(str(v) in doc for v in attr.enum):
        doc += f"; one of {', '.join(map(str, attr.enum))}"
    doc += "" if attr.gt is None else f"; above {attr.gt}"
    doc += "" if attr.ge is None else f"; from {attr.ge} on"
    return AttrFacts(name, f"{attr.kind}, required" if value is REQUIRED else f"{attr.kind} = {default}", doc)


def _notes(d: OpDef, forward: str) -> Iterator[str]:
    """Properties of the operator that a user can notice."""
    if forward:
        yield f"gradient of {forward}, with the same attributes"
    for is_set, note in (
        (d.control, "runs a block"), (d.random, "draws random numbers"), (d.inplace, "may write over its input"),
        (d.data_shape, "the shape of its output depends on values"),
        (d.host_only, f"runs on the CPU on every place: {d.host_only}"),
        (d.side_effect, "has side effects: never pruned"),
    ):  # fmt: skip
        if is_set:
            yield note
    if d.alias:
        yield "updates " + ", ".join(f"{source} by {out}" for out, source in d.alias.items())


def _kernels(d: OpDef) -> Iterator[tuple[str, tuple[str, ...]]]:
    dtypes_of: dict[str, list[str]] = {}
    for key in kernels_of(d.type):
        words = [key.place]
        words += [key.library_type] if key.library_type != "PLAIN" else []
        words += [key.data_layout] if key.data_layout != "ANY_LAYOUT" else []
        dtypes_of.setdefault(" ".join(words), []).append("any dtype" if key.data_type == "any" else key.data_type)
    for where, names in dtypes_of.items():
        yield where, tuple(dict.fromkeys(names))


def _gradient(type: str) -> tuple[GradientFacts, ...]:
    """The operators that backward appends if all slots are filled."""
    if not has_grad(type):
        return ()
    d = get_op(type)
    if d.is_grad or d.control:  # their inputs depend on the operators around them
        names = [f"{type.removesuffix('_grad')}_grad_grad" if d.is_grad else f"{type}_grad"]
        return tuple(GradientFacts(n, (), (), _first(get_op(n))) for n in names if has_op(n))
    ins, outs = ({slot: [slot] for slot in slots} for slots in (d.inputs, d.outputs))
    given = {n: a for n, a in d.attrs.items() if a.default is not None}
    attrs = {n: _ANY.get(a.kind, []) if a.default is REQUIRED else a.default for n, a in given.items()}
    gradients = make_grad(OpDesc(type, ins, outs, attrs, {n: d.attrs[n].number for n in attrs}))
    return tuple(GradientFacts(g.optype, _shown(g.ins), _shown(g.outs), _first(get_op(g.optype))) for g in gradients)


def _shown(slots: dict[str, list[str]]) -> tuple[str, ...]:
    """Slots, with their variables where the names differ."""
    return tuple(s if names == [s] else f"{s}={', '.join(names)}" for s, names in slots.items() if names)


def _first(d: OpDef) -> str:
    """The first paragraph of the documentation as one line."""
    return " ".join(inspect.cleandoc(d.doc).partition("\n\n")[0].split())
