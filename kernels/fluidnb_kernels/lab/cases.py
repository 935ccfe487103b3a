"""Operands on which a kernel is tried: random numbers in several shapes, or what the user gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb.errors import FluidError, OpValueError
from fluidnb.op import EMPTY, GRAD, Array, Binder, InputSpec, OpDef, OpDesc, Slot, check_desc, get_op, has_op, make_grad
from fluidnb.op.attr import REQUIRED
from fluidnb.op.rng import Clock
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.testing.eager import Fresh
from fluidnb.testing.values import named
from fluidnb.utils.source_location import SourceLocation, capture
from fluidnb.values import LoDTensor
from fluidnb.values.dtypes import np_dtype
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.lab.compile import KernelRefused

#: Shapes that are tried: small and odd ones, squares for products, one that is empty, one with many threads.
SHAPES: tuple[tuple[int, ...], ...] = (
    (7,), (5, 3), (6, 6), (4, 33), (2, 3, 5), (2, 3, 4, 5), (1, 1), (0, 3), (33, 33), (129, 67)
)  # fmt: skip
#: Ranges of numbers; the first one in which an operator's results are numbers is taken.
RANGES = ((-2.0, 2.0), (0.2, 3.0), (-0.9, 0.9), (0.1, 0.9), (1.2, 4.0))
HALF = ("float16", "bfloat16")
#: kind of an attribute -> a value for those that have no default
_ANY: dict[str, Any] = {"int": 1, "long": 1, "dtype": 5, "float": 1.0, "float64": 1.0, "string": "", "bool": False}


class OnDevice(Fresh):
    """Memory that counts as a CUDA device's, so that kernels for it are chosen; its arrays are numpy's own."""

    place_kind = "cuda"


class OnGpu(OnDevice):
    """Memory of a GPU, filled with NaN or ones likewise."""

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A new array in C order."""
        return on_gpu(super().alloc(shape, dtype, name, outer, None, where))

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """A new array of the GPU, or of the host."""
        array = super().alloc_on(kind, shape, dtype)
        return on_gpu(array) if kind == "cuda" else array


def on_gpu(array: Array) -> Array:
    """A copy of an array on the GPU."""
    made = backend.cupy().ndarray(array.shape, array.dtype)
    made.set(np.asarray(array, order="C"))
    return made


