"""The commands of ``%fluid``: one file a word, imported when the word is first used.

``%fluid diff`` is ``commands/diff.py``. There is no list to edit: a new file here is a new command, with its help, its
line in ``%fluid --help`` and its options at the Tab key. Files whose name begins with ``_`` are not commands. A cell or
another module defines a command with the same decorator, see `command`.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from fluidnb_magics.commands._command import Command, Section, argument, command, defined, loaded, show, width

__all__ = ["COMMANDS", "Command", "CommandTable", "Section", "argument", "command", "show", "width"]


class CommandTable(Mapping[str, Command]):
    """Word -> command; a command's file is imported when it is looked up.

    Attributes:
        files: the words that have a file of their own; those of a debug session have one together.
    """

    def __init__(self) -> None:
        self.files = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))

    def __getitem__(self, word: str) -> Command:
        if word in self.files:
            import_module(f"fluidnb_magics.commands.{word}")
            return loaded[word]
        return defined[word] if word in defined else self._steps()[word]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.files, *(word for word in self._steps() if word not in self.files), *defined])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def by_section(self) -> dict[Section, list[Command]]:
        """All commands under the headings of the help."""
        commands = list(self.values())
        return {section: [c for c in commands if c.section is section] for section in Section}

    def _steps(self) -> Mapping[str, Command]:
        """The commands of a debug session: import of the debugger is put off until one is looked up."""
        from fluidnb_magics.commands._steps import STEP_COMMANDS

        return STEP_COMMANDS


COMMANDS = CommandTable()
