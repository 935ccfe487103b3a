"""The options that write a picture of a program into a file, of ``fluidnb show`` and ``%fluid show``."""

from argparse import Namespace

#: Option without its dashes -> its help.
HELP = {
    "svg": "draw the listing into an SVG file instead",
    "png": "draw the graph into a PNG file instead (Graphviz)",
    "pdf": "draw the graph into a PDF file instead (Graphviz)",
    "dot": "write Graphviz's language instead; - for stdout",
    "mermaid": "write a Mermaid flowchart instead; - for stdout",
}


def chosen_files(options: Namespace) -> dict[str, str]:
    """The files to write, by their kind.

    Example:
        >>> chosen_files(Namespace(svg="a.svg", png=None, pdf=None, dot=None, mermaid="-"))
        {'svg': 'a.svg', 'mermaid': '-'}
    """
    return {kind: file for kind in HELP if (file := getattr(options, kind))}
