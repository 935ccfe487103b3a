"""Widths of texts in the columns of a terminal: a Chinese, Japanese or Korean character takes two.

From Python's own tables of characters: tables are aligned alike with and without the package rich.
"""

import unicodedata


def text_width(text: str) -> int:
    """Columns that a text takes in a terminal.

    Example:
        >>> text_width("loss"), text_width("损失")
        (4, 4)
    """
    return len(text) if text.isascii() else sum(map(_width, text))


def padded(text: str, size: int) -> str:
    """A text with blanks behind it, up to a number of columns.

    Example:
        >>> padded("损失", 6) + "|"
        '损失  |'
    """
    return text + " " * (size - text_width(text))


def beginning(text: str, size: int) -> str:
    """As much of a text as fits into a number of columns.

    Example:
        >>> beginning("损失函数", 5)
        '损失'
    """
    if text.isascii():
        return text[: max(size, 0)]
    for end, character in enumerate(text):
        size -= _width(character)
        if size < 0:
            return text[:end]
    return text


def _width(character: str) -> int:
    """Columns of one character."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
