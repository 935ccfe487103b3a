"""Programs of Paddle 3 (PIR, the Paddle intermediate representation), read from JSON and converted."""

from fluidnb.pir.convert import Converted, convert
from fluidnb.pir.reader import Module, read

__all__ = ["Converted", "Module", "convert", "read"]
