"""Recurrent decoders: the step of a recurrent network is written once, and serves training and beam search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fluidnb.errors import NotFound, OpTypeError, OpValueError, near
from fluidnb.layers.activation import log
from fluidnb.layers.array import array_read, array_write
from fluidnb.layers.compare import is_empty, less_than
from fluidnb.layers.control_flow import DynamicRNN, Switch, While
from fluidnb.layers.control_flow.body import check_is_variable
from fluidnb.layers.creation import fill_constant, fill_constant_batch_size_like
from fluidnb.layers.embedding import embedding
from fluidnb.layers.fc import fc
from fluidnb.layers.math import elementwise_add, increment
from fluidnb.layers.metric import topk
from fluidnb.layers.sequence import lod_reset, sequence_expand
from fluidnb.layers.sequence_labels import beam_search, beam_search_decode
from fluidnb.layers.shape import reshape
from fluidnb.program import Variable

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]


class InitState:
    """The initial value of a state.

    Args:
        init: the value, a row for each sequence; None: a constant.
        shape: of the constant, with -1 for the sequences.
        init_boot: a variable with as many rows as the constant gets.
        need_reorder: whether the rows of ``init`` are in the order of the source, not of the ranks by length.

    Example:
        >>> InitState(fluid.layers.data("context", [4])).value.shape
        (-1, 4)
    """

    def __init__(
        self, init: Variable | None = None, shape: Sequence[int] | None = None, value: float = 0.0,
        init_boot: Variable | None = None, need_reorder: bool = False, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        if init is None:
            if init_boot is None or shape is None:
                raise OpValueError("InitState needs init, or init_boot and shape.", hint="init_boot gives the rows.")
            init = fill_constant_batch_size_like(init_boot, shape=list(shape), dtype=dtype, value=value)
        check_is_variable(init, "InitState takes a Variable.")
        self.value = init
        self.need_reorder = need_reorder


class StateCell:
    """The inputs, the states and the step of a recurrent network, for any decoder.

    Args:
        inputs: name to None, or to a variable; `compute_state` sets them.
        states: name to `InitState`.
        out_state: name of the state from which words are predicted.
        name: ignored (compatibility).
    """

    def __init__(
        self, inputs: Mapping[str, Variable | None], states: Mapping[str, InitState], out_state: str,
        name: str | None = None,
    ) -> None:  # fmt: skip
        for state in states.values():
            if not isinstance(state, InitState):
                raise OpTypeError("A state should be an InitState.", received=f"{state!r}"[:200])
        if out_state not in states:
            raise NotFound(f'There is no state "{out_state}".', hint=near(out_state, states))
        self.initial = dict(states)
        self._inputs = dict(inputs)
        self._out_state = out_state
        self._updater: Callable[[StateCell], None] | None = None
        self._decoder: TrainingDecoder | BeamSearchDecoder | None = None
        self._states: dict[str, Variable] = {}

    def state_updater(self, updater: Callable[[StateCell], None]) -> Callable[[StateCell], None]:
        """Set the step, as a decorator.

        Args:
            updater: a function of the cell that reads inputs and states and sets the new states.
        """
        self._updater = updater
        return updater

    def get_input(self, input_name: str) -> Variable:
        """An input of this step."""
        value = self._inputs.get(input_name)
        if value is None:
            raise NotFound(f'The input "{input_name}" has no value.', hint="compute_state(inputs={...}) sets it.")
        return value

    def get_state(self, state_name: str) -> Variable:
        """A state: of the step before, or after `set_state` the new one."""
        if state_name not in self.initial:
            raise NotFound(f'There is no state "{state_name}".', hint=near(state_name, self.initial))
        if self._decoder is None:
            raise OpValueError("A state has a value inside the block of a decoder only.")
        if state_name not in self._states:
            # All at once, in their order, so that the operators do not depend on the order in which they are read.
            self._states = {name: self._decoder.state(name, init) for name, init in self.initial.items()}
        return self._states[state_name]

    def set_state(self, state_name: str, state_value: Variable) -> None:
        """Set the new value of a state."""
        self.get_state(state_name)
        self._states[state_name] = state_value

    def compute_state(self, inputs: Mapping[str, Variable]) -> None:
        """Run the step.

        Args:
            inputs: name to the variable of this step.
        """
        for name, value in inputs.items():
            if name not in self._inputs:
                raise NotFound(f'There is no input "{name}".', hint=near(name, self._inputs))
            self._inputs[name] = value
        if self._updater is None:
            raise OpValueError("The cell has no step.", hint="decorate a function with @cell.state_updater.")
        self._updater(self)

    def update_states(self) -> None:
        """Keep the new states for the next step."""
        for name in self.initial:
            value = self.get_state(name)
            assert self._decoder is not None
            self._decoder.keep(name, value)

    def out_state(self) -> Variable:
        """The state from which words are predicted."""
        return self.get_state(self._out_state)

    def _enter(self, decoder: TrainingDecoder | BeamSearchDecoder) -> None:
        if self._decoder is not None:
            raise OpValueError("The cell is inside another decoder.")
        self._decoder = decoder

    def _leave(self) -> None:
        self._decoder, self._states = None, {}

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return list(self._inputs)


class TrainingDecoder:
    """A decoder that reads the true words: a `DynamicRNN` with the states of a cell.

    Args:
        state_cell: the cell.
        name: ignored (compatibility).

    Example:
        >>> words = fluid.layers.data("words", [3], lod_level=1)
        >>> cell = StateCell({"x": None}, {"h": InitState(fluid.layers.data("context", [4]), need_reorder=True)}, "h")
        >>> @cell.state_updater
        ... def step(cell):
        ...     cell.set_state("h", fluid.layers.fc([cell.get_state("h"), cell.get_input("x")], 4, act="tanh"))
        >>> decoder = TrainingDecoder(cell)
        >>> with decoder.block():
        ...     decoder.state_cell.compute_state(inputs={"x": decoder.step_input(words)})
        ...     decoder.output(fluid.layers.fc(cell.out_state(), 9, act="softmax"))
        ...     decoder.state_cell.update_states()
        >>> decoder().shape
        (-1, 9)
    """

    def __init__(self, state_cell: StateCell, name: str | None = None) -> None:
        self.state_cell = state_cell
        self.dynamic_rnn = DynamicRNN()
        self._memories: dict[str, Variable] = {}

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block of one step."""
        self.state_cell._enter(self)
        try:
            with self.dynamic_rnn.block():
                yield
        finally:
            self.state_cell._leave()

    def step_input(self, x: Variable) -> Variable:
        """See `DynamicRNN.step_input`."""
        return self.dynamic_rnn.step_input(x)

    def static_input(self, x: Variable) -> Variable:
        """See `DynamicRNN.static_input`."""
        return self.dynamic_rnn.static_input(x)

    def output(self, *outputs: Variable) -> None:
        """See `DynamicRNN.output`."""
        self.dynamic_rnn.output(*outputs)

    def __call__(self) -> Any:
        """The outputs of all steps, as sequences."""
        return self.dynamic_rnn()

    def state(self, name: str, init: InitState) -> Variable:
        """The memory of a state, for `StateCell`."""
        self._memories[name] = self.dynamic_rnn.memory(init=init.value, need_reorder=init.need_reorder)
        return self._memories[name]

    def keep(self, name: str, value: Variable) -> None:
        """Keep the new value of a state, for `StateCell`."""
        self.dynamic_rnn.update_memory(self._memories[name], value)


