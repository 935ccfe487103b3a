"""Pictures of programs as files: SVG, PNG, PDF, Graphviz, Mermaid."""

from collections.abc import Callable
from pathlib import Path

from fluidnb.files.atomic_write import atomic_write
from fluidnb.viz.program.graph_level import level
from fluidnb.viz.program.graphviz import dot_file, dot_text
from fluidnb.viz.program.mermaid import mermaid_text
from fluidnb.viz.program.model import ProgramPicture
from fluidnb.viz.program.svg import file_svg

#: Start of the ids in a file.
_UID = "fluidnb_"
#: Kind of file -> its content, of so many operators at most.
_KINDS: dict[str, Callable[[ProgramPicture, int], str | bytes]] = {
    "svg": lambda picture, limit: file_svg(picture, _UID, limit),
    "png": lambda picture, limit: dot_file(level(picture), "png"),
    "pdf": lambda picture, limit: dot_file(level(picture), "pdf"),
    "dot": lambda picture, limit: dot_text(picture, _UID),
    "mermaid": lambda picture, limit: mermaid_text(level(picture)),
}


def export(picture: ProgramPicture, kind: str, file: str, limit: int = 0) -> str:
    """Writes a picture into a file; the text itself for the file ``-``, else a sentence about the file.

    Args:
        kind: svg, png, pdf, dot or mermaid.
        limit: operators of an SVG at most; 0 for all.
    """
    content = _KINDS[kind](picture, limit or 1 << 30)
    if file == "-" and isinstance(content, str):
        return content
    data = (content + "\n").encode() if isinstance(content, str) else content
    with atomic_write(file, size=len(data)) as out:
        out.write(data)
    return f"{Path(file)}: {len(data) / 1024:.1f} KB"
