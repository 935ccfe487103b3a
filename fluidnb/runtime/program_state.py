"""Runtime state of a program: its compiled runs, and the attached debugger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fluidnb.proto.desc import ProgramDesc
from fluidnb.values.place import Place

if TYPE_CHECKING:
    from fluidnb.runtime.compile.lowering import LoweredProgram
    from fluidnb.runtime.executor import Prepared


#: Names of variables.
Names = tuple[str, ...]


@dataclass(slots=True, eq=False)
class ProgramState:
    """The runtime's own data of one program; a parse of other bytes into the description drops it."""

    #: Of `Executor.run`, by feeds, fetches, SelectedRows that are fed, place and the NaN check.
    lowered_programs: dict[tuple[Names, Names, Names, Place, Any], LoweredProgram] = field(default_factory=dict)
    #: Of `Block.run`, by place and the NaN check.
    lowered_blocks: dict[tuple[Place, Any], LoweredProgram] = field(default_factory=dict)
    #: The last four that ran, the latest one last.
    recent: list[LoweredProgram] = field(default_factory=list)
    #: Runs the program in a debug session in place of `Executor.run`.
    attached: Callable[[Prepared], list[Any]] | None = None


def program_state(desc: ProgramDesc) -> ProgramState:
    """The runtime's data of a program, created at the first call; new when the description is parsed anew."""
    state = desc.state
    if state is None:
        state = desc.state = ProgramState()
    assert isinstance(state, ProgramState)
    return state
