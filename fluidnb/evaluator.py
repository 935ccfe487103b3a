"""Evaluators: metrics that the program itself adds up, over all batches of a pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb import layers, metrics
from fluidnb.arguments import Checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpValueError
from fluidnb.initializer import Constant
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import Program, Variable, program_guard, unique_name
from fluidnb.runtime import Executor
from fluidnb.values import CPUPlace

__all__ = ["Accuracy", "ChunkEvaluator", "DetectionMAP", "EditDistance", "Evaluator"]


class Evaluator(Checked):
    """The base of evaluators: it adds operators to the main program that count into persistable variables.

    Args:
        name: the start of the names of its variables.
        kwargs: ``main_program`` and ``startup_program``, where they are not the default ones.

    Raises:
        OpValueError: it is made inside a sub-block.

    Attributes:
        states: the variables that count; the startup program and ``reset`` set them to 0.
        metrics: variables to fetch: the metric of the batch that runs.

    Example:
        >>> class Rows(fluid.evaluator.Evaluator):
        ...     def __init__(self, input):
        ...         super().__init__("rows")
        ...         self.count = self.create_state("count", "int64", [1])
        ...         fluid.layers.increment(self.count, 1.0)
        ...     def eval(self, executor=None, eval_program=None):
        ...         return self.values(executor, [self.count])[0]
        >>> rows = Rows(fluid.layers.data("x", [3]))
        >>> rows.reset()
        >>> out = fluid.Executor(fluid.CPUPlace()).run()
        >>> rows.eval()
        array([1])

    Source: developer guide, frequent questions.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.helper = LayerHelper(name, **kwargs)
        if self.helper.main_program.current_block_idx != 0:
            raise OpValueError(
                "You can only invoke Evaluator in root block", expected="block 0",
                received=f"block {self.helper.main_program.current_block_idx}",
                hint="make it before or after the loop or branch.",
            )  # fmt: skip
        self.states: list[Variable] = []
        self.metrics: list[Variable] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(state.name for state in self.states)})"

    def create_state(self, suffix: str, dtype: Any, shape: Sequence[int]) -> Variable:
        """A persistable variable that counts; it starts at 0, and its name ends in the suffix."""
        name = f"{unique_name.generate(self.helper.name)}_{suffix}"
        state = self.helper.create_global_variable(True, name=name, dtype=dtype, shape=list(shape), stop_gradient=True)
        self.helper.set_variable_initializer(state, Constant(0.0))
        self.states.append(state)
        return state

    _create_state = create_state  # 1.x's name

    def reset(self, executor: Executor | None = None, reset_program: Program | None = None) -> None:
        """Set all counts to 0, as at the start of a pass.

        Args:
            executor: runs it; None for one on the CPU.
            reset_program: gets the operators; None for a new program.
        """
        program = Program() if reset_program is None else reset_program
        with program_guard(program, Program()):
            for state in self.states:
                layers.fill_constant(state.shape, state.dtype, 0.0, out=_twin(program, state))
        _executor(executor).run(program)

    def eval(self, executor: Executor | None = None, eval_program: Program | None = None) -> Any:
        """The metric over all batches since the last `reset`.

        Args:
            executor: runs it; None for one on the CPU.
            eval_program: gets what there is to run; None for a new program.
        """
        raise NotImplementedError(f"{type(self).__name__} must define eval(executor, eval_program).")

    def values(
        self, executor: Executor | None, states: Sequence[Variable], eval_program: Program | None = None
    ) -> list[Any]:
        """Values of some of the evaluator's variables.

        Args:
            executor: reads them; None for one on the CPU.
            states: the variables.
            eval_program: gets variables of their names; None for a new program.

        Returns:
            An array for each.
        """
        program = Program() if eval_program is None else eval_program
        return list(_executor(executor).run(program, fetch_list=[_twin(program, state) for state in states]))


