"""Texts use the standard terms of the field: no private metaphors in docstrings, messages and guides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ["fluidnb", "kernels/fluidnb_kernels", "magics/fluidnb_magics"]
GUIDES = ["README.md", "CONTRIBUTING.md"]
#: Words of synthetic data, which are no prose.
ALLOWED = {"fluidnb/data/dataset/synthetic_samples.py": {"house"}}

#: A regular expression -> the words to use instead.
WORDS = {
    r"walkers?": "executor: compiled run or interpreter",
    r"(?<![/.])house(?!/|\.\w)": "codebase, package",
    r"rooms?": "package; memory, capacity, space",
    r"(?<![-/])faces?": "rendering (text, SVG, HTML); interface",
    r"(?:go(?:es|ing)?|went) on": "continue, resume; is propagated, is inherited; unfinished",
    r"go(?:es)? back over": "undo, step back",
    r"worked out": "computed, inferred",
    r"nobody": "it has no consumer, is unused; no user, without",
    r"laid out anew": "layout conversion",
    r"of (?:its|their|his|your|one's) own": "separate, new, private, custom; without one",
    r"what (?:it|they|[a-z]+) holds?": "its value",
    r"stand-ins?": "synthetic data; placeholder; CUDA emulator backend",
    r"(?:tak(?:e|es|en|ing)|took) back": "undo, remove",
    r"first values?": "initial value, initialize",
    r"(?:stands?|stood)(?! for\b)": "is paused; is in, is stored; is",
    r"(?:lies?|lying)(?! to\b)": "is stored, is in, is on",
    r"lay(?! out\b)": "was stored; arrange",
    r"tells?|told": "reports, prints, raises; determines, distinguishes",
    r"look(?:s|ed|ing)? at": "inspect, read, check",
    r"ask(?:s|ed|ing)?(?! the user\b| you\b| at the prompt\b)": "request, require, query (ask only a user)",
    r"chances?": "probability",
    r"what is what": "legend",
    r"(?:design decision|seed section) \d+|seed section": "the fact itself",
    r"made (?:anew|of)": "recreated; consists of",
    r"comes? (?:out|together|along)": "results; is combined; is passed",
    r"who(?:se)? (?:is|holds|waits|looks)": "the owner, the consumer, the caller",
}
_WORDS = {re.compile(rf"\b(?:{word})\b", re.IGNORECASE): instead for word, instead in WORDS.items()}
_ANY = re.compile("|".join(word.pattern for word in _WORDS), re.IGNORECASE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", re.DOTALL)


def metaphors(text: str) -> list[str]:
    """The words of a text that are not standard terms, each with those to use instead."""
    if not _ANY.search(text):  # one search for most texts
        return []
    prose = _CODE.sub("", text)
    return [f'"{m.group()}": {instead}' for word, instead in _WORDS.items() for m in word.finditer(prose)]


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """First paragraphs of docstrings, and string literals of more than one word, with their lines."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            docstrings.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield node.lineno, node.value.strip().split("\n\n")[0]
            elif " " in node.value:
                yield node.lineno, node.value


def check_file(path: Path) -> list[str]:
    """The findings of a Python file, each with its line."""
    allowed = ALLOWED.get(str(path.relative_to(ROOT)), set())
    return [
        f"{path.relative_to(ROOT)}:{line}: {finding}"
        for line, text in texts(ast.parse(path.read_text()))
        for finding in metaphors(text)
        if finding.split('"')[1] not in allowed
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_texts_use_standard_terms(package: str) -> None:
    assert [finding for path in sorted((ROOT / package).rglob("*.py")) for finding in check_file(path)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_begin_with_a_noun_or_a_verb(package: str) -> None:
    questions = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                text = ast.get_docstring(node) or ""
                if re.match(r"(What|How|Who|Which|Where|Whose|When|Why)\b", text):
                    questions.append(f"{path.relative_to(ROOT)}: {text.splitlines()[0]}")
    assert questions == []


@pytest.mark.parametrize("name", GUIDES)
def test_guides_use_standard_terms(name: str) -> None:
    prose = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), (ROOT / name).read_text())
    lines = enumerate(prose.split("\n"), 1)
    assert [f"{name}:{number}: {finding}" for number, line in lines for finding in metaphors(line)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Both walkers drive it.",
        "A buffer of its own.",
        "What it holds.",
        "An array that lies in memory.",
        "Tells its sizes.",
        "Asks the device once.",
        "Ask for shapes.",
        "Taken back with a cell.",
        "Its first value.",
        "Looked at once.",
        "The session stands.",
        "What is what",
    ],
)
def test_the_rule_sees_metaphors(text: str) -> None:
    code = f'def f():\n    """{text}"""\n    raise ValueError(f"{text} {{f}}")\n'
    found = [line for line, part in texts(ast.parse(code)) if metaphors(part)]
    assert sorted(found) == [2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "-1 stands for unknown sizes.",
        "Lays out a graph.",
        "Asks the user at the prompt.",
        "Houses and prices.",
        "See `ask`.",
    ],
)
def test_normal_senses_are_free(text: str) -> None:
    assert metaphors(text) == []


def test_examples_of_a_docstring_are_free() -> None:
    assert [t for _, t in texts(ast.parse('"""Sums.\n\nExample:\n    >>> ask()\n"""'))] == ["Sums."]
