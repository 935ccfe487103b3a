"""Fluid's ``graphviz`` module: graphs written by hand, in the DOT language, and drawn where Graphviz is installed.

Example:
    >>> from fluidnb import graphviz
    >>> graph = graphviz.Graph("two boxes", rankdir="LR")
    >>> a, b = (graph.node(graphviz.quoted(name), prefix="n", shape="box") for name in "ab")
    >>> edge = graph.edge(a, b, color="red")
    >>> print(graph)
    digraph G {
      label="two boxes"
      rankdir="LR"
      n_... [label="a" shape="box"]
      n_... [label="b" shape="box"]
      n_... -> n_... [color="red"]
    }
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from fluidnb.errors import NotFound, near
from fluidnb.files.atomic_write import atomic_write
from fluidnb.utils.escapes import escape

__all__ = ["Edge", "Graph", "GraphPreviewGenerator", "Node", "Rank", "attributes", "quoted"]

_numbers = count(1)
_FONT = {"fontname": "Arial", "style": "rounded,filled,bold"}
_MARKED = "orange"


def quoted(text: object) -> str:
    """A text as DOT wants it.

    Example:
        >>> print(quoted('say "x"'))
        "say \\"x\\""
    """
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def attributes(attrs: Mapping[str, Any]) -> str:
    """DOT's attributes as text.

    Example:
        >>> attributes({"rankdir": "LR", "width": 2})
        'rankdir="LR" width="2"'
    """
    return " ".join(f"{name}={quoted(value)}" for name, value in attrs.items())


class Node:
    """A node of a graph.

    Args:
        label: its label as DOT has it: in quotes (`quoted`), a word, or HTML between ``<`` and ``>``.
        prefix: the start of its name; a number follows that no other node has.
        attrs: DOT's attributes, for example ``shape="box"``.

    Example:
        >>> print(Node("relu", "op", shape="box"))
        op_... [label=relu shape="box"]
    """

    def __init__(self, label: str, prefix: str, description: str = "", **attrs: Any) -> None:
        self.label, self.description, self.attrs = label, description, attrs
        self.name = f"{prefix}_{next(_numbers)}"

    def __str__(self) -> str:
        return f"{self.name} [{' '.join(filter(None, (f'label={self.label}', attributes(self.attrs))))}]"


class Edge:
    """An arrow from one node to another."""

    def __init__(self, source: Node, target: Node, **attrs: Any) -> None:
        self.source, self.target, self.attrs = source, target, attrs

    def __str__(self) -> str:
        return f"{self.source.name} -> {self.target.name}" + (f" [{attributes(self.attrs)}]" if self.attrs else "")


@dataclass
class Rank:
    """Nodes that are drawn at one height."""

    kind: str  # ``same``, ``min``, ``max``, ``source`` or ``sink``
    name: str  # its name in `Graph.node`
    priority: int  # a smaller one comes first in the text
    nodes: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{{rank={self.kind}; {'; '.join(node.name for node in self.nodes)}}}"


class Graph:
    """A directed graph.

    Args:
        title: what is written below it.
        attrs: DOT's attributes of graphs, for example ``rankdir="TB"``.

    Attributes:
        rank_groups: name -> the nodes of one height.
    """

    def __init__(self, title: str, **attrs: Any) -> None:
        self.title, self.attrs = title, attrs
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.rank_groups: dict[str, Rank] = {}

    def rank_group(self, kind: str, priority: int) -> str:
        """Make a group of nodes that are drawn at one height.

        Returns:
            Its name, for ``node(..., rank=name)``.
        """
        name = f"rankgroup-{len(self.rank_groups)}"
        self.rank_groups[name] = Rank(kind, name, priority)
        return name

    def node(self, label: str, prefix: str, description: str = "", **attrs: Any) -> Node:
        """Add a node; the arguments are `Node`'s.

        Args:
            attrs: DOT's attributes; ``rank`` is the name of a `rank_group`.
        """
        rank = attrs.pop("rank", None)
        if rank is not None and rank not in self.rank_groups:
            raise NotFound(
                f"The graph has no rank group {rank!r}.", expected=", ".join(self.rank_groups) or "none was made",
                hint=near(str(rank), self.rank_groups) or "rank_group(kind, priority) makes one.",
            )  # fmt: skip
        node = Node(label, prefix, description, **attrs)
        if rank is not None:
            self.rank_groups[rank].nodes.append(node)
        self.nodes.append(node)
        return node

    def edge(self, source: Node, target: Node, **attrs: Any) -> Edge:
        """Add an arrow."""
        edge = Edge(source, target, **attrs)
        self.edges.append(edge)
        return edge

    def code(self) -> str:
        """The graph in the DOT language."""
        attrs = (f"{name}={quoted(value)}" for name, value in {"label": self.title, **self.attrs}.items())
        ranks = sorted((rank for rank in self.rank_groups.values() if rank.nodes), key=lambda rank: rank.priority)
        lines = [*attrs, *map(str, ranks), *map(str, self.nodes), *map(str, self.edges)]
        return "\n".join(["digraph G {", *("  " + line for line in lines), "}"])

    __str__ = code

    def compile(self, dot_path: str) -> str:
        """Write the graph to a file, and draw it as PDF beside it where Graphviz is installed; say so where it is not.

        Args:
            dot_path: the file, for example ``./temp.dot``.

        Returns:
            The path of the PDF.
        """
        with atomic_write(dot_path, text=True) as file:
            file.write(self.code() + "\n")
        image = Path(dot_path).with_suffix(".pdf")
        program = shutil.which("dot")
        if program is None:
            print(f"fluidnb: {dot_path} is written; {image} is not, for Graphviz is not installed.", file=sys.stderr)
        else:
            done = subprocess.run([program, "-Tpdf", dot_path, "-o", str(image)], capture_output=True, text=True)
            if done.returncode:
                print(f"fluidnb: Graphviz does not draw {dot_path}: {done.stderr.strip()}", file=sys.stderr)
        return str(image)

    def show(self, dot_path: str) -> None:
        """The same as `compile`, and open the PDF where the system has a program for that."""
        image = self.compile(dot_path)
        program = shutil.which("open") or shutil.which("xdg-open")
        if program is not None and Path(image).exists():
            subprocess.Popen([program, image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class GraphPreviewGenerator:
    """Draws a program by hand: parameters as tables, operators as dark boxes, other variables as light ones.

    Args:
        title: what is written below the graph.

    Example:
        >>> draw = GraphPreviewGenerator("a layer")
        >>> w, x, mul = draw.add_param("w", "float32[13, 1]"), draw.add_arg("x"), draw.add_op("mul", highlight=True)
        >>> edges = [draw.add_edge(v, mul) for v in (w, x)]
        >>> print(draw.graph.code().splitlines()[-3])
          param_... -> op_... [color="#000000"]

    Calling it writes the file: ``draw("temp.dot")``, or ``draw("temp.dot", show=True)`` to show it too.
    """

    def __init__(self, title: str) -> None:
        self.graph = Graph(title, layout="dot", concentrate="true", rankdir="TB")

    def __call__(self, path: str = "temp.dot", show: bool = False) -> None:
        (self.graph.show if show else self.graph.compile)(path)

    def add_param(self, name: str, data_type: object, highlight: bool = False) -> Node:
        """Add a parameter."""
        rows = f'<tr><td bgcolor="#2b787e"><b>{escape(name)}</b></td></tr><tr><td>{escape(str(data_type))}</td></tr>'
        return self.graph.node(
            f'<<table cellpadding="5">{rows}</table>>', "param", name, shape="none", width="1.3", fontcolor="#ffffff",
            color=_MARKED if highlight else "#148b97", **_FONT,
        )  # fmt: skip

    def add_op(self, opType: str, **kwargs: Any) -> Node:  # noqa: N803 (Fluid's spelling)
        """Add an operator.

        Args:
            kwargs: ``highlight``, whether to mark it; others are DOT's attributes.
        """
        colour = _MARKED if kwargs.pop("highlight", False) else "#303A3A"
        attrs = {"shape": "box", "width": "1.3", "height": "0.84", "fontcolor": "#ffffff", "color": colour, **_FONT}
        return self.graph.node(f"<<b>{escape(opType)}</b>>", "op", opType, **attrs | kwargs)

    def add_arg(self, name: str, highlight: bool = False) -> Node:
        """Add a variable that is no parameter."""
        colour = _MARKED if highlight else "#dddddd"
        return self.graph.node(quoted(name), "arg", name, shape="box", fontcolor="#555555", color=colour, **_FONT)

    def add_edge(self, source: Node, target: Node, **kwargs: Any) -> Edge:
        """Add an arrow."""
        colour = _MARKED if kwargs.pop("highlight", False) else "#000000"
        return self.graph.edge(source, target, **{"color": colour, **kwargs})
