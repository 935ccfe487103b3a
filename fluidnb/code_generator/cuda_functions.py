"""Host functions of operators on CUDA: each launches the kernels that the executor would launch."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from textwrap import fill
from typing import Any

import numpy as np

from fluidnb.code_generator.functions import TYPES, Argument, NoCode, Texts, Variable, number
from fluidnb.code_generator.names import identifier
from fluidnb.memory import arena
from fluidnb.op import EMPTY, Binder, Clock, get_op
from fluidnb.op.c_code import Parameter, has_c_code
from fluidnb.op.launches import KernelFunction, Launch, launches_of
from fluidnb.op.memory_policy import UnsharedMemory
from fluidnb.op.select import select
from fluidnb.proto.desc import OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import kernel_packages
from fluidnb.values.dtypes import np_dtype
from fluidnb.values.place import CPUPlace
from fluidnb.values.tensor import LoDTensor

#: dtype -> type of C of an argument.
_NUMBERS = {
    "bool": "bool", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "float32": "float", "float64": "double",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a generated program.

    Attributes:
        name: its name in C.
        function: the kernel.
    """

    name: str
    function: KernelFunction


@dataclass(slots=True)
class CudaFunctions(Texts):
    """The host functions of a generated program and the kernels that they launch.

    Attributes:
        kernels: the kernels, by file and name.
        tables: name of a variable -> its constant values.
        rooms: name of a workspace -> its bytes.
        numbers: type of operators that draw -> how many there are so far.
        draws: whether a function draws numbers that differ from run to run.
        seed: the program's seed of random numbers.
    """

    seed: int = 1
    kernels: dict[tuple[str, str], Kernel] = field(default_factory=dict)
    tables: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    rooms: dict[str, int] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)
    draws: bool = False
    language = "CUDA"

    def __post_init__(self) -> None:
        """Imports the kernels and what copies on a device."""
        kernel_packages.load()

    def add(self, op: OpDesc, sequences: int) -> tuple[str, list[Argument]]:
        """The function of an operator and what it is called with.

        Raises:
            NoCode: it has no CUDA kernel, or does something else than launch kernels.
        """
        del sequences
        memory, scope = _Memory(self.seed), Scope()
        launches = _bound(LoweredOp(op, 0, 0, self.numbers[op.optype]), memory, scope)
        self.numbers[op.optype] += bool(get_op(op.optype).random)
        writer = _Writer(self, op, memory, scope)
        lines = [writer.line(*pair) for pair in launches]
        arguments = list(writer.arguments.values())
        parameters = ", ".join(f"CUdeviceptr {a.parameter.name}" for a in arguments) or "void"
        return self.shared(op.optype, "", parameters, "".join(lines)), arguments

    def memory(self) -> dict[str, Variable]:
        """Workspaces and tables."""
        rooms = [Variable(name, (size,), np.dtype(np.uint8), "temporary") for name, size in self.rooms.items()]
        tables = [Variable(name, t.shape, t.dtype, "table") for name, t in self.tables.items()]
        return {v.name: v for v in (*rooms, *tables)}

    def kernel(self, function: KernelFunction) -> str:
        """The name in C of a kernel."""
        key = str(function.source.path), function.name
        if key not in self.kernels:
            base = re.sub(r"\W+", "_", function.name.replace("unsigned ", "u")).strip("_")
            taken = {kernel.name for kernel in self.kernels.values()}
            name, n = f"kernel_{base}", 1
            while name in taken:
                name, n = f"kernel_{base}_{n + 1}", n + 1
            self.kernels[key] = Kernel(name, function)
        return self.kernels[key].name

    @staticmethod
    def missing(op: OpDesc) -> bool:
        """Whether an operator cannot be launches of kernels, whatever its operands are."""
        return not any(kernel.place == "cuda" for kernel in get_op(op.optype).kernels)

    @staticmethod
    def hint(type: str) -> str:
        """Advice about an operator without CUDA code."""
        return f"target='c' takes {type}." if has_c_code(type) else "prune drops what inference does not need."


