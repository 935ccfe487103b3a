"""Debug sessions in a terminal: text commands, and the ``(fluid)`` prompt."""

from fluidnb.terminal.commands import COMMANDS, command_of, run_command
from fluidnb.terminal.prompt import Prompt, prompt

__all__ = ["COMMANDS", "Prompt", "command_of", "prompt", "run_command"]