class BeamSearchDecoder:
    """A decoder that searches the words: a `While` loop with a beam of sentences for each source.

    Args:
        state_cell: the cell.
        init_ids: int64 [sources, 1] with two levels of LoD: the first word of each.
        init_scores: float32 [sources, 1] with two levels of LoD: their scores.
        target_dict_dim: how many words there are.
        word_dim: the size of a word's embedding.
        input_var_dict: name of an input of the cell -> its value, a row or a sequence for each source.
        topk_size: number of candidate words kept per prefix at each step.
        sparse_emb: whether the gradient of the embedding is sparse.
        max_len: the greatest number of words.
        beam_size: how many sentences a source keeps.
        end_id: the word that ends a sentence.
        name: ignored (compatibility).

    Example:
        >>> cell = StateCell({"x": None}, {"h": InitState(fluid.layers.data("context", [4]))}, "h")
        >>> @cell.state_updater
        ... def step(cell):
        ...     cell.set_state("h", fluid.layers.fc([cell.get_state("h"), cell.get_input("x")], 4, act="tanh"))
        >>> ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=2)
        >>> scores = fluid.layers.data("scores", [1], lod_level=2)
        >>> decoder = BeamSearchDecoder(cell, ids, scores, 9, 3, topk_size=5, max_len=4, beam_size=2)
        >>> decoder.decode()
        >>> [variable.lod_level for variable in decoder()]
        [2, 2]
    """

    def __init__(
        self, state_cell: StateCell, init_ids: Variable, init_scores: Variable, target_dict_dim: int, word_dim: int,
        input_var_dict: Mapping[str, Variable] | None = None, topk_size: int = 50, sparse_emb: bool = True,
        max_len: int = 100, beam_size: int = 1, end_id: int = 1, name: str | None = None,
    ) -> None:  # fmt: skip
        self.state_cell = state_cell
        self._start = {"init ids": init_ids, "init scores": init_scores}
        self._given = dict(input_var_dict or {})
        for input_name in self._given:
            if input_name not in state_cell.input_names:
                raise NotFound(f'The cell has no input "{input_name}".', hint=near(input_name, state_cell.input_names))
        self._sizes = (target_dict_dim, word_dim)
        self._topk_size, self._sparse, self._beam_size, self._end_id = topk_size, sparse_emb, beam_size, end_id
        self._counter = fill_constant([1], "int64", 0)
        self._limit = fill_constant([1], "int64", max_len)
        self._going = less_than(self._counter, self._limit)
        self._loop = While(self._going)
        #: name of what a step reads -> the array that carries it, and the array's new value
        self._arrays: dict[str, Variable] = {}
        self._links: list[tuple[Variable, Variable]] = []
        # The arrays begin before the loop.
        initial = {**self._start, **self._given, **{f"state {n}": s.value for n, s in state_cell.initial.items()}}
        for key, value in initial.items():
            check_is_variable(value, f'"{key}" of a beam search takes a Variable.')
            self._arrays[key] = array_write(value, self._counter)

    @contextmanager
    def block(self) -> Iterator[None]:
        """The block of one decoding step; new values are kept at its end unless the search has finished."""
        self.state_cell._enter(self)
        try:
            with self._loop.block():
                yield
                with Switch() as switch:
                    with switch.case(self._going):
                        increment(self._counter, value=1.0, in_place=True)
                        for value, array in self._links:
                            array_write(value, self._counter, array=array)
                        less_than(self._counter, self._limit, cond=self._going)
        finally:
            self.state_cell._leave()

    def decode(self) -> None:
        """Append the whole search: embedding, step of the cell, scores of words, choice of the best sentences."""
        with self.block():
            ids, scores = (array_read(self._arrays[key], self._counter) for key in self._start)
            vectors = embedding(ids, size=list(self._sizes), is_sparse=self._sparse)
            feed = {key: sequence_expand(array_read(self._arrays[key], self._counter), scores) for key in self._given}
            self._expand = scores
            inputs = {**dict.fromkeys(self.state_cell.input_names, vectors), **feed}
            self.state_cell.compute_state(inputs)
            state = lod_reset(self.state_cell.out_state(), y=scores)
            best, words = topk(fc(state, size=self._sizes[0], act="softmax"), k=self._topk_size)
            total = elementwise_add(log(best), reshape(scores, shape=[-1]), axis=0)
            chosen = beam_search(ids, scores, words, total, self._beam_size, end_id=self._end_id, level=0)
            with Switch() as switch:
                with switch.case(is_empty(chosen[0])):
                    self.early_stop()
                with switch.default():
                    self.state_cell.update_states()
                    self._links += [(chosen[0], self._arrays["init ids"]), (chosen[1], self._arrays["init scores"])]
                    self._links += [(value, self._arrays[key]) for key, value in feed.items()]

    def early_stop(self) -> None:
        """End the loop after this step."""
        fill_constant([1], "bool", 0, force_cpu=True, out=self._going)

    def __call__(self) -> tuple[Variable, Variable]:
        """The sentences that were found.

        Returns:
            (words, scores), both with two levels of LoD: sources, and sentences of each.
        """
        return beam_search_decode(self._arrays["init ids"], self._arrays["init scores"], self._beam_size, self._end_id)

    def state(self, name: str, init: InitState) -> Variable:
        """The state of the sentences in the beam, for `StateCell`."""
        return sequence_expand(array_read(self._arrays[f"state {name}"], self._counter), self._expand)

    def keep(self, name: str, value: Variable) -> None:
        """Keep the new value of a state, for `StateCell`."""
        self._links.append((value, self._arrays[f"state {name}"]))
