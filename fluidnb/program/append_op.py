"""Putting an operator into a block, all or nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from fluidnb.errors import FluidError, NotFound, Operand, OpTypeError, OpValueError, near
from fluidnb.op import check_desc, get_op, has_op, infer_compile
from fluidnb.op.define import registry
from fluidnb.program import layer_calls as naming
from fluidnb.program import origin, repeated_ops
from fluidnb.program import unique_name as names
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.program.stale_handles import block_lives, gone, is_live
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.proto.op_desc import type_name
from fluidnb.proto.var_desc import var_name
from fluidnb.utils.source_location import SourceLocation, capture
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declarations
from fluidnb.values.dtypes import VarType

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.operator import Operator

#: Where an operator goes, for messages: block, type, index.
_At: TypeAlias = "tuple[Block, str | None, int | None]"
#: The types of the attributes that every operator gets.
_TYPES = {
    "op_role": AttrType.INT,
    "op_role_var": AttrType.STRINGS,
    "op_namescope": AttrType.STRING,
    "op_device": AttrType.STRING,
}


#: The type of an output that no block declares, until its operator says more.
_OUTPUT = VarDesc("output")
_OUTPUT.set_dtype(VarType.FP32)


def describe(
    block: Block, type: str | None, inputs: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None, index: int | None = None,
) -> OpDesc:  # fmt: skip
    """The description of an operator that a user writes, in no block yet, with the attributes of its role.

    Args:
        inputs: slot -> variable, name, or a list of these; None is the same as left out.
        index: its place in the block, for messages; None for the end.
    """
    at = block, type, index
    if not type:
        raise OpValueError(
            "`type` to initialized an Operator can not be None.", where=capture(2), expected="an operator type",
            received=repr(type), hint='for example append_op("relu", {"X": x}, {"Out": y}).',
        )  # fmt: skip
    values: dict[str, Any] = {}
    if attrs is not None:
        if not _is_named(attrs):
            raise OpTypeError(
                "'attrs' should be a dict.", op=_text(*at), where=capture(2), expected="attribute -> value",
                received=f"{attrs!r} ({attrs.__class__.__name__})", hint='for example {"scale": 2.0}.',
            )  # fmt: skip
        for name, value in attrs.items():
            if value is not None:
                values[name] = value
    generated(block, values)
    ins = _slots(at, "inputs", inputs) if inputs is not None else {}
    outs = _slots(at, "outputs", outputs) if outputs is not None else {}
    if inputs:
        _refuse_foreign(at, inputs)
    desc = OpDesc._made(type_name(type), ins, outs, None)
    wide = _wide(type, registry.version)
    desc._write_attrs(values, {**_TYPES, **wide} if wide else _TYPES)
    return desc


def _text(block: Block, type: str | None, index: int | None) -> str:
    """The operator, for messages."""
    return f"op {len(block.desc.ops) if index is None else index} ({type}) in block {block.idx}"


def _refuse_foreign(at: _At, inputs: Mapping[str, Any]) -> None:
    """Refuse a variable of another program whose name this one does not have."""
    block, type, _ = at
    program = block.program
    for slot, value in inputs.items():
        for item in value if isinstance(value, list | tuple) else (value,):
            if not isinstance(item, Variable) or item.block.program is program or slot in _free(str(type)):
                continue
            if block.desc.find_var_recursive(item.name) is None:
                raise NotFound(
                    f"{item.name} belongs to {item.block.program.short()}, the operator to {program.short()}.",
                    op=_text(*at), slots=[(slot, *item._operand()[1:])], where=capture(3),
                    expected=f"a variable of {program.short()}", received="a variable of another program",
                    hint=f"call the layer inside that program's fluid.program_guard, or make {item.name} in this one.",
                )  # fmt: skip


@lru_cache(maxsize=4096)
def _wide(type: str, version: int) -> Mapping[str, int]:
    """The attributes of an operator that are declared as 64-bit floats: other floats are written with 32 bits."""
    known = get_op(type).attrs if has_op(type) else {}
    return {name: spec.number for name, spec in known.items() if spec.kind.startswith("float64")}


def generated(block: Block, attrs: dict[str, Any]) -> None:
    """Add the attributes that say to which part of the program an operator belongs, where they are not given.

    An operator that updates a parameter has names of its own there: `put` adds them after the checks, whose results
    are those of others.
    """
    program = block.program
    attrs.setdefault("op_role", int(program.op_role))
    if not program.op_role_var:
        attrs.setdefault("op_namescope", names.full_name_scope())
    # Real Paddle's append_backward reads it of the operator that makes the loss.
    attrs.setdefault("op_device", "")


def _is_named(given: Any) -> bool:
    """Whether it maps texts to something."""
    if type(given) is not dict and not isinstance(given, Mapping):
        return False
    for name in given:  # a loop: all() of a generator takes three times as long, and every operator comes here
        if not isinstance(name, str):
            return False
    return True


def _slots(at: _At, side: str, slots: Mapping[str, Any]) -> dict[str, list[str]]:
    if not _is_named(slots):
        raise OpTypeError(
            f"'{side}' should be a dict.", op=_text(*at), where=capture(3), expected="slot -> variable or list of them",
            received=f"{slots!r} ({slots.__class__.__name__})"[:200], hint='for example {"X": x}.',
        )  # fmt: skip
    found: dict[str, list[str]] = {}
    for slot, value in slots.items():
        if value is not None:
            if type(slot) is not str or not slot.isascii():
                slot = type_name(slot, "name of a slot")
            found[slot] = _names(at, slot, value)
    return found


def _names(at: _At, slot: str, value: Any) -> list[str]:
    out = []
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, Variable):
            if not is_live(item):
                gone(f"variable {item.name}", item, f"used in slot {slot} of {_text(*at)}")
            out.append(item.desc.name())
        elif isinstance(item, str | bytes):
            name = var_name(item)
            if not name.isascii():
                name.encode()  # raises where no file can hold it
            out.append(name)
        else:
            raise OpTypeError(
                f"Slot {slot} takes variables.", op=_text(*at), where=capture(4),
                expected="a Variable, a name, or a list of these",
                received=f"{item!r} ({item.__class__.__name__})"[:200],
                hint="layers.assign or layers.fill_constant turns numbers into a variable.",
            )  # fmt: skip
    return out


def put(
    block: Block, desc: OpDesc, index: int | None, where: SourceLocation | None, checked: bool = True
) -> list[VarDesc]:  # fmt: skip
    """Check an operator, infer its outputs, which it gives, and put it into a block; an error changes nothing.

    Unknown attributes are refused unless ``checked`` is False, as for gradients of loaded programs.
    """
    home = block.desc
    program = home.program
    if origin.recorder is not None:
        origin.writing(block.program)
    if not block_lives(home):
        gone(f"block {home.idx}", block, f"given an operator {desc.optype}")
    version, place = program.version, len(home.ops) if index is None else index
    declared: list[str] = []
    saved: list[tuple[VarDesc, bytes]] = []
    written: list[VarDesc] = []
    desc.block = home
    try:
        definition = get_op(desc.optype)
        form = repeated_ops.form(definition, desc, home, checked)
        known = repeated_ops.find(form)
        if known is None:
            if checked:
                check_desc(definition, desc)
            _check_inputs(home, desc)
        declares = home.vars
        for name in desc.output_arg_names():
            if name == EMPTY_VAR_NAME:
                continue
            var = declares.get(name) or home.find_var_recursive(name)
            if var is None:
                var = home.add_var(VarDesc._like(name, _OUTPUT._type_bytes()))
                declared.append(name)
            else:
                saved.append((var, var._type_bytes()))  # all that shape rules write
            written.append(var)
        if known is None:
            infer_compile(definition, desc, home, where)
            if form is not None:
                repeated_ops.remember(form, desc, written)
        else:
            known.give(desc, written)
        desc.block = None
        if block.program.op_role_var:
            texts: dict[str, str | list[str]] = {
                "op_role_var": list(block.program.op_role_var), "op_namescope": names.full_name_scope(),
            }  # fmt: skip
            desc._set_texts({name: value for name, value in texts.items() if not desc.has_attr(name)})
        home.insert_op(place, desc)
    except BaseException as error:
        if isinstance(error, FluidError):
            error.with_context(
                op=f"op {place} ({desc.optype}) in block {home.idx}", slots=operands(home, desc), where=where
            )
        desc.block = None
        for name in declared:
            home.remove_var(name)
        for var, before in saved:
            if var._type_bytes() != before:
                var._set_type_bytes(before)
        program.version = version
        raise
    call = naming.call
    if call is not None:  # what the running layer call created
        if declared:
            call.created += [home.vars[name] for name in declared]
        call.created.append(desc)
        call.starts.setdefault(home, len(home.ops) - 1)
    return written


def _free(type: str) -> Collection[str]:
    """The slots in which a variable may be missing; without strict feeds a gradient operator takes it for zero."""
    return () if declarations.binding or not has_op(type) else get_op(type).unset


def _check_inputs(home: BlockDesc, desc: OpDesc) -> None:
    free = _free(desc.optype)
    for slot, arguments in desc.ins.items():
        for name in arguments:
            if name != EMPTY_VAR_NAME and slot not in free and home.find_var_recursive(name) is None:
                known = [n for b in home.chain() for n in b.vars]
                raise NotFound(
                    f"{desc.optype} reads {name} in slot {slot}, which block {home.idx} does not have.",
                    expected=f"a variable of block {home.idx} or of a block around it", received=name,
                    hint=_inner(home, name) or near(name, known) or f"create {name} first.",
                )  # fmt: skip


def _inner(home: BlockDesc, name: str) -> str | None:
    """A hint for a variable of a block that is not around; None for one of no block."""
    inner = next((block for block in home.program.blocks if name in block.vars), None)
    if inner is None:
        return None
    return (
        f"{name} is a variable of block {inner.idx}, which only operators inside that block read. Create a variable "
        f"before it, write layers.assign({name}, output=that variable) at the end of the block, and read that one."
    )


def operands(home: BlockDesc, desc: OpDesc) -> list[Operand]:
    """(slot, name, dtype, shape) of an operator's variables, for a message; dtype and shape None where unknown."""
    out: list[Operand] = []
    for slots in (desc.ins, desc.outs):
        for slot, arguments in slots.items():
            for name in arguments:
                var = home.find_var_recursive(name)
                if var is None or var.type() not in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
                    out.append((slot, name, None, None))
                else:
                    out.append((slot, name, dtypes.dtype_name(var.dtype()), var.shape()))
    return out


def note_writer(operator: Operator, written: Sequence[VarDesc]) -> None:
    """Record an operator as the last writer of its outputs."""
    for var in written:
        if var.view is not None:
            var.view._note_writer(operator)
