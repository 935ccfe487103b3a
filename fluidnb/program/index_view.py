"""Programs as the design papers list them: variables are numbers, an RNN has states and a step net."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fluidnb.arguments import checked
from fluidnb.program import pseudo_code as codes
from fluidnb.proto.desc import BlockDesc, OpDesc, ProgramDesc
from fluidnb.proto.framework_pb2 import AttrType

if TYPE_CHECKING:
    from fluidnb.program import Program

#: Attributes of a recurrent operator under the papers' names: its memories are the states, a block is its step net.
_PAPERS = {"ex_states": "states", "states": "new_states", "sub_block": "step_net"}


@checked
def index_view(program: Program | ProgramDesc) -> str:
    """A program with indices in place of names of variables, as the design papers list it.

    Args:
        program: a Program or ProgramDesc.

    Returns:
        For each block its variables by index, then its operators by index. A variable of an outer block keeps its name.
        ``inputs``, ``outputs`` and the states of a recurrent operator are indices of its step net.

    Example:
        >>> b = fluid.Program().global_block()
        >>> x = b.create_var(name="x", shape=[1], dtype="float32"); op = b.append_op("relu", {"X": x}, {"Out": "y"})
        >>> print(index_view(b.program), end="")
        block 0 {
          vars = { 0: x, 1: y }
          op 0 {
            type = "relu"
            inputs = {0}
            outputs = {1}
          }
        }

    Source: listings of a step net and of the operator that runs it in the design of Block.
    """
    desc = program if isinstance(program, ProgramDesc) else program.desc
    return "".join(line + "\n" for block in desc.blocks for line in _block(block))


def _block(block: BlockDesc) -> Iterator[str]:
    yield f"block {block.idx} {{"
    yield f"  vars = {{ {', '.join(f'{i}: {n}' for i, n in enumerate(block.vars))} }}"
    for i, op in enumerate(block.ops):
        yield f"  op {i} {{"
        yield f'    type = "{op.optype}"'
        for what, names, places in _slots(op, block):
            yield f"    {what} = {_numbers(names, places)}"
        attrs = [_attr(op, n, block) for n in sorted(op.attr_names()) if n not in codes.BOOKKEEPING]
        if attrs:
            yield f"    attrs = {{ {', '.join(sorted(attrs))} }}"
        yield "  }"
    yield "}"


def _slots(op: OpDesc, block: BlockDesc) -> Iterator[tuple[str, list[str], dict[str, int]]]:
    """The operands of an operator: a name, variables, and their index."""
    here = _places(block)
    if op.optype != "recurrent":
        yield "inputs", op.input_arg_names(), here
        yield "outputs", op.output_arg_names(), here
        return
    for slots in (op.ins, op.outs):
        for slot, names in sorted(slots.items(), key=lambda item: item[0] not in ("inputs", "outputs")):
            yield slot, names, _step_places(op, block) if slot in ("inputs", "outputs") else here


def _places(block: BlockDesc) -> dict[str, int]:
    return {name: i for i, name in enumerate(block.vars)}


def _step_places(op: OpDesc, block: BlockDesc) -> dict[str, int]:
    """The index of each variable in a recurrent operator's step net, or, without one, in the operator's block."""
    index = op.attrs.get("sub_block")
    blocks = block.program.blocks
    return _places(blocks[index] if isinstance(index, int) and index < len(blocks) else block)


def _numbers(names: list[str], places: dict[str, int]) -> str:
    return "{" + ", ".join(str(places.get(n, n)) for n in names) + "}"


def _attr(op: OpDesc, name: str, block: BlockDesc) -> str:
    value, recurrent = op.attrs[name], op.optype == "recurrent"
    shown = _PAPERS.get(name, name) if recurrent else name
    if op.attr_type(name) == AttrType.STRINGS:
        places = _step_places(op, block) if recurrent else _places(block)
        if value and all(v in places for v in value):
            return f'"{shown}": {_numbers(value, places)}'
    return f'"{shown}": {codes.value_code(value)}'
