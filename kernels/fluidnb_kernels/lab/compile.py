"""A user's CUDA text compiled, by NVRTC where it is installed and for the emulator; what is said of its lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fluidnb.errors import EnforceNotMet
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import CTYPES, nvrtc
from fluidnb_kernels.lab.cuda_text import CudaText

#: The architecture for which a text is compiled where nobody says.
ARCHITECTURE = 90

_NVRTC = re.compile(r"^(?P<file>[^()\n]+)\((?P<line>\d+)\): (?P<kind>error|warning)[^:]*: (?P<text>.*)$")
_GCC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?(?P<kind>error|warning): (?P<text>.*)$"
)


class KernelRefused(EnforceNotMet):
    """A user's kernel that is not taken: it does not compile, goes astray, or gives wrong results."""


@dataclass(frozen=True, slots=True)
class Message:
    """A compiler's message about a line."""

    kind: str  # ``error`` or ``warning``
    line: int  # the line of the cell; 0 for one of our headers
    column: int  # where in it, from 1; 0 when nobody knows
    text: str  # what is said
    source: str  # the line's text

    def lines(self) -> list[str]:
        """It as text: the sentence, the line, and a caret."""
        at = f"line {self.line}: " if self.line else ""
        out = [f"{at}{self.kind}: {self.text}"]
        if self.source:
            shown = self.source.expandtabs(4)
            lead = len(shown) - len(shown.lstrip())
            out.append("    " + shown.strip())
            if self.column:
                before = self.source[: self.column - 1].expandtabs(4)
                out.append(" " * (4 + max(len(before) - lead, 0)) + "^")
        return out


@dataclass(frozen=True, slots=True)
class Compilation:
    """The result of a compilation."""

    compiler: str  # who compiled: ``NVRTC for sm_90``, or ``g++ for the emulator``
    warnings: tuple[Message, ...] = ()  # what it warned of
    registers: int = 0  # registers of the largest kernel; 0 when only NVRTC could say
    spilled: int = 0  # bytes that are stored and loaded again because registers do not suffice


def compile_cuda(
    text: CudaText, op: str, dtypes: Sequence[str], architecture: int = ARCHITECTURE, use_nvrtc: bool = True
) -> Compilation:
    """Compile a text by the emulator's compiler, and by NVRTC where it is installed."""
    source = text.source([CTYPES[d] for d in dtypes])
    made = None
    if use_nvrtc and not nvrtc.missing():
        try:
            made = nvrtc.compile_for(architecture, source.text, text.name, list(source.kernels))
        except nvrtc.CompileError as error:
            raise refused(op, list(_messages(text, error.log)), f"NVRTC, for sm_{architecture}") from None
    if not emulator.missing():
        try:
            for name in source.kernels:
                source[name].on("emulator").signature  # noqa: B018  (what compiles it)
        except emulator.CompileError as error:
            raise refused(op, list(_messages(text, str(error.received))), "g++, for the emulator") from None
    if made is None:
        return Compilation("g++ for the emulator")
    warned = tuple(m for m in _messages(text, made.log) if m.kind == "warning")
    return Compilation(f"NVRTC for sm_{architecture}", warned, made.registers, made.spilled)


def refused(op: str, messages: Sequence[Message], compiler: str) -> KernelRefused:
    """The error about a text that does not compile."""
    error = KernelRefused(
        f"The kernel of {op} does not compile ({compiler}).", hint="the kernels of this session stay as they were."
    )
    for message in [m for m in messages if m.kind == "error"][:6]:
        for line in message.lines():
            error.add_note(line)
    return error


def _messages(text: CudaText, log: str) -> Iterator[Message]:
    """The messages of a compiler's log, with lines of the cell."""
    lines, said = text.text.splitlines(), log.splitlines()
    for i, line in enumerate(said):
        match = _NVRTC.match(line) or _GCC.match(line)
        if match is None:
            continue
        own, number = match["file"] == text.name, int(match["line"])
        source = lines[number - text.first] if own and 0 <= number - text.first < len(lines) else ""
        if "column" in match.groupdict():
            column = int(match["column"])
        else:
            column = _column(source, said[i + 1 : i + 3])
        where = "" if own else f"{match['file']}, line {number}: "
        yield Message(match["kind"], number if own else 0, column if own else 0, where + match["text"], source)


def _column(source: str, following: Sequence[str]) -> int:
    """The column of NVRTC's caret below the line."""
    if len(following) < 2 or following[1].strip() != "^":
        return 0
    shown = following[0]
    lead = (len(shown) - len(shown.lstrip())) - (len(source) - len(source.lstrip()))
    return following[1].index("^") - lead + 1
