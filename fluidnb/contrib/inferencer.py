"""Fluid's ``inferencer`` module: a model with parameters that a `Trainer` saved, of versions 0.13 to 1.3."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from fluidnb import io
from fluidnb.arguments import checked
from fluidnb.contrib.trainer import check_and_get_place
from fluidnb.errors import OpTypeError, typed
from fluidnb.parallel_executor import ParallelExecutor
from fluidnb.program import Program, Variable, program_guard, unique_name
from fluidnb.runtime import Executor, Scope, scope_guard
from fluidnb.values import CUDAPlace, Place

__all__ = ["Inferencer"]


@checked
class Inferencer:
    """Builds a model, loads its parameters, and computes its predictions.

    Args:
        infer_func: builds the model as ``train_func`` did, in the same order; returns the prediction or a list.
        param_path: a folder that ``Trainer.save_params`` wrote.
        place: where to run; default the GPU if there is one, else the CPU.
        parallel: whether `ParallelExecutor` runs it; with one device the results are the same.

    Attributes:
        inference_program: the program, in test mode.
        predict_var: what ``infer_func`` returned.
        scope: the parameters.

    Example:
        >>> import tempfile
        >>> def model(): return fluid.layers.fc(fluid.layers.data("x", [2]), 1, bias_attr=False)
        >>> def cost(): return fluid.layers.mean(model())
        >>> folder = tempfile.mkdtemp()
        >>> fluid.contrib.trainer.Trainer(cost, lambda: fluid.optimizer.SGD(0.1)).save_params(folder)
        >>> Inferencer(model, folder).infer({"x": np.ones((3, 2), "float32")})[0].shape
        (3, 1)
    """

    def __init__(
        self, infer_func: Callable[[], Any], param_path: str | os.PathLike[str], place: Place | None = None,
        parallel: bool = False,
    ) -> None:  # fmt: skip
        self.param_path, self.parallel, self.place = param_path, parallel, check_and_get_place(place)
        self.scope = Scope()
        program = Program()
        with program_guard(program, Program()), unique_name.guard():
            self.predict_var = infer_func()
        outputs = self.predict_var if isinstance(self.predict_var, list | tuple) else [self.predict_var]
        for variable in outputs:
            if not isinstance(variable, Variable):
                raise OpTypeError(
                    "infer_func of Inferencer returns the prediction, or a list of variables.",
                    expected="a Variable", received=typed(variable),
                )  # fmt: skip
        self._names = [variable.name for variable in outputs]
        self.inference_program = program.clone(for_test=True)
        self._executor = Executor(self.place)
        self._parallel: ParallelExecutor | None = None
        with scope_guard(self.scope):
            io.load_params(self._executor, os.fspath(param_path), self.inference_program)
        if parallel:
            cuda = isinstance(self.place, CUDAPlace)
            self._parallel = ParallelExecutor(cuda, main_program=self.inference_program, scope=self.scope)

    def infer(self, inputs: Mapping[str, Any], return_numpy: bool = True) -> list[Any]:
        """Computes the predictions.

        Args:
            inputs: name -> value of each data variable, as ``Executor.run`` takes them.
            return_numpy: ndarrays (True) or LoDTensors (False).
        """
        if self._parallel is not None:
            return self._parallel.run(self._names, feed=inputs, return_numpy=return_numpy)
        return self._executor.run(
            self.inference_program, feed=inputs, fetch_list=self._names, scope=self.scope, return_numpy=return_numpy
        )
