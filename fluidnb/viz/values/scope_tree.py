"""The tree of scopes with the names of their variables; reads no values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fluidnb.viz.values.reader import child_titles


@dataclass(frozen=True, slots=True)
class ScopeNode:
    """A node of the scope tree."""

    path: tuple[int, ...]  # child indices from the outermost scope
    title: str
    names: tuple[str, ...]  # its variables, sorted
    kids: tuple[ScopeNode, ...] = ()

    def each(self) -> Iterator[ScopeNode]:
        """The node and its descendants in display order."""
        yield self
        for kid in self.kids:
            yield from kid.each()

    @property
    def size(self) -> int:
        """Number of variables of the node and its descendants."""
        return sum(len(branch.names) for branch in self.each())


def read_scope_tree(scope: Any, title: str = "scope", path: tuple[int, ...] = ()) -> ScopeNode:
    """The tree of a scope."""
    kids = list(scope.kids)
    inside = enumerate(zip(kids, child_titles(kids), strict=True))
    children = tuple(read_scope_tree(kid, name, (*path, i)) for i, (kid, name) in inside)
    return ScopeNode(path, title, tuple(sorted(scope.vars)), children)


def value_at(scope: Any, path: tuple[int, ...], name: str) -> Any:
    """The current value of a variable of a nested scope; None without it or its scope."""
    for i in path:
        kids = list(scope.kids)
        if not 0 <= i < len(kids):
            return None
        scope = kids[i]
    variable = scope.vars.get(name)
    return None if variable is None else variable.value
