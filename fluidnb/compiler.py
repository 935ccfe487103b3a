"""Fluid's ``compiler`` module: programs for several devices, which run on one here."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from fluidnb.arguments import checked
from fluidnb.errors import NotBuiltYet
from fluidnb.program import Program
from fluidnb.utils.source_location import warn
from fluidnb.values import Place

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]


class BuildStrategy:
    """Build options for several devices; ignored (one device).

    Attributes:
        reduce_strategy: how gradients are combined.
        gradient_scale_strategy: by what the loss's gradient is divided.

    Fluid's other fields have Fluid's defaults: ``debug_graphviz_path``, ``fuse_elewise_add_act_ops`` and so on.

    Example:
        >>> strategy = BuildStrategy()
        >>> strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
        >>> strategy.reduce_strategy.name
        'Reduce'
    """

    class ReduceStrategy(IntEnum):
        """Strategy for combining gradients of several devices; ignored (one device)."""

        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy(IntEnum):
        """By what the loss's gradient is divided."""

        CoeffNumDevice = 0
        One = 1
        Customized = 2

    def __init__(self) -> None:
        self.reduce_strategy = self.ReduceStrategy.AllReduce
        self.gradient_scale_strategy = self.GradientScaleStrategy.CoeffNumDevice
        self.debug_graphviz_path = ""
        self.fuse_elewise_add_act_ops = self.fuse_relu_depthwise_conv = self.fuse_broadcast_op = False
        self.fuse_all_optimizer_ops = self.fuse_all_reduce_ops = self.sync_batch_norm = False
        self.memory_optimize = self.enable_inplace = self.enable_sequential_execution = False
        self.remove_unnecessary_lock = True
        self.is_distribution, self.num_trainers, self.trainer_id = False, 1, 0
        self.trainers_endpoints: list[str] = []


class ExecutionStrategy:
    """Execution options for several devices; ignored (one device).

    Attributes:
        num_threads: how many threads run operators.
        num_iteration_per_drop_scope: after how many runs local scopes go.
    """

    def __init__(self) -> None:
        self.num_threads = 0
        self.num_iteration_per_drop_scope = 1
        self.allow_op_delay = self.use_experimental_executor = False
        self.use_cuda = True


@checked
class CompiledProgram:
    """A program as ``Executor.run`` takes it; nothing is compiled, since every program is bound once and replayed.

    Attributes:
        compiled: the program.

    Example:
        >>> y = fluid.layers.fill_constant([1], "float32", 2.0)
        >>> compiled = CompiledProgram(fluid.default_main_program()).with_data_parallel(loss_name=y.name)
        >>> fluid.Executor(fluid.CPUPlace()).run(compiled, fetch_list=[y])
        [array([2.], dtype=float32)]
    """

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        self.compiled = program_or_graph

    def __repr__(self) -> str:
        return f"CompiledProgram({self.compiled!r})"

    def _repr_html_(self) -> str | None:
        return self.compiled._repr_html_()

    def with_data_parallel(
        self, loss_name: str | None = None, build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None, share_vars_from: Any = None,
        places: Sequence[Place] | None = None,
    ) -> CompiledProgram:  # fmt: skip
        """Run the program on several devices, each with a part of the batch; here one device takes the whole batch.

        Args:
            build_strategy: ignored (compatibility).
            exec_strategy: ignored (compatibility).
            share_vars_from: ignored (compatibility); variables are shared by the scope.
            places: the devices; more than one gives a warning.
        """
        if places is not None and len(places) > 1:
            warn_one_device(len(places))
        return self

    def with_inference_optimize(self, config: Any) -> CompiledProgram:
        """Optimize for inference, which is not built."""
        raise NotBuiltYet(
            "CompiledProgram.with_inference_optimize is not part of fluidnb yet: its engine is Paddle's C++ library.",
            hint="program.clone(for_test=True) or io.load_inference_model give a program for inference.",
        )  # fmt: skip


_said = False


def warn_one_device(devices: int) -> None:
    """Warn, once in a process, that one device does the work of several."""
    global _said
    if not _said:
        _said = True
        warn(f"{devices} devices were requested: fluidnb runs on one, with the whole batch and the same result.")
