"""A block as Fluid's debugger draws it: operators and variables as nodes, in the DOT language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fluidnb.op import EMPTY
from fluidnb.program import codes
from fluidnb.proto.desc import BlockDesc
from fluidnb.viz.program_reader import role_of
from fluidnb.viz.spans import COLOURS

_MARKED = "#f59e0b"


def block_dot(block: Any, highlights: Iterable[str] | None = None) -> str:
    """A block in the DOT language, a node for each operator and each variable.

    Args:
        block: a Block or BlockDesc.
        highlights: patterns of names; variables that match one are marked.

    Returns:
        The graph's text.

    Raises:
        re.error: a pattern that is none.

    Example:
        >>> y = fluid.layers.relu(fluid.layers.data("x", [3]))
        >>> print(block_dot(y.block, ["x"]))
        digraph block_0 {
          var_0 [label="x" tooltip="float32[-1, 3]" shape=ellipse style=filled fillcolor="#f59e0b"]
          var_1 [label="relu_0.tmp_0" tooltip="float32[-1, 3]" shape=ellipse]
          op_0 [label="relu" shape=box color="#3b82f6" fontcolor="#3b82f6"]
          var_0 -> op_0 [label="X"]
          op_0 -> var_1 [label="Out"]
        }
    """
    desc: BlockDesc = getattr(block, "desc", block)
    marked = [re.compile(pattern) for pattern in highlights or ()]
    return "\n".join([f"digraph block_{desc.idx} {{", *("  " + line for line in _lines(desc, marked)), "}"])


def _lines(block: BlockDesc, marked: list[re.Pattern[str]]) -> Iterator[str]:
    used = [n for op in block.ops for n in (*op.input_arg_names(), *op.output_arg_names())]
    numbers = {n: i for i, n in enumerate(dict.fromkeys(n for n in (*block.vars, *used) if n != EMPTY))}
    for name, i in numbers.items():
        var = block.find_var_recursive(name)
        kind = codes.kind_code(var) if var is not None else "not declared"
        style = f' style=filled fillcolor="{_MARKED}"' if any(p.search(name) for p in marked) else ""
        yield f"var_{i} [label={_quoted(name)} tooltip={_quoted(kind)} shape=ellipse{style}]"
    for i, op in enumerate(block.ops):
        colour = COLOURS[role_of(op)]
        yield f'op_{i} [label={_quoted(op.optype)} shape=box color="{colour}" fontcolor="{colour}"]'
        for slots, edge in ((op.ins, "var_{0} -> op_{1}"), (op.outs, "op_{1} -> var_{0}")):
            for slot, names in sorted(slots.items()):
                yield from (f"{edge.format(numbers[n], i)} [label={_quoted(slot)}]" for n in names if n != EMPTY)


def draw_block_graphviz(block: Any, highlights: Iterable[str] | None = None, path: str = "./temp.dot") -> None:
    """Write a block as a graph for Graphviz to a file.

    Args:
        block: a Block or BlockDesc.
        highlights: patterns of names; variables that match one are marked.
        path: the file.

    Raises:
        OSError: the file cannot be written.

    Source: fluid.debugger.draw_block_graphviz.
    """
    Path(path).write_text(block_dot(block, highlights) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
