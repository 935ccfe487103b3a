"""Text that cannot act: control characters, terminal escapes and bidirectional controls become visible escapes.

Names and values may come from a file of unknown origin. Printed as they are, ``ESC]0;...`` renames a terminal, and
U+202E reverses what follows it on the line.
"""

import re

#: First and last code points: C0 (but tab and line feed), DEL and C1, Arabic letter mark, direction marks, line and
#: paragraph separators with embeddings, isolates, lone surrogates, the byte order mark.
ACTING = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069),
    (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip
_ACTING = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in ACTING) + "]")


def visible(text: str) -> str:
    r"""Replaces characters that act on a terminal or reorder a line by Python's escapes."""
    if _ACTING.search(text) is None:
        return text
    return _ACTING.sub(lambda match: ascii(match[0])[1:-1], text)


def visible_line(text: str) -> str:
    r"""The same for a name or value within a line: tabs and line feeds become escapes too.

    Example:
        >>> visible_line("a\nb")
        'a\\nb'
    """
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def escape(text: str, quote: bool = True) -> str:
    r"""Text for HTML and SVG: visible, and escaped."""
    import html  # 3 ms of start-up

    return html.escape(visible(text), quote)
