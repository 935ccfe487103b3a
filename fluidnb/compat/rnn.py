"""The RNN of the design documents: one object with the spellings of all of them, over StaticRNN and DynamicRNN."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol, Self

from fluidnb import layers
from fluidnb.compat.words import as_float, called
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layers.control_flow.body import BodyGuard, inside, reads_and_writes
from fluidnb.layers.control_flow.rows import read_instead
from fluidnb.layers.one_op import check_variable
from fluidnb.op import get_op
from fluidnb.op.compile_context import infer_compile
from fluidnb.program import Block, Variable, unique_name
from fluidnb.utils.source_location import warn
from fluidnb.values.dtypes import VarType, dtype_name


class Keeper(Protocol):
    """The network that a `Memory` belongs to."""

    def remembered(self, memory: Memory) -> Variable:
        """Declare one more value from the steps before."""


class Memory:
    """A value that goes from each step of an RNN to the next, like a reference that is read before it is written.

    Attributes:
        name: name of the value from the step before, which it has once the step block is complete.
        before: the values from the step before, from two steps before, …, as far as they were requested.
        after: the new value, None until it is known.
    """

    def __init__(self, rnn: Keeper, init: Variable, name: str | None) -> None:
        check_variable(init, "init", "memory")
        self._rnn = rnn
        self.init, self.name = init, name
        self.before: list[Variable] = []
        self.after: Variable | None = None

    def pre(self, n: int = 1) -> Variable:
        """The value from some steps before; before there were so many steps, what the first step sees."""
        if n < 1:
            raise OpValueError("A memory remembers the steps before.", expected="n from 1 on", received=f"pre(n={n})")
        while len(self.before) < n:
            self.before.append(self._rnn.remembered(self))
        return self.before[n - 1]

    pre_state = pre

    def update(self, value: Variable) -> None:
        """Say what the memory becomes."""
        check_variable(value, "value", "update")
        self.after = value


def sequences(body: Block, given: Sequence[Variable]) -> Iterator[Variable]:
    """The sequences of the blocks around that a step reads, or gives as they are."""
    names = dict.fromkeys([*reads_and_writes(body)[0], *(v.name for v in given if v.block is not body)])
    for name in names:
        x = body.var_recursive(name)
        if x.type == VarType.LOD_TENSOR and x.lod_level and not x.persistable:
            yield x


def warn_about(x: Variable) -> None:
    """Warns that a sequence is interpreted as its value at the current step."""
    warn(
        f"The step of the RNN uses {x.name}, a sequence, without taking its step: that is done for it. "
        f"Write {x.name}.as_step_input() or rnn.step_input({x.name}), and use what it gives."
    )


def at_front(body: Block, make: Callable[[], Variable]) -> Variable:
    """Append operators as always, then bring them to the front of the step block."""
    count = len(body.desc.ops)
    result = make()
    for place, op in enumerate(body.desc.remove_op(count, len(body.desc.ops))):
        body.desc.insert_op(place, op)
    return result


def infer_again(body: Block) -> None:
    """Infer shapes and LoD levels anew, now that steps have taken the place of sequences."""
    for op in body.desc.ops:
        infer_compile(get_op(op.optype), op, body.desc)


#: The networks whose step blocks are open, the innermost last.
_open: list[Rnn] = []


class _Reopened(Exception):
    """Thrown into a block that goes without a trace, since a network of the other kind takes its place."""


class Rnn:
    """A recurrent network as the design documents write it.

    Over sequences, variables with a LoD, it is a `fluid.layers.DynamicRNN`; over what has time as its first axis, a
    `fluid.layers.StaticRNN`. A sequence that its step uses without saying so becomes a step input, with a warning.

    Args:
        output_num: how many results a step gives; None does not count them.

    Example:
        >>> from fluidnb.compat import pd
        >>> x, m = pd.sequence([10, 20, 30]), pd.var(0)
        >>> rnn = pd.rnn()
        >>> with rnn.step() as net:
        ...     now, h = rnn.step_input(x), rnn.memory(init=m)
        ...     total = pd.add(now, rnn.previous_memory(h))
        ...     rnn.update_memory(h, total)
        ...     rnn.output(total)
        >>> pd.evaluate(rnn()).ravel()
        array([10., 30., 60.], dtype=float32)
    """

    def __init__(
        self, inputs: Sequence[Variable] | None = None, output_num: int | None = None, name: str | None = None
    ) -> None:
        self._declared = list(inputs or ())
        for x in self._declared:
            check_variable(x, "inputs", "create_rnn")
        self._output_num, self._name = output_num, name
        #: the network of Fluid that does the work; None before the step block
        self._rnn: layers.DynamicRNN | layers.StaticRNN | None = None
        self._guard: BodyGuard | None = None
        self._body: Block | None = None
        #: step inputs: name of the sequence -> its step
        self._steps: dict[str, Variable] = {}
        self._memories: list[Memory] = []
        self._outputs: list[Variable] = []
        #: values of memories that were requested before there was a step input: variables that nothing writes yet
        self._pending: list[Variable] = []

    # The step block.

    @contextmanager
    def step(self) -> Iterator[Self]:
        """The step net's block: ``with rnn.step(): …``; gives the network itself."""
        if self._rnn is not None:
            raise OpValueError("An RNN has one step block.", expected="rnn.step() once", received="a second block")
        self._enter(dynamic=not self._declared or self._declared[0].lod_level > 0)
        _open.append(self)
        try:
            yield self
        except BaseException:
            self._leave(*sys.exc_info())
            raise
        else:
            self._leave(None, None, None)
        finally:
            _open.remove(self)

    stepnet = step

    def _enter(self, dynamic: bool) -> None:
        self._rnn = layers.DynamicRNN(self._name) if dynamic else layers.StaticRNN(self._name)
        self._guard = self._rnn.block() if isinstance(self._rnn, layers.DynamicRNN) else self._rnn.step()
        self._guard.serve(self, self._complete)
        self._body = self._guard.__enter__()
        self._empty = len(self._body.desc.ops)

    def _leave(self, *error: Any) -> None:
        assert self._guard is not None
        try:
            self._guard.__exit__(*error)
        except BaseException:
            self._forget()
            raise
        if error[0] is not None:
            self._forget()
        self._guard = self._body = None

    def _forget(self) -> None:
        """Nothing of the step block stays."""
        self._rnn = self._guard = self._body = None
        for collection in (self._steps, self._memories, self._outputs, self._pending):
            collection.clear()

    # Inside.

    def step_input(self, x: Variable) -> Variable:
        """One step of a sequence.

        Args:
            x: a sequence with a LoD, or a variable whose first axis is time.
        """
        self._inside("a step input")
        check_variable(x, "x", "step_input")
        if x.name not in self._steps:
            self._be_of_kind(x)
            self._steps[x.name] = self._inside("a step input").step_input(x)
        return self._steps[x.name]

    def set_inputs(self, which: int | Variable) -> Variable:
        """`step_input` of a variable, or of one of those that `create_rnn` was given."""
        if isinstance(which, Variable):
            return self.step_input(which)
        if not isinstance(which, int) or not 0 <= which < len(self._declared):
            raise OpValueError(
                f"The RNN has no input {which!r}.", received=f"set_inputs({which!r})"[:200],
                expected=f"0 to {len(self._declared) - 1}" if self._declared else "create_rnn(inputs=[…])",
            )  # fmt: skip
        return self.step_input(self._declared[which])

    def memory(self, init: Variable, name: str | None = None) -> Memory:
        """A value that goes from each step to the next.

        Args:
            init: what the first step sees: a row for each sequence, or one, [width], for all of them.

        Returns:
            The memory: ``h.pre()`` reads it, ``h.update(value)`` writes it.
        """
        self._inside("a memory")
        new = Memory(self, init, name)
        if init.block is self._body:
            raise OpValueError(
                "What a memory starts with is made outside of the step block.",
                slots=[("init", init.name, dtype_name(init.dtype), init.shape)], expected="a variable made before it",
                received="one of the step block", hint="make it before: with rnn.step(): … begins.",
            )  # fmt: skip
        self._memories.append(new)
        return new

    add_memory = memory

    def previous_memory(self, memory: Memory) -> Variable:
        """The value of a memory from the step before; ``memory.pre()``."""
        return self._own(memory).pre()

    def update_memory(self, memory: Memory, value: Variable) -> None:
        """Say what a memory becomes; ``memory.update(value)``."""
        self._own(memory).update(value)

    def output(self, *outputs: Any) -> None:
        """Give the results of a step; outside, the results of all steps are one variable each.

        Args:
            outputs: variables that the step block sees. A number in front of them is passed over, as the first
                design writes ``set_outputs(0, act, hidden_out)``.
        """
        self._inside("an output")
        results = outputs[1:] if outputs and isinstance(outputs[0], int) else outputs
        for each in results:
            check_variable(each, "an output", "an RNN")
        self._outputs.extend(results)

    set_outputs = output

    def __call__(self) -> Any:
        """The results along time: a variable, or a list of several."""
        if self._rnn is None or self._guard is not None:
            raise OpValueError(
                "An RNN has results after its step block.", expected="with rnn.step(): … before it",
                received="inside the block" if self._rnn is not None else "no block",
            )  # fmt: skip
        return self._rnn()

    def remembered(self, memory: Memory) -> Variable:
        """Declares one more value of a memory; called by `Memory.pre`."""
        rnn = self._inside("a memory")
        if isinstance(rnn, layers.StaticRNN):
            return rnn.memory(init=self._outside(memory))
        if self._steps:
            return self._from_first_step(memory)
        assert self._body is not None
        shape, dtype = _rows(memory.init)
        value = self._body.create_var(name=unique_name.generate("memory.pre"), shape=shape, dtype=dtype)
        self._pending.append(value)
        return value

    def _own(self, memory: Any) -> Memory:
        if not isinstance(memory, Memory) or memory not in self._memories:
            raise OpTypeError(
                "This is no memory of the RNN.", expected="what rnn.memory(init=…) gave", received=f"{memory!r}"[:200]
            )
        return memory

    def _inside(self, what: str) -> layers.DynamicRNN | layers.StaticRNN:
        if self._guard is None or self._rnn is None:
            raise OpValueError(
                f"{what[0].upper()}{what[1:]} belongs inside the step block.", expected="with rnn.step(): …",
                received="outside of it",
            )  # fmt: skip
        return self._rnn

    def _be_of_kind(self, x: Variable) -> None:
        """Switches to the kind of network that a step input needs, while the step block is empty."""
        dynamic = x.lod_level > 0
        if dynamic == isinstance(self._rnn, layers.DynamicRNN):
            return
        assert self._body is not None and self._guard is not None
        if self._steps or self._pending or len(self._body.desc.ops) > self._empty:
            raise OpValueError(
                f"The RNN steps through {'what has no' if dynamic else 'sequences with a'} LoD, and {x.name} differs.",
                slots=[("x", x.name, dtype_name(x.dtype), x.shape)],
                expected="lod_level 0" if dynamic else "lod_level 1 or more", received=f"lod_level {x.lod_level}",
                hint="say the step inputs first in the block, or name them in create_rnn(inputs=[…]).",
            )  # fmt: skip
        with suppress(_Reopened):
            self._guard.__exit__(_Reopened, _Reopened(), None)
        self._enter(dynamic)

    # Its end.

    def _complete(self) -> None:
        rnn, body = self._inside("the end"), self._body
        assert body is not None
        if isinstance(rnn, layers.DynamicRNN):
            self._declare_what_was_used(rnn, body)
        for memory in self._memories:
            _link(rnn, memory)
        if not self._outputs or self._output_num not in (None, len(self._outputs)):
            raise OpValueError(
                "A step of the RNN gives other results.", expected=f"{self._output_num or 'some'} by rnn.output(…)",
                received=f"{len(self._outputs) or 'no'} outputs",
            )  # fmt: skip
        rnn.output(*self._outputs)
        for memory in self._memories:
            if memory.before:
                called(memory.before[0], memory.name)

    def _declare_what_was_used(self, rnn: layers.DynamicRNN, body: Block) -> None:
        """Sequences that the step used as they are become step inputs, and memories get their operators."""
        results = [*self._outputs, *(m.after for m in self._memories if m.after is not None)]
        for x in sequences(body, results):
            warn_about(x)
            step = self._steps[x.name] = at_front(body, partial(rnn.step_input, x))
            self._use(step, x)
        for memory in self._memories:
            for value in [v for v in memory.before if any(v is p for p in self._pending)]:
                self._use(at_front(body, partial(self._from_first_step, memory)), value)
                body.remove_var(value.name)
        infer_again(body)

    def _use(self, new: Variable, old: Variable) -> None:
        """Let the step read another variable, and give it where it gave the first one."""
        assert self._body is not None
        read_instead(self._body, old.name, new.name)
        self._outputs = [new if v is old else v for v in self._outputs]
        for memory in self._memories:
            memory.before = [new if v is old else v for v in memory.before]
            memory.after = new if memory.after is old else memory.after

    # What a memory starts with.

    def _outside(self, memory: Memory) -> Variable:
        """The initial value as floats, made in the block around."""
        assert self._body is not None
        with inside(self._body.program, self._body.program.block(self._body.parent_idx)):
            return as_float("memory", memory.init)

    def _from_first_step(self, memory: Memory) -> Variable:
        rnn = self._rnn
        assert isinstance(rnn, layers.DynamicRNN) and self._body is not None
        program = self._body.program
        init = self._outside(memory)
        if not _has_rows(init):
            home = program.block(self._body.parent_idx)
            with inside(program, home):
                one = layers.sequence_first_step(home.var_recursive(next(iter(self._steps))))
                shape, dtype = _rows(init)
                zeros = layers.fill_constant_batch_size_like(one, shape, dtype, 0.0)
                flat = layers.reshape(init, shape[1:]) if len(init.shape) > 1 else init
                init = layers.elementwise_add(zeros, flat)
        return rnn.memory(init=init, need_reorder=True)


