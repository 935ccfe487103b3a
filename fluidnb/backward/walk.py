"""Gradient operators of a block, from its last operator to the first.

A variable's gradient is the sum of contributions of its readers. All readers of a value come before its writer, so that
the sum is complete there, also for a variable that is written several times. An array of tensors is the exception: a
writer replaces one element. Its gradient is one array from the last reader to the first writer: a reader adds to the
gradient of its element, a writer removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fluidnb.backward.blocks import KEPT, RUN_BLOCKS, adds_in_place, counts_for_all, through, undo
from fluidnb.backward.path import Wanted, is_array, is_floating
from fluidnb.backward.saved import Copies
from fluidnb.backward.stale import Freshness
from fluidnb.backward.watch import watching
from fluidnb.errors import OpValueError
from fluidnb.op import GRAD, OpDef, check_desc, get_op, make_grad
from fluidnb.program import unique_name
from fluidnb.program.append_op import operands
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc


@dataclass(slots=True)
class Part:
    """One contribution to a variable's gradient."""

    name: str
    # the operator that writes it; None for a gradient of the caller, which keeps its name
    op: OpDesc | None = None
    slot: str = ""  # its output slot
    index: int = 0  # its place in the slot

    def rename(self, name: str) -> None:
        """Rename it, also in its operator."""
        if self.op is not None and self.name != name:
            names = list(self.op.outs[self.slot])
            names[self.index] = self.name = name
            self.op.set_output(self.slot, names)


