"""A program as a graph laid out by Graphviz, when there is one; the listing picture serves when there is not."""

from __future__ import annotations

import shutil
import subprocess
from html import escape

from fluidnb.viz.edges import flows
from fluidnb.viz.model import BlockRow, ProgramPicture
from fluidnb.viz.spans import COLOURS
from fluidnb.viz.svg import new_uid

_GRAPH = 'bgcolor="transparent" rankdir=TB nodesep=0.2 ranksep=0.28 compound=true fontname="Helvetica"'
_NODE = 'shape=box style="rounded,filled" fontname="Helvetica" fontsize=11 height=0.28 margin="0.1,0.04"'
_GREY = "#88929e"


def dot_text(picture: ProgramPicture, uid: str = "") -> str:
    """A program in the DOT language: a node an operator, a cluster a nested block, an edge a value.

    Args:
        picture: the program.
        uid: start of all ids; unique by default.

    Returns:
        The graph's text.

    Example:
        >>> from fluidnb.viz.model import OpRow
        >>> print(dot_text(ProgramPicture(BlockRow(0, -1, (OpRow(0, 0, "relu", "forward"),))), "a_"))
        digraph program {
          graph [...]
          node [...]
          edge [...]
          op_0_0 [id="a_op_0_0" label="relu" tooltip="relu()" color="#3b82f6" fillcolor="#3b82f626" fontcolor="#3b82f6"]
        }
    """
    uid = uid or new_uid()
    lines = [
        "digraph program {", f"  graph [{_GRAPH}]", f"  node [{_NODE}]",
        f'  edge [color="{_GREY}" arrowsize=0.6 fontname="Helvetica" fontsize=9 fontcolor="{_GREY}"]',
    ]  # fmt: skip
    for block in (picture.root, *picture.loose):
        _cluster(block, uid, "  ", lines)
    ops = [op for block in (picture.root, *picture.loose) for _, op in block.walk()]
    for name, first, last in flows(list(enumerate(ops))):
        a, b = ops[first], ops[last]
        lines.append(f"  op_{a.block}_{a.index} -> op_{b.block}_{b.index} [tooltip={_quoted(name)}]")
    return "\n".join([*lines, "}"])


def dot_svg(picture: ProgramPicture, uid: str = "") -> str | None:
    """A program as one SVG element laid out by ``dot``.

    Args:
        picture: the program.
        uid: start of all ids; unique by default.

    Returns:
        The element's text; None without a working ``dot`` on PATH.
    """
    uid = uid or new_uid()
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        graph = dot_text(picture, uid)
        done = subprocess.run([program, "-Tsvg"], input=graph, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    start = done.stdout.find("<svg")
    if done.returncode or start < 0:
        return None
    # Graphviz numbers its own groups graph0, node1, …: the same in every picture.
    text = done.stdout[start:]
    for own in ("graph", "node", "edge", "clust"):
        text = text.replace(f'id="{own}', f'id="{uid}{own}')
    return text


def _cluster(block: BlockRow, uid: str, pad: str, lines: list[str]) -> None:
    for op in block.ops:
        colour = COLOURS[op.role]
        lines.append(
            f'{pad}op_{op.block}_{op.index} [id="{uid}op_{op.block}_{op.index}" label={_quoted(op.type)} '
            f'tooltip={_quoted(op.text)} color="{colour}" fillcolor="{colour}26" fontcolor="{colour}"]'
        )
        for inner in op.blocks:
            lines.append(f"{pad}subgraph cluster_{inner.index} {{")
            lines.append(f'{pad}  id="{uid}block_{inner.index}" label="block {inner.index}" fontsize=10 style=dashed')
            lines.append(f'{pad}  color="{_GREY}" fontcolor="{_GREY}"')
            _cluster(inner, uid, pad + "  ", lines)
            lines.append(pad + "}")


def _quoted(text: str) -> str:
    return '"' + escape(text, quote=False).replace("\\", "\\\\").replace('"', '\\"') + '"'
