"""Version 0.11's spelling of `fluidnb.debugger`.

Example:
    >>> from fluidnb import debugger, debuger
    >>> debuger.pprint_program_codes is debugger.pprint_program_codes
    True
"""

from fluidnb.debugger import (
    draw_block_graphviz,
    index_view,
    op_repr_handlers,
    pprint_block_codes,
    pprint_program_codes,
    repr_attr,
    repr_op,
    repr_var,
)

__all__ = [
    "draw_block_graphviz", "index_view", "op_repr_handlers", "pprint_block_codes", "pprint_program_codes", "repr_attr",
    "repr_op", "repr_var",
]  # fmt: skip
