"""Edits of an opened model, each of which gives another model: a part, renamed variables, and named passes."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.op import get_op, has_op
from fluidnb.program import Program
from fluidnb.program.prune import prune
from fluidnb.program.sub_blocks import each_op, inner_blocks, outer_names
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.runtime.inference_model import add_ends
from fluidnb.runtime.save_load import is_persistable
from fluidnb.runtime.scope import Scope, scope_guard
from fluidnb.values import VarType

if TYPE_CHECKING:
    from fluidnb.runtime.opened_model import OpenedModel

#: Numbers of a folded result at most, where what it comes from has fewer.
_MOST = 1 << 20


def extracted(model: OpenedModel, feeds: Sequence[str], fetches: Sequence[str]) -> OpenedModel:
    """The part of a model between some variables, with the same parameters."""
    program = without_ends(model.program)
    block = program.desc.blocks[0]
    for name in (*feeds, *fetches):
        if block.find_var(name) is None:
            raise NotFound(
                f'The model has no variable "{name}".', expected="variables of the main block",
                hint=near(name, block.vars) or "model.computed() lists what it computes.",
            )  # fmt: skip
    if not fetches:
        raise OpValueError("A model computes at least one variable.", expected="fetches=[a name]", received="none")
    part = prune(program, list(fetches), list(feeds))
    top = part.desc.blocks[0]
    known = {*feeds, *(n for n, v in top.vars.items() if v.persistable())}
    for op in top.ops:
        reads, writes = outer_names(part.desc, top, op)
        missing = sorted(reads - known - {""})
        if missing:
            raise OpValueError(
                f"{', '.join(fetches)} cannot be computed from {', '.join(feeds) or 'nothing'}: it also needs "
                f"{', '.join(missing)}.", op=op.label(), expected=", ".join((*feeds, *missing)),
                received=", ".join(feeds) or "nothing", hint=f"feeds={[*feeds, *missing]}",
            )  # fmt: skip
        known |= writes
    for name, var in top.vars.items():
        var.set_is_data(name in feeds)
        var.set_need_check_feed(name in feeds)
    found = _derived(model, part, [n for n in feeds if n in top.vars], fetches, {})
    found.config_file = None  # it is about the whole model
    return found


def renamed(model: OpenedModel, names: Mapping[str, str]) -> OpenedModel:
    """A model with other names of variables; parameters keep their values."""
    program = without_ends(model.program)
    block = program.desc.blocks[0]
    for old, new in names.items():
        if block.find_var(old) is None:
            raise NotFound(f'The model has no variable "{old}".', hint=near(old, block.vars) or "see print(program).")
        if not new:
            raise OpValueError("A variable has a name.", expected="a text", received=repr(new))
        block.rename_var(old, new)
    program.desc.parse_from_string(program.desc.serialize_to_string())
    feeds, fetches = ([names.get(v.name, v.name) for v in ends] for ends in (model.feeds, model.fetches))
    moved = {new: np.asarray(model.scope.var(old).get_tensor()) for old, new in names.items()
             if old in {v.name for v in model.parameters}}  # fmt: skip
    return _derived(model, program, feeds, fetches, moved)


def without_ends(program: Program) -> Program:
    """A copy of a program without its operators feed and fetch."""
    copied = Program.parse_from_string(program.desc.serialize_to_string())
    block = copied.desc.blocks[0]
    for index in reversed(range(len(block.ops))):
        if block.ops[index].optype in ("feed", "fetch"):
            block.remove_op(index, index + 1)
    for name in ("feed", "fetch"):
        if block.has_var(name):
            block.remove_var(name)
    return copied


def fold_constants(model: OpenedModel) -> OpenedModel:
    """Results that depend on parameters and constants alone become parameters."""
    program = without_ends(model.program)
    block = program.desc.blocks[0]
    written = Counter(name for _, _, op in each_op(program.desc) for name in op.output_arg_names())
    known = {n for n, v in block.vars.items() if v.persistable() and v.type() == VarType.LOD_TENSOR and not written[n]}
    given, folded = set(known), []
    for op in block.ops:
        if _is_constant(op, block, known, written):
            folded.append(op)
            known |= set(op.output_arg_names())
    read = {n for _, _, op in each_op(program.desc) if op not in folded for n in op.input_arg_names()}
    read |= {v.name for v in model.fetches}
    heads = [op for op in folded if op.ins and any(op.ins.values()) and read & set(op.output_arg_names())]
    names = [n for op in heads for n in op.output_arg_names() if n in read]
    if not names:
        return _derived(model, program, _names(model.feeds), _names(model.fetches), {})
    with scope_guard(model.scope):
        values = model.executor.run(prune(program, names), fetch_list=names)
    size = sum(int(np.prod(block.vars[n].shape())) for n in given)
    values_of = {n: np.asarray(v) for n, v in zip(names, values, strict=True) if v.size <= max(_MOST, size)}
    for name, value in values_of.items():
        var = block.vars[name]
        var.set_persistable(True)
        var.set_shape(value.shape)
    for index in reversed(range(len(block.ops))):
        if block.ops[index] in heads and set(block.ops[index].output_arg_names()) & read <= values_of.keys():
            block.remove_op(index, index + 1)
    return _derived(model, _swept(program, model), _names(model.feeds), _names(model.fetches), values_of)


def _is_constant(op: OpDesc, block: BlockDesc, known: set[str], written: Counter[str]) -> bool:
    definition = get_op(op.optype) if has_op(op.optype) else None
    if definition is None or definition.random or definition.side_effect or "seed" in definition.attrs:
        return False
    outs = [block.find_var(name) for name in op.output_arg_names()]
    plain = all(v is not None and v.type() == VarType.LOD_TENSOR and not v.persistable() for v in outs)
    once = all(written[name] == 1 for name in op.output_arg_names())
    assert block.program is not None
    return plain and once and not inner_blocks(block.program, op) and set(op.input_arg_names()) <= known


def fold_batch_norm(model: OpenedModel) -> OpenedModel:
    """Batch normalization becomes part of the convolution before it, as `InferenceTranspiler` does it."""
    from fluidnb.transpiler import InferenceTranspiler

    program, scope = without_ends(model.program), _shared(model)
    before = set(program.desc.blocks[0].vars)
    InferenceTranspiler().transpile(program, None, scope)
    program = _swept(program, model)
    new = {n: np.asarray(scope.var(n).get_tensor()) for n in program.desc.blocks[0].vars if n not in before}
    return _derived(model, program, _names(model.feeds), _names(model.fetches), new)


#: Passes by their names.
PASSES: dict[str, Callable[[OpenedModel], OpenedModel]] = {
    "fold_constants": fold_constants, "fold_batch_norm": fold_batch_norm,
}  # fmt: skip


def _names(variables: Sequence[Any]) -> list[str]:
    return [v.name for v in variables]


def _swept(program: Program, model: OpenedModel) -> Program:
    """The program without what no fetch needs."""
    return prune(program, _names(model.fetches), _names(model.feeds))


def _shared(model: OpenedModel) -> Scope:
    """A scope with the same parameters, in the same memory."""
    scope = Scope()
    for v in model.parameters:
        scope.var(v.name).get_tensor()._share_data_with(model.scope.var(v.name).get_tensor())
    return scope


def _derived(
    model: OpenedModel, program: Program, feeds: Sequence[str], fetches: Sequence[str], values: Mapping[str, np.ndarray]
) -> OpenedModel:  # fmt: skip
    """A model of another program; parameters are shared, but for new values."""
    add_ends(program, list(feeds), list(fetches))
    derived = copy.copy(model)
    derived.program, derived.scope = program, _shared(model)
    block = program.global_block()
    derived.feeds, derived.fetches = ([block.var(n) for n in names] for names in (feeds, fetches))
    derived.unknown = Counter(op.optype for _, _, op in each_op(program.desc) if not has_op(op.optype))
    derived.parameters = [v for v in program.list_vars() if is_persistable(v)]
    for name, value in values.items():
        derived.scope.var(name).get_tensor().set(value, model.executor.place)
    return derived
