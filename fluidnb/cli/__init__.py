"""The ``fluidnb`` command, also ``python -m fluidnb``: a file for each of its words.

Example:
    >>> from fluidnb.cli import main
    >>> main(["version", "--short"])
    0.1.0
    0
"""

from fluidnb.cli.entry import main

__all__ = ["main"]
