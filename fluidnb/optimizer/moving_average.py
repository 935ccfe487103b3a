"""Averages of parameters over the steps of training, to be used in their place when a model is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fluidnb import layers
from fluidnb.arguments import Checked
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper
from fluidnb.program import OpRole, Parameter, Program, Variable, default_main_program, program_guard, unique_name
from fluidnb.program.layer_calls import all_or_nothing

if TYPE_CHECKING:
    from fluidnb.runtime import Executor


class ExponentialMovingAverage(Checked):
    """Averages in which older values count less and less: ``ema = decay · ema + (1 - decay) · parameter``.

    Every parameter that is trained has one. Averages begin at 0, which is made up for where they are used: they are
    divided by 1 minus the product of all decays.

    Args:
        decay: the decay, from 0 to below 1.
        thres_steps: a variable of shape [1] that counts steps: early decays are ``(1 + steps) / (10 + steps)`` while
            that is less.
        name: start of the names of the averages.

    Raises:
        OpTypeError: ``thres_steps`` is not a Variable.
        OpValueError: another decay, or the main program has no parameters.

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

    Source: fluid.optimizer.ExponentialMovingAverage.
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
        with all_or_nothing():
            self._averages = [(p, self._kept(f"{p.name}_ema", p.shape, 0.0, p.dtype)) for p in parameters]
            #: the product of all decays
            self._product = self._kept("ema_decays", [1], 1.0, "float32")
        self.apply_program, self.restore_program = Program(), Program()
        self._write_apply()

    def _kept(self, name: str, shape: Any, value: float, dtype: Any) -> Variable:
        return layers.create_global_var(
            shape, value, dtype, persistable=True, name=unique_name.generate(f"{self._name}{name}")
        )

    def update(self) -> None:
        """Appends the operators that update the averages, after those of the optimizer.

        Raises:
            OpValueError: another program is the default main program now.
        """
        if default_main_program() is not self._program:
            raise OpValueError(
                "The averages are of another program.", expected=self._program.short(),
                received=default_main_program().short(), hint="call update() where the average was made.",
            )  # fmt: skip
        with all_or_nothing():
            with self._program.role_guard(OpRole.Optimize):
                decay = self._decay_now()
                layers.assign(layers.elementwise_mul(self._product, decay), output=self._product)
            for parameter, average in self._averages:
                with self._program.optimized_guard([parameter]):
                    kept = layers.elementwise_mul(average, decay)
                    new = layers.elementwise_mul(parameter, 1.0 - decay)
                    layers.assign(layers.elementwise_add(kept, new), output=average)

    def _decay_now(self) -> Variable:
        decay = layers.fill_constant([1], "float32", self._decay)
        if self._steps is None:
            return decay
        steps = layers.cast(self._steps, "float32")
        return layers.elementwise_min(decay, (steps + 1.0) / (steps + 10.0))

    def _write_apply(self) -> None:
        for program, fill in ((self.apply_program, self._apply_one), (self.restore_program, self._restore_one)):
            with program_guard(program, Program()):
                for parameter, average in self._averages:
                    fill(parameter, average)

    def _apply_one(self, parameter: Parameter, average: Variable) -> None:
        here, mean, product = (same(v) for v in (parameter, average, self._product))
        layers.assign(here, output=same(parameter, ".ema_backup"))
        layers.assign(layers.elementwise_div(mean, 1.0 - product), output=here)

    def _restore_one(self, parameter: Parameter, average: Variable) -> None:
        layers.assign(same(parameter, ".ema_backup"), output=same(parameter))

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
        question = Program()
        with program_guard(question, Program()):
            product = same(self._product)
        if executor.run(question, fetch_list=[product])[0].item() == 1:
            raise OpValueError(
                "Nothing has been averaged yet.", expected="runs of the main program with update() in it",
                hint="call update() after minimize(), then train.",
            )  # fmt: skip
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


def same(variable: Variable, suffix: str = "") -> Variable:
    """The variable of this name in the default main program, declared if need be: in a scope it is the same.

    Args:
        variable: one of another program.
        suffix: what follows the name.

    Returns:
        The variable, persistable.

    Example:
        >>> w = fluid.layers.create_parameter([2], "float32", name="w")
        >>> with fluid.program_guard(fluid.Program()):
        ...     same(w, ".old").name
        'w.old'
    """
    return (
        LayerHelper("same")
        .main_program.global_block()
        .create_var(
            name=variable.name + suffix,
            shape=variable.shape,
            dtype=variable.dtype,
            persistable=True,
            stop_gradient=True,
        )
    )
