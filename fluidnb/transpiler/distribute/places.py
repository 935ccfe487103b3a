"""Programs for several places that share parameters: gradients are reduced, and the first place alone updates."""

from fluidnb.errors import NotBuiltYet
from fluidnb.program import Program
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import OpDesc
from fluidnb.transpiler.distribute.collective import CollectivePlan, main_program
from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.plan import is_update, without

_UPDATES = OpRole.Optimize | OpRole.LRSched


def place_programs(program: Program, endpoints: list[str], scale: str) -> list[Program]:
    """The program of each place.

    Args:
        program: with or without optimizer.
        endpoints: of the places, in their order.
        scale: of the loss's gradient: ``mean`` over places, ``one``, or ``fed`` by the user.

    Raises:
        NotBuiltYet: the program reads parameters again after their update, or has an all-reduce among trainers.
    """
    if any(op.optype == "allreduce" for op in program.desc.block(0).ops):
        raise NotBuiltYet(
            "Several places are not built for a program that has an all-reduce among trainers.",
            expected="a program of one trainer", received=program.short(),
            hint="start more trainers, each on one place.",
        )  # fmt: skip
    if not any(is_update(op) for op in program.desc.block(0).ops):
        return [program.clone() for _ in endpoints]
    if scale == "fed":
        program = without(program, _seeds(program))
    plan = CollectivePlan.among(program, Program(), endpoints, DistributeTranspilerConfig(), scale == "mean")
    programs = [main_program(plan, number) for number in range(len(endpoints))]
    for other in programs[1:]:
        dropped = [op for op in other.desc.block(0).ops if int(op.attrs.get("op_role", 0)) & _UPDATES]
        _refuse_readers(other, dropped)
        for op in reversed(dropped):
            other.global_block().remove_op(other.desc.block(0).ops.index(op))
    return programs


def _seeds(program: Program) -> list[OpDesc]:
    """The operators that write the gradient of a loss."""
    role = OpRole.Backward | OpRole.Loss
    return [op for op in program.desc.block(0).ops if int(op.attrs.get("op_role", 0)) == role]


def _refuse_readers(program: Program, dropped: list[OpDesc]) -> None:
    """Refuse operators that read what an earlier update has written: places do not wait for it."""
    gone = {id(op) for op in dropped}
    written: set[str] = set()
    for op in program.desc.block(0).ops:
        if id(op) in gone:
            written.update(op.output_arg_names())
            continue
        late = written.intersection(op.input_arg_names())
        if late:
            raise NotBuiltYet(
                "Operators that read parameters after their update are not built for several places.",
                op=op.label(), expected="forward and backward operators before the optimizer",
                received=f"{op.optype}, which reads {min(late)}", where=None if op.view is None else op.view.where,
                hint="divide it into two programs, or run it on one place.",
            )  # fmt: skip
