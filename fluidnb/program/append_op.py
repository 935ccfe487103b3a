"""Putting an operator into a block, all or nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fluidnb.errors import FluidError, NotFound, Operand, OpTypeError, OpValueError, near
from fluidnb.op import check_desc, get_op, has_op, infer_compile
from fluidnb.program import layer_calls as naming
from fluidnb.program import origin, repeated_ops
from fluidnb.program import unique_name as names
from fluidnb.program.constants import EMPTY_VAR_NAME
from fluidnb.program.stale_handles import block_lives, gone, is_live
from fluidnb.program.variable import Variable
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.utils.source_location import SourceLocation, capture
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declarations
from fluidnb.values.dtypes import VarType

if TYPE_CHECKING:
    from fluidnb.program.block import Block
    from fluidnb.program.operator import Operator

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
    if not type:
        raise OpValueError(
            "`type` to initialized an Operator can not be None.", where=capture(2), expected="an operator type",
            received=repr(type), hint='for example append_op("relu", {"X": x}, {"Out": y}).',
        )  # fmt: skip
    values: dict[str, Any] = {}
    op = f"op {len(block.desc.ops) if index is None else index} ({type}) in block {block.idx}"
    if attrs is not None:
        if not _is_named(attrs):
            raise OpTypeError(
                "'attrs' should be a dict.", op=op, where=capture(2), expected="attribute -> value",
                received=f"{attrs!r} ({attrs.__class__.__name__})", hint='for example {"scale": 2.0}.',
            )  # fmt: skip
        values.update((name, value) for name, value in attrs.items() if value is not None)
    generated(block, values)
    ins, outs = _slots(op, "inputs", inputs), _slots(op, "outputs", outputs)
    _refuse_foreign(block, type, op, inputs)
    return OpDesc(type, ins, outs, values, _types(type, values))


def _refuse_foreign(block: Block, type: str, op: str, inputs: Mapping[str, Any] | None) -> None:
    """Refuse a variable of another program whose name this one does not have."""
    free = _free(type)
    for slot, value in (inputs or {}).items():
        for item in () if slot in free else value if isinstance(value, list | tuple) else (value,):
            if not isinstance(item, Variable) or item.block.program is block.program:
                continue
            if block.desc.find_var_recursive(item.name) is None:
                raise NotFound(
                    f"{item.name} belongs to {item.block.program.short()}, the operator to {block.program.short()}.",
                    op=op, slots=[(slot, *item._operand()[1:])], where=capture(3),
                    expected=f"a variable of {block.program.short()}", received="a variable of another program",
                    hint=f"call the layer inside that program's fluid.program_guard, or make {item.name} in this one.",
                )  # fmt: skip


def _types(type: str, attrs: Mapping[str, Any]) -> Mapping[str, int]:
    """Attribute types that a Python value does not determine: a float is 32 bits unless declared as 64."""
    known = get_op(type).attrs if has_op(type) else {}
    wide = {n: known[n].number for n in attrs if n in known and known[n].kind.startswith("float64")}
    return {**_TYPES, **wide} if wide else _TYPES


def generated(block: Block, attrs: dict[str, Any]) -> None:
    """Add the attributes that say to which part of the program an operator belongs, where they are not given."""
    program = block.program
    attrs.setdefault("op_role", int(program.op_role))
    if program.op_role_var:
        attrs.setdefault("op_role_var", list(program.op_role_var))
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


def _slots(op: str, side: str, slots: Mapping[str, Any] | None) -> dict[str, list[str]]:
    if slots is None:
        return {}
    if not _is_named(slots):
        raise OpTypeError(
            f"'{side}' should be a dict.", op=op, where=capture(3), expected="slot -> variable or list of them",
            received=f"{slots!r} ({slots.__class__.__name__})"[:200], hint='for example {"X": x}.',
        )  # fmt: skip
    return {slot: _names(op, slot, value) for slot, value in slots.items() if value is not None}


def _names(op: str, slot: str, value: Any) -> list[str]:
    out = []
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, Variable):
            if not is_live(item):
                gone(f"variable {item.name}", item, f"used in slot {slot} of {op}")
            out.append(item.desc.name())
        elif isinstance(item, str):
            out.append(item)
        elif isinstance(item, bytes):
            out.append(item.decode())
        else:
            raise OpTypeError(
                f"Slot {slot} takes variables.", op=op, where=capture(4),
                expected="a Variable, a name, or a list of these",
                received=f"{item!r} ({item.__class__.__name__})"[:200],
                hint="layers.assign or layers.fill_constant turns numbers into a variable.",
            )  # fmt: skip
    return out


def put(block: Block, desc: OpDesc, index: int | None, where: SourceLocation | None, checked: bool = True) -> None:
    """Check an operator, infer its outputs, and put it into a block; an error changes nothing.

    Unknown attributes are refused unless ``checked`` is False, as for gradients of loaded programs.
    """
    home = block.desc
    program = home.program
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
        for name in desc.output_arg_names():
            if name == EMPTY_VAR_NAME:
                continue
            var = home.find_var_recursive(name)
            if var is None:
                var = home.add_var(VarDesc.like(name, _OUTPUT._type_bytes()))
                declared.append(name)
            else:
                saved.append((var, var.pb.SerializePartialToString()))
            written.append(var)
        if known is None:
            infer_compile(definition, desc, home, where)
            if form is not None:
                repeated_ops.remember(form, desc, written)
        else:
            known.give(desc, written)
        desc.block = None
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
            var.restore(before)
        program.version = version
        raise
    naming_notes(home, desc, declared)


def naming_notes(home: BlockDesc, desc: OpDesc, declared: Sequence[str]) -> None:
    """Report the created variables and operator to the running layer call."""
    if naming.call is not None:
        for name in declared:
            naming.note_made(home.vars[name])
        naming.note_made(desc)


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


def written_by(operator: Operator) -> None:
    """Record an operator as the last writer of its outputs."""
    home = operator.block.desc
    for name in operator.desc.output_arg_names():
        var = home.find_var_recursive(name)
        if var is not None and var.view is not None:
            var.view.__dict__["_op"] = operator