def _executor(executor: Executor | None) -> Executor:
    return Executor(CPUPlace()) if executor is None else executor


def _twin(program: Program, state: Variable) -> Variable:
    """The same variable in another program: parameters and counts are known by their names."""
    return program.global_block().create_var(
        name=state.name, shape=state.shape, dtype=state.dtype, type=state.type, persistable=True
    )


class Accuracy(Evaluator):
    """The share of rows, over all batches since the last ``reset``, whose label is among the most probable classes.

    Args:
        input: probabilities or scores [N, classes].
        label: int64 [N, 1].
        k: how many classes count as right.
        kwargs: ``main_program`` and ``startup_program``, where they are not the default ones.

    Example:
        >>> p, label = fluid.layers.data("p", [3]), fluid.layers.data("label", [1], dtype="int64")
        >>> accuracy = fluid.evaluator.Accuracy(input=p, label=label)
        >>> accuracy.reset()
        >>> exe, eye = fluid.Executor(fluid.CPUPlace()), np.eye(3, dtype="float32")
        >>> for labels in ([[0], [1], [2]], [[1], [2], [0]]):
        ...     batch = {"p": eye, "label": np.array(labels)}
        ...     print(exe.run(feed=batch, fetch_list=accuracy.metrics), accuracy.eval(exe))
        [array([1.], dtype=float32)] [1.]
        [array([0.], dtype=float32)] [0.5]

    Source: developer guide, frequent questions.
    """

    def __init__(self, input: Variable, label: Variable, k: int = 1, **kwargs: Any) -> None:
        super().__init__("accuracy", **kwargs)
        main, startup = self.helper.main_program, self.helper.startup_program
        with program_guard(main, startup), all_or_nothing(main, startup):
            self.total = self.create_state("total", "int64", [1])
            self.correct = self.create_state("correct", "int64", [1])
            total, correct = (self.helper.create_tmp_variable("int32", stop_gradient=True) for _ in range(2))
            self.metrics.append(layers.accuracy(input, label, k, correct, total))
            for state, of_batch in ((self.total, total), (self.correct, correct)):
                layers.sums([state, layers.cast(of_batch, "int64")], out=state)

    def eval(self, executor: Executor | None = None, eval_program: Program | None = None) -> np.ndarray[Any, Any]:
        """The accuracy over all batches since the last `reset`, float32 [1].

        Raises:
            OpValueError: there was no batch.
        """
        right, rows = self.values(executor, [self.correct, self.total], eval_program)
        if not rows[0]:
            raise OpValueError(
                "The accuracy of no rows is unknown.", expected="a batch since the last reset()", received="none"
            )
        return np.asarray(right / rows, np.float32)


