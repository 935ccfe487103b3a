"""Shape inference while a program is built: operands are VarDescs, unknown sizes are -1."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fluidnb.errors import NotFound, near
from fluidnb.op.context import EMPTY, GRAD, Context, Lod, RuleError
from fluidnb.op.declared_scalar import declared_scalar
from fluidnb.op.define import OpDef, get_op
from fluidnb.op.rules import product
from fluidnb.op.suggestions import suggest
from fluidnb.proto import hooks
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import dtypes
from fluidnb.values import strict_feeds as declared

_TENSORS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
_LEVELED = (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY)
#: Dtypes of values for variables that old programs declare float32.
_OTHERS = tuple(np.dtype(name) for name in ("int64", "bool", "int32"))


class Spec(NamedTuple):
    """Known properties of a variable before it has a value."""

    shape: tuple[int, ...]  # sizes, -1 unknown
    dtype: np.dtype[Any] | None  # numpy dtype, or None for what is not a tensor

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, -1 when a size is unknown."""
        return product(self.shape)


class CompileContext(Context):
    """The context of one operator of a program that is being built; it sees the variables of outer blocks."""

    __slots__ = (
        "assumed_dtypes",
        "assumed_shapes",
        "attrs",
        "block",
        "definition",
        "desc",
        "inputs",
        "location",
        "outputs",
        "runtime",
    )

    def __init__(self, definition: OpDef, desc: OpDesc, block: BlockDesc, where: SourceLocation | None = None) -> None:
        self.definition, self.desc, self.block, self.location = definition, desc, block, where
        self.inputs = {s: n for s, n in desc.ins.items() if n}
        self.outputs = {s: n for s, n in desc.outs.items() if n}
        self.attrs = desc.attrs
        self.runtime = False
        self.assumed_dtypes: dict[str, np.dtype[Any]] = {}  # variable -> dtype in place of its declaration
        self.assumed_shapes: dict[str, tuple[int, ...]] = {}  # variable -> shape in place of its declaration

    def _var(self, name: str) -> VarDesc:
        var = self.block.find_var_recursive(name)
        if var is None:
            known = [n for b in self.block.program.blocks for n in b.vars] if self.block.program else []
            raise NotFound(
                f"{self.definition.type} names {name}, which is not a variable of block {self.block.idx} "
                "or of a block around it.",
                op=self.text(), where=self.location, expected="a variable that the block sees", received=name,
                hint=near(name, known) or "create it first: block.create_var(name=...).",
            )  # fmt: skip
        return var

    def all(self, slot: str) -> list[Any]:
        names = self.inputs.get(slot) or self.outputs.get(slot) or []
        return [self._spec(self._var(n)) for n in names if n != EMPTY]

    def _spec(self, var: VarDesc) -> Spec:
        if var.type() in _TENSORS:
            shape = self.assumed_shapes.get(var.name())
            return Spec(
                tuple(var.shape()) if shape is None else shape,
                self.assumed_dtypes.get(var.name()) or dtypes.np_dtype(var.dtype()),
            )
        return Spec((), None)

    def lods(self, slot: str) -> list[Lod]:
        out: list[Lod] = []
        for n in self.inputs.get(slot, []):
            var = self._var(n)
            out.append((None,) * var.lod_level() if var.type() in _LEVELED else ())
        return out

    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> None:
        if not self.wants(slot, i):
            return
        name = self.outputs[slot][i]
        var = self._var(name)
        if tuple(shape) == (1,) and declared_scalar(self.desc, name):
            shape = ()
        number, dims = dtypes.var_type(dtype), [int(s) for s in shape]
        if list(var.shape()) != dims:
            var.set_shape(dims)
        if var.dtype() != number:
            var.set_dtype(number)
        if var.type() in _LEVELED and var.lod_level() != len(lod):
            var.set_lod_level(len(lod))

    def is_rows(self, slot: str) -> bool:
        kinds = [self._var(n).type() for n in self.inputs.get(slot, ()) if n != EMPTY]
        return bool(kinds) and all(kind == VarType.SELECTED_ROWS for kind in kinds)

    def reader(self, slot: str) -> list[tuple[list[int], int, int]]:
        """(shape, dtype, LoD level) of each tensor in the batches of a reader."""
        var = self._var(self.inputs[slot][0])
        if var.type() != VarType.READER:
            self.fail(f"{slot} of {self.definition.type} is not a reader.", expected="a variable of type READER",
                      received=f"{var.name()}, {VarType.Type.Name(var.type())}",
                      hint="layers.py_reader makes one.")  # fmt: skip
        return list(zip(var.shapes(), var.dtypes(), var.lod_levels(), strict=True))

    def set_reader(self, slot: str, tensors: Sequence[tuple[Sequence[int], int | None, int]]) -> None:
        """Declares the batches of an output reader.

        Args:
            tensors: (shape, dtype, LoD level) of each tensor; None leaves a dtype as it is.
        """
        var = self._var(self.outputs[slot][0])
        if var.type() != VarType.READER:
            var.set_type(VarType.READER)
        before = var.dtypes()
        known = before if len(before) == len(tensors) else [VarType.FP32] * len(tensors)
        var.set_shapes([list(shape) for shape, _, _ in tensors])
        var.set_dtypes([old if dtype is None else dtype for old, (_, dtype, _) in zip(known, tensors, strict=True)])
        var.set_lod_levels([level for _, _, level in tensors])

    def text(self) -> str:
        ops = self.block.ops
        index = next((i for i in range(len(ops) - 1, -1, -1) if ops[i] is self.desc), len(ops))
        return f"op {index} ({self.definition.type}) in block {self.block.idx}"

    def where(self) -> SourceLocation | None:
        return self.location

    def trial(self) -> "CompileContext":
        """The same operator for a trial of its rule: nothing is written, and a failure has only its message."""
        return _Trial(self.definition, self.desc, self.block)

    def _hint(self) -> str:
        return str(suggest(self) or super()._hint())


