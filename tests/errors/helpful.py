"""The helper of the table of mistakes: what a message must have, and that nothing has changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fluidnb as fluid
from fluidnb.errors import FluidError, operand
from fluidnb.program.program import programs
from fluidnb.values import LoDTensor

#: What a message can have.
OP, SLOTS, LINE, EXPECTED, RECEIVED, HINT = PARTS = ("op", "slots", "line", "expected", "received", "hint")

Steps = Callable[[], Generator[None, None, None]]


@dataclass(frozen=True)
class Mistake:
    """One row of the table.

    Args:
        make: builds a small program, yields, and then makes the mistake.
        error: the type that is raised.
        lacks: part of a message that does not apply -> why.
    """

    make: Steps
    error: type[FluidError]
    lacks: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The mistake's name."""
        return self.make.__name__


#: The table.
TABLE: list[Mistake] = []


def mistake(error: type[FluidError], **lacks: str) -> Callable[[Steps], Steps]:
    """Put a mistake into the table.

    Args:
        error: the type that is raised.
        lacks: part of a message that does not apply -> why.

    Returns:
        A decorator.
    """
    assert set(lacks) <= set(PARTS)

    def register(make: Steps) -> Steps:
        TABLE.append(Mistake(make, error, lacks))
        return make

    return register


def parts_of(error: FluidError) -> set[str]:
    """The parts of a message, each complete: an operator with its index, an operand with dtype and shape."""
    found = {
        OP: error.op is not None and re.fullmatch(r"op \d+ \(\w+\) in block \d+", error.op),
        SLOTS: any(name and dtype and shape is not None for _, name, dtype, shape in error.slots),
        LINE: error.where is not None and error.where.source,
        EXPECTED: error.expected,
        RECEIVED: error.received is not None or error.attrs,
        HINT: error.hint,
    }
    return {part for part, there in found.items() if there}


def assert_helpful(error: FluidError, row: Mistake) -> None:
    """A message has op and index, slot with variable, shape and dtype, the line, expected and received, and a hint.

    Args:
        error: what was raised.
        row: the mistake; parts that do not apply must indeed be absent.
    """
    text = str(error)
    assert parts_of(error) == set(PARTS) - set(row.lacks), text
    assert error.summary and text.startswith(error.summary)
    values = [" ".join(str(v).split()) for v in (error.expected, error.received) if v is not None]
    shown = [error.op, error.hint, *values]
    shown += [operand(name, dtype, shape) for _, name, dtype, shape in error.slots]
    shown += [f"{name} = {value!r}" for name, value in error.attrs.items()]
    assert [s for s in shown if s is not None and s not in text] == []
    if error.where is not None:
        assert error.where.file == row.make.__code__.co_filename, text
        assert f"{error.where.short()}:  {error.where.source}" in text


def golden(text: str) -> str:
    """A message without line numbers, which move with every edit of the table."""
    return re.sub(r"(\w+_mistakes\.py):\d+", r"\1:N", text) + "\n"


def known_programs() -> list[fluid.Program]:
    """Every program that is alive now."""
    return list(programs)


def state(known: list[fluid.Program]) -> Any:
    """State that a refused call must not change: bytes of programs, the current block, the values of the global scope.

    Args:
        known: the programs to look at.
    """
    return [(p.desc.serialize_to_string(), p.current_block_idx) for p in known], _scope(fluid.global_scope())


def _scope(scope: fluid.Scope) -> Any:
    return {name: _value(v.value) for name, v in scope.vars.items()}, [_scope(kid) for kid in scope.kids]


def _value(value: Any) -> Any:
    if isinstance(value, LoDTensor):
        array = value.array
        return None if array is None else (array.shape, str(array.dtype), np.asarray(array).tobytes(), value.lod_)
    return value


def golden_file(row: Mistake) -> Path:
    """The file with the exact text of a mistake's message."""
    return Path(__file__).parent / "golden" / f"{row.name}.txt"
