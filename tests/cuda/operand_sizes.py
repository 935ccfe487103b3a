"""Runs in a process with the address sanitizer: each input of each operator with a CUDA kernel in other sizes.

``python -m tests.cuda.operand_sizes PART PARTS`` goes through a part of the operators. What numpy's shape rule and
kernel refuse is left out; the others run on the emulator, each in a fork, and one that dies is printed.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from fluidnb.errors import FluidError
from fluidnb.op import Binder, Clock, get_op, has_op
from fluidnb.op.select import select
from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb.values import LoDTensor
from fluidnb_kernels import emulator
from tests.cuda.devices import OnDevice
from tests.fuzz.victims import Maker, makers

#: Seconds for one case, most of which is a compiler's.
SECONDS = 120


def other_sizes(array: Any) -> Iterator[tuple[str, Any]]:
    """An array in other sizes: one element less, more, one alone and none along each axis; transposed, flat."""
    for axis, size in enumerate(array.shape):
        if size:
            yield "more", np.concatenate([array, array.take([-1], axis)], axis)
            yield "none", array.take([], axis)
        if size > 1:
            yield "less", array.take(range(size - 1), axis)
            yield "one", array.take([0], axis)
    if array.size > 1:
        yield "a number", array.reshape(-1)[:1]
        yield "flat", array.reshape(-1)
    if array.shape != array.shape[::-1]:
        yield "transposed", np.ascontiguousarray(array.T)


def on_numpy(op: OpDesc, index: int, scope: Scope) -> None:
    """Run an operator with its numpy kernel."""
    for function, args, kw in Binder(LoweredOp(op, index, 0), Fresh(Clock(1)), scope).bind():
        function(*args, **kw)


def on_cuda(op: OpDesc, index: int, scope: Scope) -> None:
    """Run an operator on the emulator, unless it has no CUDA kernel for its operands."""
    lowered, place = LoweredOp(op, index, 0), OnDevice(Clock(1))
    dtype = Binder(lowered, place, scope)._dtype()
    if select(lowered.definition, dtype, "cuda", op.attrs).kernel.place == "cuda":
        with emulator.running("forward", 1, True):
            for function, args, kw in Binder(lowered, place, scope).bind():
                function(*args, **kw)


def dies(op: OpDesc, index: int, scope: Scope) -> str:
    """What the sanitizer says of an operator on the emulator, in a fork; empty where it runs or is refused."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(SECONDS)
                os.dup2(said.fileno(), 2)
                on_cuda(op, index, scope)
            except Exception:  # another test looks for errors without a sentence
                os._exit(0)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    return "" if status == 0 else f"status {status}: {' '.join([x for x in lines if 'ERROR' in x or '.cu:' in x][:3])}"


class Search:
    """Operators, one after the other, with inputs in other sizes; each slot in each kind of size once."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str, bool, str]] = set()
        self.tried = 0

    def program(self, make: Maker) -> Iterator[str]:
        """Look at the operators of a program; gives a line for each that dies."""
        victim, scope = make(), Scope()
        for name, value in {**victim.held, **victim.feed}.items():
            given = copy.deepcopy(value)
            scope.var(name).value = LoDTensor(np.array(given)) if isinstance(given, np.ndarray) else given
        program = Program.parse_from_string(victim.program.desc.serialize_to_string())
        for index, op in enumerate(program.desc.blocks[0].ops):
            if op.optype in ("feed", "fetch"):
                continue
            if has_op(op.optype) and any(kernel.place == "cuda" for kernel in get_op(op.optype).kernels):
                for slot, names in op.ins.items():
                    for at, name in enumerate(names):
                        yield from self.operand(op, index, scope, slot, name, at > 0)
            try:
                on_numpy(op, index, scope)
            except Exception:  # a program that is meant to fail
                return

    def operand(self, op: OpDesc, index: int, scope: Scope, slot: str, name: str, later: bool) -> Iterator[str]:
        """Give a variable other sizes and run an operator with each."""
        variable = scope.find_var(name)
        if variable is None or not isinstance(variable.value, LoDTensor):
            return
        tensor = variable.value
        for how, array in other_sizes(np.array(tensor)):
            if (op.optype, slot, later, how) in self.seen:
                continue
            kept = {n: copy.deepcopy(v.value) for n in {*op.input_arg_names(), *op.output_arg_names()}
                    if (v := scope.find_var(n)) is not None}  # fmt: skip
            changed = LoDTensor(array)
            changed.lod_ = tensor.lod_
            variable.value = changed
            try:
                on_numpy(op, index, scope)
                refused = False
            except FluidError:
                refused = True
            except Exception:
                refused = False
            for n, value in kept.items():
                scope.find_var(n).value = value
            if refused:
                continue
            self.seen.add((op.optype, slot, later, how))
            self.tried += 1
            variable.value = changed
            if said := dies(op, index, scope):
                yield f"{op.optype} with {slot} {list(array.shape)} for {list(tensor.shape)} ({how}): {said}"
            variable.value = kept[name]


def main(part: int, parts: int) -> int:
    """Look at every PARTS-th operator from PART on; 1 when one died."""
    np.seterr(all="ignore")
    search, found = Search(), 0
    for kind in sorted(makers())[part::parts]:
        for _, make in makers()[kind]:
            try:
                for line in search.program(make):
                    print(line, flush=True)
                    found += 1
            except FluidError:  # a program that is refused while it is made
                continue
    print(f"{search.tried} tried, {found} died")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
