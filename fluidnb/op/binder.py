"""Binder, the interface of a kernel: concrete arrays by slot, and emission of calls.

Nothing runs while a kernel binds. ``b(np.add, x, y, out=out)`` records a call: a callable and its arguments. The same
list of calls serves the first run, the replay, memory placement and the debugger's journal, so arrays must be arguments
and never hide in a closure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from fluidnb.errors import EnforceNotMet, FluidError
from fluidnb.op.check import missing
from fluidnb.op.context import EMPTY, Context, Lod
from fluidnb.op.declared_scalar import declared_scalar
from fluidnb.op.define import OpDef
from fluidnb.op.forward_rule import check_operands
from fluidnb.op.memory_policy import Memory
from fluidnb.op.rng import Stream
from fluidnb.op.rule_evaluation import evaluate, is_array
from fluidnb.op.scalar_fast_path import assign
from fluidnb.op.select import select
from fluidnb.op.transform import LAYOUT_COPIES, copy, copy_between, cross, layout_shape
from fluidnb.op.ufunc_rewrites import ufunc_calls
from fluidnb.proto.desc import OpDesc
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import dtypes
from fluidnb.values import invalidation as epoch
from fluidnb.values.place import CPUPlace
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


class OpView(Protocol):
    """View of a lowered operator for a binder; ``guard`` is None where that of its type does not apply."""

    desc: OpDesc
    definition: OpDef
    guard: Any
    number: int

    @property
    def inputs(self) -> dict[str, list[str]]:
        """The names of its inputs by slot."""

    @property
    def outputs(self) -> dict[str, list[str]]:
        """The names of its outputs by slot."""

    def text(self) -> str:
        """The operator as text."""

    def where(self) -> SourceLocation | None:
        """The user's line."""


#: An array of any place: numpy's on a CPU, cupy's on a GPU.
Array = Any
#: A callable, its positional arguments, its keyword arguments.
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
#: The copy inwards, the copy outwards and the buffer of one data transform.
Step = tuple[Any, Any, Array]
_consts: dict[tuple[Any, ...], Array] = {}
#: dtype -> its name, which numpy would compute each time.
_names: dict[Any, str] = {}


def _point(tensor: LoDTensor, array: Array, lod: Lod) -> None:
    """Gives a variable's tensor another buffer."""
    tensor.array, tensor.lod_ = array, lod