class ChunkEvaluator(Evaluator):
    """Precision, recall and F1 score of chunks, over all batches since the last ``reset``.

    Args:
        input: int64 [rows, 1] with sequences: the tags found.
        label: alike: the right tags.
        chunk_scheme: ``"IOB"``, ``"IOE"``, ``"IOBES"`` or ``"plain"``.
        num_chunk_types: how many chunk types there are.
        excluded_chunk_types: chunk types that do not count.
        kwargs: ``main_program`` and ``startup_program``, where they are not the default ones.

    Example:
        >>> found, right = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
        >>> chunks = fluid.evaluator.ChunkEvaluator(found, right, "IOB", num_chunk_types=1)
        >>> chunks.reset()
        >>> tags = [fluid.create_lod_tensor(np.array(t).reshape(-1, 1), [[4]], fluid.CPUPlace())
        ...         for t in ([0, 2, 0, 1], [0, 2, 2, 0])]
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=dict(zip(("found", "right"), tags)))
        >>> [float(v[0]) for v in chunks.eval()]
        [0.5, 0.5, 0.5]
    """

    def __init__(
        self, input: Variable, label: Variable, chunk_scheme: str, num_chunk_types: int,
        excluded_chunk_types: Sequence[int] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__("chunk_eval", **kwargs)
        main, startup = self.helper.main_program, self.helper.startup_program
        with program_guard(main, startup), all_or_nothing(main, startup):
            names = "num_infer_chunks", "num_label_chunks", "num_correct_chunks"
            states = self.num_infer_chunks, self.num_label_chunks, self.num_correct_chunks = [
                self.create_state(name, "int64", [1]) for name in names
            ]
            precision, recall, f1, *counts = layers.chunk_eval(
                input, label, chunk_scheme, num_chunk_types, excluded_chunk_types
            )
            self.metrics += [precision, recall, f1]
            for state, of_batch in zip(states, counts, strict=True):
                layers.sums([state, of_batch], out=state)

    def eval(
        self, executor: Executor | None = None, eval_program: Program | None = None
    ) -> tuple[np.ndarray[Any, Any], ...]:
        """Precision, recall and F1 score since the last `reset`, float32 [1] each; 0 where there are no chunks."""
        found, there, right = (int(v[0]) for v in self.values(executor, self.states, eval_program))
        precision, recall = right / found if found else 0.0, right / there if there else 0.0
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return tuple(np.array([v], np.float32) for v in (precision, recall, f1))


class DetectionMAP(metrics.DetectionMAP, Evaluator):
    """Mean average precision of detections, over all batches since the last ``reset``: `fluid.metrics.DetectionMAP`."""


class EditDistance(Evaluator):
    """Edit distance of sequences to the labels, over all batches since the last ``reset``.

    Args:
        input: int64 [rows, 1] with sequences: words found.
        label: int64 [rows, 1] with as many sequences: the right words.
        ignored_tokens: words that are left out first.
        kwargs: ``main_program`` and ``startup_program``, where they are not the default ones.

    Example:
        >>> found, right = (fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("found", "right"))
        >>> distance = fluid.evaluator.EditDistance(found, right)
        >>> distance.reset()
        >>> words = [fluid.create_lod_tensor(np.array(t).reshape(-1, 1), [[2, 2]], fluid.CPUPlace())
        ...          for t in ([1, 2, 3, 4], [1, 2, 3, 5])]
        >>> out = fluid.Executor(fluid.CPUPlace()).run(feed=dict(zip(("found", "right"), words)))
        >>> distance.eval()
        (array([0.25], dtype=float32), array([0.5], dtype=float32))
    """

    def __init__(
        self, input: Variable, label: Variable, ignored_tokens: Sequence[int] | None = None, **kwargs: Any
    ) -> None:
        super().__init__("edit_distance", **kwargs)
        main, startup = self.helper.main_program, self.helper.startup_program
        with program_guard(main, startup), all_or_nothing(main, startup):
            self.total_distance = self.create_state("total_distance", "float32", [1])
            self.seq_num, self.instance_error = (
                self.create_state(name, "int64", [1]) for name in ("seq_num", "instance_error")
            )
            distances, count = layers.edit_distance(input, label, ignored_tokens=ignored_tokens)
            wrong = layers.cast(layers.not_equal(distances, layers.zeros([1], "float32")), "int64")
            of_batch = layers.reduce_sum(distances), count, layers.reduce_sum(wrong)
            self.metrics += [of_batch[0], of_batch[2]]
            for state, value in zip(self.states, of_batch, strict=True):
                layers.sums([state, value], out=state)

    def eval(
        self, executor: Executor | None = None, eval_program: Program | None = None
    ) -> tuple[np.ndarray[Any, Any], ...]:
        """The mean distance and the share of sequences with an error since the last `reset`, float32 [1] each.

        Raises:
            OpValueError: there was no sequence.
        """
        total, count, wrong = self.values(executor, self.states, eval_program)
        if not count[0]:
            raise OpValueError(
                "The distance of no sequences is unknown.", expected="a batch since the last reset()", received="none"
            )
        return np.asarray(total / count, np.float32), np.asarray(wrong / count, np.float32)
