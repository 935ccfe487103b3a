"""Fluid's ``parallel_executor`` module: the executor of several devices, which has one here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluidnb.arguments import checked
from fluidnb.compiler import BuildStrategy, ExecutionStrategy
from fluidnb.errors import OpValueError
from fluidnb.program import Program, default_main_program
from fluidnb.runtime import Executor, Scope, global_scope
from fluidnb.values import CPUPlace, CUDAPlace

__all__ = ["ParallelExecutor"]


@checked
class ParallelExecutor:
    """Runs one program again and again; with several devices in Fluid, with one here.

    Args:
        loss_name: the loss; ignored (compatibility).
        main_program: the program; the default main program when left out.
        share_vars_from: another such executor, whose scope is used.
        exec_strategy: ignored (compatibility).
        build_strategy: ignored (compatibility).
        num_trainers: how many machines train; 1.
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
        if num_trainers != 1:
            raise OpValueError(
                "ParallelExecutor runs in one process here.", expected="num_trainers = 1", received=num_trainers
            )
        self._executor = Executor(CUDAPlace(0) if use_cuda else CPUPlace())
        self._program = default_main_program() if main_program is None else main_program
        self._scope: Scope = global_scope() if scope is None else scope
        if share_vars_from is not None:
            self._scope = share_vars_from._scope

    @property
    def device_count(self) -> int:
        """The number of devices: one."""
        return 1

    def run(
        self, fetch_list: Sequence[Any], feed: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        feed_dict: Mapping[str, Any] | None = None, return_numpy: bool = True,
    ) -> list[Any]:  # fmt: skip
        """Run the program once.

        Args:
            feed: variable name -> value, as for ``Executor.run``, or a list with one such dict for each device.
            feed_dict: an older name of ``feed``.
            return_numpy: ndarrays (True) or LoDTensors (False) in the result.
        """
        feeds: Any = feed_dict if feed is None else feed
        if isinstance(feeds, list | tuple):
            if len(feeds) != 1:
                raise OpValueError(
                    "The list of feeds has another length than there are devices.", expected="one dict, or [one dict]",
                    received=f"{len(feeds)} feeds", hint="one device takes the whole batch: feed={name: value}.",
                )  # fmt: skip
            feeds = feeds[0]
        wanted = list(fetch_list)
        return self._executor.run(self._program, feeds, wanted, scope=self._scope, return_numpy=return_numpy)

    def drop_local_exe_scopes(self) -> None:
        """Drop the scopes of the last run; nothing is left after a run here."""
