"""The graph of `fluid.debugger.draw_block_graphviz`: operators and variables as nodes, in DOT."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fluidnb.files.atomic_write import atomic_write
from fluidnb.op import EMPTY
from fluidnb.program import pseudo_code as codes
from fluidnb.program.constants import role_of
from fluidnb.program.printing import described
from fluidnb.proto.desc import BlockDesc, ProgramDesc
from fluidnb.viz.base.styled_text import COLOURS

_MARKED = "#f59e0b"


def block_dot(block: Any, highlights: Iterable[str] | None = None) -> str:
    """A block in the DOT language, a node for each operator and each variable."""
    desc = described(block, BlockDesc)
    marked = [re.compile(pattern) for pattern in highlights or ()]
    return "\n".join([f"digraph block_{desc.idx} {{", *("  " + line for line in _lines(desc, marked)), "}"])


def programs_dot(programs: Mapping[str, Any]) -> str:
    """Programs in the DOT language, a cluster for each block."""
    lines = ["digraph programs {"]
    for i, (title, program) in enumerate(programs.items()):
        for block in described(program, ProgramDesc).blocks:
            prefix = f"p{i}_b{block.idx}_"
            lines += [f"  subgraph cluster_{i}_{block.idx} {{", f"    label={_quoted(f'{title}, block {block.idx}')}"]
            lines += [f"    {line}" for line in _lines(block, [], prefix)]
            lines.append("  }")
    return "\n".join([*lines, "}"])


def _lines(block: BlockDesc, marked: list[re.Pattern[str]], prefix: str = "") -> Iterator[str]:
    used = [n for op in block.ops for n in (*op.input_arg_names(), *op.output_arg_names())]
    numbers = {n: i for i, n in enumerate(dict.fromkeys(n for n in (*block.vars, *used) if n != EMPTY))}
    for name, i in numbers.items():
        var = block.find_var_recursive(name)
        kind = codes.kind_code(var) if var is not None else "not declared"
        yield f"{prefix}var_{i} [label={_quoted(name)} tooltip={_quoted(kind)} shape=ellipse{_mark(name, marked)}]"
    for i, op in enumerate(block.ops):
        colour = COLOURS[role_of(op)]
        mark = _mark(op.optype, marked)
        style = f'shape=box color="{colour}" fontcolor="{"black" if mark else colour}"{mark}'
        yield f"{prefix}op_{i} [label={_quoted(op.optype)} {style}]"
        for slots, edge in ((op.ins, "{0}var_{1} -> {0}op_{2}"), (op.outs, "{0}op_{2} -> {0}var_{1}")):
            for slot, name in ((s, n) for s, names in sorted(slots.items()) for n in names if n != EMPTY):
                yield f"{edge.format(prefix, numbers[name], i)} [label={_quoted(slot)}]"


def _mark(name: str, marked: list[re.Pattern[str]]) -> str:
    return f' style=filled fillcolor="{_MARKED}"' if any(p.search(name) for p in marked) else ""


def draw_block_graphviz(block: Any, highlights: Iterable[str] | None = None, path: str = "./temp.dot") -> None:
    """Writes a block as a Graphviz graph to a file.

    Args:
        block: a Block or BlockDesc.
        highlights: patterns; variables whose name, and operators whose type matches one are marked.
        path: the file.
    """
    with atomic_write(path, text=True) as file:
        file.write(block_dot(block, highlights) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
