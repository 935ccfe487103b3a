"""From forward operators to gradient operators: one walk from the last to the first, gradients summed where they meet.

Each variable's gradient is the sum of what its readers contribute. The walk meets all readers of a value before its
writer, so when it comes to the writer the contributions are complete. That also holds for a variable that is written
several times: at each writer the count starts anew. An array of tensors is the exception: a writer replaces one
element, and the gradients of the others are still on their way to theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fluidnb.backward.path import is_floating
from fluidnb.backward.stale import Freshness
from fluidnb.errors import NotBuiltYet, OpValueError
from fluidnb.op import EMPTY, GRAD, OpDef, check_desc, get_op, make_grad
from fluidnb.program.append import operands
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import VarType


@dataclass(slots=True)
class Part:
    """One contribution to a variable's gradient.

    Args:
        name: the name under which it is known so far.
        op: the operator that writes it; None for a gradient that the caller gave, which keeps its name.
        slot: its output slot.
        index: its place in the slot.
    """

    name: str
    op: OpDesc | None = None
    slot: str = ""
    index: int = 0

    def rename(self, name: str) -> None:
        """Give it its final name."""
        if self.op is not None:
            names = list(self.op.outs[self.slot])
            names[self.index] = self.name = name
            self.op.set_output(self.slot, names)


@dataclass(slots=True)
class Walk:
    """The gradient operators of a block's operators.

    Args:
        block: the block.
        wanted: whether a variable wants a gradient.
        free: gives a name that is not taken yet, as close to the given one as possible.

    Attributes:
        ops: the gradient operators, in the order in which they run.
        gradient_of: variable -> name of its gradient.
        variable_of: name of a gradient -> its variable.
        part_of: name of a contribution to a gradient -> its variable.
    """

    block: BlockDesc
    wanted: Callable[[str], bool]
    free: Callable[[str], str]
    ops: list[OpDesc] = field(default_factory=list)
    gradient_of: dict[str, str] = field(default_factory=dict)
    variable_of: dict[str, str] = field(default_factory=dict)
    part_of: dict[str, str] = field(default_factory=dict)
    _parts: dict[str, list[Part]] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)

    def seed(self, variable: str, part: Part) -> None:
        """Start from a variable whose gradient is known.

        Args:
            variable: its name.
            part: its gradient; an operator in it becomes the next gradient operator.
        """
        if part.op is not None:
            self.ops.append(part.op)
        self._parts.setdefault(variable, []).append(part)

    def run(self) -> None:
        """Walk over the block's operators, the last first.

        Raises:
            OpValueError: one that lies on the way has no gradient, or its gradient needs a value that is overwritten.
            NotBuiltYet: one that lies on the way runs a block.
        """
        fresh = Freshness(self.block)
        for position in range(len(self.block.ops) - 1, -1, -1):
            op = self.block.ops[position]
            if op.attrs.get("op_role", 0) & (OpRole.Optimize | OpRole.LRSched):
                continue  # parameters are leaves, whatever updates them
            arrived = {n: self._complete(n) for n in dict.fromkeys(op.output_arg_names()) if n in self._parts}
            if arrived:
                definition = get_op(op.optype)
                for gradient in self._differentiate(op, definition, arrived):
                    fresh.check(position, op, definition, gradient)
                for variable, name in arrived.items():
                    if self._is_array(variable):  # a write leaves the other elements, so their gradient goes on
                        self._parts.setdefault(variable, []).insert(0, Part(name))
        for name in list(self._parts):
            self._complete(name)

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

    def _is_array(self, variable: str) -> bool:
        var = self.block.find_var_recursive(variable)
        return var is not None and var.type() == VarType.LOD_TENSOR_ARRAY

    def _sum(self, variable: str, parts: list[Part], name: str) -> None:
        for k, part in enumerate(parts):
            if part.op is not None:
                part.rename(self.free(f"{variable}{GRAD}@RENAME@block{self.block.idx}@{k}"))
                self.part_of[part.name] = variable
        total = OpDesc("sum", {"X": [p.name for p in parts]}, {"Out": [name]})
        check_desc(get_op("sum"), total)
        self.ops.append(total)

    def _differentiate(self, op: OpDesc, definition: OpDef, arrived: dict[str, str]) -> Iterator[OpDesc]:
        """Add the gradient operators of one operator, and give them."""
        reads = dict.fromkeys(op.input_arg_names())
        leaving = {n + GRAD: n for n in reads if self.wanted(n)}
        if not leaving:
            return
        route = f"on the way from the loss to {', '.join(leaving.values())}"
        if definition.control:
            raise NotBuiltYet(
                f"{op.optype} is {route}, and gradients through loops and branches are not part of fluidnb yet.",
                op=op.label(), hint="set stop_gradient on what the block writes, or compute the loss without it.",
            )  # fmt: skip
        if definition.grad is None:
            raise OpValueError(
                f"{op.optype} has no gradient, and it is {route}.", op=op.label(), slots=operands(self.block, op),
                where=None if op.view is None else op.view.where, expected="an operator with a gradient",
                received=op.optype,
                hint="set stop_gradient on its output or on its inputs, or leave it out of the loss.",
            )  # fmt: skip
        for gradient in make_grad(op, [n for n in reads if n + GRAD not in leaving]):
            parts = [
                (leaving[n], Part(n, gradient, slot, i))
                for slot, names in gradient.outs.items()
                for i, n in enumerate(names)
                if n in leaving
            ]
            if parts:
                self._arrive(op, definition, gradient, arrived)
                if "op_namescope" in op.attrs:
                    gradient.set_attr("op_namescope", op.attrs["op_namescope"])
                self.ops.append(gradient)
                for variable, part in parts:
                    self._parts.setdefault(variable, []).append(part)
                yield gradient

    def _arrive(self, op: OpDesc, definition: OpDef, gradient: OpDesc, arrived: dict[str, str]) -> None:
        """Give a gradient operator the gradients that arrived; a float output without one counts as zero."""
        raw = {n + GRAD: n for n in op.output_arg_names()}
        for slot, names in list(gradient.ins.items()):
            if not any(n in raw for n in names):  # slots say nothing: the gradient of scale is a scale
                continue
            forward = definition.outputs.get(slot.removesuffix(GRAD))
            variables = [raw.get(n, n) for n in names]
            needless = forward is not None and forward.intermediate
            if not any(v in arrived for v in variables) and (needless or not is_floating(self.block, variables[0])):
                gradient.remove_input(slot)
                continue
            for v in variables:
                if v not in arrived and v != EMPTY:
                    arrived[v] = zero = self.free(v + GRAD)
                    self.part_of[zero] = v
                    self.ops.append(OpDesc("fill_zeros_like", {"X": [v]}, {"Out": [zero]}))
            gradient.set_input(slot, [arrived.get(v, v) for v in variables])
