"""Fluid's ``debugger`` module: programs as pseudo code. ``debuger`` is the same module.

Example:
    >>> from fluidnb import debugger
    >>> print(debugger.pprint_program_codes(fluid.Program().desc), end="")
    // block-0  parent--1
    // variables
    <BLANKLINE>
    // operators
"""

from fluidnb.program.index_view import index_view
from fluidnb.program.printing import (
    op_repr_handlers,
    pprint_block_codes,
    pprint_program_codes,
    repr_attr,
    repr_op,
    repr_var,
)
from fluidnb.viz.program.fluid_dot import draw_block_graphviz

__all__ = [
    "draw_block_graphviz", "index_view", "op_repr_handlers", "pprint_block_codes", "pprint_program_codes", "repr_attr",
    "repr_op", "repr_var",
]  # fmt: skip
