"""Fluid's ``unique_name`` module: names by counter.

Example:
    >>> from fluidnb import unique_name
    >>> with unique_name.guard():
    ...     unique_name.generate("fc"), unique_name.generate("fc")
    ('fc_0', 'fc_1')
"""

from fluidnb.program.unique_name import UniqueNameGenerator, generate, guard, switch

__all__ = ["UniqueNameGenerator", "generate", "guard", "switch"]