class Binder(Context):
    """Binds one operator: the arrays of its variables, and the calls that its kernel emits.

    Attributes:
        calls: the emitted calls.
        decisions: function, arguments and result of each `decide`.
        lods_read: how often its kernel has read LoDs.
        kernel_place: kind of the place that the kernel computes on, ``cpu`` or ``cuda``.
        overwrites: buffers that existed before and are written.
        control: the `Control` that the kernel of a control operator returned.
        transforms: the data transforms around the kernel, as text.
    """

    __slots__ = (
        "_inputs", "_outputs", "_post", "_same", "_target", "attrs", "calls", "control", "decisions", "definition",
        "inputs", "kernel_place", "memory", "op",
        "lods_read", "outputs", "overwrites", "runtime", "scope", "transforms", "uses_rng",
    )  # fmt: skip

    def __init__(self, op: OpView, memory: Memory, scope: Any) -> None:
        self.op, self.memory, self.scope, self.definition = op, memory, scope, op.definition
        self.inputs, self.outputs, self.attrs = op.inputs, op.outputs, op.desc.read_attrs
        self.runtime = True
        self.calls: list[Call] = []
        self.decisions: list[tuple[Any, tuple[Any, ...], bool]] = []
        self.lods_read = 0
        self._post: list[Call] = []
        self._same: list[Array] = []  # arrays of one element that go in and out
        self._target: Any = None
        self.kernel_place = memory.place_kind
        self.overwrites: list[Array] = []
        self.uses_rng = False
        self.control: Any = None
        self.transforms: list[str] = []
        self._outputs: dict[str, list[Array]] = {}
        self._inputs: dict[str, list[tuple[Any, Lod]]] = {}
        for slot, names in self.inputs.items():
            row: list[tuple[Any, Lod]] = []
            for n in names:
                value = scope.cell(n)[0].value if n != EMPTY else None
                row.append((value.array, value.lod_) if type(value) is LoDTensor else (value, ()))
            self._inputs[slot] = row

    # ---- reading

    @property
    def on_cuda(self) -> bool:
        """Whether the kernel that is bound computes on a GPU."""
        return self.kernel_place == "cuda"

    def __getitem__(self, slot: str) -> Any:
        outputs = self._outputs.get(slot)
        if outputs is not None:
            return outputs[0]
        row = self._inputs.get(slot)
        return row[0][0] if row else None

    def all(self, slot: str) -> list[Any]:
        row = self._inputs.get(slot)
        return self._outputs.get(slot, []) if row is None else [v for v, _ in row]

    def lods(self, slot: str) -> list[Lod]:
        self.lods_read += 1
        return [lod for _, lod in self._inputs.get(slot, ())]

    def is_rows(self, slot: str) -> bool:
        row = self._inputs.get(slot)
        return bool(row) and all(isinstance(value, SelectedRows) for value, _ in row or ())

    # ---- outputs

    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> Any:
        """Sets shape, dtype and LoD of output ``i`` of a slot.

        Returns:
            The buffer that the kernel fills; None when this output has no consumer.
        """
        if not self.wants(slot, i):
            return None
        name = self.outputs[slot][i]
        shape, dtype = tuple(shape), np.dtype(dtype)
        scalar = shape == (1,) and declared_scalar(self.op.desc, name)
        shape = () if scalar else shape
        cell, owner = self.scope.cell(name)
        tensor = cell.value
        if type(tensor) is not LoDTensor:
            tensor = cell.value = LoDTensor(place=self.memory.place)
        current = tensor.array
        outer = owner is not self.scope
        before = tensor.lod_
        fits = current is not None and current.shape == shape and current.dtype == dtype
        read = fits and any(v is current for row in self._inputs.values() for v, _ in row)
        inplace = self.definition.inplace
        if fits and self.memory.fixed(name, outer):
            self.overwrites.append(current)
            array = current
            if read and not inplace:
                array = self.memory.alloc(shape, dtype, None, False, None, 0)
                self._post.append(self._copying(array, current))
        elif read and inplace and not self.memory.is_shared(current):
            self.overwrites.append(current)
            array = current
        else:
            array = self.memory.alloc(shape, dtype, name, outer, None, owner.block_index)
            if outer and current is not None and self.memory.moves(name, self.scope, owner):
                self._post.append((_point, (tensor, array, lod), {}))
            tensor.array, before = array, lod
        if outer and before != lod and self.memory.moves(name, self.scope, owner):
            self._post.append((_point, (tensor, tensor.array, lod), {}))
        if tensor.bound and (tensor.array is not current or tensor.lod_ != lod):
            epoch.value += 1  # what was bound to the old buffer checks it before the next run
        tensor.lod_ = lod
        if read and current is not None and array is current and current.size == 1:
            self._same.append(current)
        if self._target is not None:
            array = self._target(array)
        if scalar and array is not None:  # kernels write one element
            array = array.reshape((1,))
        row = self._outputs.setdefault(slot, [])
        while len(row) <= i:
            row.append(None)
        row[i] = array
        return array

    def _copying(self, source: Array, target: Array) -> Call:
        """The call that copies within this place."""
        here = self.memory.place_kind
        if here == "cpu" or self._target is not None:  # an assignment costs half of what np.copyto does on one element
            return *assign(target, source), {}
        return copy_between(here, here), (source, target), {}

    def put(self, slot: str, value: Any, i: int = 0) -> Any:
        """Sets an output that is no tensor: a rank table, rows, the list of step scopes. Returns it."""
        stored = value
        if isinstance(value, SelectedRows) and self.kernel_place != self.memory.place_kind:
            stored = SelectedRows((), value.height_, LoDTensor(value.value.array, (), self.memory.place))
            self._post.append((cross, (value, stored, self.memory.place), {}))
        if self.wants(slot, i):
            self.scope.cell(self.outputs[slot][i])[0].value = stored
        row = self._outputs.setdefault(slot, [])
        row.extend([None] * (i + 1 - len(row)))
        row[i] = value
        return value

    def array(self, slot: str) -> LoDTensorArray:
        """The tensor array of an output, created at its first write; a new one when this output has no consumer.

        It is emptied when a run starts, or when the block is entered that declares it.
        """
        if not self.wants(slot):
            return LoDTensorArray()
        name = self.outputs[slot][0]
        cell, owner = self.scope.cell(name)
        if not isinstance(cell.value, LoDTensorArray):
            cell.value = self.memory.array(name, owner.block_index)
        array: LoDTensorArray = cell.value
        return array

    def alias(self, slot: str, array: Array, lod: Lod = (), i: int = 0) -> None:
        """Makes an output a view of an input, or a copy where a view would not be safe."""
        if not self.wants(slot, i):
            return
        name = self.outputs[slot][i]
        cell, owner = self.scope.cell(name)
        fixed = self._target is not None or self.memory.fixed(name, owner is not self.scope)
        if fixed or not self.memory.may_alias(array, name):
            out = self.set(slot, array.shape, array.dtype, lod, i)
            function, args, _ = self._copying(array, out)
            self(function, *args)
            return
        if type(cell.value) is not LoDTensor:
            cell.value = LoDTensor(place=self.memory.place)
        cell.value.array, cell.value.lod_ = array, lod
        self.memory.share(array)
        self._outputs.setdefault(slot, []).append(array)

    # ---- memory and constants

    def tmp(self, shape: Any, dtype: Any) -> Array:
        """A workspace of this operator alone; its content is undefined."""
        return self._workspace(tuple(shape), np.dtype(dtype), None)

    def _workspace(self, shape: tuple[int, ...], dtype: np.dtype[Any], order: Any) -> Array:
        if self.kernel_place != self.memory.place_kind:
            return self.memory.alloc_on(self.kernel_place, shape, dtype)
        return self.memory.alloc(shape, dtype, None, False, order, 0)

    def like(self, x: Array, dtype: Any = None) -> Array:
        """A workspace with the shape and memory order of an array: under another order numpy is slow."""
        order = None
        if isinstance(x, np.ndarray) and x.ndim > 1 and not x.flags.c_contiguous:
            order = tuple(sorted(range(x.ndim), key=lambda i: -x.strides[i]))
        return self._workspace(x.shape, x.dtype if dtype is None else np.dtype(dtype), order)

    def keep(self, shape: Any, dtype: Any) -> Array:
        """Memory that keeps its address between runs, filled with zeros."""
        return self.table(np.zeros(shape, dtype))

    def table(self, numbers: Any) -> Array:
        """Copies numbers computed while binding (offsets, row numbers) to the kernel's place, for all runs."""
        array = self.memory.alloc_on(self.kernel_place, numbers.shape, numbers.dtype)
        (copy if isinstance(array, np.ndarray) else copy_between("cpu", self.kernel_place))(numbers, array)
        return array

    @staticmethod
    def const(value: Any, dtype: Any) -> Array:
        """A constant of one element: a read-only 0-d array, cached."""
        key = (value, type(value), np.dtype(dtype))
        constant = _consts.get(key)
        if constant is None:
            constant = _consts[key] = np.array(value, dtype)
            constant.flags.writeable = False
        return constant

    @property
    def rng(self) -> Stream:
        """The operator's stream of random numbers; see `fluidnb.op.rng`."""
        self.uses_rng = True
        names = [n for row in self.outputs.values() for n in row if n != EMPTY]
        kind, seed = self.definition.type, int(self.attr("seed", 0) or 0)
        name = self.attr("slice_of") or (names[0] if names else kind)  # rows of a variable get the numbers of the whole
        return Stream(name, self.memory.clock, seed, kind, self.op.number)

    # ---- emitting

    def decide(self, test: Any, *args: Any) -> bool:
        """The result of a test by which a kernel emits other calls for a range of sizes than below and above it.

        A binding for other sizes is then not taken over from those around it without the same test.
        """
        result = bool(test(*args))
        self.decisions.append((test, args, result))
        return result

    def __call__(self, function: Any, *args: Any, **kw: Any) -> None:
        """Emits one call.

        Args:
            function: a numpy ufunc, a bound method or a function; its arrays are arguments, never captured.
            kw: write ``out=`` for ufuncs, the binder passes it by position where that is faster.
        """
        if type(function) is np.ufunc:
            tmp = self.tmp if self.kernel_place == "cpu" else None
            self.calls += ufunc_calls(function, args, kw, self._same, tmp)
            return
        self.calls.append((function, args, kw))

    def bind(self) -> list[Call]:
        """Runs the shape rule and the kernel; returns the calls that compute the operator."""
        definition = self.definition
        self._check_operands()
        if definition.is_grad:
            check_operands(self)
        dtype = self._dtype()
        choice = select(definition, dtype, self.memory.place_kind, self.attrs)
        if definition.infer is not None:
            evaluate(definition.infer, self)
        kernel = choice.kernel
        if kernel.place != "cpu":
            self._check_lods()
        if choice.cast or kernel.layout not in ("ANY_LAYOUT", "NCHW") or kernel.place != self.memory.place_kind:
            if not definition.control:
                self._adapt(kernel.layout, choice.cast, kernel.place, dtype)
        self.lods_read = 0  # a shape rule passes them on
        result = kernel.function(self)
        if definition.control:
            self.control = result
        self.calls += self._post
        return self.calls

    def refusal(self, error: Exception) -> Exception:
        """The error of the operands' checks, which come after a guard; the guard's error where they find nothing."""
        if not isinstance(error, FluidError):
            try:
                self._check_operands()
                self.check_inputs()
            except FluidError as refused:
                return refused
        return error

    def _check_operands(self) -> None:
        self._check_slots()
        if self.definition.unset != ("*",):
            self._check_inputs()

    def _dtype(self) -> str:
        slot = self.definition.dtype_slot
        rows = [self._inputs[slot]] if slot and slot in self._inputs else self._inputs.values()
        for row in rows:
            for value, _ in row:
                dtype = getattr(value, "dtype", None)
                if dtype is not None:
                    return _names.get(dtype) or _names.setdefault(dtype, str(dtype))
        number = self.attr("dtype", self.attr("out_dtype"))
        return dtypes.dtype_name(number) if isinstance(number, int) and number >= 0 else "float32"

    def _check_slots(self) -> None:
        """Refuses an operator of a parsed or edited program that lacks a slot."""
        definition = self.definition
        for slots, present in ((definition.inputs, self.inputs), (definition.outputs, self.outputs)):
            for slot in slots.values():
                if not slot.dispensable and slot.name not in present:
                    raise missing(definition, slot, present)

    def _check_lods(self) -> None:
        """Checks offsets for a device kernel, which trusts them; with unchecked feeds they may be anything."""
        for slot, row in self._inputs.items():
            for value, lod in row:
                if not lod or not is_array(value) or not value.shape:
                    continue
                ends = [*(len(level) - 1 for level in lod[1:]), value.shape[0]]
                for level, end in zip(lod, ends, strict=True):
                    if level[0] != 0 or level[-1] != end or any(a > b for a, b in pairwise(level)):
                        self.fail(
                            f"The sequences of Input({slot}) of {self.definition.type} do not fit its rows.",
                            expected=f"ascending offsets from 0 to {end}", received=f"{list(level)[:20]}",
                        )  # fmt: skip

    def _check_inputs(self) -> None:
        for slot, row in self._inputs.items():
            if slot in self.definition.unset:
                continue
            for i, (value, _) in enumerate(row):
                if value is None and self.inputs[slot][i] != EMPTY:
                    self._raise_no_value(slot, self.inputs[slot][i])

    def _raise_no_value(self, slot: str, name: str) -> None:
        var = None
        block = self.op.desc.block
        if block is not None:
            var = block.find_var_recursive(name)
        if var is not None and var.persistable():
            hint = "run the startup program first, in the same scope: exe.run(fluid.default_startup_program())."
        elif var is not None and var.is_data():
            hint = f'feed it: exe.run(feed={{"{name}": ...}}).'
        elif block is not None and any(o.optype == "delete_var" and name in o.input_arg_names() for o in block.ops):
            hint = f"delete_var has dropped {name}: memory_optimize and release_memory come last, after minimize."
        else:
            hint = f"no operator before this one has written {name}, and it was not fed."
        dtype, shape = (None, None) if var is None else (dtypes.dtype_name(var.dtype()), tuple(var.shape()))
        raise EnforceNotMet(
            f"Input {slot} of {self.definition.type} holds no memory: {name} has no value yet.", op=self.text(),
            slots=[(slot, name, dtype, shape)], where=self.where(), expected="a value", received="nothing", hint=hint,
        )  # fmt: skip

    # ---- data transforms

    def _adapt(self, layout: str, cast: str | None, place: str, dtype: str) -> None:
        """Inserts transforms around the kernel: copies of its inputs before it, copies of its outputs after it."""
        here = self.memory.place_kind
        if cast:
            self.transforms.append(f"dtype {dtype} -> {cast}")
        if layout in LAYOUT_COPIES:
            self.transforms.append(f"layout NCHW -> {layout}")
        if place != here:
            self.transforms.append(f"place {here} -> {place}")
        for row in self._inputs.values():
            for i, (value, lod) in enumerate(row):
                if is_array(value):
                    row[i] = (self._transform_input(value, layout, cast, here, place), lod)
                elif isinstance(value, SelectedRows) and place != here and (source := value.value.array) is not None:
                    there = SelectedRows((), value.height_, LoDTensor(np.empty((0, *source.shape[1:]), source.dtype)))
                    self.calls.append((cross, (value, there, CPUPlace()), {}))
                    row[i] = (there, lod)

        def target(array: Array) -> Array:
            return self._transform_output(array, layout, cast, here, place)

        for outs in self._outputs.values():
            for i, array in enumerate(outs):
                if is_array(array):
                    outs[i] = target(array)
        self._target, self.kernel_place = target, place

    def _steps(self, array: Array, layout: str, cast: str | None, here: str, place: str) -> list[Step]:
        """The transforms that apply to an array, from the variable inwards."""
        steps: list[Step] = []
        shape, dtype = array.shape, array.dtype
        if place != here and place == "cpu":  # the host changes layouts and dtypes of other devices' data
            steps.append(self._crossing(here, place, shape, dtype))
            here = place
        if layout in LAYOUT_COPIES and len(shape) == 4:
            shape = layout_shape(shape, layout)
            steps.append((*LAYOUT_COPIES[layout], self.memory.alloc_on(here, shape, dtype)))
        if cast and dtype.kind == "f" and str(dtype) != cast:
            dtype = dtypes.np_dtype(cast)
            steps.append((copy, copy, self.memory.alloc_on(here, shape, dtype)))
        if place != here:
            steps.append(self._crossing(here, place, shape, dtype))
        return steps

    def _crossing(self, here: str, place: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Step:
        """The transform between two kinds of place."""
        return copy_between(here, place), copy_between(place, here), self.memory.alloc_on(place, shape, dtype)

    def _transform_input(self, array: Array, layout: str, cast: str | None, here: str, place: str) -> Array:
        for inwards, _, buffer in self._steps(array, layout, cast, here, place):
            self.calls.append((inwards, (array, buffer), {}))
            if self.op.guard is not None and place == "cpu":
                inwards(array, buffer)  # its kernel reads values while it binds
            array = buffer
        return array

    def _transform_output(self, array: Array, layout: str, cast: str | None, here: str, place: str) -> Array:
        back: list[Call] = []
        for _, outwards, buffer in self._steps(array, layout, cast, here, place):
            back.append((outwards, (buffer, array), {}))
            array = buffer
        self._post = back[::-1] + self._post
        return array

    # ---- messages

    def text(self) -> str:
        return self.op.text()

    def where(self) -> SourceLocation | None:
        return self.op.where()
