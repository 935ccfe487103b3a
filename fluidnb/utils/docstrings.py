"""Parts of docstrings, to print."""

import re


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, in one line."""
    text = " ".join(doc.partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", text)[0]
