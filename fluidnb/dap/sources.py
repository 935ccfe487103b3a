"""Sources for editors: the user's file, or a listing of the program."""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from fluidnb.dap.references import BASE
from fluidnb.debug.snapshot import OpLocation
from fluidnb.errors import NotFound
from fluidnb.program import Program
from fluidnb.viz.program.reader import read_op

Source = dict[str, Any]
#: The name of the listing, and the reference of its text.
LISTING, LISTING_REFERENCE = "program.fluid", BASE


class Sources:
    """Maps operators to lines of sources; notebooks have a subclass."""

    def locate(self, op: OpLocation) -> tuple[Source, int]:
        """The ``Source`` of an operator and its line, from 1."""
        raise NotImplementedError

    def ops_at(self, path: str, line: int) -> list[tuple[int, int]]:
        """The (block, index) of the operators at a line, in the order of the program."""
        raise NotImplementedError

    def lines(self, path: str) -> list[int]:
        """The lines of a source that have operators, in order."""
        raise NotImplementedError

    def content(self, reference: int) -> str:
        """The text of a source that is not a file, by its ``sourceReference``."""
        raise NotFound("There is no such source.", received=reference)

    def loaded(self) -> list[Source]:
        """The sources of the program."""
        return []


class ScriptSources(Sources):
    """Maps operators to the line of the script that created them, else to a listing of the program."""

    def __init__(self, program: Callable[[], Program]) -> None:
        self._program = program
        self._known: tuple[Any, int] | None = None
        self._at: dict[str, dict[int, list[tuple[int, int]]]] = {}
        self._listed: dict[tuple[int, int], int] = {}

    def locate(self, op: OpLocation) -> tuple[Source, int]:
        if op.line and os.path.isfile(op.file):
            return file_source(op.file), op.line
        self._read()
        return _listing(), self._listed.get((op.block, op.index), 0)

    def ops_at(self, path: str, line: int) -> list[tuple[int, int]]:
        self._read()
        return list(self._at.get(_same(path), {}).get(line, ()))

    def lines(self, path: str) -> list[int]:
        self._read()
        return sorted(self._at.get(_same(path), ()))

    def content(self, reference: int) -> str:
        if reference != LISTING_REFERENCE:
            return super().content(reference)
        rows = []
        for block in self._program().desc.blocks:
            rows.append(f"block {block.idx}")
            for index, op in enumerate(block.ops):
                row = read_op(op)
                rows.append(f"  {index}  " + (f"{row.left} = " if row.outs else "") + f"{row.type}({row.arguments})")
        return "\n".join(rows) + "\n"

    def loaded(self) -> list[Source]:
        self._read()
        return [_listing() if path == LISTING else file_source(path) for path in self._at]

    def _read(self) -> None:
        """Read the program again if it has changed."""
        desc = self._program().desc
        if self._known is not None and self._known[0] is desc and self._known[1] == desc.version:
            return
        at: dict[str, dict[int, list[tuple[int, int]]]] = {}
        listed: dict[tuple[int, int], int] = {}
        line = 0
        for block in desc.blocks:
            line += 1
            for index, op in enumerate(block.ops):
                line += 1
                op_id = (block.idx, index)
                listed[op_id] = line
                at.setdefault(LISTING, {})[line] = [op_id]
                where = None if op.view is None else op.view.where
                if where is not None:
                    at.setdefault(_same(where.file), {}).setdefault(where.line, []).append(op_id)
        self._known = (desc, desc.version)
        self._at, self._listed = at, listed


def file_source(path: str) -> Source:
    """A file as a ``Source`` of the protocol."""
    return {"name": os.path.basename(path), "path": os.path.abspath(path)}


def first_of(ops: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """The operator at which a breakpoint on a line stops: the first of those that the line created."""
    return min(ops, default=None)


def _listing() -> Source:
    return {"name": LISTING, "path": LISTING, "sourceReference": LISTING_REFERENCE}


@lru_cache(1024)
def _same(path: str) -> str:
    """A path without symbolic links, as the program's lines have it."""
    return path if path == LISTING or path.startswith("<") else os.path.realpath(path)
