"""Small changes to the text of kernels, each of which some test has to notice."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*"
    r"|(?:0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*"
    r"|<<=|>>=|<=|>=|==|!=|&&|\|\||\+\+|--|\+=|-=|\*=|/=|->|::|<<|>>|\S",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#\s*define\s+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_LINE = re.compile(r'#line (\d+) "([^"]+)"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(0[xX][\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([uUlLfF]*)")
#: Operators with something on both sides, and what takes their place.
_OPERATORS = {
    "+": "-", "-": "+", "*": "+", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&", "+=": "-=",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change.

    Args:
        file: name of the file.
        line: the line, from 1.
        column: the column, from 0.
        old: what stands there.
        new: what takes its place.
        unit: the function, struct or call of a macro that it is a part of.
    """

    file: str
    line: int
    column: int
    old: str
    new: str
    unit: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}: {self.old} -> {self.new} in {self.unit}"


@dataclass(slots=True)
class _Token:
    text: str
    start: int
    inside: bool = False  # whether it is code: in the body of a function, or an argument of a macro that makes one
    unit: str = ""


def _units(text: str) -> list[_Token]:
    """The words and signs of a text, comments and directives left out, with what they are a part of."""
    blank = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    tokens = [_Token(m[0], m.start()) for m in _TOKEN.finditer(blank) if m[0][:2] not in ("//", "/*")]
    frames: list[tuple[str, bool]] = []  # name and whether it is code, for each brace that is open
    head: list[_Token] = []  # what has come since the last end of something, outside code
    parens = 0
    for token, after in zip(tokens, [*(t.text for t in tokens), ""][1:], strict=True):
        name, code = frames[-1] if frames else ("", False)
        token.unit, token.inside = name, code
        if code:
            if token.text == "{":
                frames.append((name, True))
            elif token.text == "}":
                frames.pop()
            continue
        parens += (token.text == "(") - (token.text == ")")
        if token.text == "}":
            frames.pop()
            head = []
        elif token.text == "{" and not parens:
            frames.append(_opened(head, name))
            _give(head, frames[-1][0])
            head = []
        elif token.text == ";" and not parens:
            words = [t.text for t in head[: next((i for i, t in enumerate(head) if t.text == "="), None)]]
            _give(head, name or next((w for w in reversed(words) if _WORD.fullmatch(w)), ""))
            head = []
        else:
            head.append(token)
            if token.text == ")" and not parens and after != "{" and _is_macro(head):
                _give(head, next((t.text for t in head[2:] if _WORD.fullmatch(t.text)), ""))
                for t in head[2:-1]:
                    t.inside = True
                head = []
    return tokens


def _give(head: list[_Token], unit: str) -> None:
    for token in head:
        token.unit = unit


def _is_macro(head: list[_Token]) -> bool:
    """Whether a call of a macro begins here, whose first argument is the name of what it makes."""
    return len(head) > 2 and head[0].text.isupper() and head[1].text == "("


def _opened(head: list[_Token], around: str) -> tuple[str, bool]:
    """The block that a brace opens: its name, that of the struct around it, if any, and whether it is code."""
    words = [t.text for t in head]
    if "namespace" in words:
        return around, False
    if _is_macro(head):
        return around or words[2], True
    if words and words[-1] in (")", "const"):
        depth, name = 0, ""
        for i, word in enumerate(words):
            if word == "(" and not depth:
                known = words[:i]
                while known[-1:] == [">"]:  # what a template is made for
                    del known[len(known) - 1 - known[::-1].index("<") :]
                name = known[-1] if known and _WORD.fullmatch(known[-1]) else name
            depth += (word == "(") - (word == ")")
        return around or name, True
    for i, word in enumerate(words):
        if word in ("struct", "enum", "union"):
            rest = [w for w in words[i + 1 :] if w != "alignas"]
            start = rest.index(")") + 1 if rest[:1] == ["("] else 0
            return around or next((w for w in rest[start:] if _WORD.fullmatch(w)), ""), False
    return around, True


