"""The mean of the last values of parameters, to be used in their place when a model is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb import layers
from fluidnb.arguments import Checked
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.optimizer.moving_average import same
from fluidnb.program import Parameter, Program, Variable, default_main_program, program_guard, unique_name
from fluidnb.program.layer_calls import all_or_nothing

if TYPE_CHECKING:
    from fluidnb.runtime import Executor

_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


class ModelAverage(Checked):
    """Means over the last steps of training, of how many is said by a share of all steps and two bounds.

    A parameter that is trained is taken in where ``ParamAttr(do_model_average=True)`` says so. The operators that sum
    go behind those that are there, so it is made after ``minimize``. Without such a parameter nothing is averaged.

    Args:
        average_window_rate: which share of all steps the mean is over.
        min_average_window: the fewest steps that it is over.
        max_average_window: the most steps.
        regularization: accepted for old scripts; a mean decays no weights.
        name: start of the names of the sums.

    Raises:
        OpTypeError: a bound is no whole number.
        OpValueError: the bounds contradict each other.

    Example:
        >>> attr = fluid.ParamAttr(do_model_average=True)
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1, param_attr=attr))
        >>> opt = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> average = fluid.optimizer.ModelAverage(0.15, min_average_window=2, max_average_window=10)
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program())
        >>> out = exe.run(feed={"x": np.ones((1, 2), "float32")})
        >>> with average.apply(exe):
        ...     w = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())

    Source: Fluid's optimizer.ModelAverage.
    """

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: Any = None,
        name: str | None = None,
    ) -> None:
        for argument, value in (("min", min_average_window), ("max", max_average_window)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise OpTypeError(
                    f"{argument}_average_window is a number of steps.", expected="int",
                    received=f"{value!r} ({type(value).__name__})",
                )  # fmt: skip
        if not 0 < min_average_window <= max_average_window:
            raise OpValueError(
                "The smallest window must not be larger than the largest.",
                expected="0 < min_average_window <= max_average_window",
                received=f"{min_average_window} and {max_average_window}",
            )
        block = default_main_program().global_block()
        parameters = [
            p for p in block.all_parameters()
            if p.trainable and p.do_model_average is not False and not p.stop_gradient
        ]  # fmt: skip
        self._name = name or ""
        self._attrs = {
            "average_window": float(average_window_rate), "min_average_window": min_average_window,
            "max_average_window": max_average_window,
        }  # fmt: skip
        with all_or_nothing():
            self._kept = [(p, self._sum(p)) for p in parameters]
        self.apply_program, self.restore_program = Program(), Program()
        for program, fill in ((self.apply_program, _apply_one), (self.restore_program, _restore_one)):
            with program_guard(program, Program()):
                for parameter, state in self._kept:
                    fill(parameter, state)

    def _sum(self, parameter: Parameter) -> dict[str, Variable]:
        """The sums and counts of a parameter; appends the operator that updates them."""
        state: dict[str, Variable] = {}
        for what in (*_SUMS, *_COUNTS):
            shape, dtype = (parameter.shape, parameter.dtype) if what in _SUMS else ([1], "int64")
            name = unique_name.generate(f"{self._name}{parameter.name}_{what}")
            state[what] = layers.create_global_var(shape, 0, dtype, persistable=True, name=name)
        program = parameter.block.program
        with program.optimized_guard([parameter]):
            program.global_block().append_op(
                type="average_accumulates",
                inputs={"param": [parameter], **{f"in_{what}": [v] for what, v in state.items()}},
                outputs={f"out_{what}": [v] for what, v in state.items()},
                attrs=self._attrs,
            )
        return state

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Use the means in place of the parameters inside a ``with``.

        Args:
            executor: runs what is needed, in the global scope.
            need_restore: whether the parameters come back at the end.

        Yields:
            Nothing.

        Raises:
            OpValueError: nothing has been summed yet.
        """
        if not self._kept:
            yield
            return
        question = Program()
        with program_guard(question, Program()):
            updates = same(self._kept[0][1]["num_updates"])
        if executor.run(question, fetch_list=[updates])[0].item() == 0:
            raise OpValueError(
                "Nothing has been averaged yet.", expected="runs of the main program", hint="train, then apply."
            )
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Bring the parameters back that `apply` put aside.

        Args:
            executor: runs what is needed, in the global scope.
        """
        executor.run(self.restore_program)


def _apply_one(parameter: Parameter, state: dict[str, Variable]) -> None:
    here = same(parameter)
    layers.assign(here, output=same(parameter, ".average_backup"))
    total = layers.sum([same(state[what]) for what in _SUMS])
    steps = layers.sum([same(state[what]) for what in ("num_accumulates", "old_num_accumulates")])
    layers.assign(layers.elementwise_div(total, layers.cast(steps, parameter.dtype)), output=here)


def _restore_one(parameter: Parameter, state: dict[str, Variable]) -> None:
    layers.assign(same(parameter, ".average_backup"), output=same(parameter))