class _Trial(CompileContext):
    """A context whose rule is tried with assumed attributes and shapes."""

    __slots__ = ()

    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> None:
        pass

    def set_reader(self, slot: str, tensors: Sequence[tuple[Sequence[int], int | None, int]]) -> None:
        pass

    def fail(self, message: str, **more: Any) -> NoReturn:
        raise RuleError(message)


def infer_compile(definition: OpDef, desc: OpDesc, block: BlockDesc, where: SourceLocation | None = None) -> None:
    """Writes shapes, dtypes and LoD levels of an operator's outputs into their VarDescs."""
    if definition.is_grad:
        _like_forward_variables(desc, block)
        if definition.rows is None:
            return
    context = CompileContext(definition, desc, block, where)
    if not definition.is_grad and definition.infer is not None:
        try:
            definition.infer(context)
        except RuleError:
            if declared.binding or not _fits_others(definition, context):
                raise
    _infer_type(definition, context)


def _infer_type(definition: OpDef, context: CompileContext) -> None:
    """Changes the type of outputs to SelectedRows where the operator writes rows."""
    slots = False if definition.rows is None else definition.rows(context)
    for slot in context.outputs if slots is True else slots or ():
        for name in context.outputs.get(slot, ()):
            var = context.block.find_var_recursive(name)
            if var is not None:
                var.set_type(VarType.SELECTED_ROWS)


def _fits_others(definition: OpDef, context: CompileContext) -> bool:
    """Whether an operator's rule holds when some of its inputs that are declared float32 have another dtype."""
    inputs = dict.fromkeys(n for names in context.inputs.values() for n in names if n != EMPTY)
    float32 = [n for n in inputs if context._spec(context._var(n)).dtype == np.float32]
    for dtype in _OTHERS:
        for count in range(1, min(len(float32), 4) + 1):
            for chosen in combinations(float32, count):
                context.assumed_dtypes = dict.fromkeys(chosen, dtype)
                try:
                    definition.infer(context)  # type: ignore[misc]
                except RuleError:
                    continue
                return True
    context.assumed_dtypes = {}
    return False


def _like_forward_variables(desc: OpDesc, block: BlockDesc) -> None:
    """Copies shape, dtype and LoD level of each gradient that has none from its forward variable."""
    for names in desc.outs.values():
        for name in names:
            var = block.find_var_recursive(name)
            if var is None or var.type() in _TENSORS and var.shape():
                continue
            base = name.partition(GRAD)[0]
            source = block.find_var_recursive(base)
            if source is None or base == name or source.type() not in _TENSORS:
                continue
            if not var.shape() and source.shape():
                var.set_shape(list(source.shape()))
                var.set_dtype(source.dtype())
                if var.type() == source.type() == VarType.LOD_TENSOR:
                    var.set_lod_level(source.lod_level())


def _infer_bare_shape(desc: OpDesc, block: BlockDesc) -> None:
    infer_compile(get_op(desc.optype), desc, block)


def _infer_bare_type(desc: OpDesc, block: BlockDesc) -> None:
    definition = get_op(desc.optype)
    _infer_type(definition, CompileContext(definition, desc, block))


hooks.infer_shape, hooks.infer_var_type = _infer_bare_shape, _infer_bare_type
