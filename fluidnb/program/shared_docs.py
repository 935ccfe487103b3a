"""Docstrings completed with the arguments that mean the same in every layer, or in every optimizer."""

import inspect
import re
from collections.abc import Iterable, Mapping

_ARGS = re.compile(r"^Args:\n((?: +.*(?:\n|\Z))+)", re.MULTILINE)
_NEXT_SECTION = re.compile(r"\n\n(?=Returns:|Raises:|Example:|Source:)|\Z")


def document(doc: str | None, arguments: Iterable[str], texts: Mapping[str, str]) -> str | None:
    """A docstring in which ``Args:`` has all arguments in order; what it does not describe gets its text of a table.

    Example:
        >>> print(document("Add.\\n\\nArgs:\\n    x: one.", ["x", "name"], {"name": "name of the layer."}))
        Add.
        <BLANKLINE>
        Args:
            x: one.
            name: name of the layer.
    """
    if doc is None:
        return None
    doc = inspect.cleandoc(doc)
    section = _ARGS.search(doc)
    own = {} if section is None else _entries(section[1])
    shared = {name: f"    {name}: {texts[name]}\n" for name in arguments if name in texts and name not in own}
    every = own | shared
    lines = "".join(every.pop(name) for name in arguments if name in every) + "".join(every.values())
    if not shared:
        return doc
    if section is not None:
        return f"{doc[: section.start()]}Args:\n{lines}{doc[section.end() :]}".rstrip()
    end = _NEXT_SECTION.search(doc)
    assert end is not None
    return f"{doc[: end.start()]}\n\nArgs:\n{lines}{doc[end.start() + 1 :]}".rstrip()


def _entries(section: str) -> dict[str, str]:
    """Argument -> its lines."""
    parts = re.split(r"^(?=    \*{0,2}\w+: )", section.rstrip("\n") + "\n", flags=re.MULTILINE)[1:]
    return {part.partition(":")[0].strip(" *"): part for part in parts}
