"""A program as a flowchart in the language of Mermaid, which Markdown on GitHub and in JupyterLab draws."""

import re

from fluidnb.utils.escapes import visible_line
from fluidnb.viz.base.styled_text import COLOURS, cut_text
from fluidnb.viz.program.data_flow import flows
from fluidnb.viz.program.model import BlockRow, OpRow, ProgramPicture

#: Columns of a label at most.
_LABEL = 60
#: Characters that Mermaid or HTML would read as markup.
_MARKUP = re.compile(r"[^\w .,:;=@/×…\-]")


def mermaid_text(picture: ProgramPicture) -> str:
    """A program as a flowchart: a node an operator, a subgraph a nested block, an arrow the values that flow.

    Example:
        >>> from fluidnb.viz import read_program
        >>> print(mermaid_text(read_program(fluid.Program())).splitlines()[0])
        flowchart TD
    """
    lines = ["flowchart TD"]
    for block in picture.blocks:
        _block(block, "  ", lines)
    ops = [op for block in picture.blocks for _, op in block.walk()]
    carried: dict[tuple[int, int], list[str]] = {}
    for name, first, last in flows(list(enumerate(ops))):
        carried.setdefault((first, last), []).append(name)
    for (first, last), names in carried.items():
        label = names[0] if len(names) == 1 else f"{len(names)} values"
        lines.append(f"  {_node(ops[first])} -->|{_quoted(label)}| {_node(ops[last])}")
    lines += [f"  classDef {role} fill:{colour}26,stroke:{colour}" for role, colour in COLOURS.items()]
    return "\n".join(lines)


def _block(block: BlockRow, pad: str, lines: list[str]) -> None:
    """The nodes of a block, and subgraphs for those inside it."""
    for op in block.ops:
        label = f"{op.type} {op.hidden}" if op.hidden else op.type
        lines.append(f"{pad}{_node(op)}[{_quoted(label)}]:::{op.role}")
        for inner in op.blocks:
            lines.append(f'{pad}subgraph block_{inner.index} ["block {inner.index}"]')
            _block(inner, pad + "  ", lines)
            lines.append(f"{pad}end")


def _node(op: OpRow) -> str:
    return f"op_{op.block}_{op.index}"


def _quoted(text: str) -> str:
    """A text that Mermaid shows as it is: markup becomes Mermaid's entities."""
    return '"' + _MARKUP.sub(lambda match: f"#{ord(match[0])};", cut_text(visible_line(text), _LABEL)) + '"'
