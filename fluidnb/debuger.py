"""Version 0.11's spelling of `fluidnb.debugger`.

Example:
    >>> from fluidnb import debugger, debuger
    >>> debuger.pprint_program_codes is debugger.pprint_program_codes
    True
"""

from fluidnb.debugger import index_view, pprint_block_codes, pprint_program_codes

__all__ = ["index_view", "pprint_block_codes", "pprint_program_codes"]
