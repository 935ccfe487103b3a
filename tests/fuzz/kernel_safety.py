"""CUDA kernels under hostile attributes, shapes and indexes: ``make fuzz ARGS=kernel_safety``.

As `memory_safety`, on the emulator under its address sanitizer: a kernel that reads or writes outside of its arrays
ends the process.
"""

from __future__ import annotations

import copy
import json
import os
import random
import resource
from collections.abc import Sequence
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import FluidError
from fluidnb.op import Binder, Clock, OpDesc, get_op, has_op
from fluidnb.op.select import select
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing import eager
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.compiler import sanitized
from tests.cuda.devices import OnDevice
from tests.fuzz import guarded, memory_safety
from tests.fuzz.oracle import Outcome

#: Addresses that the sanitizer needs leave no room for a limit.
ADDRESS_SPACE = resource.RLIM_INFINITY
#: Bytes that a case may take, the shadow of the sanitizer included.
CASE_BYTES = 8 << 30
#: Whether the process has libasan.
SANITIZE = "libasan" in os.environ.get("LD_PRELOAD", "")


def _run_op(desc: OpDesc, index: int, scope: Scope) -> None:
    """Run an operator on the emulator where it has a kernel for its operands, else with numpy."""
    op = LoweredOp(desc, index, 0)
    place: Fresh = OnDevice(Clock(1))
    dtype = Binder(op, place, scope)._dtype()
    if select(op.definition, dtype, "cuda", desc.attrs).kernel.place != "cuda":
        place = Fresh(Clock(1))
    with emulator.running("forward", 1, SANITIZE):
        for function, args, kw in Binder(op, place, scope).bind():
            function(*args, **kw)


def run_program(
    text: bytes, feed: dict[str, Any], fetch: Sequence[str], held: dict[str, Any], poison: int, step: bool
) -> Any:
    """Run the operators of a program's first block with one poison; gives the results, or the error."""
    guarded.poison(poison)
    eager._poisoned = lambda shape, dtype: np.empty(shape, dtype)  # which is poisoned
    scope = Scope()
    try:
        program = fluid.Program.parse_from_string(text)
        for name, value in {**held, **feed}.items():
            given = copy.deepcopy(value)
            scope.var(name).value = LoDTensor(np.array(given)) if isinstance(given, np.ndarray) else given
        for index, desc in enumerate(program.desc.blocks[0].ops):
            if desc.optype not in ("feed", "fetch"):
                _run_op(desc, index, scope)
        found = [scope.find_var(name) for name in fetch]
        return "result", [memory_safety.bits(None if v is None else v.value) for v in found]
    except FluidError as e:
        return "error", type(e).__name__
    except Exception as e:  # another test looks for these
        return "bare error", f"{type(e).__name__}: {e}"


def on_cuda(kind: str) -> bool:
    """Whether an operator, or its gradient, has a CUDA kernel."""
    return any(has_op(t) and any(k.place == "cuda" for k in get_op(t).kernels) for t in (kind, f"{kind}_grad"))


def environment() -> dict[str, str]:
    """The environment of the process that the sanitizer needs."""
    found = dict(sanitized())
    found["ASAN_OPTIONS"] += ":allocator_may_return_null=1:max_allocation_size_mb=2000:handle_segv=1"
    return found


def case(dice: random.Random) -> dict[str, Any]:
    """A program and the seed of its changes; every operator with a CUDA kernel has the same probability."""
    return memory_safety.case(dice, on_cuda)


def run(one: dict[str, Any]) -> Outcome:
    """Break a program and run it with both poisons."""
    return memory_safety.run(one, run_program)


smaller = memory_safety.smaller


def show(one: dict[str, Any]) -> str:
    """A command that runs the case again: alone in a process, which the sanitizer ends."""
    return f"python -m tests.fuzz.farm kernel_safety '{json.dumps(one)}'"
