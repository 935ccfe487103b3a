"""Where JupyterLab's debugger shows an operator: its line in the cell that made it."""

from __future__ import annotations

import linecache

from fluidnb import where
from fluidnb.dap import ScriptSources
from fluidnb.dap.sources import LISTING, LISTING_REFERENCE, Source
from fluidnb.debug.snapshot import OpLocation
from fluidnb.errors import NotFound


class CellSources(ScriptSources):
    """Shows operators at their line in a cell or a file; others in a listing of the program.

    JupyterLab knows a cell by the made-up file name under which the kernel compiles its text, and so do operators.

    Args:
        program: gives the program.

    Example:
        >>> sources = CellSources(fluid.default_main_program)
        >>> sources.text_of("program.fluid")
        'block 0\\n'
    """

    def locate(self, op: OpLocation) -> tuple[Source, int]:
        """See `Sources`."""
        if op.line and (op.file in where.cell_names or op.file in linecache.cache):
            return {"name": where.cell_names.get(op.file) or op.where.partition(",")[0], "path": op.file}, op.line
        return super().locate(op)

    def text_of(self, path: str) -> str:
        """The text of a source, by its path alone, as JupyterLab requests it.

        Args:
            path: the ``path`` of a ``Source``.

        Returns:
            The text.

        Raises:
            NotFound: there is no such source.
        """
        if path == LISTING:
            return self.content(LISTING_REFERENCE)
        lines = linecache.getlines(path)
        if not lines:
            raise NotFound("There is no such source.", received=path)
        return "".join(lines)
