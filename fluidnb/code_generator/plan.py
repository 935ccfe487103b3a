"""The code of a program as data: functions, calls in their blocks, and places of variables in memory."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluidnb.code_generator.cuda_functions import CudaFunctions
from fluidnb.code_generator.functions import TYPES, Argument, Functions, NoCode, Variable
from fluidnb.code_generator.loops import BACKWARD, ON_ARRAYS, Backward, arrays_of, backward_of, has_loops
from fluidnb.errors import OpValueError
from fluidnb.memory import arena
from fluidnb.op import get_op
from fluidnb.op.c_code import c_code_of
from fluidnb.program import Program
from fluidnb.program.pseudo_code import op_code
from fluidnb.program.shapes import with_shapes
from fluidnb.program.sub_blocks import each_op, own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from fluidnb.values.dtypes import VarType, np_dtype

#: Operators that become statements of C, and those that move feeds and fetches.
CONTROL = ("while", "conditional_block")
_LOOPS = (*BACKWARD, *ON_ARRAYS)
_ENDS = ("feed", "fetch")
#: Elements of a variable at most: sizes are constants of type int.
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator's function, or a statement that runs a block.

    Attributes:
        op: the operator.
        function: name of the function; empty for control flow.
        arguments: what it is called with.
        block: index of the block that it runs, for control flow.
        condition: name of its condition.
        backward: what a gradient block is the gradient of.
        operands: the variables of an operator on arrays.
    """

    op: OpDesc
    function: str = ""
    arguments: tuple[Argument, ...] = ()
    block: int = -1
    condition: str = ""
    backward: Backward | None = None
    operands: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The variables that it uses itself."""
        used = [self.condition] if self.condition else []
        used += [n for a in self.arguments if not a.parameter.is_lod for n in a.names]
        sums = self.backward.sums if self.backward is not None else ()
        return [*used, *self.operands, *(n for pair in sums for n in pair)]


@dataclass(slots=True)
class Plan:
    """The code of a program as data.

    Attributes:
        functions: the functions of operators.
        calls: block -> its calls in order.
        variables: name -> variable, in the order of their first use.
        homes: name -> the block that declares it.
        feeds: names of the fed variables.
        fetches: names of the fetched ones.
        arena_size: bytes of the temporaries together.
        trains: whether the program writes parameters.
        sequences: the number of sequences in each variable that has any.
        lods: name of a variable with sequences -> the feed whose offsets it has.
        steps: elements that an array of tensors has at most, and iterations of a loop with a gradient.
        arrays: the arrays of tensors, as variables like their elements.
    """

    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    functions: Functions | CudaFunctions
    calls: dict[int, list[Call]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    homes: dict[str, int] = field(default_factory=dict)
    arena_size: int = 0
    trains: bool = False
    sequences: int = 0
    lods: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    arrays: dict[str, Variable] = field(default_factory=dict)

    @property
    def backward(self) -> dict[int, Call]:
        """The blocks that have a gradient block -> the call that runs it."""
        return {call.backward.forward: call for call in self.calls[0] if call.backward is not None}

    def kept(self, block: int) -> list[Variable]:
        """The variables of a block that its gradient block reads."""
        call = self.backward[block]
        used = dict.fromkeys(n for inner in self.calls[call.block] for n in inner.names)
        return [self.variables[n] for n in used if n in self.variables and self.homes[n] == block]

    @property
    def parameters(self) -> list[Variable]:
        """The variables that outlive a run, by name."""
        return sorted((v for v in self.variables.values() if v.kind == "parameter"), key=lambda v: v.name)


def planned(
    program: Program, feed_shapes: Mapping[str, Sequence[int]], fetches: Sequence[str], sequences: int = 1,
    functions: Functions | CudaFunctions | None = None, steps: int = 0,
) -> Plan:  # fmt: skip
    """Plans the code of a program for fixed sizes of its feeds.

    Args:
        sequences: the number of sequences in feeds that have any; the size of such a feed is its most rows.
        functions: makes the functions of operators; default C.
        steps: elements that an array of tensors has at most, and iterations of a loop with a gradient.

    Raises:
        OpValueError: operators without code, all listed with their counts; or a size that is not known.
    """
    sized = with_shapes(program, {name: tuple(shape) for name, shape in feed_shapes.items()})
    desc = sized.desc
    plan = Plan(tuple(feed_shapes), tuple(fetches), functions or Functions(), sequences=sequences, steps=steps)
    statements = (*CONTROL, *_ENDS, *(_LOOPS if isinstance(plan.functions, Functions) else ()))
    ops = [op for _, _, op in each_op(desc) if op.optype not in statements]
    _refuse(plan, Counter(op.optype for op in ops if plan.functions.missing(op)))
    _bound(plan, desc)
    _follow_sequences(plan, desc)
    missing: Counter[str] = Counter()
    reason = ""
    for home in _blocks(desc, 0):
        plan.calls[home.idx] = calls = []
        for op in home.ops:
            if op.optype not in _ENDS:
                try:
                    calls.append(_call(plan, op, home))
                except NoCode as error:
                    missing[op.optype] += 1
                    reason = reason or error.summary
    _refuse(plan, missing, reason)
    _place(plan, desc)
    return plan


def _blocks(desc: ProgramDesc, index: int) -> Iterator[BlockDesc]:
    """A block and those that it runs."""
    home = desc.blocks[index]
    yield home
    for op in home.ops:
        for inner in own_blocks(op):
            yield from _blocks(desc, inner)


def _refuse(plan: Plan, missing: Counter[str], reason: str = "") -> None:
    """Raises an error that lists all operators without code."""
    if missing:
        listed = ", ".join(f"{type} ({n})" for type, n in missing.most_common())
        language = plan.functions.language
        raise OpValueError(
            f"Operators without {language} code: {listed}.", expected=f"operators with {language} code",
            received=reason or f"{missing.total()} operators without",
            hint=plan.functions.hint(missing.most_common(1)[0][0]),
        )  # fmt: skip


def _follow_sequences(plan: Plan, desc: ProgramDesc) -> None:
    """Find which feed's sequences each variable has, and give open sizes their number.

    A feed with sequences has a fixed number of rows, those behind its last sequence zero. Operators on rows compute
    them all; operators on sequences, which get the offsets, write zeros there. What joins rows otherwise is refused.
    """
    top = desc.blocks[0].vars
    plan.lods = {name: name for name in plan.feeds if name in top and top[name].lod_level()}
    most_levels = 1 if isinstance(plan.functions, Functions) else 0
    if any(top[name].lod_level() > most_levels for name in plan.lods):
        raise OpValueError(
            f"Sequences{' of sequences' * most_levels} have no {plan.functions.language} code.",
            expected=f"lod_level {most_levels}", received=f"lod_level {max(top[n].lod_level() for n in plan.lods)}",
        )  # fmt: skip
    if not plan.lods:
        return
    most = {name: top[name].shape()[0] for name in plan.lods}
    for home, _, op in each_op(desc):
        source = next((plan.lods[n] for names in op.ins.values() for n in names if n in plan.lods), "")
        for name in (n for names in op.outs.values() for n in names):
            var = home.find_var_recursive(name)
            if var is None or var.type() != VarType.LOD_TENSOR or not var.shape():
                continue
            if source and var.lod_level():
                plan.lods[name] = source
            if var.shape()[0] < 0:
                var.set_shape([most[plan.lods[name]] if name in plan.lods else plan.sequences, *var.shape()[1:]])
        if source and op.optype in ON_ARRAYS:
            raise OpValueError(
                "Arrays of sequences have no C code.", expected="arrays of tensors without sequences",
                received=op_code(op), hint="sequence_pool makes a row of each sequence first.",
            )  # fmt: skip
        if source and op.optype not in (*CONTROL, *_ENDS) and not get_op(op.optype).is_grad:
            slots = c_code_of(op.optype).text.slots
            outs = [n for p in slots if not p.is_input for n in op.outs.get(p.slot, ())]
            if not any(p.is_lod for p in slots) and not any(n in plan.lods for n in outs):
                raise OpValueError(
                    f"The C code of {op.optype} would join the rows of sequences with those behind the last one.",
                    expected="operators that keep rows apart, or sequence operators", received=op_code(op),
                    hint="sequence_pool makes a row of each sequence first.",
                )  # fmt: skip


def _bound(plan: Plan, desc: ProgramDesc) -> None:
    """Find the arrays of tensors; they and loops with gradients need a bound on their steps."""
    if not has_loops(desc):
        return
    if plan.steps < 1:
        raise OpValueError(
            "Arrays of tensors and loops with a gradient need a bound on their steps in C.",
            expected="max_steps=N", received=f"max_steps={plan.steps}" if plan.steps else "no bound",
            hint="CodeGenerator(..., max_steps=100), and --max-steps 100 of commands, allow 100 steps.",
        )  # fmt: skip
    plan.arrays = arrays_of(desc)
    plan.homes = {name: _declared(desc, name)[0] for name in plan.arrays}


def _call(plan: Plan, op: OpDesc, home: BlockDesc) -> Call:
    """The call of an operator."""
    if op.optype in BACKWARD:
        return Call(op, block=own_blocks(op)[0], backward=backward_of(op, home))
    if op.optype in ON_ARRAYS:
        slots = (op.ins.get("I", []), op.ins["X"], op.outs["Out"])
        return Call(op, operands=tuple(n for names in slots for n in names if n not in plan.arrays))
    if op.optype in CONTROL:
        slot = "Condition" if op.optype == "while" else "Cond"
        [condition, *more] = op.ins.get(slot, [])
        if more or (op.optype == "conditional_block" and not op.attrs.get("is_scalar_condition", False)):
            raise OpValueError(
                f"{op.optype} with other than one condition of one element has no C code.",
                expected="one condition", received=", ".join(op.ins.get(slot, [])),
            )  # fmt: skip
        return Call(op, block=own_blocks(op)[0], condition=condition)
    function, arguments = plan.functions.add(op, plan.sequences)
    return Call(op, function, tuple(arguments))


def _place(plan: Plan, desc: ProgramDesc) -> None:
    """Find the variables that calls use, and give temporaries a place in the arena."""
    lives: dict[str, list[int]] = {}
    written = {n for _, _, op in each_op(desc) for names in op.outs.values() for n in names}

    def visit(index: int, time: int | None) -> None:
        for i, call in enumerate(plan.calls[index]):
            now = i if time is None else time
            for name in call.names:
                lives.setdefault(name, [now, now])[1] = now
            if call.block >= 0:
                visit(call.block, now)

    visit(0, None)
    end = len(plan.calls[0])
    for name in plan.fetches:
        lives.setdefault(name, [0, end])[1] = end
    own = plan.functions.memory()
    for name in lives:
        if name in own:
            plan.variables[name], plan.homes[name] = own[name], 0
            continue
        home, var = _declared(desc, name)
        plan.homes[name] = home
        shape, dtype = tuple(var.shape()), np_dtype(var.dtype())
        if any(n < 0 for n in shape) or var.type() != VarType.LOD_TENSOR or dtype.name not in TYPES:
            raise OpValueError(
                f"{name} has no fixed size in C.", expected="a tensor whose sizes follow from the feeds",
                received=f"shape {list(shape)}, {dtype}", hint="give the feeds' sizes: feeds={'x': [1, 3, 224, 224]}.",
            )  # fmt: skip
        if math.prod(shape) > _MOST:
            raise OpValueError(
                f"{name} is too large for C.", expected=f"at most {_MOST:,} elements, which an int counts",
                received=f"{math.prod(shape):,} elements of shape {list(shape)}", hint="take a smaller batch.",
            )  # fmt: skip
        kind = "fed" if name in plan.feeds else "parameter" if var.persistable() else "temporary"
        plan.variables[name] = Variable(name, shape, dtype, kind, lod=plan.lods.get(name, ""))
        plan.trains |= kind == "parameter" and name in written
    for v in (*plan.arrays.values(), *(v for block in plan.backward for v in plan.kept(block))):
        if max(v.count, 1) * plan.steps > _MOST:
            raise OpValueError(
                f"{v.name} is too large for C in each of {plan.steps:,} steps.", expected=f"at most {_MOST:,} elements",
                received=f"{v.count:,} elements of shape {list(v.shape)}", hint="take a smaller max_steps.",
            )  # fmt: skip
    rows = [
        (lives[v.name][0], lives[v.name][1], v.size, i)
        for i, v in enumerate(plan.variables.values())
        if v.kind == "temporary"
    ]
    offsets, plan.arena_size = arena.place(rows)
    for i, v in enumerate(list(plan.variables.values())):
        if i in offsets:
            plan.variables[v.name] = replace(v, offset=offsets[i])


def _declared(desc: ProgramDesc, name: str) -> tuple[int, VarDesc]:
    """The block that declares a variable, and its description."""
    for block in desc.blocks:
        if name in block.vars:
            return block.idx, block.vars[name]
    raise OpValueError(f"{name} is no variable of the program.", received=name)
