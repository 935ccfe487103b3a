"""Averages of parameters over the steps of training, to be used in their place when a model is tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb import layers
from fluidnb.arguments import Checked
from fluidnb.backward.emit import all_or_nothing
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.program import OpRole, Parameter, Program, Variable, default_main_program, program_guard, unique_name
from fluidnb.program.defaults import default_startup_program
from fluidnb.values.dtypes import dtype_name, is_floating

if TYPE_CHECKING:
    from fluidnb.runtime import Executor


class Average(Checked):
    """The base of averages of parameters: they take the place of the parameters, and these are restored."""

    #: A variable, its value while nothing is averaged, and a hint for that case; None without parameters.
    _progress: tuple[Variable, int, str] | None = None

    #: What the name of a parameter's copy ends with while the average is in its place.
    _backup = ""

    def _write_programs(self, parts: Sequence[tuple[Parameter, Any]]) -> None:
        self.apply_program, self.restore_program = Program(), Program()
        with program_guard(self.apply_program, Program()):
            for parameter, average in parts:
                here = same(parameter)
                layers.assign(here, output=same(parameter, self._backup))
                layers.assign(self._mean(parameter, average), output=here)
        with program_guard(self.restore_program, Program()):
            for parameter, _ in parts:
                layers.assign(same(parameter, self._backup), output=same(parameter))

    def _mean(self, parameter: Parameter, average: Any) -> Variable:
        """The average of a parameter, from what is kept for it."""
        raise NotImplementedError

    @contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Use the averages in place of the parameters inside a ``with``.

        Args:
            executor: runs what is needed, in the global scope.
            need_restore: whether the parameters come back at the end.

        Yields:
            Nothing.

        Raises:
            OpValueError: nothing has been averaged yet.
        """
        if self._progress is not None:
            variable, none, hint = self._progress
            question = Program()
            with program_guard(question, Program()):
                value = same(variable)
            if executor.run(question, fetch_list=[value])[0].item() == none:
                raise OpValueError("Nothing has been averaged yet.", expected="runs of the main program", hint=hint)
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


class ExponentialMovingAverage(Average):
    """Averages in which older values count less and less: ``ema = decay · ema + (1 - decay) · parameter``.

    Every parameter that is trained has one. Averages begin at 0, which is made up for where they are used: they are
    divided by 1 minus the product of all decays.

    Args:
        decay: the decay, from 0 to below 1.
        thres_steps: a variable of shape [1] that counts steps: early decays are ``(1 + steps) / (10 + steps)`` while
            that is less.
        name: start of the names of the averages.

    Example:
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.data("x", [2]), 1))
        >>> opt = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> ema = fluid.optimizer.ExponentialMovingAverage(0.9)
        >>> ema.update()
        >>> exe = fluid.Executor(fluid.CPUPlace())
        >>> out = exe.run(fluid.default_startup_program())
        >>> out = exe.run(feed={"x": np.ones((1, 2), "float32")})
        >>> with ema.apply(exe):
        ...     pass  # test with the averages here
    """

    def __init__(self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None) -> None:
        if not 0 <= decay < 1:
            raise OpValueError("The decay of a moving average is below 1.", expected="0 <= decay < 1", received=decay)
        program = default_main_program()
        parameters = [p for p in program.global_block().all_parameters() if p.trainable]
        if not parameters:
            raise OpValueError(
                "There are no parameters to average.", expected="a main program with parameters that are trained",
                received=program.short(), hint="make the average after the model.",
            )  # fmt: skip
        self._decay, self._steps, self._name = float(decay), thres_steps, name or ""
        self._program = program
        self._dtype = "float64" if any(dtype_name(p.dtype) == "float64" for p in parameters) else "float32"
        with all_or_nothing(program, default_startup_program()):
            self._averages = [(p, self._kept(f"{p.name}_ema", p.shape, 0.0, p.dtype)) for p in parameters]
            #: the product of all decays
            self._product = self._kept("ema_decays", [1], 1.0, self._dtype)
            self._write_programs(self._averages)
        self._progress = self._product, 1, "call update() after minimize(), then train."

    def _kept(self, name: str, shape: Any, value: float, dtype: Any) -> Variable:
        return layers.create_global_var(
            shape, value, dtype, persistable=True, name=unique_name.generate(f"{self._name}{name}")
        )

    def update(self) -> None:
        """Appends the operators that update the averages, after those of the optimizer."""
        if default_main_program() is not self._program:
            raise OpValueError(
                "The averages are of another program.", expected=self._program.short(),
                received=default_main_program().short(), hint="call update() where the average was made.",
            )  # fmt: skip
        with all_or_nothing(self._program):
            with self._program.role_guard(OpRole.Optimize):
                decay = self._decay_now()
                layers.assign(layers.elementwise_mul(self._product, decay), output=self._product)
            for parameter, average in self._averages:
                with self._program.optimized_guard([parameter]):
                    own = _as(parameter, decay)
                    kept = layers.elementwise_mul(average, own)
                    new = layers.elementwise_mul(parameter, 1.0 - own)
                    layers.assign(layers.elementwise_add(kept, new), output=average)

    def _decay_now(self) -> Variable:
        decay = layers.fill_constant([1], self._dtype, self._decay)
        if self._steps is None:
            return decay
        steps = layers.cast(self._steps, self._dtype)
        return layers.elementwise_min(decay, (steps + 1.0) / (steps + 10.0))

    _backup = ".ema_backup"

    def _mean(self, parameter: Parameter, average: Variable) -> Variable:
        mean, product = same(average), same(self._product)
        return layers.elementwise_div(mean, _as(parameter, 1.0 - product))


