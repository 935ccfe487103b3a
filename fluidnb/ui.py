"""Cells and widgets in plain Python, for front ends without magics: the module `fluidnb_magics.ui`."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fluidnb_magics.ui import *  # noqa: F403

sys.modules[__name__] = import_module("fluidnb_magics.ui")
