"""Names and comments of C for names and texts of programs, which may hold any characters."""

import re

from fluidnb.utils.escapes import visible_line

#: Words that C11 keeps, and names that the generated files use themselves.
_TAKEN = frozenset(
    "alignas alignof auto bool break case char complex const continue default do double else enum extern false float "
    "for goto if imaginary inline int long noreturn register restrict return short signed sizeof static struct switch "
    "true typedef typeof union unsigned void volatile while asm main NULL I T M_PI EOF errno stdin stdout stderr "
    "arena weights embedded model_load model_save model_run model_train_step".split()
)


class Names:
    """Gives each text a separate name of C.

    Example:
        >>> names = Names(); names["fc_0.w_0"], names["fc_0_w_0"], names["int"], names["fc_0.w_0"]
        ('fc_0_w_0', 'fc_0_w_0_2', 'int_', 'fc_0_w_0')
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._used: set[str] = set()

    def __getitem__(self, text: str) -> str:
        """The name of a text, always the same."""
        if text not in self._given:
            base = identifier(text)
            name, n = base, 1
            while name in self._used:
                n += 1
                name = f"{base}_{n}"
            self._used.add(name)
            self._given[text] = name
        return self._given[text]


def identifier(text: str) -> str:
    """A text as a name of C, at most 60 characters long."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60] or "unnamed"
    if not name[0].isalpha():
        name = "v" + name[:59]
    return name + "_" if name in _TAKEN else name


def comment(text: str) -> str:
    """A text that stays inside a comment of one line: no end of the comment, no continued line, nothing that acts.

    Example:
        >>> comment("x */ y")
        'x * / y'
    """
    line = visible_line(text).replace("*/", "* /").replace("/*", "/ *").replace("??/", "? ?/")
    line = line if len(line) <= 200 else line[:197] + "..."
    return line + "." if line.endswith("\\") else line  # a backslash at the end would continue the comment
