"""The steps of append_backward, recorded while it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from fluidnb.backward import append_backward
from fluidnb.backward.blocks import RUN_BLOCKS
from fluidnb.backward.path import is_floating
from fluidnb.backward.walk import Walk
from fluidnb.backward.watch import watched
from fluidnb.errors import NotFound, near
from fluidnb.op import EMPTY, get_op, make_grad
from fluidnb.program import Parameter, Program, unique_name
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values.dtypes import dtype_name
from fluidnb.viz.lessons.backward.examples import EXAMPLES, example, find_loss, forward_part
from fluidnb.viz.lessons.common import without_line
from fluidnb.viz.program.model import OpRow, SlotRow, VarRow
from fluidnb.viz.program.reader import read_op, read_program

#: Operators that backward adds beside those of gradient makers.
_KINDS = {"sum": "sum", "fill_zeros_like": "zeros", "assign": "copy"}
#: An operator of the program: (block, index).
Spot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GradientRow:
    """An operator of the backward listing at some step."""

    op: OpRow  # the operator with its current names
    depth: int  # nesting depth in gradient blocks
    kind: str  # ``seed`` (the loss's own gradient), ``gradient``, ``sum``, ``zeros`` or ``copy``
    of: Spot | None  # the forward operator that was processed when it was written; None for the seed
    written: int  # the step in which it was written


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """One step."""

    # ``seed``, ``enter`` (a block), ``gradient``, ``block`` (an operator that runs one), ``nothing``, ``end``
    kind: str
    at: Spot | None  # the forward operator; None at the beginning and at the end
    block: int  # the current block
    arrived: tuple[tuple[str, str], ...] = ()  # (output, its gradient) of the operator, where there is a gradient
    maker: tuple[str, ...] = ()  # operators from the gradient maker, before names are final
    unwanted: tuple[tuple[str, str], ...] = ()  # (input, why it gets no gradient) of the operator
    renamed: tuple[tuple[str, str], ...] = ()  # (old, new) names of contributions
    # (variable, its copy) that the forward block saves because the value is overwritten later
    copies: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()  # (parameter, gradient), at the end
    listing: tuple[GradientRow, ...] = ()  # the backward operators written so far, in the order in which they will run


@dataclass(frozen=True, slots=True)
class BackwardLesson:
    """The construction of the backward part of a program."""

    title: str  # title of the program
    words: str  # what it shows
    loss: str
    forward: tuple[tuple[int, OpRow], ...]  # (depth, operator) of the forward part
    steps: tuple[BackwardStep, ...]
    no_grad: tuple[str, ...] = ()  # names that the user excludes

    def op(self, spot: Spot | None) -> OpRow | None:
        """A forward operator."""
        return next((op for _, op in self.forward if (op.block, op.index) == spot), None)

    def steps_of_cell(self, title: str) -> list[int]:
        """The steps that process the operators of a notebook cell."""
        spots = {(op.block, op.index) for _, op in self.forward if op.location.startswith(f"cell {title},")}
        return [i for i, step in enumerate(self.steps) if step.at in spots]


def read_backward_example(name: str, no_grad: Sequence[str] = ()) -> BackwardLesson:
    """Reads the lesson on an example program."""
    program, loss = example(name)
    return _read(program, loss.name, f"example {name}", EXAMPLES[name].words, no_grad)


def read_backward_lesson(
    program: Program, loss: str | None = None, title: str = "program", no_grad: Sequence[str] = ()
) -> BackwardLesson:
    """Reads the lesson on a program, which is not changed; None searches for its loss."""
    return _read(forward_part(program), find_loss(program, loss), title, "", no_grad)


def _read(program: Program, loss: str, title: str, words: str, no_grad: Sequence[str]) -> BackwardLesson:
    forward = tuple(read_program(program).root.walk())
    known = {name for block in program.desc.blocks for name in block.vars}
    for name in no_grad:
        if name not in known:
            text = f"the program has no variable {name}."
            raise without_line(NotFound(text, received=name, hint=near(name, known)))
    recorder = _Recorder(no_grad)
    with unique_name.guard(), watched(recorder.see):
        pairs = append_backward(program.global_block().var(loss), no_grad_set=set(no_grad))
    return BackwardLesson(
        title, words, loss, forward, recorder.finished([(p.name, g.name) for p, g in pairs]), tuple(no_grad)
    )


@dataclass(slots=True)
class _Recorded:
    """The last recorded state of a backward operator."""

    desc: OpDesc
    row: GradientRow
    ins: dict[str, list[str]]  # what it read
    outs: dict[str, list[str]]  # what it wrote


class _Recorder:
    """Records the changes of backward after each operator."""

    def __init__(self, no_grad: Collection[str]) -> None:
        self._no_grad = no_grad
        self._steps: list[BackwardStep] = []
        self._walks: list[Walk] = []
        self._met: dict[int, _Recorded] = {}  # by the id of the operator

    def see(self, walk: Walk, position: int) -> None:
        """Records a step."""
        if position == len(walk.block.ops):
            self._walks.append(walk)
            self._record("enter" if walk.nested else "seed", None, walk)
        elif position >= 0:
            self._consider(walk, position)
        elif walk.nested:
            self._walks.pop()
        else:
            self._record("end", None, walk)

    def finished(self, pairs: Sequence[tuple[str, str]]) -> tuple[BackwardStep, ...]:
        """The steps, the last with the parameters and their gradients."""
        return (*self._steps[:-1], replace(self._steps[-1], pairs=tuple(pairs)))

    def _consider(self, walk: Walk, position: int) -> None:
        op, spot = walk.block.ops[position], (walk.block.idx, position)
        fresh = [d for d in walk.ops if id(d) not in self._met]
        arrived = tuple((n, walk.gradient_of[n]) for n in dict.fromkeys(op.output_arg_names()) if n in walk.gradient_of)
        reads = dict.fromkeys(op.input_arg_names())
        unwanted = tuple((n, self._why(walk.block, n)) for n in reads if not walk.wanted(n))
        runs = op.optype in RUN_BLOCKS
        maker: tuple[str, ...] = ()
        if fresh and not runs and get_op(op.optype).grad is not None:
            maker = tuple(_row(d).text for d in make_grad(op, [n for n, _ in unwanted]))
        copies: tuple[tuple[str, str], ...] = ()
        if runs and (inner := walk.inner_of.get(id(op))) is not None:
            copies = tuple((variable, copy.name) for (variable, _), copy in inner.copies.made.items())
        kind = "block" if runs and fresh else "gradient" if fresh else "nothing"
        self._record(kind, spot, walk, arrived=arrived, maker=maker, unwanted=unwanted, copies=copies)

    def _record(self, kind: str, at: Spot | None, walk: Walk, **facts: tuple[object, ...]) -> None:
        renamed: list[tuple[str, str]] = []
        listing = tuple(self._listing(at, walk, renamed))
        step = BackwardStep(kind, at, walk.block.idx, renamed=tuple(renamed), listing=listing)
        self._steps.append(replace(step, **facts))  # type: ignore[arg-type]

    def _listing(self, at: Spot | None, walk: Walk, renamed: list[tuple[str, str]]) -> Iterator[GradientRow]:
        """All written operators: the outermost block, then the open gradient blocks."""
        op = None if at is None else walk.block.ops[at[1]]
        types = [d.optype for d in make_grad(op)] if op is not None and get_op(op.optype).grad is not None else []
        for depth, each in enumerate(self._walks):
            for desc, deep in _flat(each, depth):
                met = self._met.get(id(desc))
                if met is None:
                    kind = "gradient" if desc.optype in types else _KINDS.get(desc.optype, "gradient")
                    kind = kind if self._steps else "seed"
                    row = GradientRow(_row(desc), deep, kind, at, len(self._steps))
                    met = self._met[id(desc)] = _Recorded(desc, row, dict(desc.ins), dict(desc.outs))
                elif met.ins != desc.ins or met.outs != desc.outs:
                    names = zip(chain(*met.outs.values()), desc.output_arg_names(), strict=False)
                    renamed += [(a, b) for a, b in names if a != b]
                    met.row, met.ins, met.outs = replace(met.row, op=_row(desc)), dict(desc.ins), dict(desc.outs)
                yield met.row

    def _why(self, block: BlockDesc, name: str) -> str:
        """The reason for which a variable needs no gradient."""
        var = block.find_var_recursive(name)
        if var is None:
            return "it is not declared"
        if name in self._no_grad:
            return "it is in no_grad_set"
        if not is_floating(block, name):
            try:
                return f"it is of dtype {dtype_name(var.dtype())}"
            except (ValueError, TypeError):
                return "it is not a tensor"
        if isinstance(var.view, Parameter) and not var.view.trainable:
            return "it is a parameter that is not trained"
        return "its stop_gradient is set" + (", as for all fed data" if var.is_data() else "")


def _flat(walk: Walk, depth: int) -> Iterator[tuple[OpDesc, int]]:
    """All operators of backward, gradient blocks after the operator that runs them."""
    for desc in walk.ops:
        yield desc, depth
        inner = walk.inner.get(id(desc))
        if inner is not None:
            yield from _flat(inner, depth + 1)


def _row(desc: OpDesc) -> OpRow:
    """A row of an operator that is not in a block yet."""

    def slots(names_of: dict[str, list[str]]) -> tuple[SlotRow, ...]:
        filled = ((slot, [n for n in names if n != EMPTY]) for slot, names in names_of.items())
        return tuple(SlotRow(slot, tuple(VarRow(n) for n in names)) for slot, names in filled if names)

    return replace(read_op(desc), role="backward", ins=slots(desc.ins), outs=slots(desc.outs))
