"""Blocks as operators: infer shapes in a scope, run there, evaluate targets.

The Executor runs whole programs and owns the local scope of a run. Here a scope is the user's own: variables are
created in it, the operators of one block run on them one after another, and what they write stays there.
"""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, typed
from fluidnb.memory import flags
from fluidnb.op import EMPTY, get_op, infer_compile
from fluidnb.op.define import registry
from fluidnb.program import Block, Variable, hooks, prune_block
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime.compile.lowering import LoweredOp, LoweredProgram
from fluidnb.runtime.interpreter.interpreter import Frame, Interpreter
from fluidnb.runtime.program_state import program_state
from fluidnb.runtime.run_numbers import next_run
from fluidnb.runtime.scope import Scope
from fluidnb.utils.source_location import capture
from fluidnb.values import invalidation as epoch
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.dtypes import var_type
from fluidnb.values.move_value import move_value
from fluidnb.values.place import CPUPlace, Place
from fluidnb.values.tensor import LoDTensor

#: description of a block -> scope -> the version of the program for which its variables were created there
_ready: WeakKeyDictionary[BlockDesc, WeakKeyDictionary[Scope, int]] = WeakKeyDictionary()
#: description of a block -> targets -> (version of the program, what they need)
_pruned: WeakKeyDictionary[BlockDesc, dict[tuple[str, ...], tuple[int, Block]]] = WeakKeyDictionary()


def infer_block(block: Block, scope: Scope) -> dict[str, tuple[int, ...]]:
    """Create a block's variables in a scope, and infer the shapes of what its operators write.

    Shapes start from the values of the scope, else from the declarations.

    Returns:
        The shape of each tensor that the operators write, by name, in order; -1 where they depend on values.

    Example:
        >>> x = fluid.layers.data("x", shape=[3]); y = fluid.layers.scale(x, scale=2.0)
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones((5, 3), "float32"), fluid.CPUPlace())
        >>> infer_block(fluid.default_main_program().global_block(), scope)[y.name]
        (5, 3)

    Source: design document "Block and Scope", ``Block::InferShape``.
    """
    _check_scope(scope)
    lowered = lowered_for(block, CPUPlace())
    ops = lowered.blocks[block.idx].ops
    scratch = ProgramDesc(block.desc.program).block(block.idx)
    written: set[str] = set()
    for op in ops:
        for name in op.reads():
            if name not in written:
                _as_held(scratch, scope, name)
        written.update(op.writes())
    shapes: dict[str, tuple[int, ...]] = {}
    for op, twin in zip(ops, (d for d in scratch.ops if d.optype not in ("feed", "fetch")), strict=True):
        infer_compile(get_op(twin.optype), twin, scratch, op.where())
        for name in op.writes():
            var = scratch.find_var_recursive(name)
            if var is not None and var.type() == VarType.LOD_TENSOR:
                shapes[name] = tuple(var.shape())
    create_variables(block.desc, scope)
    for name, shape in shapes.items():
        variable = scope.find_var(name)
        if variable is not None and variable.value is None and min(shape, default=0) >= 0:
            variable.get_tensor().set_dims(shape)
    _ready.setdefault(block.desc, WeakKeyDictionary())[scope] = block.desc.program.version
    return shapes


def run_block(block: Block, scope: Scope, place: Place | DeviceContext) -> None:
    """Run a block's operators in order on the variables of a scope, after `infer_block`.

    Source: design document "Block and Scope", ``Block::Run``.
    """
    _check_scope(scope)
    at = place_in(place)
    seen = _ready.get(block.desc)
    version = None if seen is None else seen.get(scope)
    if version != block.desc.program.version:
        raise EnforceNotMet(
            "operators and variables should be created first.", where=capture(),
            expected="block.infer_shape(scope) before block.run(scope, place)",
            received="a scope that it has not seen" if version is None else "a program that has changed since then",
            hint="infer_shape creates the block's variables in the scope.",
        )  # fmt: skip
    inside = len(scope.kids)
    try:
        run_ops(block, scope, at)
    finally:  # the scopes of loops and branches go with the mini-batch
        for kid in scope.kids[inside:]:
            kid.drop_kids()
            kid.parent = None
        del scope.kids[inside:]


def eval_block(block: Block, targets: Any, scope: Scope, place: Place | DeviceContext) -> list[Any]:
    """Run what some variables of a block need, and return their values.

    Returns:
        The values in the order of the targets: ndarrays, LoDTensors for those with LoD, other values as they are.

    Example:
        >>> y = fluid.layers.scale(fluid.layers.fill_constant([2], "float32", 1.5), scale=2.0)
        >>> eval_block(fluid.default_main_program().global_block(), y, fluid.Scope(), fluid.CPUPlace())
        [array([3., 3.], dtype=float32)]

    Source: design document "Block and Scope", ``Block::Eval``.
    """
    names = [_target(t) for t in (targets if isinstance(targets, list | tuple | set) else [targets])]
    small = _needed(block, tuple(names))
    infer_block(small, scope)
    run_block(small, scope, place)
    return [_value(scope, name) for name in names]


