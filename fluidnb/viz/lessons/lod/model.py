"""The lesson on LoD batches; operators compute lengths, offsets, ranks, and the batch and memory of each step."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb import layers
from fluidnb.errors import OpValueError
from fluidnb.runtime import Executor, Scope
from fluidnb.values import CPUPlace
from fluidnb.values.create import create_lod_tensor
from fluidnb.values.lod import Offsets, to_absolute
from fluidnb.viz.lessons.common import isolated_programs, without_line

#: Rows of a batch at most.
MOST_ROWS = 120


@dataclass(frozen=True, slots=True)
class LodStep:
    """One step of a recurrent network."""

    # the rows of each unfinished sequence in this step: one, or those of a nested sequence. The longest sequence is
    # first.
    parts: tuple[tuple[int, ...], ...]
    memory: tuple[int, ...]  # the sequences whose memory is left after shrink_rnn_memory


@dataclass(frozen=True, slots=True)
class LodLesson:
    """A batch of sequences and the steps of a recurrent network over it."""

    lengths: tuple[tuple[int, ...], ...]  # of the sequences, per level
    offsets: Offsets  # the LoD
    absolute: Offsets  # the offsets in rows on all levels
    level: int  # the level whose sequences are ranked
    table: tuple[tuple[int, int], ...]  # (sequence, length), the longest first
    longest: int  # number of steps
    steps: tuple[LodStep, ...]
    restored: tuple[int, ...]  # the rows in the order of array_to_lod_tensor

    @property
    def rows(self) -> int:
        """Number of rows of the tensor."""
        return self.offsets[-1][-1]

    def sequence_of(self, row: int) -> int:
        """The sequence of the ranked level that contains a row."""
        return sum(start <= row for start in self.absolute[self.level][1:])


def parse_lengths(text: str) -> list[list[int]]:
    """Parses lengths from ``5 3 2 4``, ``2 1 / 2 3 1`` for two levels, or a list of lists."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    levels = re.split(r"/|\]\s*,?\s*\[", inner)
    try:
        return [[int(n) for n in level.strip(" []").replace(",", " ").split()] for level in levels]
    except ValueError:
        raise without_line(OpValueError(
            "These are not the lengths of sequences.", expected="whole numbers, for example 5 3 2 4", received=text,
            hint="2 1 / 2 3 1 has two levels: two sequences, of 2 and of 1 sequences, which have 2, 3 and 1 rows.",
        )) from None  # fmt: skip


def read_lod_lesson(lengths: Sequence[Sequence[int]], level: int = 0) -> LodLesson:
    """Runs a batch of sequences through the operators of a recurrent network."""
    levels = [list(each) for each in lengths]
    with isolated_programs() as (main, _):
        rows = max(sum(levels[-1]), 0) if levels else 0
        if rows > MOST_ROWS:
            raise OpValueError(
                f"{rows} rows are too many to draw.", expected=f"{MOST_ROWS} rows or fewer",
                received=f"lengths {levels}"[:200],
            )  # fmt: skip
        x = create_lod_tensor(np.arange(rows, dtype="int64").reshape(-1, 1), levels, CPUPlace())
        fetches = _build(len(levels), level)
        of_level = len(levels[level]) if level < len(levels) else 1
        feed = {"x": x, "memory": np.arange(of_level, dtype="int64").reshape(-1, 1)}
        table, array, longest, back, memories = Executor().run(
            main, feed=feed, fetch_list=fetches, return_numpy=False, scope=Scope()
        )
    offsets = tuple(tuple(each) for each in x.lod())
    steps = zip(array, memories, strict=True)
    return LodLesson(
        tuple(tuple(each) for each in x.recursive_sequence_lengths()), offsets, to_absolute(offsets), level,
        tuple(table.items()), int(np.array(longest).item()),
        tuple(LodStep(_parts(part), tuple(_numbers(memory))) for part, memory in steps), tuple(_numbers(back)),
    )  # fmt: skip


def _build(levels: int, level: int) -> list[Any]:
    """Appends the operators; the memory is fed with sequence indices, which identify the remaining ones."""
    x = layers.data("x", [1], dtype="int64", lod_level=levels)
    memory = layers.data("memory", [1], dtype="int64")
    table = layers.lod_rank_table(x, level)
    array = layers.lod_tensor_to_array(x, table)
    longest = layers.max_sequence_len(table)
    back = layers.array_to_lod_tensor(array, table)
    ordered = layers.reorder_lod_tensor_by_rank(memory, table)
    step, memories = layers.zeros([1], "int64"), layers.create_array("int64")
    more = layers.less_than(step, longest)
    with layers.While(more).block():
        shrunk = layers.shrink_memory(ordered, step, table)
        layers.array_write(shrunk, step, array=memories)
        layers.assign(shrunk, ordered)
        layers.increment(step)
        layers.less_than(step, longest, cond=more)
    return [table, array, longest, back, memories]


def _numbers(tensor: Any) -> list[int]:
    numbers: list[int] = np.array(tensor).ravel().tolist()
    return numbers


def _parts(tensor: Any) -> tuple[tuple[int, ...], ...]:
    """The rows of one step, a part for each unfinished sequence."""
    numbers, lod = _numbers(tensor), tensor.lod()
    cuts = to_absolute(tuple(tuple(each) for each in lod))[0] if lod else range(len(numbers) + 1)
    return tuple(tuple(numbers[a:b]) for a, b in zip(cuts, cuts[1:], strict=False))
