"""Fluid's ``compiler`` module: programs for several places."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from fluidnb.arguments import checked
from fluidnb.distributed.places import Places
from fluidnb.errors import NotBuiltYet, OpValueError, near, typed
from fluidnb.program import Program
from fluidnb.runtime import Scope, global_scope
from fluidnb.values import Place
from fluidnb.values.place_lists import cpu_places

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]


class _Options:
    """An object whose fields are those that its class sets: a misspelled one is refused, since it would do nothing."""

    def __setattr__(self, name: str, value: Any) -> None:
        fields = vars(self).get("_fields", (name,))
        if name not in fields and not name.startswith("_"):  # as _dry_run of ExecutionStrategy
            raise OpValueError(
                f"{type(self).__name__} has no option {name}.", expected=", ".join(fields), received=name,
                hint=near(name, fields) or f"help(fluid.{type(self).__name__}) lists the options.",
            )  # fmt: skip
        super().__setattr__(name, value)


class BuildStrategy(_Options):
    """Build options for several places.

    Attributes:
        reduce_strategy: ignored (compatibility): gradients are reduced, and the first place updates.
        gradient_scale_strategy: by what the loss's gradient is divided.
        num_trainers, trainer_id: those of the `DistributeTranspiler` whose program is built.

    Fluid's other fields have Fluid's defaults: ``debug_graphviz_path``, ``fuse_elewise_add_act_ops`` and so on.

    Example:
        >>> strategy = BuildStrategy()
        >>> strategy.reduce_strategy = BuildStrategy.ReduceStrategy.Reduce
        >>> strategy.reduce_strategy.name
        'Reduce'
    """

    class ReduceStrategy(IntEnum):
        """Strategy for combining gradients of several places; ignored (compatibility)."""

        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy(IntEnum):
        """By what the loss's gradient is divided: the number of places, 1, or the user feeds it."""

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
        self._fields = tuple(vars(self))


class ExecutionStrategy(_Options):
    """Execution options for several places; ignored (compatibility).

    Attributes:
        num_threads: how many threads run operators.
        num_iteration_per_drop_scope: after how many runs local scopes go.
    """

    def __init__(self) -> None:
        self.num_threads = 0
        self.num_iteration_per_drop_scope = 1
        self.allow_op_delay = self.use_experimental_executor = False
        self.use_cuda = True
        self._fields = tuple(vars(self))


@checked
class CompiledProgram:
    """A program as ``Executor.run`` takes it, on several places after `with_data_parallel`.

    Attributes:
        compiled: the program.
        is_parallel: whether it runs on several places.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> y = fluid.layers.mean(x)
        >>> compiled = CompiledProgram(fluid.default_main_program())
        >>> compiled = compiled.with_data_parallel(loss_name=y.name, places=fluid.cpu_places(2))
        >>> feed = {"x": np.array([[1, 1], [3, 3]], "float32")}
        >>> fluid.Executor(fluid.CPUPlace()).run(compiled, feed=feed, fetch_list=[y])
        [array([1., 3.], dtype=float32)]
    """

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        self.compiled, self._strategy = program_or_graph, build_strategy
        self._places: Sequence[Place] = ()
        self._several: Places | None = None
        self.is_parallel = False

    def __repr__(self) -> str:
        return f"CompiledProgram({self.compiled!r})"

    def _repr_html_(self) -> str | None:
        return self.compiled._repr_html_()

    def with_data_parallel(
        self, loss_name: str | None = None, build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None, share_vars_from: Any = None,
        places: Sequence[Place] | None = None,
    ) -> CompiledProgram:  # fmt: skip
        """Run the program on several places, each with a share of the batch.

        The places share the parameters: gradients are averaged over them, and the first place updates. What is fetched
        are the values of all places, one after another.

        Args:
            loss_name: ignored (compatibility): the program knows its loss.
            build_strategy: how the loss's gradient is divided.
            exec_strategy: ignored (compatibility).
            share_vars_from: ignored (compatibility); variables are shared by the scope.
            places: on the CPU, one thread each; None for CPU_NUM of the environment, else one.
        """
        self._strategy = build_strategy or self._strategy
        self._places, self._several = cpu_places() if places is None else places, None
        self.is_parallel = len(self._places) > 1 or scale_of(self._strategy) == "fed"
        if self._strategy is not None:
            check_trainers(self.compiled, self._strategy.num_trainers, self._strategy.trainer_id)
        return self

    def on_places(self, scope: Scope | None = None) -> Places:
        """The object that runs the program on its places.

        Args:
            scope: of the persistable variables; None for the global scope.
        """
        scope = global_scope() if scope is None else scope
        known = self._several
        if known is None or known.scope is not scope or known.version != self.compiled.version:
            self._several = known = Places(self.compiled, self._places, scope, scale_of(self._strategy))
        return known

    def with_inference_optimize(self, config: Any) -> CompiledProgram:
        """Optimize for inference, which is not built."""
        raise NotBuiltYet(
            "CompiledProgram.with_inference_optimize is not part of fluidnb yet: its engine is Paddle's C++ library.",
            hint="program.clone(for_test=True) or io.load_inference_model give a program for inference.",
        )  # fmt: skip


def scale_of(strategy: BuildStrategy | None) -> str:
    """By what the loss's gradient is divided, as `Places` takes it."""
    kinds = BuildStrategy.GradientScaleStrategy
    kind = kinds.CoeffNumDevice if strategy is None else strategy.gradient_scale_strategy
    if kind not in list(kinds):
        raise OpValueError(
            "BuildStrategy has no such gradient_scale_strategy.",
            expected=", ".join(f"{k.name} ({k.value})" for k in kinds), received=typed(kind),
            hint="left out, the gradients of the places are averaged.",
        )  # fmt: skip
    return {kinds.CoeffNumDevice: "mean", kinds.One: "one", kinds.Customized: "fed"}[kind]


def check_trainers(program: Program, trainers: int, number: int) -> None:
    """Refuse a program that is not made for a trainer.

    Args:
        trainers: how many there are; one needs no program made for it.
        number: of the trainer, from 0.

    Raises:
        OpValueError: with what the program is made for.
    """
    made = {
        (len(op.attrs.get("endpoints", ())), int(op.attrs.get("trainer_id", 0)))
        for op in program.desc.block(0).ops if op.optype == "allreduce"
    }  # fmt: skip
    if trainers != 1 and made != {(trainers, number)}:
        of = ", ".join(f"trainer {n} of {count}" for count, n in sorted(made)) or "one trainer"
        raise OpValueError(
            f"The program is not made for trainer {number} of {trainers}.", received=f"a program for {of}",
            expected="num_trainers=1, or the trainer's program of a DistributeTranspiler",
            hint=f'config.mode = "collective"; t.transpile({number}, trainers={trainers}); t.get_trainer_program()',
        )  # fmt: skip
