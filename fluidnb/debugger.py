"""Fluid's ``debugger`` module: programs as pseudo code. The seeds import it as ``debuger``, which is the same module.

Example:
    >>> from fluidnb import debugger
    >>> print(debugger.pprint_program_codes(fluid.Program().desc), end="")
    // block-0  parent--1
    // variables
    <BLANKLINE>
    // operators
"""

from fluidnb.program.index_view import index_view
from fluidnb.program.printing import pprint_block_codes, pprint_program_codes

__all__ = ["index_view", "pprint_block_codes", "pprint_program_codes"]
