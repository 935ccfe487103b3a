"""Runs in a process with the address sanitizer: each input of each operator with a CUDA kernel as others than expected.

It gets other sizes, where it holds floats another dtype, and where it holds integers, numbers that are no positions,
counts or classes.

``python -m tests.cuda.other_operands PART PARTS`` goes through a part of the operators. What is not refused before the
first launch runs on the emulator in a fork, and one that dies is printed.
"""

from __future__ import annotations

import contextlib
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


def others(array: Any) -> Iterator[tuple[str, Any]]:
    """An array in other sizes: one element less, more, one alone and none along each axis; transposed, flat.

    Floats also as bytes. Integers also: all below 0, far above what there is of anything, and a little above what they
    are.
    """
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
    if array.dtype.kind == "f":  # the smallest dtype: what reads it as another reads outside of it
        yield "bytes", array.astype(np.int8)
    if array.dtype.kind in "iu" and array.size:
        bounds = np.iinfo(array.dtype)
        yield "above", np.full_like(array, array.max() + 1 if array.max() < bounds.max else bounds.max)
        yield "far above", np.full_like(array, min(1 << 40, bounds.max))
        if bounds.min:
            yield "below", np.full_like(array, -1)
            yield "far below", np.full_like(array, max(-(1 << 40), bounds.min))


def on_numpy(op: OpDesc, index: int, scope: Scope) -> None:
    """Run an operator with its numpy kernel."""
    for function, args, kw in Binder(LoweredOp(op, index, 0), Fresh(Clock(1)), scope).bind():
        function(*args, **kw)


def launches(op: OpDesc, index: int, scope: Scope) -> list[Any] | None:
    """The calls of an operator's CUDA kernel; None if no CUDA kernel takes its operands, or an error refuses them."""
    lowered, place = LoweredOp(op, index, 0), OnDevice(Clock(1))
    try:
        dtype = Binder(lowered, place, scope)._dtype()
        if select(lowered.definition, dtype, "cuda", op.attrs).kernel.place != "cuda":
            return None
        return Binder(lowered, place, scope).bind()
    except Exception:  # other tests look for errors without a sentence
        return None


def dies(calls: list[Any]) -> str:
    """Runs calls on the emulator in a fork; the sanitizer's report if the fork dies, else an empty text."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(SECONDS)
                os.dup2(said.fileno(), 2)
                with emulator.running("forward", 1, True):
                    for function, args, kw in calls:
                        function(*args, **kw)
            except Exception:
                os._exit(0)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    return "" if status == 0 else f"status {status}: {' '.join([x for x in lines if 'ERROR' in x or '.cu:' in x][:3])}"


class Search:
    """Operators, one after the other, with other inputs; each slot in each way once."""

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
        """Give a variable other values and run an operator with each."""
        variable = scope.find_var(name)
        if variable is None or not isinstance(variable.value, LoDTensor):
            return
        tensor = variable.value
        given = np.array(tensor)
        for how, array in others(given):
            if (op.optype, slot, later, how) in self.seen:
                continue
            kept = {n: copy.deepcopy(v.value) for n in {*op.input_arg_names(), *op.output_arg_names()}
                    if (v := scope.find_var(n)) is not None}  # fmt: skip
            changed = LoDTensor(array)
            changed.lod_ = tensor.lod_
            variable.value = changed
            calls = launches(op, index, scope)
            if calls is not None:
                self.seen.add((op.optype, slot, later, how))
                self.tried += 1
                if said := dies(calls):
                    yield f"{op.optype} with {slot} {list(array.shape)} for {list(given.shape)} ({how}): {said}"
            for n, value in kept.items():
                scope.find_var(n).value = value


def main(part: int, parts: int) -> int:
    """Look at every PARTS-th operator from PART on; 1 when one died."""
    np.seterr(all="ignore")
    search, found = Search(), 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # operators that save write here
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
