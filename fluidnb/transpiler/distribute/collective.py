"""Collective training: every trainer has all parameters, and gradients are averaged over trainers."""

from __future__ import annotations

from dataclasses import dataclass

from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.program.constants import OpRole
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.plan import Plan, is_update, updates_of


@dataclass
class CollectivePlan(Plan):
    """A training program that several trainers run, each on its share of a batch: a plan without servers.

    Attributes:
        members: endpoints of the trainers, in their order.
        averaged: whether the loss's gradient is divided by the number of trainers.
        gradients: parameter -> its gradient, before clipping and weight decay.
    """

    members: list[str]
    averaged: bool
    gradients: dict[str, str]

    @classmethod
    def among(
        cls, program: Program, startup: Program, members: list[str], config: DistributeTranspilerConfig,
        averaged: bool = True,
    ) -> CollectivePlan:  # fmt: skip
        """The plan of a program.

        Raises:
            OpValueError: nothing is optimized.
        """
        updates = updates_of(program)
        gradients = {parameter: ops[0].attrs["op_role_var"][1] for parameter, ops in updates.items()}
        return cls(
            program, startup, len(members), True, [], config, updates, [], {}, {}, members, averaged, gradients
        )

    @property
    def logical(self) -> list[str]:
        """The endpoints by which operators find their engine."""
        return self.members


def main_program(plan: CollectivePlan, trainer: int) -> Program:
    """The program that a trainer runs for each batch.

    Args:
        trainer: its number, from 0.
    """
    program = plan.program.clone()
    if plan.averaged:
        _average(program, plan.trainers)
    block = program.global_block()
    left = set(plan.gradients.values())
    written: set[str] = set()
    index = 0
    while index < len(block.desc.ops):
        op = block.desc.ops[index]
        if is_update(op) and not left.isdisjoint(op.input_arg_names()):
            # one operator for all gradients that are complete: they travel in one message
            complete = [name for name in plan.gradients.values() if name in left & written]
            rows = [name for name in complete if block.desc.vars[name].type() == VarType.SELECTED_ROWS]
            for names in ([name for name in complete if name not in rows], rows):
                if names:
                    block.insert_op(index, "allreduce", {"X": names}, {"Out": names}, _attrs(plan, trainer))
                    index += 1
            left -= written
        written.update(op.output_arg_names())
        index += 1
    return program


def extend_startup(plan: CollectivePlan, startup: Program, trainer: int) -> None:
    """Append the operator that gives all trainers the initial values of the first."""
    block = startup.global_block()
    written = dict.fromkeys(name for op in block.desc.ops for name in op.output_arg_names())
    names = [name for name in written if _is_state(startup, name)]
    if names:
        block.append_op("broadcast", {"X": names}, {"Out": names}, {"root": 0, **_attrs(plan, trainer)})


def _is_state(startup: Program, name: str) -> bool:
    """Whether a variable of a startup program is a persistable tensor."""
    var = startup.desc.block(0).vars.get(name)
    return var is not None and var.persistable() and var.type() == VarType.LOD_TENSOR


def _average(program: Program, trainers: int) -> None:
    """Divide the loss's gradient by the number of trainers, so that the sum of gradients is their mean."""
    block = program.global_block()
    roles = [int(op.attrs.get("op_role", 0)) for op in block.desc.ops]
    seeds = [i for i, role in enumerate(roles) if role == OpRole.Backward | OpRole.Loss]
    if not seeds:
        raise OpValueError(
            "No operator of the program begins the backward pass: gradients cannot be averaged over trainers.",
            expected="an operator that writes the gradient of the loss", received=program.short(),
            hint="call optimizer.minimize(loss) before transpile.",
        )  # fmt: skip
    for index in reversed(seeds):
        names = block.desc.ops[index].output_arg_names()
        block.insert_op(
            index + 1, "scale", {"X": names}, {"Out": names}, {"scale": 1.0 / trainers, "op_role": OpRole.Backward}
        )


def _attrs(plan: CollectivePlan, trainer: int) -> dict[str, object]:
    return {"endpoints": plan.members, "trainer_id": trainer, "op_role": OpRole.Dist}