@dataclass(slots=True)
class Walk:
    """The gradient operators of a block's operators."""

    block: BlockDesc
    wanted: Wanted  # whether a variable wants a gradient
    free: Callable[[str], str]  # gives a free name like the wished one
    nested: bool = False  # whether the block is inside another one that is walked
    ops: list[OpDesc] = field(default_factory=list)  # the gradient operators, in the order in which they run
    gradient_of: dict[str, str] = field(default_factory=dict)  # variable -> name of its gradient
    variable_of: dict[str, str] = field(default_factory=dict)  # name of a gradient -> its variable
    # name of a contribution to a gradient, or of another helper -> the variable that it looks like
    part_of: dict[str, str] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)  # names of gradients that belong to the block around this one
    # names of gradients in the scope in which the gradient block runs
    given: set[str] = field(default_factory=set)
    # id of a gradient operator that runs a gradient block -> the walk that makes this block
    inner: dict[int, Walk] = field(default_factory=dict)
    # id of a forward operator that runs a block -> the same walk
    inner_of: dict[int, Walk] = field(default_factory=dict)
    # id of an operator that computes activations a second time -> the forward operator that it repeats
    repeated: dict[int, OpDesc] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)  # ids of counting operators that have been undone
    # variables whose gradient inside the operator that runs the block reads
    finished: set[str] = field(default_factory=set)
    # variables of the blocks around in whose place the gradient block works on a copy
    replaced: set[str] = field(default_factory=set)
    copies: Copies = field(init=False)  # the copies that the block has to make for its gradient
    _parts: dict[str, list[Part]] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)
    _kept: dict[str, str] = field(default_factory=dict)
    _fresh: Freshness = field(init=False)
    _position: int = -1

    def __post_init__(self) -> None:
        self._fresh, self.copies = Freshness(self.block), Copies(self.block)

    def seed(self, variable: str, part: Part) -> None:
        """Start from a variable whose gradient is known."""
        if part.op is not None:
            self.ops.append(part.op)
        self._parts.setdefault(variable, []).append(part)

    def run(self) -> None:
        """Add the gradients of the block's operators, the last first."""
        watcher = watching()
        if watcher is not None:
            watcher(self, len(self.block.ops))
        for position in range(len(self.block.ops) - 1, -1, -1):
            op = self.block.ops[position]
            if op.attrs.get("op_role", 0) & (OpRole.Optimize | OpRole.LRSched):
                continue  # parameters are leaves, whatever updates them
            self._position = position
            arrived = {n: self._complete(n) for n in dict.fromkeys(op.output_arg_names()) if n in self._parts}
            definition = get_op(op.optype)
            if self.nested and op.optype == "increment" and counts_for_all(self, op.outs["Out"][0]):
                undo(self, position, op.outs["Out"][0])  # it counts down, as the iterations do
            if op.optype in RUN_BLOCKS:
                through(self, position, op, arrived)
            elif arrived:
                self._differentiate(op, definition, arrived)
                for variable, name in arrived.items():
                    # a write leaves the other elements of an array, and x + 1 has the slope 1: propagate their gradient
                    if is_array(self.block, variable) or adds_in_place(op):
                        self.pass_on(variable, name)
            if watcher is not None:
                watcher(self, position)
        if not self.nested:
            for name in list(self._parts):
                self._complete(name)
            for name, copy in self._kept.items():
                self._append(OpDesc("assign", {"X": [copy]}, {"Out": [name]}))
        if watcher is not None:
            watcher(self, -1)

    # ---- called for nested blocks

    def inside(
        self, block: BlockDesc, outer: Mapping[str, str], given: Iterable[str] = (), also: Iterable[str] = ()
    ) -> Walk:
        """A walk over a block inside this one.

        Args:
            outer: variable -> its gradient, which the walk uses under the name that it has outside.
            given: names of gradients that the gradient operator puts into the scope of each iteration.
            also: variables of the block that depend on the requested ones, beside those that its operators declare.
        """
        # a gradient inside of that name is what the operator sums over iterations
        taken = {*outer.values(), *given, *(n + GRAD for n in outer)}

        def free(wish: str) -> str:
            name = wish
            while name in taken or block.has_var(name):
                name = unique_name.generate(wish)
            taken.add(name)
            return name

        wanted, names = self.wanted.inside(block, also), set(outer.values())
        return Walk(block, wanted, free, nested=True, outer=names, given=set(given))

    def hand_in(self, variable: str, gradient: str) -> None:
        """Start from the gradient of an outer variable under the name that it has outside."""
        self.seed(variable, Part(gradient))
        self.gradient_of[variable] = gradient

    def hand_out(self, variable: str, gradient: str) -> None:
        """Write an outer gradient at the end of the block."""
        parts = self._parts.pop(variable, [])
        if parts:
            self._join(variable, parts, gradient)
        elif not is_array(self.block, variable):  # its former value is overwritten here
            self._append(OpDesc("fill_zeros_like", {"X": [gradient]}, {"Out": [gradient]}))

    def finish(self, variable: str) -> bool:
        """Names the gradient of a variable that the block reads, at the block's end, as its readers expect."""
        parts = self._parts.pop(variable, [])
        if not parts:
            return False
        name = variable + GRAD
        self._join(variable, parts, name)
        self.finished.add(variable)
        self.gradient_of[variable] = name
        self.variable_of[name] = variable
        return True

    def array_gradient(self, variable: str) -> str:
        """The one array that holds the gradients of an array's elements; whoever reads an element adds to it."""
        name = self._complete(variable) if variable in self._parts else self.free(variable + GRAD)
        self.pass_on(variable, name)
        return name

    def zeros(self, variable: str) -> str:
        """A gradient of zeros for a variable to which none has arrived."""
        name = self.free(variable + GRAD)
        self.part_of[name] = variable
        self._append(OpDesc("fill_zeros_like", {"X": [variable]}, {"Out": [name]}))
        return name

    def pass_on(self, variable: str, gradient: str) -> None:
        """Propagates a gradient, under its name, to the preceding operators."""
        parts = self._parts.setdefault(variable, [])
        if all(p.name != gradient for p in parts):
            parts.insert(0, Part(gradient))
        self.gradient_of[variable] = gradient
        self.variable_of[gradient] = variable

    def keep(self, variable: str) -> None:
        """Restores the final value of a counter after backward has undone its increments."""
        if not self.nested and variable not in self._kept:
            self._kept[variable] = copy = self.free(variable + KEPT)
            self.part_of[copy] = variable
            self._append(OpDesc("assign", {"X": [variable]}, {"Out": [copy]}))

    def add(self, gradient: OpDesc, leaving: Mapping[str, str]) -> None:
        """Append a gradient operator."""
        self._fresh.check(self._position, gradient, self)
        if gradient.optype == "read_from_array":
            gradient.set_attr("consume", True)  # the element's value before the write has a separate gradient
        self.ops.append(gradient)
        for slot, names in list(gradient.outs.items()):
            for i, n in enumerate(names):
                if n not in leaving:
                    continue
                variable = leaving[n]
                if gradient.optype == "write_to_array":
                    gradient.set_output(slot, [self.array_gradient(variable)])
                    gradient.set_attr("accumulate", True)
                else:
                    self._parts.setdefault(variable, []).append(Part(n, gradient, slot, i))

    def arrive(self, op: OpDesc, gradient: OpDesc, arrived: dict[str, str]) -> None:
        """Set the inputs of a gradient operator to ``arrived`` gradients; a float output without one gets zeros."""
        definition = get_op(op.optype)
        raw = {n + GRAD: n for n in op.output_arg_names()}
        for slot, names in list(gradient.ins.items()):
            variables = [raw[n] for n in names if n in raw]  # by name, not by slot: scale's gradient is a scale
            if not variables:
                continue
            forward = definition.outputs.get(slot.removesuffix(GRAD))
            needless = forward is not None and forward.intermediate
            if not any(v in arrived for v in variables) and (needless or not is_floating(self.block, variables[0])):
                gradient.remove_input(slot)
                continue
            for v in variables:
                if v not in arrived:
                    arrived[v] = self.zeros(v)
            renamed = [arrived[raw[n]] if n in raw else n for n in names]
            if renamed != names:
                gradient.set_input(slot, renamed)

    # ---- sums

    def _append(self, op: OpDesc) -> None:
        check_desc(get_op(op.optype), op)
        self.ops.append(op)

    def _join(self, variable: str, parts: list[Part], name: str) -> None:
        """Join contributions into one gradient of a name."""
        if len(parts) > 1:
            self._sum(variable, parts, name)
        elif parts[0].op is not None:
            parts[0].rename(name)
        elif parts[0].name != name:
            self._append(OpDesc("assign", {"X": [parts[0].name]}, {"Out": [name]}))

    def _complete(self, variable: str) -> str:
        """Join the contributions to a variable's gradient; gives its name."""
        parts = self._parts.pop(variable)
        if len(parts) == 1 and parts[0].op is None:
            name = parts[0].name
        else:
            before = self.gradient_of.get(variable)  # of a later value of the same variable; it has been read by now
            reused = before in self._own and all(p.name != before for p in parts)
            name = before if before is not None and reused else self.free(variable + GRAD)
            self._own.add(name)
            if len(parts) == 1:
                parts[0].rename(name)
            else:
                self._sum(variable, parts, name)
        self.gradient_of[variable] = name
        self.variable_of[name] = variable
        return name

    def _sum(self, variable: str, parts: list[Part], name: str) -> None:
        for k, part in enumerate(parts):
            if part.op is not None:
                part.rename(self.free(f"{variable}{GRAD}@RENAME@block{self.block.idx}@{k}"))
                self.part_of[part.name] = variable
        self._append(OpDesc("sum", {"X": [p.name for p in parts]}, {"Out": [name]}))

    def _differentiate(self, op: OpDesc, definition: OpDef, arrived: dict[str, str]) -> None:
        """Add the gradient operators of one operator."""
        reads = dict.fromkeys(op.input_arg_names())
        leaving = {n + GRAD: n for n in reads if self.wanted(n)}
        if not leaving:
            return
        if definition.grad is None:
            raise OpValueError(
                f"{op.optype} has no gradient, and it is on the way from the loss to {', '.join(leaving.values())}.",
                op=op.label(), slots=operands(self.block, op), where=None if op.view is None else op.view.where,
                expected="an operator with a gradient", received=op.optype,
                hint="set stop_gradient on its output or on its inputs, or leave it out of the loss.",
            )  # fmt: skip
        for gradient in make_grad(op, [n for n in reads if n + GRAD not in leaving]):
            if any(n in leaving for n in gradient.output_arg_names()):
                self.arrive(op, gradient, arrived)
                if "op_namescope" in op.attrs and "op_namescope" not in gradient.attrs:
                    gradient._add_attrs({"op_namescope": op.attrs["op_namescope"]})
                self.add(gradient, leaving)
