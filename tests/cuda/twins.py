"""Every CUDA kernel beside its numpy twin: the same operator, the same operands, run by the emulator."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fluidnb.op import EMPTY, Binder, Clock, OpDesc, get_op
from fluidnb.op.select import select
from fluidnb.program import Program
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.compare import assert_close
from fluidnb.testing.eager import Fresh
from fluidnb.testing.one_op import OneOp
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.raw import ORDERS
from tests.cuda.devices import OnDevice
from tests.tools.sampling import SEED, is_drawn, takes_all

#: dtype -> how far a result may be from numpy's, relative to numbers above 1.
CLOSE = {"float64": 1e-11, "float32": 3e-5, "float16": 1e-3, "bfloat16": 8e-3}
#: Dtypes that kernels store and do not compute in, where numpy rounds after every step.
HALF = ("float16", "bfloat16")


#: Whether kernels look for memory errors; `test_sanitized` asks for it in processes of their own.
SANITIZE = bool(os.environ.get("FLUIDNB_SANITIZE"))
#: Where CUDA kernels run: on the emulator over numpy's own memory, unless a run wants cupy's.
device: type[OnDevice] = OnDevice


def has_kernel(desc: OpDesc) -> bool:
    """Whether an operator has a CUDA kernel."""
    return any(k.place == "cuda" for k in get_op(desc.optype).kernels)


def check_twins(one: OneOp, program: Program, feed: Mapping[str, Any]) -> None:
    """Run each operator of a program that has a CUDA kernel on the emulator too, and compare.

    Args:
        one: the operator whose program it is; holds the inputs.
        program: the program.
        feed: what is fed beside the inputs.

    Raises:
        AssertionError: results differ.
    """
    ops = program.global_block().desc.ops
    if not any(has_kernel(desc) and _drawn(desc) for desc in ops):
        return
    scope = Scope()
    for row in one.inputs.values():
        for name, value in row:
            scope.var(name).value = value
    for name, array in feed.items():
        scope.var(name).value = LoDTensor(np.array(array), one._lods.get(name, ()))
    for desc in ops:
        run_twins(desc, scope)


def _drawn(desc: OpDesc) -> bool:
    """Whether this run takes an operator: a sampled one takes one in six, its gradient with it."""
    return SANITIZE or is_drawn(desc.optype.partition("_grad")[0], 6)


def run_twins(desc: OpDesc, scope: Scope, where: type[OnDevice] | None = None) -> None:
    """Run an operator with numpy, which writes the scope, and its CUDA kernel in several orders of threads.

    Args:
        desc: the operator.
        scope: its operands.
        where: the device; default `device`.

    Raises:
        AssertionError: results differ.
    """
    copies = [_copy(desc, scope) for _ in ORDERS] if has_kernel(desc) and _takes(desc, scope) else []
    there = {n: found.value for n in desc.output_arg_names() if (found := scope.find_var(n)) is not None}
    before = {n: LoDTensor(v.array.copy()) for n, v in there.items() if type(v) is LoDTensor and v.array is not None}
    _run_on_host(desc, scope)
    where = where or device
    for order, other in _orders(desc, copies):
        for name in dict.fromkeys(desc.input_arg_names()):
            if name != EMPTY and other.find_var(name) is not None:
                other.var(name).value = where.taken(other.find_var(name).value)
        with emulator.running(order, SEED % 1000, SANITIZE):
            _run(desc, other, where(Clock(1)))
        for name in desc.output_arg_names():
            want = scope.find_var(name)
            held = None if name == EMPTY or want is None else _held(want.value)
            if held is None or held.array is None:
                continue
            close = CLOSE.get(held.array.dtype.name, 0.0)
            made = other.find_var(name)
            got = before[name] if made is None else _held(where.brought(made.value))  # it may be left as it was
            assert_close(got, held, close, close, f"{desc.optype} on the device, threads {order}: {name}")


def _takes(desc: OpDesc, scope: Scope) -> bool:
    """Whether an operator's CUDA kernel is for the dtype of its operands; the host's is taken for others."""
    dtype = Binder(LoweredOp(desc, 0, 0), OnDevice(Clock(1)), scope)._dtype()
    return select(get_op(desc.optype), dtype, OnDevice.place_kind, desc.attrs).kernel.place == OnDevice.place_kind


def _held(value: Any) -> LoDTensor | None:
    """The tensor to compare; rows of the same number may be added up already, so that those of SelectedRows are."""
    if isinstance(value, SelectedRows):
        return LoDTensor(value.to_dense())
    return value if type(value) is LoDTensor else None


def _orders(desc: OpDesc, copies: list[Scope]) -> Iterator[tuple[str, Scope]]:
    """One order for each kernel in a sampled run, all of them in a run of all cases."""
    first = (zlib.crc32(desc.optype.encode()) + SEED) % len(ORDERS)
    chosen = ORDERS if takes_all() else ORDERS[first : first + 1]
    return zip(chosen, copies, strict=False)


def _run(desc: OpDesc, scope: Scope, memory: Fresh) -> None:
    with np.errstate(all="ignore"):
        for function, args, kw in Binder(LoweredOp(desc, 0, 0), memory, scope).bind():
            function(*args, **kw)


def _run_on_host(desc: OpDesc, scope: Scope) -> None:
    """Run an operator with numpy; in half precision with float32, rounded at the end."""
    operands = [v.value for n in desc.input_arg_names() if (v := scope.find_var(n)) is not None]
    half = {_dtype(v) for v in operands} & set(HALF)
    if not half:
        _run(desc, scope, Fresh(Clock(1)))
        return
    wide = _copy(desc, scope, np.dtype(np.float32))
    _run(desc, wide, Fresh(Clock(1)))
    for name in desc.output_arg_names():
        if name == EMPTY or wide.find_var(name) is None:
            continue
        value = wide.find_var(name).value
        if _dtype(value) == "float32":
            value = LoDTensor(value.array.astype(np_dtype(next(iter(half)))), value.lod_)
        scope.var(name).value = value


def _dtype(value: Any) -> str:
    return value.array.dtype.name if type(value) is LoDTensor and value.array is not None else ""


def _copy(desc: OpDesc, scope: Scope, instead_of_half: np.dtype[Any] | None = None) -> Scope:
    """A scope with copies of an operator's operands."""
    copy = Scope()
    for name in desc.input_arg_names():
        found = scope.find_var(name)
        if name == EMPTY or found is None:
            continue
        value, dtype = found.value, _dtype(found.value)
        if dtype:
            array = np.array(value.array, instead_of_half if dtype in HALF else None, order="C")
            value = LoDTensor(array, value.lod_)
        copy.var(name).value = value
    return copy
