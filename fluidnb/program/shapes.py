"""Shapes and dtypes of all variables of a program for given feeds."""

from collections.abc import Mapping, Sequence

from fluidnb.arguments import checked, shown
from fluidnb.errors import FluidError, NotFound, OpTypeError, near
from fluidnb.op import check_inputs, check_loaded, get_op, has_op, infer_compile
from fluidnb.op.compile_context import Spec
from fluidnb.op.context import EMPTY, GRAD
from fluidnb.program.clone import clone
from fluidnb.program.program import Program
from fluidnb.program.sub_blocks import own_blocks
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.values import dtypes

#: Shapes of feeds: name -> sizes.
FeedShapes = Mapping[str, Sequence[int]]
_TENSORS = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


@checked
def infer_shapes(program: Program, feed_shapes: FeedShapes) -> dict[str, Spec]:
    """Shapes and dtypes of all variables of a program for given feeds, by the operators' shape rules.

    Args:
        feed_shapes: name of a data variable -> its sizes, batch included. Others keep their declared sizes.

    Returns:
        name -> shape (-1 where a size depends on values or on sequences) and dtype. A variable of a nested block that
        has the name of one outside is left out.

    Example:
        >>> h = fluid.layers.fc(fluid.layers.data("x", [4]), 3)
        >>> infer_shapes(fluid.default_main_program(), {"x": (32, 4)})[h.name].shape
        (32, 3)
    """
    specs: dict[str, Spec] = {}
    for block in with_shapes(program, feed_shapes).desc.blocks:
        for name, var in block.vars.items():
            if var.type() in _TENSORS:
                specs.setdefault(name, Spec(tuple(var.shape()), dtypes.np_dtype(var.dtype())))
    return specs


def with_shapes(program: Program, feed_shapes: FeedShapes) -> Program:
    """A clone of a program whose variables have the shapes that given feeds lead to."""
    copy = clone(program, warn=False)
    top = copy.desc.blocks[0]
    for name, shape in feed_shapes.items():
        var = top.vars.get(name)
        if var is None:
            raise NotFound(
                f"The program has no variable {name}.", expected="names of data variables", received=name,
                hint=near(name, top.vars),
            )  # fmt: skip
        try:
            sizes = [int(size) for size in shape]
        except (TypeError, ValueError, OverflowError):
            raise OpTypeError(
                f"The shape of {name} is not a list of sizes.", expected="ints, for example (32, 4)",
                received=shown(shape),
            ) from None  # fmt: skip
        var.set_shape(sizes)
    for block in copy.desc.blocks:
        for name, var in block.vars.items():
            if GRAD in name and var.type() in _TENSORS:
                var.set_shape([])  # a gradient takes the shape of its variable
    _infer_block(copy.desc.blocks, top)
    return copy


def _infer_block(blocks: Sequence[BlockDesc], block: BlockDesc) -> None:
    """Infer the operators of a block in order, those of the blocks that they run first."""
    for op in block.ops:
        for inner in own_blocks(op):
            _enter(op, block, blocks[inner])
            _infer_block(blocks, blocks[inner])
        definition = get_op(op.optype) if has_op(op.optype) else None
        if definition is None:
            continue
        try:
            check_inputs(definition, op)  # a program of a file may lack some, or attributes
            check_loaded(definition, op)
            infer_compile(definition, op, block)
        except FluidError as error:
            raise error.with_context(where=op.view.where if op.view is not None else None) from None
        if definition.is_grad:
            _shape_gradients(op, block)


def _enter(op: OpDesc, block: BlockDesc, inner: BlockDesc) -> None:
    """Shapes of what a ``recurrent`` operator passes to its block: one step of each input, and the memories."""
    if op.optype != "recurrent":
        return
    for name in op.ins.get("inputs", ()):
        outer, step = block.find_var_recursive(name), inner.vars.get(name)
        if outer is not None and step is not None:
            step.set_shape(list(outer.shape())[1:])
    for name, state in zip(op.ins.get("initial_states", ()), op.attrs.get("ex_states", ()), strict=False):
        outer, memory = block.find_var_recursive(name), inner.vars.get(state)
        if outer is not None and memory is not None:
            memory.set_shape(list(outer.shape()))


def _shape_gradients(op: OpDesc, block: BlockDesc) -> None:
    """Shapes of gradients whose names do not begin with the name of a variable: from the slot of the operator."""
    for slot, names in op.outs.items():
        sources = op.ins.get(slot.partition(GRAD)[0], ())
        for name, source in zip(names, sources, strict=False):
            var, base = _tensor(block, name), _tensor(block, source)
            if var is not None and base is not None and not var.shape():
                var.set_shape(list(base.shape()))


def _tensor(block: BlockDesc, name: str) -> VarDesc | None:
    """A declared variable that has a shape."""
    var = None if name == EMPTY else block.find_var_recursive(name)
    return var if var is not None and var.type() in _TENSORS else None
