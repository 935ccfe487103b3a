"""Version 0.11's spelling of `fluidnb.debugger`."""

from fluidnb import debugger as _debugger
from fluidnb.debugger import *  # noqa: F403

__all__ = _debugger.__all__