def _as(parameter: Parameter, number: Variable) -> Variable:
    """A number in the dtype of a parameter; integers are refused where it is used."""
    same_dtype = number.dtype == parameter.dtype or not is_floating(parameter.dtype)
    return number if same_dtype else layers.cast(number, parameter.dtype)


def same(variable: Variable, suffix: str = "") -> Variable:
    """The variable of this name in the default main program, declared if need be: in a scope it is the same."""
    return default_main_program().global_block().create_var(
        name=variable.name + suffix, shape=variable.shape, dtype=variable.dtype, persistable=True, stop_gradient=True
    )  # fmt: skip


_SUMS = ("sum_1", "sum_2", "sum_3")
_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


class ModelAverage(Average):
    """Means over the last steps of training, of how many is said by a share of all steps and two bounds.

    A parameter that is trained is taken in where ``ParamAttr(do_model_average=True)`` says so. The operators that sum
    go behind those that are there, so it is made after ``minimize``. Without such a parameter nothing is averaged.

    Args:
        average_window_rate: which share of all steps the mean is over.
        min_average_window: the fewest steps that it is over.
        max_average_window: the most steps.
        regularization: accepted for old scripts; a mean decays no weights.
        name: start of the names of the sums.

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
    """

    def __init__(
        self, average_window_rate: float, min_average_window: int = 10000, max_average_window: int = 10000,
        regularization: Any = None, name: str | None = None,
    ) -> None:  # fmt: skip
        for argument, value in (("min", min_average_window), ("max", max_average_window)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise OpTypeError(
                    f"{argument}_average_window is a number of steps.", expected="int", received=typed(value)
                )
        if not 0 < min_average_window <= max_average_window:
            raise OpValueError(
                "The smallest window must not be larger than the largest.",
                expected="0 < min_average_window <= max_average_window",
                received=f"{min_average_window} and {max_average_window}",
            )
        block = default_main_program().global_block()
        parameters = [
            p for p in block.all_parameters() if p.trainable and p.do_model_average is not False and not p.stop_gradient
        ]
        self._name = name or ""
        self._attrs = {
            "average_window": float(average_window_rate), "min_average_window": min_average_window,
            "max_average_window": max_average_window,
        }  # fmt: skip
        with all_or_nothing(block.program, default_startup_program()):
            self._kept = [(p, self._sum(p)) for p in parameters]
            self._write_programs(self._kept)
        if self._kept:
            self._progress = self._kept[0][1]["num_updates"], 0, "train, then apply."

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

    _backup = ".average_backup"

    def _mean(self, parameter: Parameter, state: dict[str, Variable]) -> Variable:
        total = layers.sum([same(state[what]) for what in _SUMS])
        steps = layers.sum([same(state[what]) for what in ("num_accumulates", "old_num_accumulates")])
        return layers.elementwise_div(total, layers.cast(steps, parameter.dtype))
