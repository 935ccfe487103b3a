"""Fluid's ``net_drawer`` module: a startup and a main program as one graph for Graphviz.

Example:
    >>> from fluidnb import net_drawer
    >>> y = fluid.layers.fc(fluid.layers.data("x", [3]), 1)
    >>> text = net_drawer.draw_graph(fluid.default_startup_program(), fluid.default_main_program())
    >>> text.count("subgraph")
    2
"""

from __future__ import annotations

from pathlib import Path

from fluidnb.program import Program
from fluidnb.viz.block_dot import programs_dot

__all__ = ["draw_graph"]


def draw_graph(startup_program: Program, main_program: Program, filename: str | None = None, graph: str = "") -> str:
    """A startup program and a main program as one graph in the DOT language, a cluster for each block.

    Args:
        startup_program: the startup program.
        main_program: the main program.
        filename: where to write the graph; None writes nothing.
        graph: title of the main program's clusters, by default ``main``.

    Returns:
        The graph's text.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> print(draw_graph(fluid.Program(), fluid.Program()).splitlines()[0])
        digraph programs {

    Source: fluid.net_drawer.draw_graph.
    """
    text = programs_dot({"startup": startup_program, graph or "main": main_program})
    if filename is not None:
        Path(filename).write_text(text + "\n")
    return text
