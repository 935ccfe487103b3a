"""Running values: what a trainer keeps from step to step, such as batch_norm's averages; all without servers."""

from collections.abc import Sequence
from pathlib import Path

from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.values import values_of
from fluidnb.program import Program
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler.distribute.plan import is_schedule, is_transfer, is_update
from fluidnb.values.place import CPUPlace


def running_names(program: Program, alone: bool = False) -> list[str]:
    """Persistable tensors that forward operators write.

    Args:
        program: a training program, or a trainer's part of it.
        alone: of a trainer without servers: those that updates and schedules write, too.

    Example:
        >>> y = fluid.layers.batch_norm(fluid.layers.data("x", [4]))
        >>> running_names(fluid.default_main_program())
        ['batch_norm_0.w_1', 'batch_norm_0.w_2']
    """
    block = program.desc.block(0)
    names: dict[str, None] = {}
    for op in block.ops:
        if alone or not (is_update(op) or is_schedule(op) or is_transfer(op)):
            names.update(dict.fromkeys(op.output_arg_names()))
    kept = ((name, block.vars.get(name)) for name in names)
    return [n for n, var in kept if var is not None and var.persistable() and var.type() == VarType.LOD_TENSOR]


class RunningValues:
    """Checkpoints of the running values of a trainer.

    As in Fluid, each trainer has its own, from its own batches, and those of trainer 0 are saved. After a restart all
    trainers continue from these. Without servers they include the parameters, which are the same on all trainers.

    Args:
        program: of the trainer.
        folder: of the training's checkpoints.
        number: of the trainer.
        every: steps between two checkpoints.
        alone: whether it trains without servers.
    """

    def __init__(
        self, program: Program, folder: str | Path, number: int, every: int, alone: bool = False
    ) -> None:  # fmt: skip
        self.names: Sequence[str] = running_names(program, alone)
        self.number, self.every = number, every
        self.checkpoints = Checkpoints(folder, "trainer:0")

    def save(self, scope: Scope, step: int, last: bool = False) -> None:
        """Write the values after a step, where they are due, or where it is the last one."""
        due = step % self.every == 0 or (last and step not in self.checkpoints.steps())
        if self.names and self.number == 0 and step > 0 and due:
            self.checkpoints.save(step, values_of(scope, self.names))

    def load(self, scope: Scope, step: int) -> None:
        """Take the newest values that are not from a later step; none are there before the first checkpoint."""
        known = [saved for saved in self.checkpoints.steps() if saved <= step] if self.names else []
        for name, value in (self.checkpoints.load(known[-1]) if known else {}).items():
            scope.var(name).get_tensor().set(value, CPUPlace())
        if self.number == 0:
            self.checkpoints.drop_after(step)
