"""``%fluid``: everything beside building."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from fluidnb.errors import near
from fluidnb_magics.cell_errors import shorten
from fluidnb_magics.commands import COMMANDS
from fluidnb_magics.session.workbench import Workbench


@magics_class
class FluidLines(Magics):
    """The line magic.

    Args:
        shell: the IPython shell.
        bench: the session.
    """

    shell: Any

    def __init__(self, shell: Any, bench: Workbench) -> None:
        super().__init__(shell)
        self._bench = bench

    @line_magic
    def fluid(self, line: str) -> Any:
        """%fluid show | graph | tree | uses | run | train | runs | cells | drop | undo | reset | block | scope
        | programs | ops | kernels | compat | seed | set | diff | place | plan | memory | profile | debug | nan
        | panel | serve | explore | build | add | teach

        ``%fluid WORD --help`` says more about one of them, ``%fluid --help`` about cells.
        """
        word, _, rest = line.strip().partition(" ")
        if word in ("", "--help", "-h", "help"):
            print(overview() + "\n" + self.shell.find_cell_magic("fluid").__doc__)
            return None
        command = COMMANDS.get(word)
        if command is None:
            raise UsageError(f"%fluid has no {word}. {near(word, COMMANDS) or 'It has ' + ', '.join(COMMANDS)}")
        if rest.strip() in ("--help", "-h"):
            print(cleandoc(command.__doc__ or "").removeprefix("::\n"))  # a mark of reST for pages of documentation
            return None
        try:
            return command(self._bench, rest)
        except UsageError:
            raise
        except BaseException as error:
            raise shorten(self.shell, error) from None


def overview() -> str:
    """All commands, a line each."""
    rows = [("%%fluid [NAME]", "build a part of the program")]
    rows += [("%%kernel OP", "write a kernel"), ("%%op OP", "write an operator")]
    rows += [(f"%fluid {word}", first_sentence(command.__doc__ or "")) for word, command in COMMANDS.items()]
    wide = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{wide}}  {text}" for name, text in rows)


def first_sentence(doc: str) -> str:
    """The sentence of a command's help that follows its usage.

    Example:
        >>> first_sentence("::\\n\\n  %fluid seed number\\n\\nFix everything: values. More.\\n")
        'Fix everything: values.'
    """
    text = next((p for p in doc.split("\n\n") if p.strip() and not p.lstrip().startswith(("::", "%"))), "")
    return " ".join(text.split()).split(". ")[0].rstrip(".") + "."
