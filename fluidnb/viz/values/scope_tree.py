"""Scopes in outline: which there are, and the names in each, without looking at any value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fluidnb.viz.values.reader import child_titles


@dataclass(frozen=True, slots=True)
class ScopeNode:
    """A scope in outline.

    Args:
        path: the way to it from the outermost scope: which of the scopes inside, by position.
        title: how it is called.
        names: its own variables, sorted.
        kids: the scopes inside it.

    Example:
        >>> scope = fluid.Scope(); made = scope.var("x"), scope.new_scope().var("y")
        >>> [(b.path, b.title, b.names) for b in read_scope_tree(scope).each()]
        [((), 'scope', ('x',)), ((0,), 'scope 0', ('y',))]
    """

    path: tuple[int, ...]
    title: str
    names: tuple[str, ...]
    kids: tuple[ScopeNode, ...] = ()

    def each(self) -> Iterator[ScopeNode]:
        """It, and all inside it, in the order in which they are drawn."""
        yield self
        for kid in self.kids:
            yield from kid.each()

    @property
    def size(self) -> int:
        """Variables of it and of all inside it."""
        return sum(len(branch.names) for branch in self.each())


def read_scope_tree(scope: Any, title: str = "scope", path: tuple[int, ...] = ()) -> ScopeNode:
    """A scope and the scopes inside it in outline."""
    kids = list(scope.kids)
    inside = enumerate(zip(kids, child_titles(kids), strict=True))
    children = tuple(read_scope_tree(kid, name, (*path, i)) for i, (kid, name) in inside)
    return ScopeNode(path, title, tuple(sorted(scope.vars)), children)


def value_at(scope: Any, path: tuple[int, ...], name: str) -> Any:
    """What a variable of a scope inside holds now.

    Returns:
        Its value; None when it holds nothing, or it or its scope is gone.

    Example:
        >>> scope = fluid.Scope(); scope.new_scope().var("y").value = 3
        >>> value_at(scope, (0,), "y"), value_at(scope, (7,), "y")
        (3, None)
    """
    for i in path:
        kids = list(scope.kids)
        if not 0 <= i < len(kids):
            return None
        scope = kids[i]
    variable = scope.vars.get(name)
    return None if variable is None else variable.value
