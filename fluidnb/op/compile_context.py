"""Shape inference while a program is built: operands are VarDescs, unknown sizes are -1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.errors import NotFound, near
from fluidnb.op.context import EMPTY, GRAD, Context, Lod
from fluidnb.op.define import OpDef
from fluidnb.op.rules import product
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values import dtypes
from fluidnb.where import Where

_TENSORS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)
_LEVELED = (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY)


@dataclass(frozen=True, slots=True)
class Spec:
    """What is known of a variable before it has a value.

    Args:
        shape: sizes, -1 unknown.
        dtype: numpy dtype, or None for what is not a tensor.

    Example:
        >>> Spec((-1, 3), np.dtype("float32")).ndim
        2
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | None

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, -1 when a size is unknown."""
        return product(self.shape)


class CompileContext(Context):
    """The context of one operator of a program that is being built.

    Args:
        definition: its OpDef.
        desc: its OpDesc.
        block: the block whose variables it sees (through its parents too).
        where: the user's line.
    """

    __slots__ = ("attrs", "block", "definition", "desc", "inputs", "outputs", "place", "runtime")

    def __init__(self, definition: OpDef, desc: OpDesc, block: BlockDesc, where: Where | None = None) -> None:
        self.definition, self.desc, self.block, self.place = definition, desc, block, where
        self.inputs = {s: n for s, n in desc.ins.items() if n}
        self.outputs = {s: n for s, n in desc.outs.items() if n}
        self.attrs = desc.attrs
        self.runtime = False

    def _var(self, name: str) -> VarDesc:
        var = self.block.find_var_recursive(name)
        if var is None:
            known = [n for b in self.block.program.blocks for n in b.vars] if self.block.program else []
            raise NotFound(
                f"{self.definition.type} names {name}, which is not a variable of block {self.block.idx} "
                "or of a block around it.",
                op=self.text(), where=self.place, expected="a variable that the block sees", received=name,
                hint=near(name, known) or "create it first: block.create_var(name=...).",
            )  # fmt: skip
        return var

    def all(self, slot: str) -> list[Any]:
        names = self.inputs.get(slot) or self.outputs.get(slot) or []
        return [self._spec(self._var(n)) for n in names if n != EMPTY]

    @staticmethod
    def _spec(var: VarDesc) -> Spec:
        if var.type() in _TENSORS:
            return Spec(tuple(var.shape()), dtypes.np_dtype(var.dtype()))
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
        var = self._var(self.outputs[slot][i])
        number, dims = dtypes.var_type(dtype), [int(s) for s in shape]
        if list(var.shape()) != dims:
            var.set_shape(dims)
        if var.dtype() != number:
            var.set_dtype(number)
        if var.type() in _LEVELED and var.lod_level() != len(lod):
            var.set_lod_level(len(lod))

    def is_rows(self, slot: str) -> bool:
        found = [self._var(n).type() for n in self.inputs.get(slot, ()) if n != EMPTY]
        return bool(found) and all(kind == VarType.SELECTED_ROWS for kind in found)

    def text(self) -> str:
        ops = self.block.ops
        index = next((i for i in range(len(ops) - 1, -1, -1) if ops[i] is self.desc), len(ops))
        return f"op {index} ({self.definition.type}) in block {self.block.idx}"

    def where(self) -> Where | None:
        return self.place


def infer_compile(definition: OpDef, desc: OpDesc, block: BlockDesc, where: Where | None = None) -> None:
    """Write shapes, dtypes and LoD levels of an operator's outputs into their VarDescs.

    Args:
        definition: the operator's OpDef.
        desc: the operator.
        block: the block whose variables it sees.
        where: the user's line, for messages.

    Raises:
        RuleError: the operands break the operator's rule.
        NotFound: it names an unknown variable.
    """
    context = CompileContext(definition, desc, block, where)
    if definition.is_grad:
        _like_forward_variables(context)
    elif definition.infer is not None:
        definition.infer(context)
    if definition.rows is not None and definition.rows(context):
        for name in desc.output_arg_names():
            var = block.find_var_recursive(name)
            if var is not None:
                var.set_type(VarType.SELECTED_ROWS)


def _like_forward_variables(context: CompileContext) -> None:
    """A gradient looks like the variable whose gradient it is, whatever the operator's inputs say."""
    for names in context.outputs.values():
        for name in names:
            base = name.partition(GRAD)[0]
            var = context.block.find_var_recursive(name)
            source = context.block.find_var_recursive(base)
            if var is None or source is None or base == name or source.type() not in _TENSORS:
                continue
            if not var.shape() and source.shape():
                var.set_shape(list(source.shape()))
                var.set_dtype(source.dtype())
                if var.type() == source.type() == VarType.LOD_TENSOR:
                    var.set_lod_level(source.lod_level())
