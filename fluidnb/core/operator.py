"""The core's own Operator: one operation that runs by itself on the variables of a scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from fluidnb.core.facts import op_support_gpu
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.net.net_op import op_line
from fluidnb.op import EMPTY, check_desc, get_op, infer_compile
from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc, ProgramDesc, VarDesc
from fluidnb.runtime import Scope, place_in, run_ops
from fluidnb.utils.source_location import SourceLocation, capture
from fluidnb.values import LoDRankTable, LoDTensor, LoDTensorArray, Place, SelectedRows, VarType, var_type
from fluidnb.values.device_context import DeviceContext


class Operator:
    """An operator outside any program; `create` makes one, ``fluid.op.Operator`` makes one by keywords.

    Example:
        >>> scale = Operator.create(OpDesc("scale", {"X": ["x"]}, {"Out": ["y"]}, {"scale": 2.0}).serialize_to_string())
        >>> scope = fluid.Scope(); scope.var("x").get_tensor().set(np.ones(3, "float32"), fluid.CPUPlace())
        >>> scale.run(scope, fluid.CPUPlace())
        >>> np.array(scope.find_var("y").get_tensor())
        array([2., 2., 2.], dtype=float32)
        >>> print(scale)
        Op(scale), inputs:{X[x]}, outputs:{Out[y]}.
    """

    __slots__ = ("__weakref__", "_block", "_desc")

    #: ``Operator.backward(op, no_grad_set)`` gives the gradient of an operator or a Net; `fluidnb.core.backward`.
    backward: ClassVar[Callable[..., Any]]

    def __init__(self, desc: OpDesc) -> None:
        self._block = Program().global_block()
        self._desc = self._block.desc.append_op(desc)
        self._block.ops[0].where = capture(2)

    @staticmethod
    def create(desc: bytes) -> Operator:
        """An operator from its description; attributes that are left out get their defaults.

        Raises:
            NotFound: there is no such operator, slot or attribute.
        """
        parsed = OpDesc.parse_from_string(bytes(desc))
        definition = get_op(parsed.optype)
        if definition.control or parsed.optype in ("feed", "fetch"):
            raise OpValueError(
                f"{parsed.optype} runs inside a program alone.", received=parsed.optype,
                expected="an operator that works on its own", hint="build a Program, and run it with an Executor.",
            )  # fmt: skip
        check_desc(definition, parsed)
        return Operator(parsed)

    @property
    def desc(self) -> OpDesc:
        """Its description."""
        return self._desc

    def run(self, scope: Scope, place: Place | DeviceContext) -> None:
        """Run once."""
        at = place_in(place)
        self._declare_in(scope)
        written = [v for v in map(scope.find_var, self.output_vars()) if v is not None]
        before = [variable.value for variable in written]
        run_ops(self._block, scope, at)
        for variable, old in zip(written, before, strict=True):
            if old is not variable.value and take_over(old, variable.value):
                variable.value = old  # references to the object see what was written

    def infer_shape(self, scope: Scope) -> None:
        """Give the tensors that it writes the shapes that they will have; values are not needed for that.

        Example:
            >>> relu = Operator.create(OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]}).serialize_to_string())
            >>> scope = fluid.Scope(); scope.var("x").get_tensor().set_dims([7, 5])
            >>> relu.infer_shape(scope); scope.find_var("y").get_tensor().get_dims()
            [7, 5]
        """
        self._declare_in(scope)
        infer_output_shapes(self._desc, scope, self._block.ops[0].where)

    def _declare_in(self, scope: Scope) -> None:
        for name in self.input_vars():
            if name != EMPTY and scope.find_var(name) is None:
                raise NotFound(
                    f'The scope has no variable "{name}", which {self._desc.optype} reads.',
                    expected="a variable of this scope, or of one around it", received=name,
                    hint=near(name, scope.local_var_names()) or f'scope.var("{name}").get_tensor().set(array, place).',
                )  # fmt: skip
        for name in self.output_vars():
            if name != EMPTY and scope.find_var(name) is None:
                scope.var(name)

    def type(self) -> str:
        """Its type."""
        return self._desc.optype

    def inputs(self) -> dict[str, list[str]]:
        """Slot -> names of what it reads, slots in order of their names."""
        return {slot: list(names) for slot, names in sorted(self._desc.ins.items())}

    def outputs(self) -> dict[str, list[str]]:
        """Slot -> names of what it writes, slots in order of their names."""
        return {slot: list(names) for slot, names in sorted(self._desc.outs.items())}

    def input_vars(self) -> list[str]:
        """The names of all that it reads."""
        return [name for names in self.inputs().values() for name in names]

    def output_vars(self) -> list[str]:
        """The names of all that it writes."""
        return [name for names in self.outputs().values() for name in names]

    def no_intermediate_outputs(self) -> list[str]:
        """The names of what it writes for others, without what its gradient alone reads.

        Example:
            >>> desc = OpDesc("reshape2", {"X": ["x"]}, {"Out": ["y"], "XShape": ["s"]}, {"shape": [6]})
            >>> Operator.create(desc.serialize_to_string()).no_intermediate_outputs()
            ['y']
        """
        slots = get_op(self._desc.optype).outputs
        private = {slot.name for slot in slots.values() if slot.intermediate}
        return [name for slot, names in self.outputs().items() if slot not in private for name in names]

    def support_gpu(self) -> bool:
        """Whether it has a CUDA kernel and this machine has a GPU."""
        return op_support_gpu(self._desc.optype)

    def __str__(self) -> str:
        return op_line(self._desc.optype, self.inputs(), self.outputs())

    def __repr__(self) -> str:
        return f"<core.Operator: {self}>"


_KINDS = {
    SelectedRows: VarType.SELECTED_ROWS, LoDTensorArray: VarType.LOD_TENSOR_ARRAY, LoDRankTable: VarType.LOD_RANK_TABLE
}


def infer_output_shapes(desc: OpDesc, scope: Scope, where: SourceLocation | None = None) -> None:
    """Give the tensors that an operator writes the shapes that they will have."""
    block = ProgramDesc().block(0)
    for name in [*desc.input_arg_names(), *desc.output_arg_names()]:
        if name != EMPTY and not block.has_var(name):
            variable = scope.find_var(name)
            declare(block.var(name), None if variable is None else variable.value)
    twin = block.append_op(desc.clone())
    infer_compile(get_op(twin.optype), twin, block, where)
    for name in desc.output_arg_names():
        variable = scope.find_var(name)
        if variable is None or block.var(name).type() != VarType.LOD_TENSOR:
            continue
        shape = block.var(name).shape()
        value = variable.value
        if min(shape, default=0) >= 0 and (value is None or isinstance(value, LoDTensor) and value.shape() != shape):
            variable.get_tensor().set_dims(shape)


def declare(var: VarDesc, value: Any) -> None:
    """Let a declaration say what a variable holds; a tensor without a value is taken for float32."""
    tensor = value.get_tensor() if isinstance(value, SelectedRows) else value
    if not isinstance(value, LoDTensor | None):
        var.set_type(_KINDS.get(type(value), VarType.RAW))
    if isinstance(tensor, LoDTensor):
        var.set_shape(value.shape())
        var.set_dtype(VarType.FP32 if tensor.array is None else var_type(tensor.array.dtype))
        if tensor is value and tensor.lod_:
            var.set_lod_level(len(tensor.lod_))


def take_over(old: Any, new: Any) -> bool:
    """Give the rows, the array or the rank table that a variable held the content of what an operator made.

    Example:
        >>> old, new = SelectedRows(), SelectedRows([3], 5)
        >>> take_over(old, new), old.rows(), take_over(None, new)
        (True, [3], False)
    """
    if type(old) is not type(new):
        return False
    if isinstance(old, SelectedRows):
        old.height_, old.rows_ = new.height_, new.rows_
        old.value._replace(new.value.array, new.value.place)
    elif isinstance(old, LoDTensorArray):
        old[:] = list(new)
    elif isinstance(old, LoDRankTable):
        old.become(new)
    else:
        return False
    return True
