"""A program listed as in Fluid's design documents: operations point to variables by their index, not by name."""

from collections.abc import Iterator

from fluidnb.proto.block_desc import BlockDesc
from fluidnb.proto.framework_pb2 import AttrType
from fluidnb.proto.op_desc import NAMES_IN_ATTRS, OpDesc
from fluidnb.proto.program_desc import ProgramDesc


def indexed(program: ProgramDesc) -> str:
    """A program as a listing in which operations point to variables by index.

    An operation that runs a block points into the variables of that block where the block declares the name, as the
    step net of a recurrent operation does, else into its own block's. ``0:3`` is variable 3 of another block, here the
    first.
    """
    return "".join(f"{line}\n" for block in program.blocks for line in _block(block))


def _block(block: BlockDesc) -> Iterator[str]:
    within = f" in {block.parent_idx}" if block.parent_idx >= 0 else ""
    yield f"BlockDesc {{  // {block.idx}{within}"
    yield "  vars = {"
    for i, name in enumerate(block.vars):
        yield f"    VarDesc {{...}}  // {i}: {name}"
    yield "  }"
    yield "  ops = {"
    places = _places(block)
    for op in block.ops:
        yield from (f"    {line}" for line in _op(op, block, places))
    yield "  }"
    yield "}"


def _op(op: OpDesc, block: BlockDesc, places: dict[str, str]) -> Iterator[str]:
    inner = [name for name in op.attr_names() if op.attr_type(name) == AttrType.BLOCK]
    for name in inner:
        places = {**places, **_own_places(block.program.block(op.block_attr(name)))}
    yield f"OpDesc {{  // {op.type()}"
    yield f"  inputs = {_pointers(op.input_arg_names(), places)}"
    yield f"  outputs = {_pointers(op.output_arg_names(), places)}"
    if op.attrs:
        yield "  attrs {"
        for name, value in op.attrs.items():
            if name in inner:
                text = f"<BlockDesc {value}>"
            elif name in NAMES_IN_ATTRS and isinstance(value, list):
                text = _pointers(value, places)
            else:
                text = repr(value)
            yield f'    "{name}" : {text}'
        yield "  }"
    yield "}"


def _own_places(block: BlockDesc) -> dict[str, str]:
    return {name: str(i) for i, name in enumerate(block.vars)}


def _places(block: BlockDesc) -> dict[str, str]:
    """The index of every variable that an operation of the block sees."""
    places: dict[str, str] = {}
    for outer in reversed(list(block.chain())[1:]):
        places |= {name: f"{outer.idx}:{i}" for name, i in _own_places(outer).items()}
    return places | _own_places(block)


def _pointers(names: list[str], places: dict[str, str]) -> str:
    pointers = ", ".join(places.get(name, "?") for name in names)
    return f"{{{pointers}}}" + (f"  // {', '.join(names)}" if names else "")