def _has_rows(init: Variable) -> bool:
    """Whether an initial value has a row for each sequence, and not one for all."""
    return init.lod_level > 0 or init.shape[0] == -1 or len(init.shape) > 1 and init.shape[0] != 1


def _rows(init: Variable) -> tuple[list[int], str]:
    """Shape and dtype of a memory in the step block of a DynamicRNN."""
    row = init.shape[1:] if _has_rows(init) or len(init.shape) > 1 else init.shape
    dtype = dtype_name(init.dtype)
    return [-1, *row], "float32" if dtype.startswith(("int", "uint")) else dtype


def _link(rnn: Any, memory: Memory) -> None:
    """Say what becomes of a memory: its new value, and of the older ones what the next younger one was."""
    if not memory.before:
        return
    if memory.after is None:
        raise OpValueError(
            "A memory should be updated in every step.", expected="rnn.update_memory(h, value), or h.update(value)",
            slots=[("memory", memory.name or memory.before[0].name, None, None)], received="no new value",
        )  # fmt: skip
    for old, new in zip(memory.before, [memory.after, *memory.before], strict=False):
        # One sequence's row may have lost its axis on the way, as in a product of two numbers [1].
        fits = len(old.shape) == len(new.shape)
        rnn.update_memory(old, new if fits else layers.reshape(new, list(old.shape)))


def rnn(name: str | None = None) -> Rnn:
    """A recurrent network; `Rnn`."""
    return Rnn(name=name)


def create_rnn(inputs: Sequence[Variable] | None = None, name: str | None = None) -> Rnn:
    """A recurrent network over inputs that are counted; `Rnn`."""
    return Rnn(inputs, name=name)


def create_rnn_op(output_num: int, name: str | None = None) -> Rnn:
    """A recurrent network whose outputs are counted; `Rnn`."""
    return Rnn(output_num=output_num, name=name)


def as_step_input(x: Variable) -> Variable:
    """One step of a sequence in the innermost open RNN; ``x.as_step_input()`` once `fluidnb.compat.install` ran."""
    if not _open:
        raise OpValueError(
            "as_step_input belongs inside the step block of an RNN.", expected="with rnn.step(): …",
            received="outside of it", hint="rnn = pd.rnn() makes one.",
        )  # fmt: skip
    return _open[-1].step_input(x)
