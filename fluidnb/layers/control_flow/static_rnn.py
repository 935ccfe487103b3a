"""StaticRNN: a step net that runs along sequences of one length, with memories from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from fluidnb.arguments import checked
from fluidnb.errors import OpAssertionError, OpTypeError, OpValueError, typed
from fluidnb.initializer.constants import number_attrs
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.control_flow.body import (
    BodyGuard,
    check_keeps_shape,
    check_made_outside,
    operand,
    reads_and_writes,
    step_scopes,
)
from fluidnb.layers.creation import assign
from fluidnb.layers.shape import slice as part_of
from fluidnb.layers.shape import squeeze
from fluidnb.program import Block, Program, Variable, program_guard, unique_name
from fluidnb.program import layer_calls as naming


@dataclass
class StaticRNNMemoryLink:
    """A memory of a `StaticRNN`."""

    init: Variable  # what it starts with, outside
    pre_mem: Variable  # its value from the step before, in the step block
    mem: Variable | None = None  # its new value, in the step block; None until it is known


@checked
class StaticRNN:
    """A recurrent network over sequences of one length: the first axis is time.

    A method that is called at the wrong time, outside of the block for example, raises OpValueError; a memory without a
    new value at its end OpAssertionError.

    Args:
        name: name of the layer.
        main_program: the program that it adds to; default the main program.

    Attributes:
        memories: name of a memory in the step block -> its link.
        inputs: the steps of the sequences, in the step block.
        outputs: what `__call__` gives.
        seq_len: number of steps, -1 when known only in a run, None without a sequence.

    Example:
        >>> x = fluid.layers.data("x", [3, 2, 4], append_batch_size=False)
        >>> start = fluid.layers.zeros([2, 5], "float32")
        >>> rnn = fluid.layers.StaticRNN()
        >>> with rnn.step() as body:
        ...     word, before = rnn.step_input(x), rnn.memory(init=start)
        ...     hidden = fluid.layers.fc([word, before], 5, act="tanh")
        ...     rnn.update_memory(before, hidden)
        ...     rnn.output(hidden)
        >>> rnn().shape
        (3, 2, 5)

    Source: design documents, RNNOp.
    """

    BEFORE_RNN_BLOCK, IN_RNN_BLOCK, AFTER_RNN_BLOCK = range(3)

    def __init__(self, name: str | None = None, main_program: Program | None = None) -> None:
        self.helper = LayerHelper("static_rnn", name=name, main_program=main_program)
        self._clear()

    def _clear(self) -> None:
        self.status = self.BEFORE_RNN_BLOCK
        self.memories: dict[str, StaticRNNMemoryLink] = {}
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.seq_len: int | None = None
        self._results: list[Variable] = []
        self._body: Block | None = None

    def step(self) -> BlockGuardWithCompletion:
        """The step net's block: ``with rnn.step(): …``; at its end the recurrent operator is appended."""
        return BlockGuardWithCompletion(self)

    # Inside the block.

    def step_input(self, x: Variable) -> Variable:
        """One step of a sequence.

        Args:
            x: [T, ...], made outside.

        Returns:
            ``x[t]``, in the step block under the name of ``x``.
        """
        body = self._inside("step_input")
        known = next((i for i in self.inputs if i.name == x.name), None)
        if known is not None:
            return known
        check_made_outside(self._home(), x, "x", "step_input")
        if not x.shape:
            raise OpValueError(
                "step input takes a sequence", slots=[operand("x", x)], expected="[T, ...], time first",
                received="shape []", hint="axis 0 is time.",
            )  # fmt: skip
        length = x.shape[0]
        if self.seq_len not in (None, -1, length) and length != -1:
            raise OpValueError(
                "Static RNN only take fix seq_len input", slots=[operand("x", x)], expected=f"{self.seq_len} steps",
                received=f"{length} steps", hint="axis 0 is time; sequences of several lengths are for DynamicRNN.",
            )  # fmt: skip
        if self.seq_len in (None, -1):
            self.seq_len = length
        step = body.create_var(name=x.name, shape=x.shape[1:], dtype=x.dtype, type=x.type)
        self.inputs.append(step)
        return step

    def memory(
        self, init: Variable | None = None, shape: Sequence[int] | None = None, batch_ref: Variable | None = None,
        init_value: float = 0.0, init_batch_dim_idx: int = 0, ref_batch_dim_idx: int = 1,
    ) -> Variable:  # fmt: skip
        """A value that goes from each step to the next.

        Args:
            init: what the first step sees, made outside; None makes a constant of ``shape``.
            shape: its sizes without ``init``; that of the batch is taken from ``batch_ref``.
            batch_ref: a sequence [T, N, ...], or one of its steps.
            init_value: the constant.
            init_batch_dim_idx: which axis of ``shape`` is the batch.
            ref_batch_dim_idx: which axis of the sequence is the batch.

        Returns:
            The value from the step before. Its new value is said by `update_memory`.
        """
        body = self._inside("memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise OpValueError(
                    "if init is None, memory at least need shape and batch_ref", expected="memory(init=…) or "
                    "memory(shape=[-1, …], batch_ref=…)", received=f"shape={shape!r}, batch_ref={batch_ref!r}"[:200],
                    hint="batch_ref, a sequence or its step, says how large the batch is.",
                )  # fmt: skip
            init = self._constant(list(shape), batch_ref, init_value, init_batch_dim_idx, ref_batch_dim_idx)
        check_made_outside(self._home(), init, "init", "memory")
        before = body.create_var(
            name=unique_name.generate(f"{self.helper.name}@mem"), dtype=init.dtype, shape=init.shape
        )
        self.memories[before.name] = StaticRNNMemoryLink(init, before)
        return before

    def _constant(self, shape: list[int], ref: Variable, value: float, axis: int, ref_axis: int) -> Variable:
        """The initial value of a memory, created outside with the batch size of the sequence of ``ref``."""
        home = self._home()
        whole = home.find_var_recursive(ref.name)  # a step has the name of its sequence
        check_made_outside(home, ref if whole is None else whole, "batch_ref", "memory")
        boot = home.create_var(
            name=unique_name.generate(f"{self.helper.name}@memory_boot"), shape=shape, dtype=ref.dtype,
            stop_gradient=True,
        )  # fmt: skip
        home.append_op(
            type="fill_constant_batch_size_like", inputs={"Input": [ref.name]}, outputs={"Out": [boot]},
            attrs={
                "shape": shape, "dtype": int(boot.dtype), "input_dim_idx": ref_axis, "output_dim_idx": axis,
                **number_attrs(value, boot.dtype),
            },
        )  # fmt: skip
        return boot

    def update_memory(self, mem: Variable, var: Variable) -> None:
        """Say what a memory becomes.

        Args:
            mem: the memory, as `memory` gave it.
            var: its new value, of the same shape.
        """
        self._inside("update_memory")
        link = self.memories.get(mem.name)
        if link is None:
            raise OpValueError(
                "Please invoke memory before update_memory", expected="what rnn.memory(…) gave", received=mem.name,
                hint="update_memory(memory, value): the memory comes first.",
            )  # fmt: skip
        check_keeps_shape(mem, var, ("mem", "var"))
        link.mem = var

    def step_output(self, o: Variable) -> None:
        """Give a variable that the block sees as a result of the step; outside, those of all steps are one variable."""
        self._inside("step_output")
        self._results.append(o)

    def output(self, *outputs: Variable) -> None:
        """`step_output` of several variables."""
        self._inside("output")
        for each in outputs:
            self.step_output(each)

    def _inside(self, method: str) -> Block:
        if self.status != self.IN_RNN_BLOCK or self._body is None:
            raise OpValueError(
                f"You must invoke {method} in rnn block", expected="with rnn.step(): …", received="outside of it",
                hint="what is the same in every step can be made before the block, with layers.",
            )  # fmt: skip
        return self._body

    def _home(self) -> Block:
        body = self._inside("memory")
        return body.program.block(body.parent_idx)

    # Its end.

    def _complete(self, body: Block) -> None:
        if not self.inputs:
            raise OpValueError(
                "RNN has no step input", expected="rnn.step_input(x) in the block", received="none",
                hint="a sequence says how many steps there are; for a loop without one take layers.While.",
            )  # fmt: skip
        for link in self.memories.values():
            if link.mem is None:
                raise OpAssertionError(
                    f"{link.init.name} should be updated in every step.", slots=[operand("memory", link.pre_mem)],
                    expected="rnn.update_memory(memory, value)", received="a memory without a new value",
                    hint="what stays the same in every step needs no memory.",
                )  # fmt: skip
        home = body.program.block(body.parent_idx)
        # an operator has an output; without one of the user's an unused copy serves as it
        results = self._own_names(body, self._results or self.inputs[:1])
        states = self._states(body, {r.name for r in results})
        reads, _ = reads_and_writes(body)
        outs = [home.create_var(name=r.name, shape=(self.seq_len or -1, *r.shape), dtype=r.dtype) for r in results]
        links = list(self.memories.values())
        home.append_op(
            type="recurrent",
            inputs={"inputs": [i.name for i in self.inputs], "initial_states": [m.init for m in links],
                    "parameters": reads},
            outputs={"outputs": outs, "step_scopes": [step_scopes(home)]},
            attrs={"ex_states": [m.pre_mem.name for m in links], "states": states, "has_states": bool(links),
                   "sub_block": body},
        )  # fmt: skip
        self.outputs, self.status = outs if self._results else [], self.AFTER_RNN_BLOCK

    def _own_names(self, body: Block, results: Sequence[Variable]) -> list[Variable]:
        """Results, each under a name that only the step block has: that of what it becomes outside."""
        taken = {i.name for i in self.inputs} | set(self.memories)
        renamed: list[Variable] = []
        for result in results:
            if result.block is not body or result.name in taken:
                result = assign(result)
            taken.add(result.name)
            renamed.append(result)
        return renamed

    def _states(self, body: Block, results: set[str]) -> list[str]:
        """The new values of the memories, each a variable of the step block that serves nothing else.

        Backward brings a memory's gradient from the next step under the variable's own name, which must not be where
        other gradients of the step meet.
        """
        taken = results | {i.name for i in self.inputs} | set(self.memories)
        taken |= {n for op in body.desc.ops for n in op.input_arg_names()}
        states: list[str] = []
        for link in self.memories.values():
            assert link.mem is not None
            if link.mem.block is not body or link.mem.name in taken:
                link.mem = assign(link.mem)
            taken.add(link.mem.name)
            states.append(link.mem.name)
        return states

    @naming.layer
    def __call__(self, output_all_steps: bool = True) -> Variable | list[Variable]:
        """The outputs of all steps, stacked along time.

        Args:
            output_all_steps: whether the results have all steps, [T, ...], or the last one alone.

        Returns:
            The result, or a list of them when there are several.
        """
        if self.status != self.AFTER_RNN_BLOCK:
            raise OpValueError(
                "RNN output can only be retrieved after rnn block", expected="with rnn.step(): … before it",
                received="inside the block" if self.status == self.IN_RNN_BLOCK else "no block",
                hint="rnn() comes after the with.",
            )  # fmt: skip
        if not self.outputs:
            raise OpValueError(
                "RNN has no output", expected="rnn.output(…) in the block", received="no output",
                hint="only outputs are seen outside.",
            )  # fmt: skip
        values = self.outputs
        if not output_all_steps:
            values = [squeeze(part_of(o, axes=[0], starts=[-1], ends=[2**31 - 1]), axes=[0]) for o in values]
        return values[0] if len(values) == 1 else list(values)


class BlockGuardWithCompletion(BodyGuard):
    """The context manager of ``rnn.step()``, under Fluid's name."""

    def __init__(self, rnn: StaticRNN) -> None:
        if not isinstance(rnn, StaticRNN):
            raise OpTypeError(
                "BlockGuardWithCompletion takes a StaticRNN", expected="a StaticRNN",
                received=typed(rnn), hint="or write: with rnn.step(): …",
            )  # fmt: skip
        self._rnn = rnn
        self._check_start()
        super().__init__(rnn.helper, rnn._complete, rnn._clear)

    def _check_start(self) -> None:
        if self._rnn.status != StaticRNN.BEFORE_RNN_BLOCK:
            raise OpValueError(
                "rnn.step() can only be invoked once", expected="one step block", received="a second one",
                hint="a second network is a second StaticRNN().",
            )  # fmt: skip

    def __enter__(self) -> Block:
        self._check_start()  # before its program becomes the default one
        self._program = program_guard(self.main_program)  # which its layers add to
        self._program.__enter__()
        self._rnn._body = super().__enter__()
        self._rnn.status = StaticRNN.IN_RNN_BLOCK
        return self._rnn._body

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._program.__exit__(None, None, None)