class Sevens(Fresh):
    """Memory that is filled with sevens instead of NaN: what is the same in both has been written."""

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A new array."""
        array = super().alloc(shape, dtype, name, outer, order, where)
        array[...] = 7
        return array


#: kind of place -> the memory in which an operator is run by itself
MEMORY: dict[str, type[Fresh]] = {"cpu": Fresh, "cuda": OnDevice, "gpu": OnGpu, "sevens": Sevens}


class Lined(Binder):
    """A binder that records the user's line of each call; None where no line of the user's emitted it."""

    def __init__(self, op: Any, memory: Any, scope: Any) -> None:
        self.lines: list[SourceLocation | None] = []
        super().__init__(op, memory, scope)

    def __call__(self, function: Any, *args: Any, **kw: Any) -> None:
        super().__call__(function, *args, **kw)
        self.lines += [capture()] * (len(self.calls) - len(self.lines))


@dataclass(frozen=True, slots=True)
class Case:
    """An operator with operands."""

    desc: OpDesc  # the operator
    values: dict[str, LoDTensor]  # name -> operand
    dtype: str  # the dtype that was asked for
    forward: Case | None = None  # the case of the forward operator, for a gradient operator
    cotangents: dict[str, Array] = field(default_factory=dict)

    @property
    def shape(self) -> str:
        """The shapes of its operands in words: ``X [5, 3]``; of the forward operator's for a gradient."""
        of = self.forward or self
        return ", ".join(
            f"{n} {list(np.asarray(of.values[n]).shape)}" for n in of.desc.input_arg_names() if n in of.values
        )

    @property
    def size(self) -> int:
        """The number of elements of its operands."""
        return sum(int(np.asarray(v).size) for v in self.values.values())

    def scope(self, place: str = "cpu", wide: bool = False) -> Scope:
        """A scope with copies of its operands."""
        scope = Scope()
        for name, value in self.values.items():
            array = np.asarray(value)
            dtype = np.float32 if wide and array.dtype.name in HALF else None
            copy = np.array(array, dtype, order="C")
            scope.var(name).value = LoDTensor(on_gpu(copy) if place == "gpu" else copy, value.lod_)
        return scope

    def bind(self, place: str, scope: Scope) -> list[Any]:
        """Bind its kernel of a kind of place."""
        return self._binder(place, scope).bind()

    def _binder(self, place: str, scope: Scope) -> Lined:
        return Lined(LoweredOp(self.desc, 0, 0), MEMORY[place](Clock(1)), scope)

    def run(self, place: str, wide: bool = False, blind: bool = False) -> dict[str, Array]:
        """Run it; ``blind`` binds the kernel over other numbers, since a binding has to serve all of them."""
        scope = self.scope(place, wide)
        binder = self._binder(place, scope)
        with np.errstate(all="ignore"):
            kept = self._hide(scope) if blind and place != "gpu" else []
            calls = binder.bind()
            for array, numbers in kept:
                array[...] = numbers
            for i, (function, args, kw) in enumerate(calls):
                try:
                    function(*args, **kw)
                except FluidError:
                    raise
                except Exception as error:
                    where = binder.lines[i] if i < len(binder.lines) else None
                    raise self._failed(function, args, error, where) from None
        found = {name: scope.find_var(name) for name in self.desc.output_arg_names() if name != EMPTY}
        held = {n: v.value for n, v in found.items() if v is not None}
        arrays = {n: v.array for n, v in held.items() if isinstance(v, LoDTensor) and v.array is not None}
        return {n: a if isinstance(a, np.ndarray) else a.get() for n, a in arrays.items()}

    def _hide(self, scope: Scope) -> list[tuple[Array, Array]]:
        """Put halves into the floating operands, unless the operator says that a binding depends on values."""
        if get_op(self.desc.optype).guard is not None:
            return []
        arrays = [scope.var(name).value.array for name in self.values]
        kept = [(a, a.copy()) for a in arrays if a.dtype.kind == "f"]
        for array, _ in kept:
            array[...] = 0.5
        return kept

    def _failed(self, function: Any, args: Any, error: Exception, where: SourceLocation | None) -> KernelRefused:
        name = getattr(function, "__name__", str(function))
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in args if isinstance(a, np.ndarray))
        return KernelRefused(
            f"A call of the kernel of {self.desc.optype} fails: {name}({shapes}).", where=where,
            slots=[("on", f"{self.shape}, {self.dtype}", None, None)], received=f"{type(error).__name__}: {error}",
        )  # fmt: skip

    def expected(self) -> dict[str, Array]:
        """The results of numpy's kernels; in half precision computed in float32 and rounded at the end."""
        if self.dtype not in HALF:
            return self.run("cpu")
        narrow = np_dtype(self.dtype)
        return {n: a.astype(narrow) if a.dtype == np.float32 else a for n, a in self.run("cpu", wide=True).items()}


def cases(
    type: str, dtypes: Sequence[str], inputs: Mapping[str, Any] | None = None, attrs: Mapping[str, Any] | None = None,
    shapes: Sequence[Sequence[int]] = SHAPES, seed: int = 1, strict: bool = False,
) -> list[Case]:  # fmt: skip
    """Operands for an operator; ``strict``: a kernel must run wherever the shape rule holds."""
    base = forward_of(type)
    definition = get_op(base)
    out: list[Case] = []
    refused: FluidError | None = None
    for dtype in dtypes:
        for shape in [()] if inputs else shapes:
            try:
                case = _forward(definition, dtype, inputs, attrs, shape, seed)
                out.append(case if base == type else _backward(case, type))
            except (FluidError, ValueError, IndexError, TypeError) as error:
                if strict and (isinstance(error, KernelRefused) or not isinstance(error, FluidError)):
                    raise
                refused = error if isinstance(error, FluidError) else refused
    if not out:
        wanted = ", ".join(s.name for s in definition.inputs.values() if not s.dispensable)
        raise OpValueError(
            f"{base} takes none of the shapes on which kernels are tried.",
            expected=f"operands for {wanted}", received=refused.summary if refused else f"dtypes {', '.join(dtypes)}",
            hint='give them: --input "X=np.random.rand(4, 5)", and --attr "axis=1" for attributes.',
        )  # fmt: skip
    return out


