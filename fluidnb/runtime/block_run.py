"""Blocks as operators: infer shapes in a scope, run there, evaluate targets.

The Executor runs whole programs and owns the local scope of a run. Here a scope is the user's own: variables are
created in it, the operators of one block run on them one after another, and what they write stays there.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError
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
from fluidnb.values import invalidation as epoch
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.dtypes import var_type
from fluidnb.values.move_value import bring
from fluidnb.values.place import CPUPlace, Place
from fluidnb.values.tensor import LoDTensor
from fluidnb.where import capture

#: description of a block -> scope -> the version of the program for which its variables were created there
_ready: WeakKeyDictionary[BlockDesc, WeakKeyDictionary[Scope, int]] = WeakKeyDictionary()
#: description of a block -> targets -> (version of the program, what they need)
_pruned: WeakKeyDictionary[BlockDesc, dict[tuple[str, ...], tuple[int, Block]]] = WeakKeyDictionary()


def infer_block(block: Block, scope: Scope) -> dict[str, tuple[int, ...]]:
    """Create a block's variables in a scope, and infer the shapes of what its operators write.

    Shapes start from the values that the scope holds, from the declarations where it holds none. Tensors without a
    value get the shape that they will have, as far as it is known.

    Args:
        block: the block.
        scope: the scope.

    Returns:
        The shape of each tensor that the operators write, by name, in order; -1 where they depend on values.

    Raises:
        OpTypeError: the scope is not a Scope.
        NotBuiltYet: an operator is not registered.
        FluidError: an operator breaks its rule; it names the operator and the user's line.

    Example:
        >>> x = fluid.layers.data("x", shape=[3])
        >>> y = fluid.layers.scale(x, scale=2.0)
        >>> scope = fluid.Scope()
        >>> scope.var("x").get_tensor().set(np.ones((5, 3), "float32"), fluid.CPUPlace())
        >>> infer_block(fluid.default_main_program().global_block(), scope)[y.name]
        (5, 3)

    Source: design document "Block and Scope", ``Block::InferShape``.
    """
    _check_scope(scope)
    plan = plan_of(block, CPUPlace())
    ops = plan.blocks[block.idx].ops
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
    """Run a block's operators in order on the variables of a scope.

    Args:
        block: the block.
        scope: the scope; afterwards it holds what the operators wrote.
        place: where to run.

    Raises:
        OpTypeError: scope or place of another type.
        EnforceNotMet: `infer_block` was not called with this scope since the program changed, or an operator failed.

    Example:
        >>> fluid.default_main_program().global_block().run(fluid.Scope(), fluid.CPUPlace())
        Traceback (most recent call last):
        fluidnb.errors.EnforceNotMet: operators and variables should be created first.
          ...

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
    """Run what some variables of a block need, and give their values.

    Args:
        block: the block; it does not change.
        targets: variables or names; one, or a list.
        scope: a scope with the values that are read; afterwards it holds what was written too.
        place: where to run.

    Returns:
        The values in the order of the targets: ndarrays, LoDTensors for what has LoD, other values as they are.

    Raises:
        OpTypeError: a target of another type.
        NotFound: a target that the block does not see.
        EnforceNotMet: an operator failed, or nothing gave a target a value.

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


def plan_of(block: Block, place: Place) -> LoweredProgram:
    """The plan for running a block of a program as it is now.

    Args:
        block: the block.
        place: where it runs.

    Returns:
        The plan, the same one until the program, the registry or the NaN check changes.
    """
    desc = block.desc.program
    plans = program_state(desc).block_plans
    key = (place, flags.values["check_nan_inf"])
    plan = plans.get(key)
    if plan is None or plan.version != desc.version or plan.registry_version != registry.version:
        plan = plans[key] = LoweredProgram(desc, (), (), place, block.program._random_seed)
    return plan


def create_variables(desc: BlockDesc, scope: Scope) -> None:
    """Create in a scope what a block declares: persistable variables at the root, unless they are seen already.

    Args:
        desc: the block.
        scope: the scope.

    Example:
        >>> scope = fluid.Scope(); y = fluid.layers.fill_constant([2], "float32", 1.5)
        >>> create_variables(fluid.default_main_program().global_block().desc, scope)
        >>> scope.local_var_names() == [y.name]
        True
    """
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
    """Run a range of a block's operators on the variables of a scope, which exist.

    Args:
        block: the block.
        scope: where its variables are; the scopes of loops and branches are made inside it and stay.
        place: where to run.
        begin: index of the first operator.
        end: one past the last; None for all.

    Raises:
        FluidError: an operator failed; those before it have run.
    """
    plan = plan_of(block, place)
    machine = Interpreter(plan, scope, next_run(plan, block.program, scope))
    planned = plan.blocks[block.idx]
    for op in planned.ops[begin:end]:
        _bring(op, scope, place)
    machine.stack = (Frame(planned, begin, scope),)
    stop = len(planned.ops) if end is None else end
    try:
        while len(machine.stack) > 1 or machine.stack[0].pc < stop:
            machine.step()
            machine.journal.clear()
    finally:
        epoch.value += 1  # other runs that are bound to this scope look again


def place_in(place: Any) -> Place:
    """The place that a caller means.

    Args:
        place: a Place or a DeviceContext.

    Raises:
        OpTypeError: it is something else.
    """
    found = place.place if isinstance(place, DeviceContext) else place
    if not isinstance(found, Place):
        raise OpTypeError(
            f"A block runs on a place, but {type(place).__name__} was given.", where=capture(2),
            expected="fluid.CPUPlace(), or a DeviceContext", received=repr(place)[:80],
        )  # fmt: skip
    DeviceContext.get(found)
    return found


def _check_scope(scope: Any) -> None:
    if not isinstance(scope, Scope):
        raise OpTypeError(
            f"scope should be a Scope, but {type(scope).__name__} was given.", where=capture(2),
            expected="a fluid.Scope", received=repr(scope)[:80],
        )  # fmt: skip


def _as_held(desc: BlockDesc, scope: Scope, name: str) -> None:
    """Let a declaration say what the scope holds."""
    var, variable = desc.find_var_recursive(name), scope.find_var(name)
    tensor = None if variable is None else variable.value
    if var is None or var.type() != VarType.LOD_TENSOR or type(tensor) is not LoDTensor or tensor.array is None:
        return
    var.set_shape(list(tensor.array.shape))
    var.set_dtype(var_type(tensor.array.dtype))
    var.set_lod_level(len(tensor.lod_))


def _bring(op: LoweredOp, scope: Scope, place: Place) -> None:
    """Move what an operator reads and writes to the place where it runs."""
    for name in (*op.reads(), *op.writes()):
        variable = scope.find_var(name)
        if variable is not None:
            bring(variable.value, place)


def _needed(block: Block, names: tuple[str, ...]) -> Block:
    """The pruned block, cached while the program is unchanged, so that random streams continue across runs."""
    version, known = block.desc.program.version, _pruned.setdefault(block.desc, {})
    found = known.get(names)
    if found is None or found[0] != version:
        for old in [n for n, (v, _) in known.items() if v != version]:
            del known[old]
        found = known[names] = (version, Block(prune_block(block.desc, names)))
    found[1].program._random_seed = block.program._random_seed
    return found[1]


def _target(target: Any) -> str:
    if not isinstance(target, Variable | str):
        raise OpTypeError(
            "A target of eval() is a variable.", where=capture(2), expected="a Variable or a name",
            received=f"{target!r} ({type(target).__name__})"[:200],
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