def mutants(text: str, file: str) -> Iterator[Mutant]:
    """All changes that are known to a file's text.

    Args:
        text: CUDA C++, without what it includes.
        file: its name.

    Yields:
        Changes of a number by one, of an operator, and of an index by one.

    Example:
        >>> text = "__global__ void f(int* x) {\\n  x[threadIdx.x + 1] = 2.5f;\\n}"
        >>> [f"{m.column} {m.old} -> {m.new}" for m in mutants(text, "f.cu")]
        ['16 + -> -', '18 1 -> 2', '18 1 -> 0', '23 2.5f -> 3.5f']
    """
    tokens = _units(text)
    for i, token in enumerate(tokens):
        if not token.inside:
            continue
        line = text.count("\n", 0, token.start) + 1
        column = token.start - (text.rfind("\n", 0, token.start) + 1)
        before, after = (tokens[i + k].text if 0 <= i + k < len(tokens) else "" for k in (-1, 1))
        spaced = text[token.start - 1 : token.start] == " " == text[token.start + len(token.text) :][:1]
        for new in _changes(token.text, before, after, spaced):
            yield Mutant(file, line, column, token.text, new, token.unit)


def _changes(word: str, before: str, after: str, spaced: bool) -> Iterator[str]:
    number = _NUMBER.fullmatch(word)
    if number:
        digits, suffix = number.groups()
        if re.search(r"[.eE]", digits) and digits[:2].lower() != "0x":
            yield f"{float(digits) + 1!r}{suffix}"
        else:
            value = int(digits, 0)
            yield f"{value + 1}{suffix}"
            if value:
                yield f"{value - 1}{suffix}"
    elif word in _OPERATORS and spaced and (before in (")", "]") or before[-1:].isalnum()):
        yield _OPERATORS[word]
    elif _WORD.fullmatch(word) and before == "[" and after == "]":
        yield f"{word} + 1"


def changed(text: str, mutant: Mutant) -> str:
    """The text of a `Source` with a change.

    Args:
        text: the text, with what it includes.
        mutant: the change.

    Returns:
        The changed text; the text itself where it has no such file.

    Example:
        >>> changed('#line 1 "f.cu"\\nvoid f() {\\n  x[0 + 1] = 3;\\n}', Mutant("f.cu", 2, 8, "1", "2", "f"))
        '#line 1 "f.cu"\\nvoid f() {\\n  x[0 + 2] = 3;\\n}'
    """
    lines = text.split("\n")
    file, number = "", 0
    for i, line in enumerate(lines):
        mark = _LINE.match(line)
        if mark:
            file, number = mark[2], int(mark[1])
            continue
        if (file, number) == (mutant.file, mutant.line):
            end = mutant.column + len(mutant.old)
            assert line[mutant.column : end] == mutant.old, (mutant, line)
            lines[i] = line[: mutant.column] + mutant.new + line[end:]
            break
        number += 1
    return "\n".join(lines)


def affected(text: str, unit: str) -> set[str]:
    """The names of all that may be other than before where a part of a text is.

    Args:
        text: the text of a `Source`.
        unit: the part.

    Returns:
        The part, and what mentions it, directly or not.

    Example:
        >>> sorted(affected("int f() { return 1; }  int g() { return f(); }  int h() { return 2; }", "f"))
        ['f', 'g']
    """
    mentions: dict[str, set[str]] = defaultdict(set)
    for token in _units(text):
        mentions[token.unit].add(token.text)
    for match in _MACRO.finditer(text):
        mentions[match[1]].update(_WORD.findall(match[2]))
    mentions.pop("", None)
    found, more = {unit}, True
    while more:
        new = {name for name, words in mentions.items() if name not in found and words & found}
        found |= new
        more = bool(new)
    return found


def touches(kernel: str, names: set[str]) -> bool:
    """Whether a kernel is among what may be other than before.

    Args:
        kernel: its name, or a name expression.
        names: what `affected` gave.

    Example:
        >>> touches("unary<f::relu, float, 4>", {"relu"})
        True
    """
    return not names.isdisjoint(_WORD.findall(kernel))
