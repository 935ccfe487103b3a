"""DynamicRNN: a step net that runs along sequences of several lengths, without padding."""

from collections.abc import Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import EnforceNotMet, OpAssertionError, OpValueError
from fluidnb.initializer.constants import number_attrs
from fluidnb.layer_helper import LayerHelper
from fluidnb.layers.array import array_read, array_to_lod_tensor, array_write, shrink_memory
from fluidnb.layers.compare import less_than
from fluidnb.layers.control_flow.body import BodyGuard, check_keeps_shape, check_made_outside, inside, operand
from fluidnb.layers.control_flow.while_loop import While
from fluidnb.layers.creation import fill_constant
from fluidnb.layers.math import increment
from fluidnb.program import Block, Variable, unique_name
from fluidnb.values.dtypes import VarType, var_type


@checked
class DynamicRNN:
    """A recurrent network over sequences of several lengths.

    A method that is called at the wrong time, outside of the block for example, raises OpValueError; a memory without a
    new value at its end OpAssertionError.

    The sequences are ranked by length. Each step takes the next row of every unfinished sequence, so the batch
    shrinks from step to step; the results come back as sequences in the first order. All of it is a while loop over
    arrays.

    Args:
        name: name of the layer.

    Attributes:
        lod_rank_table: the ranks, None before the first `step_input`.
        max_seq_len: number of steps, int64 [1].
        step_idx: the step, int64 [1].
        outputs: what `__call__` gives.

    Example:
        >>> x = fluid.layers.data("x", [1], lod_level=1)
        >>> rnn = fluid.layers.DynamicRNN()
        >>> with rnn.block() as body:
        ...     word, total = rnn.step_input(x), rnn.memory(shape=[1], value=0.0)
        ...     more = fluid.layers.elementwise_add(word, total)
        ...     rnn.update_memory(total, more)
        ...     rnn.output(more)
        >>> sums = rnn()
        >>> feed = {"x": fluid.create_lod_tensor(np.ones((5, 1), "float32"), [[2, 3]], fluid.CPUPlace())}
        >>> [out] = fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[sums], return_numpy=False)
        >>> np.array(out).ravel(), out.lod()
        (array([1., 2., 1., 2., 3.], dtype=float32), LoD([[0, 2, 5]]))

    Source: developer guide, section on RNNs.
    """

    BEFORE_RNN, IN_RNN, AFTER_RNN = range(3)

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self._clear()

    def _clear(self) -> None:
        self.status = self.BEFORE_RNN
        self.lod_rank_table: Variable | None = None
        self.max_seq_len: Variable | None = None
        self.outputs: list[Variable] = []
        self._level = 0
        self._zero: Variable | None = None
        self._first_input: Variable | None = None
        #: memory in the block -> the array that carries it
        self._memories: dict[str, Variable] = {}
        self._updates: dict[str, Variable] = {}
        self._arrays: list[Variable] = []

    def block(self) -> BodyGuard:
        """The step net's block: ``with rnn.block(): …``; at its end the loop is complete."""
        return _RnnGuard(self)

    def _open(self, body: Block) -> None:
        self._body, self.status = body, self.IN_RNN
        home = self._home()
        with inside(home.program, home):
            self.step_idx = fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self.step_idx.stop_gradient = False
        self.cond = home.create_var(
            name=unique_name.generate(f"{self.helper.name}.tmp"), dtype="bool", stop_gradient=True
        )
        self._loop = While(self.cond)

    # Inside the block.

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """The rows that a step reads, one of each unfinished sequence.

        Args:
            x: sequences, made outside. All that are stepped through have the same lengths.
            level: which level's sequences are stepped through; the levels below stay inside a step.

        Returns:
            [k, ...], for the k unfinished sequences.
        """
        self._inside("step_input")
        check_made_outside(self._home(), x, "x", "step_input")
        if x.op is None and x.lod_level <= level:
            raise OpValueError(
                "step_input() takes sequences.", slots=[operand("x", x)], expected=f"lod_level {level + 1} or more",
                received=f"lod_level {x.lod_level}", hint=f'layers.data("{x.name}", …, lod_level=1) declares them.',
            )  # fmt: skip
        home = self._home()
        if self.lod_rank_table is None:
            self._rank(x, level)
        elif level != self._level:
            raise OpValueError(
                "All inputs of a network are stepped through at one level.", slots=[operand("x", x)],
                expected=f"level {self._level}, as the first", received=f"level {level}",
                hint="the first step_input says how the sequences are ranked.",
            )  # fmt: skip
        array = self._declare("dynamic_rnn_input_array", VarType.LOD_TENSOR_ARRAY, x.dtype)
        home.append_op(
            type="lod_tensor_to_array", inputs={"X": [x], "RankTable": [self.lod_rank_table]}, outputs={"Out": [array]}
        )
        if self._first_input is None:
            self._first_input = array
        return array_read(array=array, i=self.step_idx)

    def _rank(self, x: Variable, level: int) -> None:
        """The first input says which sequences there are, and so how many steps."""
        home = self._home()
        table = self._declare("lod_rank_table", VarType.LOD_RANK_TABLE)
        home.append_op(type="lod_rank_table", inputs={"X": [x]}, outputs={"Out": [table]}, attrs={"level": level})
        self.max_seq_len = self._declare("dynamic_rnn_max_seq_len", dtype="int64")
        home.append_op(type="max_sequence_len", inputs={"RankTable": [table]}, outputs={"Out": [self.max_seq_len]})
        home.append_op(
            type="less_than", inputs={"X": [self.step_idx], "Y": [self.max_seq_len]}, outputs={"Out": [self.cond]},
            attrs={"force_cpu": True},
        )  # fmt: skip
        self.lod_rank_table, self._level = table, level

    def static_input(self, x: Variable) -> Variable:
        """A variable that every step reads whole, without the rows of finished sequences.

        Args:
            x: a row, or a sequence, for each sequence that is stepped through; made outside.

        Returns:
            Its rows for the unfinished sequences, in the order of the network.
        """
        self._inside("static_input")
        check_made_outside(self._home(), x, "x", "static_input")
        if self.lod_rank_table is None:
            raise EnforceNotMet(
                "static_input() must be called after step_input().", expected="rnn.step_input(…) before it",
                received="no step_input", hint="the sequences say in which order the rows are needed.",
            )  # fmt: skip
        ranked = self._reordered(x, "dynamic_rnn_static_input_reordered")
        return shrink_memory(ranked, self.step_idx, self.lod_rank_table)

    def _reordered(self, x: Variable, name: str) -> Variable:
        assert self.lod_rank_table is not None
        ranked = self._declare(name, dtype=x.dtype)
        self._home().append_op(
            type="reorder_lod_tensor_by_rank", inputs={"X": [x], "RankTable": [self.lod_rank_table]},
            outputs={"Out": [ranked]},
        )  # fmt: skip
        return ranked

    def memory(
        self, init: Variable | None = None, shape: Sequence[int] | None = None, value: float = 0.0,
        need_reorder: bool = False, dtype: Any = "float32",
    ) -> Variable:  # fmt: skip
        """A value passed from each step to the next, with a row for each unfinished sequence.

        Args:
            init: what the first step sees, made outside, a row for each sequence; None makes a constant.
            shape: the sizes of a row without ``init``.
            value: the constant.
            need_reorder: whether the rows of ``init`` are in the order of the batch, rather than that of the ranks.
            dtype: the dtype without ``init``.

        Returns:
            The value from the step before. Its new value is said by `update_memory`.
        """
        self._inside("memory")
        if self.lod_rank_table is None:
            text = "step_input should be invoked before memory(shape=..., value=...)"
            if init is not None:
                text = "step_input should be invoked before memory(init=...)"
            if init is not None and need_reorder:
                text = (
                    "If set need_reorder to True, make sure step_input be invoked before "
                    "memory(init=init, need_reordered=True, ...)."
                )
            raise OpValueError(
                text, expected="rnn.step_input(…) before it", received="no step_input",
                hint="the sequences say how many rows a memory has.",
            )  # fmt: skip
        home = self._home()
        if init is None:
            init = self._constant(shape, value, dtype)
        else:
            check_made_outside(self._home(), init, "init", "memory")
            if need_reorder:
                init = self._reordered(init, "dynamic_rnn_mem_init_reordered")
        array = self._declare("dynamic_rnn_mem_array", VarType.LOD_TENSOR_ARRAY, init.dtype)
        home.append_op(type="write_to_array", inputs={"X": [init], "I": [self._first()]}, outputs={"Out": [array]})
        before = shrink_memory(array_read(array=array, i=self.step_idx), self.step_idx, self.lod_rank_table)
        self._memories[before.name] = array
        return before

    def _constant(self, shape: Sequence[int] | None, value: float, dtype: Any) -> Variable:
        """A constant with a row for each sequence, of which there are as many as the first step has rows."""
        if shape is None:
            raise OpValueError(
                "memory takes what it starts with.", expected="memory(init=…) or memory(shape=[…], value=…)",
                received="neither init nor shape", hint="shape is that of a row, without the batch.",
            )  # fmt: skip
        home, array = self._home(), self._first_input
        assert array is not None
        start = self._declare("mem_init", dtype=dtype)
        rows = self._declare("in0", dtype=array.dtype)
        start.stop_gradient = rows.stop_gradient = True
        home.append_op(type="read_from_array", inputs={"X": [array], "I": [self._first()]}, outputs={"Out": [rows]})
        home.append_op(
            type="fill_constant_batch_size_like", inputs={"Input": [rows]}, outputs={"Out": [start]},
            attrs={"shape": [-1, *shape], "dtype": int(var_type(dtype)), **number_attrs(value, dtype)},
        )  # fmt: skip
        return start

    def _first(self) -> Variable:
        """The index of the first step."""
        if self._zero is None:
            self._zero = self._declare("zero_idx", dtype="int64")
            self._home().append_op(
                type="fill_constant", outputs={"Out": [self._zero]},
                attrs={"shape": [1], "dtype": int(VarType.INT64), "value": 0.0, "force_cpu": True},
            )  # fmt: skip
        return self._zero

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Say what a memory becomes.

        Args:
            ex_mem: the memory, as `memory` gave it.
            new_mem: its new value, rows of the same shape.
        """
        self._inside("update_memory")
        if self.lod_rank_table is None or ex_mem.name not in self._memories:
            missing = "step_input" if self.lod_rank_table is None else "memory"
            raise OpValueError(
                f"Please invoke {missing} before update_memory", expected="what rnn.memory(…) gave",
                received=ex_mem.name, hint="update_memory(memory, value): the memory comes first.",
            )  # fmt: skip
        check_keeps_shape(ex_mem, new_mem, ("ex_mem", "new_mem"))
        self._updates[ex_mem.name] = new_mem

    def output(self, *outputs: Variable) -> None:
        """Give results of the step; outside, the results of all steps are sequences.

        Args:
            outputs: [k, ...] each, rows of the k unfinished sequences.
        """
        self._inside("output")
        for each in outputs:
            name = f"{self.helper.name}_output_array_{each.name}"
            array = self._declare(name, VarType.LOD_TENSOR_ARRAY, each.dtype)
            array_write(x=each, i=self.step_idx, array=array)
            self._arrays.append(array)

    def _declare(self, name: str, type: VarType = VarType.LOD_TENSOR, dtype: Any = None) -> Variable:
        """A variable around the block, under Fluid's name for it."""
        return self._home().create_var(name=unique_name.generate(name), type=type, dtype=dtype)

    def _inside(self, method: str) -> None:
        if self.status != self.IN_RNN:
            raise OpValueError(
                f"{method} can only be invoked inside rnn block.", expected="with rnn.block(): …",
                received="outside of it",
                hint="what is the same in every step can be made before the block, with layers.",
            )  # fmt: skip

    def _home(self) -> Block:
        return self._body.program.block(self._body.parent_idx)

    # Its end.

    def _complete(self, body: Block) -> None:
        if self.lod_rank_table is None or self.max_seq_len is None:
            raise OpValueError(
                "The dynamic RNN has no step input.", expected="rnn.step_input(x) in the block", received="none",
                hint="sequences say how many steps there are; for a loop without them take layers.While.",
            )  # fmt: skip
        for name in self._memories:
            if name not in self._updates:
                raise OpAssertionError(
                    f"{name} should be updated in every step.", slots=[operand("memory", body.var(name))],
                    expected="rnn.update_memory(memory, value)", received="a memory without a new value",
                    hint="what stays the same in every step is a static_input.",
                )  # fmt: skip
        increment(x=self.step_idx, value=1.0, in_place=True)
        for name, new in self._updates.items():
            array_write(x=new, i=self.step_idx, array=self._memories[name])
        less_than(x=self.step_idx, y=self.max_seq_len, force_cpu=True, cond=self.cond)
        self._loop.complete(body)
        home = self._home()
        with inside(home.program, home):
            self.outputs = [array_to_lod_tensor(x=array, table=self.lod_rank_table) for array in self._arrays]
        self.status = self.AFTER_RNN

    def __call__(self) -> Variable | list[Variable]:
        """The outputs of all steps, as sequences.

        Returns:
            The result, or a list of them when there are several.
        """
        if self.status != self.AFTER_RNN:
            raise OpValueError(
                "Output of the dynamic RNN can only be visited outside the rnn block.",
                expected="with rnn.block(): … before it",
                received="inside the block" if self.status == self.IN_RNN else "no block",
                hint="rnn() comes after the with.",
            )  # fmt: skip
        if not self.outputs:
            raise OpValueError(
                "RNN has no output", expected="rnn.output(…) in the block", received="no output",
                hint="only outputs are seen outside.",
            )  # fmt: skip
        return self.outputs[0] if len(self.outputs) == 1 else list(self.outputs)


class _RnnGuard(BodyGuard):
    """The ``with`` of a `DynamicRNN`."""

    def __init__(self, rnn: DynamicRNN) -> None:
        self._rnn = rnn
        self._check_start()
        super().__init__(rnn.helper, rnn._complete, rnn._clear)

    def _check_start(self) -> None:
        if self._rnn.status != DynamicRNN.BEFORE_RNN:
            raise OpValueError(
                "rnn.block() can only be invoke once", expected="one block", received="a second one",
                hint="a second network is a second DynamicRNN().",
            )  # fmt: skip

    def __enter__(self) -> Block:
        body = super().__enter__()
        self._rnn._open(body)
        return body
