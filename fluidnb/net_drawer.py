"""Fluid's ``net_drawer`` module: a startup and a main program as one graph for Graphviz."""

from collections.abc import Mapping

from fluidnb.files.atomic_write import atomic_write
from fluidnb.graphviz import attributes
from fluidnb.program import Program
from fluidnb.viz.program.fluid_dot import programs_dot

__all__ = ["draw_graph"]


def draw_graph(
    startup_program: Program, main_program: Program, filename: str | None = None, graph: str = "",
    graph_attr: Mapping[str, object] | None = None, node_attr: Mapping[str, object] | None = None,
    edge_attr: Mapping[str, object] | None = None,
) -> str:  # fmt: skip
    """A startup program and a main program as one graph in the DOT language, a cluster for each block.

    Args:
        filename: where to write the graph; None writes nothing.
        graph: title of the main program's clusters, by default ``main``.
        graph_attr: DOT's attributes of the graph, for example ``{"rankdir": "LR"}``.
        node_attr: DOT's attributes of nodes that do not have their own.
        edge_attr: DOT's attributes of edges, alike.

    Example:
        >>> print(draw_graph(fluid.Program(), fluid.Program(), graph_attr={"rankdir": "LR"}))
        digraph programs {
          graph [rankdir="LR"]
          subgraph cluster_0_0 {
            label="startup, block 0"
          }
          subgraph cluster_1_0 {
            label="main, block 0"
          }
        }
    """
    head, *rest = programs_dot({"startup": startup_program, graph or "main": main_program}).split("\n")
    kinds = {"graph": graph_attr, "node": node_attr, "edge": edge_attr}
    shared = [f"  {kind} [{attributes(attrs)}]" for kind, attrs in kinds.items() if attrs]
    text = "\n".join([head, *shared, *rest])
    if filename is not None:
        with atomic_write(filename, text=True) as file:
            file.write(text + "\n")
    return text
