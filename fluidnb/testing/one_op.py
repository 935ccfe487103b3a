"""A program of one operator, and ways to run it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fluidnb.op import EMPTY, Clock, OpDesc, ValuesOf, check_desc, get_op, make_grad
from fluidnb.program import Program
from fluidnb.runtime import Executor, Scope
from fluidnb.testing.compare import assert_close, assert_same
from fluidnb.testing.eager import bind_desc
from fluidnb.testing.values import named
from fluidnb.values import CPUPlace, LoDTensor, LoDTensorArray, SelectedRows, VarType, dtypes
from fluidnb.values.rank_table import LoDRankTable

_KINDS = {
    LoDTensorArray: VarType.LOD_TENSOR_ARRAY, SelectedRows: VarType.SELECTED_ROWS, LoDRankTable: VarType.LOD_RANK_TABLE
}


class OneOp:
    """An operator with the values of its inputs."""

    def __init__(
        self, type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any], outputs: Mapping[str, list[str]]
    ) -> None:
        self.type, self.attrs, self.outputs = type, dict(attrs), dict(outputs)
        self.inputs = named(inputs)
        self._lods: dict[str, Any] = {}
        self._executor = Executor(CPUPlace())
        self._scope = Scope()
        for name, value in self._values():
            if not isinstance(value, LoDTensor):
                self._scope.var(name).value = value

    def _values(self) -> list[tuple[str, Any]]:
        return [pair for row in self.inputs.values() for pair in row]

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The array of an input variable; changing it changes the next run."""
        return np.asarray(dict(self._values())[name])

    # ---- programs

    def program(self, batch_unknown: bool = False, shared: Mapping[str, str] | None = None) -> Program:
        """The program.

        Args:
            batch_unknown: give the first dimension of tensors with sequences, or of all where there are none, as -1.
            shared: output name -> input name that stands for it, to work in place.
        """
        program = Program()
        block = program.global_block()
        for name, value in self._values():
            if name in block.vars:
                continue
            if isinstance(value, LoDTensor):
                array = np.asarray(value)
                shape = [-1, *array.shape[1:]] if batch_unknown and array.ndim > 1 else list(array.shape)
                block.create_var(name=name, shape=shape, dtype=str(array.dtype), lod_level=len(value.lod_))
            else:
                facts = {} if isinstance(value, LoDRankTable) else {"shape": [1], "dtype": "float32"}
                block.create_var(name=name, type=_KINDS[type(value)], persistable=True, **facts)
        shared = shared or {}
        outs = {slot: [shared.get(n, n) for n in names] for slot, names in self.outputs.items()}
        for names in outs.values():
            for name in names:
                if name not in block.vars:
                    block.create_var(name=name, dtype="float32")
        ins = {slot: [n for n, _ in row] for slot, row in self.inputs.items()}
        block.append_op(type=self.type, inputs=ins, outputs=outs, attrs=self.attrs)
        return program

    def backward(self, slots: Sequence[str] | None, no_grad: set[str]) -> tuple[Program, dict[str, Any]]:
        """The program with the operator's own gradient operators behind it.

        Args:
            slots: output slots with a gradient; default: the first floating one.

        Returns:
            The program, and random gradients of the outputs to feed.
        """
        program = self.program()
        block = program.global_block()
        forward = block.desc.op(0)
        results = self.run(program)
        floating = [s for s, names in self.outputs.items() if _is_floating(results[names[0]])]
        used = {n for s in (floating[:1] if slots is None else slots) for n in self.outputs[s]}
        rng = np.random.default_rng(7)
        cotangents: dict[str, Any] = {}
        for names in self.outputs.values():
            for n in names:
                if _is_floating(results[n]):
                    array = np.asarray(results[n])
                    noise = rng.uniform(-1, 1, array.shape) if n in used else np.zeros(array.shape)
                    cotangents[n + "@GRAD"] = noise.astype(array.dtype)
                    self._lods[n + "@GRAD"] = results[n].lod_  # a gradient has the sequences of its variable
                    block.create_var(name=n + "@GRAD", shape=list(array.shape), dtype=str(array.dtype))
        without = no_grad | {n for n, v in self._values() if not _is_floating(v)}
        for desc in make_grad(forward, without):
            for name in desc.output_arg_names():
                if name != EMPTY and name not in block.vars:
                    block.create_var(name=name, dtype="float64")
            block.desc.append_op(desc)
        return program, cotangents

    # ---- runs

    def run(
        self, program: Program, fetch: Sequence[str] | None = None, feed: Mapping[str, Any] | None = None,
        keep_scopes: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a program with the inputs fed; all outputs are fetched by default."""
        names = list(fetch or [n for row in self.outputs.values() for n in row if n != EMPTY])
        feeds = {n: v for n, v in self._values() if isinstance(v, LoDTensor)} | {
            n: LoDTensor(v, self._lods[n]) if n in self._lods else v for n, v in (feed or {}).items()
        }
        with np.errstate(all="ignore"):
            values = self._executor.run(
                program, feed=feeds, fetch_list=names, scope=self._scope, return_numpy=False, keep_scopes=keep_scopes
            )
        return dict(zip(names, values, strict=True))

    # ---- checks

    def check_shapes(self, program: Program, results: Mapping[str, Any]) -> None:
        """Assert that what was inferred while building is what came while running."""
        block = program.global_block()
        for name, value in results.items():
            if not isinstance(value, LoDTensor):
                continue
            var, array = block.var(name), np.asarray(value)
            inferred, what = tuple(var.shape), f"{self.type}: {name}"
            fits = len(inferred) == array.ndim and all(n in (-1, m) for n, m in zip(inferred, array.shape, strict=True))
            assert fits, f"{what} was inferred to be {inferred} and is {array.shape}"
            assert dtypes.np_dtype(var.dtype) == array.dtype, f"{what} is {array.dtype}, not {var.dtype}"
            assert var.lod_level == len(value.lod_), f"{what} has LoD {value.lod_}, not {var.lod_level} levels"

    def check_rebinding(self, program: Program, results: Mapping[str, Any]) -> None:
        """Asserts that a binding for other data is valid for these: kernels must not read values while they bind."""
        fresh = OneOp(self.type, {}, self.attrs, self.outputs)
        fresh.inputs = self.inputs
        real = {n: np.asarray(v).copy() for n, v in self._values() if isinstance(v, LoDTensor)}
        if not real or self._is_guarded():
            return
        try:
            for name, array in real.items():
                if array.dtype.kind == "f":
                    _put_other_data(self.array(name))
            fresh.run(program)
        finally:
            for name, array in real.items():
                self.array(name)[...] = array
        assert_same(results, fresh.run(program), "bound on other data")

    def check_memory_order(self, results: Mapping[str, Any], rtol: float, atol: float) -> None:
        """Assert that inputs whose memory is in column order give the same, also when they change after binding."""
        if self._is_guarded() or all(np.asarray(v).ndim < 2 for _, v in self._values()):
            return
        ins = {slot: [n for n, _ in row] for slot, row in self.inputs.items()}
        desc = OpDesc(self.type, ins, self.outputs, self.attrs)
        check_desc(get_op(self.type), desc)
        scope, arrays = Scope(), {}
        for name, value in self._values():
            arrays[name] = np.array(value, order="F")
            scope.var(name).value = LoDTensor(arrays[name], value.lod_)
            if arrays[name].dtype.kind == "f":
                arrays[name][...] = 0.5
        with np.errstate(all="ignore"):
            calls = bind_desc(desc, scope, Clock())
            for name, value in self._values():
                arrays[name][...] = np.asarray(value)
            for function, args, kw in calls:
                function(*args, **kw)
        for name, result in results.items():
            if isinstance(result, LoDTensor):
                assert_close(scope.var(name).value, result, rtol, atol, f"{self.type}, columns first: {name}")

    def _is_guarded(self) -> bool:
        """Whether a binding depends on values, or is over things that are not arrays."""
        guard = get_op(self.type).guard
        applies = guard is not None and not (isinstance(guard, ValuesOf) and not guard.applies(self.inputs))
        return applies or any(not isinstance(v, LoDTensor) for _, v in self._values())

    def check_in_place(self, results: Mapping[str, Any]) -> None:
        """Assert that an operator that may work in place does so rightly."""
        if not get_op(self.type).inplace:
            return
        for name, value in self._values():
            for out, result in results.items():
                if not isinstance(value, LoDTensor) or not isinstance(result, LoDTensor):
                    continue
                x, y = np.asarray(value), np.asarray(result)
                if x.shape == y.shape and x.dtype == y.dtype:
                    program = self.program(shared={out: name})
                    for keep in (False, True):
                        got = self.run(program, [name], keep_scopes=keep)
                        assert_same({name: result}, got, f"in place of {out}")


def _put_other_data(array: np.ndarray[Any, Any]) -> None:
    """Write halves, less beside the diagonal of square matrices, so that these can be inverted."""
    array[...] = 0.5
    if array.ndim > 1 and array.shape[-1] == array.shape[-2]:
        array[..., ~np.eye(array.shape[-1], dtype=bool)] = 0.25


def _is_floating(value: Any) -> bool:
    return isinstance(value, LoDTensor) and value.array is not None and value.array.dtype.kind == "f"