def forward_of(type: str) -> str:
    """The operator to which a gradient operator belongs; itself for another one."""
    base = type.removesuffix("_grad")
    return base if base != type and has_op(base) and get_op(type).is_grad else type


def _forward(
    definition: OpDef, dtype: str, inputs: Mapping[str, Any] | None, attrs: Mapping[str, Any] | None,
    shape: Sequence[int], seed: int,
) -> Case:  # fmt: skip
    """A case with numbers from the first range in which the results are numbers."""
    required = {n: a.kind for n, a in definition.attrs.items() if a.default is REQUIRED}
    settings = {n: _ANY.get(kind, []) for n, kind in required.items()} | dict(attrs or {})
    found = None
    for low, high in RANGES[:1] if inputs else RANGES:
        rng = np.random.default_rng([seed, *shape])
        if inputs:
            values = {slot: [(n, _cast(v, dtype)) for n, v in row] for slot, row in named(inputs).items()}
        else:
            values = dict(_random(definition, dtype, tuple(shape), low, high, rng))
        desc = OpDesc(
            definition.type, {s: [n for n, _ in row] for s, row in values.items()},
            {s: [f"{s}@out"] for s, slot in definition.outputs.items()}, dict(settings),
        )  # fmt: skip
        check_desc(definition, desc)
        case = Case(desc, dict(pair for row in values.values() for pair in row), dtype)
        results = case.expected()
        found = found or case
        if all(np.isfinite(a.astype(np.float64)).all() for a in results.values() if a.dtype.kind in "fV"):
            return case
    assert found is not None
    return found


def _random(
    definition: OpDef, dtype: str, shape: tuple[int, ...], low: float, high: float, rng: np.random.Generator
) -> Iterator[tuple[str, list[tuple[str, LoDTensor]]]]:
    for slot in definition.inputs.values():
        if slot.dispensable:
            continue
        kind = np_dtype(_dtype_of(slot, dtype))
        names = [f"{slot.name}_{i}" for i in range(2)] if slot.duplicable else [slot.name]
        row = []
        for name in names:
            if kind.kind in "iub":
                array = rng.integers(0, 2, shape).astype(kind)
            else:
                array = rng.uniform(low, high, shape).astype(kind)
            row.append((name, LoDTensor(array)))
        yield slot.name, row


def _dtype_of(slot: Slot, floating: str) -> str:
    """The dtype on which a slot is tried; ``floating`` where it does not want integers or bools."""
    spec = slot.specs[0] if slot.specs else InputSpec()
    if spec.dtype_class == "int":
        return "int64" if spec.dtype == "int" else spec.dtype
    return "bool" if spec.dtype_class == "bool" else floating


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, LoDTensor) and value.array is not None and value.array.dtype.kind == "f":
        return LoDTensor(value.array.astype(np_dtype(dtype)), value.lod_)
    return value


def gradients(case: Case) -> tuple[list[OpDesc], dict[str, Array]]:
    """The gradient operators of a case in running order, and random gradients of its outputs by name."""
    results = case.expected()
    whole = {n for n, v in case.values.items() if not _is_floating(v.array)}
    descs = make_grad(case.desc, whole)
    rng = np.random.default_rng(7)
    given = {f"{n}{GRAD}": rng.uniform(-1, 1, a.shape).astype(a.dtype) for n, a in results.items() if _is_floating(a)}
    # outputs that only the gradient reads have no slope of their own
    private = [f"{n}{GRAD}" for s in get_op(case.desc.optype).outputs.values() if s.intermediate
               for n in case.desc.outs.get(s.name, [])]  # fmt: skip
    for name in private:
        if name in given:
            given[name] = np.zeros_like(given[name])
    return descs, given


def _is_floating(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _backward(case: Case, type: str) -> Case:
    """The case of a gradient operator."""
    descs, given = gradients(case)
    desc = next((d for d in descs if d.optype == type), None)
    if desc is None:
        made = ", ".join(d.optype for d in descs)
        raise OpValueError(f"{case.desc.optype} has no gradient operator {type}.", expected=made, received=type)
    lods = {n: v.lod_ for n, v in case.values.items()}
    held = {n: LoDTensor(a, lods.get(n, ())) for n, a in (case.expected() | given).items()} | case.values
    values = {n: held[n] for n in desc.input_arg_names() if n in held}
    return Case(desc, values, case.dtype, case, given)