def lowered_for(block: Block, place: Place) -> LoweredProgram:
    """The lowered program of a block; the same until the program, the registry or the NaN check changes."""
    desc = block.desc.program
    lowered_programs = program_state(desc).lowered_blocks
    key = (place, flags.values["check_nan_inf"])
    lowered = lowered_programs.get(key)
    if lowered is None or lowered.version != desc.version or lowered.registry_version != registry.version:
        lowered = lowered_programs[key] = LoweredProgram(desc, (), (), place, block.program._random_seed)
    return lowered


def create_variables(desc: BlockDesc, scope: Scope) -> None:
    """Create the variables of a block in a scope; persistable ones at the root, unless they exist."""
    for block in desc.chain():
        for name, var in block.vars.items():
            if var.persistable():
                if scope.find_var(name) is None:
                    scope.outermost().var(name)
            elif block is desc:
                scope.var(name)
    for op in desc.ops:
        for name in op.output_arg_names():
            if name != EMPTY and desc.find_var_recursive(name) is None:
                scope.var(name)


def run_ops(block: Block, scope: Scope, place: Place, begin: int = 0, end: int | None = None) -> None:
    """Run a range of a block's operators on existing variables of a scope.

    Args:
        scope: the scope; those of loops and branches are created inside it and stay.
        begin: index of the first operator.
        end: one past the last; None for all.
    """
    lowered = lowered_for(block, place)
    machine = Interpreter(lowered, scope, next_run(lowered, block.program, scope))
    lowered_block = lowered.blocks[block.idx]
    for op in lowered_block.ops[begin:end]:
        _bring(op, scope, place)
    machine.stack = (Frame(lowered_block, begin, scope),)
    stop = len(lowered_block.ops) if end is None else end
    try:
        while len(machine.stack) > 1 or machine.stack[0].pc < stop:
            machine.step()
            machine.journal.clear()
    finally:
        epoch.value += 1  # other runs that are bound to this scope look again


def place_in(place: Any) -> Place:
    """The place of a Place or a DeviceContext; an OpTypeError for anything else."""
    device = place.place if isinstance(place, DeviceContext) else place
    if not isinstance(device, Place):
        raise OpTypeError(
            f"A block runs on a place, but {type(place).__name__} was given.", where=capture(2),
            expected="fluid.CPUPlace(), or a DeviceContext", received=repr(place)[:80],
        )  # fmt: skip
    DeviceContext.get(device)
    return device


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, Scope):
        raise OpTypeError(
            f"scope should be a Scope, but {type(scope).__name__} was given.", where=capture(2),
            expected="a fluid.Scope", received=repr(scope)[:80],
        )  # fmt: skip


def _as_held(desc: BlockDesc, scope: Scope, name: str) -> None:
    """Set a declaration to the shape, dtype and LoD level of the value in the scope."""
    var, variable = desc.find_var_recursive(name), scope.find_var(name)
    tensor = None if variable is None else variable.value
    if var is None or var.type() != VarType.LOD_TENSOR or type(tensor) is not LoDTensor or tensor.array is None:
        return
    var.set_shape(list(tensor.array.shape))
    var.set_dtype(var_type(tensor.array.dtype))
    var.set_lod_level(len(tensor.lod_))


def _bring(op: LoweredOp, scope: Scope, place: Place) -> None:
    """Move an operator's inputs and outputs to the place where it runs."""
    for name in (*op.reads(), *op.writes()):
        variable = scope.find_var(name)
        if variable is not None:
            move_value(variable.value, place)


def _needed(block: Block, names: tuple[str, ...]) -> Block:
    """The pruned block, cached while the program is unchanged, so that random streams continue across runs."""
    version, known = block.desc.program.version, _pruned.setdefault(block.desc, {})
    found, pruned = known.get(names, (None, block))
    if found != version:
        for old, (other, _) in known.copy().items():  # a copy: other threads may add blocks now
            if other != version:
                known.pop(old, None)
        known[names] = (version, pruned := Block(prune_block(block.desc, names)))
    pruned.program._random_seed = block.program._random_seed
    return pruned


def _target(target: Any) -> str:
    if not isinstance(target, Variable | str):
        raise OpTypeError(
            "A target of eval() is a variable.", where=capture(2), expected="a Variable or a name",
            received=typed(target),
        )  # fmt: skip
    return target if isinstance(target, str) else target.name


def _value(scope: Scope, name: str) -> Any:
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    if value is None or getattr(value, "array", 0) is None:
        raise NotFound(
            f'"{name}" has no value.', where=capture(2), expected="a variable that an operator writes, or that is set",
            received="nothing in the scope", hint="if it is a parameter, run the startup program in this scope first.",
        )  # fmt: skip
    if type(value) is LoDTensor:
        return value._copy() if value.lod_ else np.array(np.asarray(value), order="C")
    return value


hooks.infer_block = infer_block
hooks.run_block = run_block
hooks.eval_block = eval_block
