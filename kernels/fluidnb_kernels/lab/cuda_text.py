"""Parser of a user's CUDA text: its kernels, their parameters, and their launch lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fluidnb.errors import OpTypeError, OpValueError
from fluidnb_kernels.cuda import CTYPES, Source
from fluidnb_kernels.cuda.source import included

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SETTING = re.compile(r"^\s*//!\s*(\w+)\s*=\s*(.+?)\s*$")
_KERNEL = re.compile(
    r"(?:template\s*<\s*(?:class|typename)\s+(?P<t>\w+)\s*>\s*)?(?P<c>extern\s*\"C\"\s*)?"
    r"__global__\s+(?:__launch_bounds__\([^)]*\)\s*)?void\s+(?:__launch_bounds__\([^)]*\)\s*)?"
    r"(?P<name>\w+)\s*\((?P<params>[^)]*)\)"
)
_PARAMETER = re.compile(r"^(?P<type>.*?)(?P<star>\*?)\s*(?P<name>\w+)$")
#: Other spellings of C++ types.
_SPELLINGS = {
    "unsigned": "unsigned int", "long long int": "long long", "unsigned long long int": "unsigned long long",
    "size_t": "unsigned long long", "half": "__half",
}  # fmt: skip
#: C++ type -> numpy dtype
DTYPES = {
    **{c: name for name, c in CTYPES.items()},
    "unsigned int": "uint32",
    "unsigned long long": "uint64",
    "unsigned short": "uint16",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel."""

    name: str  # its name; that of a slot, an attribute, a setting, or ``n``
    type: str  # the C++ type of the number, or of what it points to; the template's name where it depends on it
    pointer: bool  # whether it is a pointer
    written: bool  # whether it is a pointer to what may be written


@dataclass(frozen=True, slots=True)
class Setting:
    """One line ``//! name = expression``."""

    name: str  # ``grid``, ``block``, ``shared``, or the name of a parameter
    expression: str  # Python over the shapes
    line: int = 0  # where it stands in the cell; 0 for an option


@dataclass(frozen=True, slots=True)
class Part:
    """One kernel of a text."""

    name: str
    template: str  # the name of its template parameter, or empty
    plain: bool  # whether it is ``extern "C"``
    parameters: tuple[Parameter, ...]
    settings: tuple[Setting, ...]  # the lines above it
    line: int  # where it stands

    def instance(self, ctype: str) -> str:
        """Its name with a type for its template parameter."""
        return f"{self.name}<{ctype}>" if self.template else self.name


@dataclass(frozen=True, slots=True)
class CudaText:
    """A user's CUDA text."""

    text: str
    parts: tuple[Part, ...]  # its kernels; they are launched one after the other
    name: str = "cell"  # what compilers call it
    first: int = 1  # the number of its first line
    sources: dict[tuple[str, ...], CellSource] = field(default_factory=dict, compare=False)

    def source(self, ctypes: Sequence[str]) -> CellSource:
        """The text as a file of kernels."""
        key = tuple(ctypes)
        if key not in self.sources:
            names = dict.fromkeys(part.instance(c) for part in self.parts for c in key)
            self.sources[key] = CellSource(self.text, self.name, self.first, names)
        return self.sources[key]


class CellSource(Source):
    """A user's text as a file of kernels."""

    def __init__(self, text: str, name: str, first: int, names: dict[str, None]) -> None:
        self.path, self._kernels, self._functions = Path(name), lambda: names, {}
        self.__dict__["text"] = "\n".join(included(text, self.path, set(), first))


def read_cuda(text: str, name: str = "cell", first: int = 1) -> CudaText:
    """Read a user's CUDA text; ``first`` is the number of its first line in the cell."""
    bare = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    found = list(_KERNEL.finditer(bare))
    if not found:
        lines = [line.strip() for line in text.splitlines() if line.strip()] or ["nothing"]
        raise OpValueError(
            "The text has no kernel.", expected="a function __global__ void name(...)", received=lines[0][:60],
            hint="__global__ void twice(const float* X, float* Out, long long n) { EACH(i, 0, n) Out[i] = 2 * X[i]; }",
        )  # fmt: skip
    settings = [
        Setting(match[1], match[2], number)
        for number, line in enumerate(text.splitlines(), first)
        if (match := _SETTING.match(line))
    ]
    parts, before = [], 0
    for match in found:
        line = first + bare[: match.start("name")].count("\n")
        above = tuple(s for s in settings if before < s.line < line)
        parameters = tuple(_parameter(p, match["name"], match["t"] or "") for p in _split(match["params"]))
        parts.append(Part(match["name"], match["t"] or "", bool(match["c"]), parameters, above, line))
        before = line
    return CudaText(text, tuple(parts), name, first)


def _split(text: str) -> list[str]:
    return [p for p in (" ".join(part.split()) for part in text.split(",")) if p]


def _parameter(text: str, kernel: str, template: str) -> Parameter:
    """A parameter as it is declared."""
    words = re.sub(r"\b(const|__restrict__|volatile)\b", " ", text)
    match = _PARAMETER.match(" ".join(words.split()))
    type = "" if match is None else " ".join(match["type"].split())
    type = _SPELLINGS.get(type, type)
    if match is None or not (type in DTYPES or (template and type == template)):
        raise OpTypeError(
            f"Kernel {kernel} has a parameter that Python cannot pass.", expected=", ".join(DTYPES), received=text
        )
    return Parameter(match["name"], type, bool(match["star"]), bool(match["star"]) and "const" not in text)