class _Memory(UnsharedMemory):
    """Arrays of the host that count as a CUDA device's: kernels are bound to them, and never launched."""

    place, place_kind = CPUPlace(), "cuda"

    def __init__(self, seed: int) -> None:
        self.clock = Clock(seed)
        self.rooms: list[np.ndarray[Any, Any]] = []
        self.tables: list[np.ndarray[Any, Any]] = []

    def fixed(self, name: str, outer: bool) -> bool:
        """Every variable keeps the memory that it has."""
        return True

    def alloc(self, shape: Any, dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Any:
        """A workspace."""
        if name is not None:
            raise NoCode(f"{name} has another shape while running.", received=f"shape {list(shape)}, {dtype}")
        array = aligned(shape, np.dtype(dtype))
        self.rooms.append(array)
        return array

    def alloc_on(self, kind: str, shape: Any, dtype: Any) -> Any:
        """Memory that is filled while binding, and keeps its values between runs."""
        if kind != "cuda":
            raise NoCode("The host computes a part of it.")
        if np.dtype(dtype).name not in TYPES:
            raise NoCode("It has constants of a dtype that C does not have.", received=str(dtype))
        array = aligned(shape, np.dtype(dtype))
        array[...] = 0
        self.tables.append(array)
        return array

    def check(self) -> None:
        """Nothing runs."""


def aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A new array, aligned as in the arena: kernels choose their loads by it."""
    size = prod(shape) * dtype.itemsize
    raw = np.empty(size + arena.ALIGN, np.uint8)
    start = -raw.ctypes.data % arena.ALIGN
    return raw[start : start + size].view(dtype).reshape(tuple(shape))


def _bound(lowered: LoweredOp, memory: _Memory, scope: Scope) -> list[tuple[Launch, Launch]]:
    """The launches of an operator in two runs: what differs depends on the number of the run."""
    op = lowered.desc
    assert op.block is not None
    for name in dict.fromkeys((*op.input_arg_names(), *op.output_arg_names())):
        var = None if name == EMPTY else op.block.find_var_recursive(name)
        if var is not None:
            scope.var(name).value = _value(var)
    if lowered.guard is not None:
        raise NoCode(f"The sizes of {op.optype} depend on values.")
    binder = Binder(lowered, memory, scope)
    choice = select(get_op(op.optype), binder._dtype(), "cuda", op.attrs)
    if choice.kernel.place != "cuda":
        raise NoCode(f"{op.optype} has no CUDA kernel for these operands.")
    pairs = []
    with np.errstate(all="ignore"):
        for function, args, kw in binder.bind():
            memory.clock.run = 0
            first = None if kw else launches_of(function, args)
            if first is None:
                raise NoCode(f"{op.optype} calls {getattr(function, '__name__', function)} on the host.")
            memory.clock.run = 1
            pairs += list(zip(first, launches_of(function, args) or (), strict=True))
    return pairs


def _value(var: VarDesc) -> LoDTensor | None:
    """Memory for a variable, without values."""
    shape = tuple(var.shape())
    if var.type() != VarType.LOD_TENSOR or any(n < 0 for n in shape):
        return None
    return LoDTensor(aligned(shape, np_dtype(var.dtype())))


def _whole(given: Any) -> str:
    """A whole number as a constant of C."""
    value, sign = int(given), "U" if given.dtype.kind == "u" else ""
    if -(2**31) < value < 2**31:
        return f"{value}{sign.lower()}"
    return "INT64_MIN" if value == -(2**63) else f"{sign}INT64_C({value})"


@dataclass(frozen=True, slots=True)
class _Region:
    """Memory that launches reach: a variable, a workspace or a table."""

    start: int
    size: int
    argument: Argument


class _Writer:
    """Writes the launches of one operator as C."""

    def __init__(self, functions: CudaFunctions, op: OpDesc, memory: _Memory, scope: Scope) -> None:
        self.functions, self.optype, self.in_loop = functions, op.optype, op.block is not None and op.block.idx > 0
        self.arguments: dict[str, Argument] = {}  # by the name of their parameter, in the order of their first use
        self._regions: list[_Region] = []
        known: set[str] = set()
        for slots, is_input in ((op.ins, True), (op.outs, False)):
            for slot, names in slots.items():
                for i, name in enumerate(names):
                    if name == EMPTY or name in known or scope.var(name).value is None:
                        continue
                    known.add(name)
                    parameter = identifier(slot.replace("@", "_") + (f"_{i}" if len(names) > 1 else ""))
                    self._add(scope.var(name).value.array, parameter, name, is_input)
        for kind, arrays in (("workspace", memory.rooms), ("table", memory.tables)):
            for i, array in enumerate(arrays):
                name = f"{kind} {len(functions.rooms) + len(functions.tables)}"
                if kind == "table":
                    functions.tables[name] = array
                else:
                    functions.rooms[name] = array.nbytes
                self._add(array, f"{kind}_{i}", name, False)

    def _add(self, array: np.ndarray[Any, Any], parameter: str, name: str, is_input: bool) -> None:
        argument = Argument(Parameter(parameter, parameter, "CUdeviceptr", is_input, False), (name,), "CUdeviceptr")
        self._regions.append(_Region(array.ctypes.data, array.nbytes, argument))

    def line(self, launch: Launch, again: Launch) -> str:
        """A launch as a line of C.

        Args:
            again: the same in another run.
        """
        if launch.kernel is None:
            target, source = launch.args
            to, of = (self._address(a) for a in (target, source))
            return f"    check(cuMemcpyDtoDAsync({to}, {of}, {target.nbytes}, NULL));\n"
        args = [f"&{self._argument(a, b)}" for a, b in zip(launch.args, again.args, strict=True)]
        sizes = ", ".join(str(int(n)) for n in (*(*launch.grid, 1, 1)[:3], *(*launch.block, 1, 1)[:3]))
        name = self.functions.kernel(launch.kernel)
        start = f"    launch({name}, {sizes}, {launch.shared}, (void *[]){{"
        indent = " " * len("    launch(")
        return fill(start + ", ".join(args), 118, subsequent_indent=indent, break_long_words=False) + "});\n"

    def _argument(self, given: Any, again: Any) -> str:
        """An argument of a kernel as a compound literal."""
        if isinstance(given, np.ndarray):
            text = self._address(given)
            return text if text.isidentifier() else f"(CUdeviceptr){{{text}}}"
        if given is None:
            return "(CUdeviceptr){0}"
        if not isinstance(given, np.generic) or given.dtype.name not in _NUMBERS:
            raise NoCode(f"{self.optype} passes an argument that has no literal in C.", received=repr(given))
        type = _NUMBERS[given.dtype.name]
        if given != again:
            start = int(given)
            if int(again) != start + 1 or self.in_loop:
                raise NoCode(f"{self.optype} depends on the number of the run.", received=repr(given))
            self.functions.draws = True
            return f"({type}){{run + {start}}}" if start else f"({type}){{run}}"
        return f"({type}){{{number(float(given), type) if given.dtype.kind == 'f' else _whole(given)}}}"

    def _address(self, array: np.ndarray[Any, Any]) -> str:
        """The address of an array: a parameter, and a number of bytes where it is a part."""
        at = array.ctypes.data
        for region in self._regions:
            if region.start <= at < region.start + max(region.size, 1):
                name = region.argument.parameter.name
                self.arguments[name] = region.argument
                return name if at == region.start else f"{name} + {at - region.start}"
        raise NoCode(f"{self.optype} reads memory that is none of its variables.")
