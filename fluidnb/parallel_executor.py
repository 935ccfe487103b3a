"""Fluid's ``parallel_executor`` module: the executor of several places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.compiler import BuildStrategy, ExecutionStrategy, check_trainers, scale_of
from fluidnb.distributed.places import Places
from fluidnb.errors import OpValueError
from fluidnb.program import Program, default_main_program
from fluidnb.runtime import Executor, Scope, global_scope
from fluidnb.values import Place
from fluidnb.values.place_lists import cpu_places, cuda_places

__all__ = ["ParallelExecutor"]


@checked
class ParallelExecutor:
    """Runs one program again and again on several places, each with a share of the batch.

    There are as many places as CPU_NUM of the environment says, else one. They share the parameters: gradients are
    averaged over them, and the first place updates.

    Args:
        use_cuda: whether to use the GPUs of FLAGS_selected_gpus, of which there may be one.
        loss_name: the loss; ignored (compatibility).
        main_program: the program; the default main program when left out.
        share_vars_from: another such executor, whose scope is used.
        exec_strategy: ignored (compatibility).
        build_strategy: how the loss's gradient is divided.
        num_trainers: how many trainers there are; more than 1 need a program of `DistributeTranspiler`.
        trainer_id: which of them this is.
        scope: where persistable variables live; the global scope when left out.

    Example:
        >>> y = fluid.layers.fill_constant([1], "float32", 2.0)
        >>> fluid.ParallelExecutor(use_cuda=False, loss_name=y.name).run([y.name])
        [array([2.], dtype=float32)]
    """

    def __init__(
        self, use_cuda: bool, loss_name: str | None = None, main_program: Program | None = None,
        share_vars_from: ParallelExecutor | None = None, exec_strategy: ExecutionStrategy | None = None,
        build_strategy: BuildStrategy | None = None, num_trainers: int = 1, trainer_id: int = 0,
        scope: Scope | None = None,
    ) -> None:  # fmt: skip
        self._places: list[Place] = [*(cuda_places() if use_cuda else cpu_places())]
        self._executor = Executor(self._places[0])
        self._program = default_main_program() if main_program is None else main_program
        check_trainers(self._program, num_trainers, trainer_id)
        self._scope: Scope = global_scope() if scope is None else scope
        if share_vars_from is not None:
            self._scope = share_vars_from._scope
        self._scale = scale_of(build_strategy)
        self._several: Places | None = None
        if len(self._places) > 1 or self._scale == "fed":
            self._several = Places(self._program, self._places, self._scope, self._scale)

    @property
    def device_count(self) -> int:
        """The number of places."""
        return len(self._places)

    def run(
        self, fetch_list: Sequence[Any], feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        feed_dict: Mapping[str, Any] | None = None, return_numpy: bool = True,
    ) -> list[Any]:  # fmt: skip
        """Run the program once.

        Args:
            fetch_list: variables or names; several places give their values one after another along the first axis.
            feed: variable name -> value, as for ``Executor.run``, which is shared equally among places; or a list with
                one such dict for each place.
            feed_dict: an older name of ``feed``.
            return_numpy: ndarrays (True) or LoDTensors (False) in the result.
        """
        feeds: Any = feed_dict if feed is None else feed
        wanted = list(fetch_list)
        several = self._several
        if several is not None:
            if several.version != self._program.version:
                self._several = several = Places(self._program, self._places, self._scope, self._scale)
            return several.run(feeds, wanted, return_numpy)
        if isinstance(feeds, list | tuple):
            if len(feeds) != 1:
                raise OpValueError(
                    "The list of feeds has another length than there are places.", expected="one dict, or [one dict]",
                    received=f"{len(feeds)} feeds", hint="one place takes the whole batch: feed={name: value}; "
                    "os.environ[\"CPU_NUM\"] = \"2\" before ParallelExecutor makes two.",
                )  # fmt: skip
            feeds = feeds[0]
        return self._executor.run(self._program, feeds, wanted, scope=self._scope, return_numpy=return_numpy)

    def drop_local_exe_scopes(self) -> None:
        """Drop the scopes of the last run; nothing is left after a run here."""
