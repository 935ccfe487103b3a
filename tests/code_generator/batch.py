"""Many operators in one program, run by the executor and by the generated C code."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.code_generator import CodeGenerator
from fluidnb.code_generator.generator import read_fetches, write_feeds
from fluidnb.op import EMPTY, get_op, make_grad

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
SANITIZERS = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


class CProgram:
    """Generated code, compiled with warnings as errors and sanitizers.

    Args:
        code: the code.
        folder: an empty folder.
    """

    def __init__(self, code: CodeGenerator, folder: Path) -> None:
        self._code, self._folder = code, folder
        self._program = code.build(dirname=folder / "code", flags=[*WARNINGS, *SANITIZERS])
        self._weights = folder / "code" / "weights.bin"
        self._inside, self._outside = folder / "in", folder / "out"
        self._inside.mkdir(), self._outside.mkdir()

    def run(self, feed: Mapping[str, Any]) -> list[np.ndarray]:
        """Run it, with the parameters that the run before has written, and give its fetches."""
        write_feeds(self._code._text, feed, os.fspath(self._inside))
        command = [self._program, self._weights, self._inside, self._outside]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        written = self._outside / "weights.bin"
        self._weights = written if written.exists() else self._weights
        return read_fetches(self._code._text, os.fspath(self._outside))


def close(got: np.ndarray, want: np.ndarray, name: str, rtol: float = 1e-5) -> None:
    """Asserts that an array is the expected one: floats relative to the largest, others equal."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), name
    if want.dtype.kind == "f":
        largest = float(np.max(np.abs(want), initial=0.0, where=np.isfinite(want)))
        np.testing.assert_allclose(got, want, rtol, rtol * max(largest, 1e-6), err_msg=name)
    else:
        np.testing.assert_array_equal(got, want, err_msg=name)


class Batch:
    """A program of independent operators, each with its own feeds."""

    def __init__(self) -> None:
        self.program = fluid.Program()
        self.feed: dict[str, np.ndarray] = {}
        self.fetches: list[str] = []
        self._count = 0
        self._rng = np.random.default_rng(7)

    def add(
        self, type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any] | None = None,
        outputs: Sequence[str | tuple[str, int]] = ("Out",), grad: bool | Sequence[str] = False,
        in_place: Sequence[tuple[str, str]] = (), slopes: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Appends an operator.

        Args:
            inputs: slot -> an array, or a list of arrays.
            outputs: its output slots that are fetched; with a number, as many variables.
            grad: whether its gradient operators follow; or the input slots that want a gradient.
            in_place: (output slot, input slot) that share a variable.
            slopes: the output slots with a gradient; default all that are fetched.
        """
        self._count += 1
        block, prefix = self.program.global_block(), f"{type}_{self._count}_"
        ins: dict[str, list[str]] = {}
        for slot, value in inputs.items():
            values = value if isinstance(value, list) else [value]
            ins[slot] = [f"{prefix}{slot}_{i}" for i in range(len(values))]
            for name, array in zip(ins[slot], values, strict=True):
                block.create_var(name=name, shape=list(array.shape), dtype=array.dtype.name)
                self.feed[name] = array
        shared = dict(in_place)
        outs: dict[str, list[str]] = {}
        for each in outputs:
            slot, count = (each, 1) if isinstance(each, str) else each
            outs[slot] = [f"{prefix}{slot}_{i}" for i in range(count)]
            if slot in shared:
                source = ins[shared[slot]]
                outs[slot] = [f"{n}_changed" for n in source]
                for n, old in zip(outs[slot], source, strict=True):
                    block.create_var(name=n, shape=list(self.feed[old].shape), dtype=self.feed[old].dtype.name)
                    block.append_op(type="assign", inputs={"X": [old]}, outputs={"Out": [n]})
                ins[shared[slot]] = outs[slot]
            for name in outs[slot]:
                if name not in block.vars:
                    block.create_var(name=name, dtype="float32")
        self.fetches += [n for names in outs.values() for n in names]
        wanted = {slot for slot in outs}
        for slot, info in get_op(type).outputs.items():
            if slot not in wanted and (not info.dispensable or info.intermediate):
                outs[slot] = [f"{prefix}{slot}"]
                block.create_var(name=outs[slot][0], dtype="float32")
        block.append_op(type=type, inputs=ins, outputs=outs, attrs=dict(attrs or {}))
        if grad:
            self._add_grad(block.desc.ops[-1], ins, outs, slopes or wanted, ins if grad is True else grad)

    def _add_grad(
        self, desc: Any, ins: Mapping[str, list[str]], outs: Mapping[str, list[str]], wanted: Any, slots: Any
    ) -> None:
        block = self.program.global_block()
        given: dict[str, str] = {}  # gradient of an output -> what is fed for it
        for slot in wanted:
            for name in outs[slot]:
                var = block.var(name)
                dtype = fluid.values.dtypes.np_dtype(var.dtype)
                if dtype.kind == "f":
                    array = self._rng.uniform(-1, 1, var.shape).astype(dtype)
                    given[name + "@GRAD"] = fed = f"{name}_slope"
                    block.create_var(name=fed, shape=list(array.shape), dtype=dtype.name)
                    self.feed[fed] = array
        names = [(slot, name) for slot, names in ins.items() for name in names]
        without = {n for slot, n in names if slot not in slots or n in self.feed and self.feed[n].dtype.kind != "f"}
        for grad in make_grad(desc, without):
            for name in grad.output_arg_names():
                if name != EMPTY and name not in block.vars:
                    block.create_var(name=name, dtype="float32")
                    self.fetches.append(name)
            for slot, names in grad.ins.items():
                grad.set_input(slot, [given.get(n, n) for n in names if n in given or n in block.vars])
            block.desc.append_op(grad)

    def check(self, folder: Path, rtol: float = 1e-5) -> None:
        """Asserts that the generated C code gives what the executor gives."""
        with np.errstate(all="ignore"):
            want = fluid.Executor(fluid.CPUPlace()).run(self.program, feed=self.feed, fetch_list=self.fetches)
        feeds = {n: a.shape for n, a in self.feed.items()}
        got = CProgram(CodeGenerator(self.program, feeds, self.fetches), folder).run(self.feed)
        for name, one, other in zip(self.fetches, got, want, strict=True):
            close(one, np.asarray(other), name, rtol)
