"""Reader decorators that need no threads.

A reader is a function without arguments that returns an iterable of samples, a new one for each pass. A decorator takes
readers and returns a reader.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain as chained
from itertools import islice, zip_longest
from typing import Annotated, Any

from fluidnb.arguments import Rule, checked, shown
from fluidnb.data.seeding import generator
from fluidnb.errors import OpTypeError, OpValueError


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as Python knows."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # no signature, as of some built-in functions
        return True
    return True


Reader = Annotated[
    Callable[[], Iterable[Any]],
    Rule(
        "a reader, which is a function that returns the samples of one pass", lambda function: _takes(function, 0),
        many="readers",
        hint="pass the function itself, not the generator that calling it gave; wrap a list as lambda: the_list.",
    ),
]  # fmt: skip
Mapper = Annotated[
    Callable[..., Any], Rule("a function of a sample", many="functions", hint="for example lambda sample: sample.")
]
HowMany = Annotated[int, Rule("an int from 0 on", lambda n: 0 <= n <= sys.maxsize)]
OneMapper = Annotated[
    Callable[[Any], Any],
    Rule(
        "a function of one sample", lambda function: _takes(function, 1), many="functions",
        hint="for example lambda sample: sample.",
    ),
]  # fmt: skip


class ComposeNotAligned(OpValueError):
    """Composed readers do not have equally many samples."""


def samples_of(reader: Reader) -> Iterator[Any]:
    """Start a pass."""
    samples = reader()
    try:
        return iter(samples)
    except TypeError:
        raise OpTypeError(
            "A reader must return the samples of one pass.", expected="a list, or what else a for loop takes",
            received=shown(samples), hint="return a list of samples, or write it with yield.",
        ) from None  # fmt: skip


def check_count(what: str, n: Any, least: int = 1) -> int:
    """Refuse a count that is no int, or too small."""
    if isinstance(n, bool) or not isinstance(n, int) or n < least:
        kind = "a positive integer value" if least else "an integer value of 0 or more"
        raise OpValueError(f"{what} should be {kind}, but got {what}={n!r}.")
    return n


@checked
def cache(reader: Reader) -> Reader:
    """Read once, at the first pass; later passes come from memory.

    Example:
        >>> passes = []
        >>> r = cache(lambda: passes.append(1) or range(3))
        >>> list(r()), list(r()), len(passes)
        ([0, 1, 2], [0, 1, 2], 1)
    """
    kept: list[tuple[Any, ...]] = []

    def cached() -> Iterator[Any]:
        if not kept:
            kept.append(tuple(samples_of(reader)))
        yield from kept[0]

    return cached


@checked
def map_readers(func: Mapper, *readers: Reader) -> Reader:
    """Apply a function to the samples of one reader, or to those of several side by side.

    Args:
        func: takes a sample of each reader.
        readers: the readers; the shortest ends the pass.

    Example:
        >>> list(map_readers(lambda a, b: a * b, lambda: [1, 2], lambda: [3, 4])())
        [3, 8]
    """
    return lambda: map(func, *(samples_of(r) for r in readers))


@checked
def shuffle(reader: Reader, buf_size: int) -> Reader:
    """Collect `buf_size` samples at a time and give them in random order (`fluid.seed` fixes it).

    Args:
        buf_size: samples to collect; with 0 or 1 they keep their order.

    Example:
        >>> from fluidnb.data import seeding
        >>> seeding.seed(0)
        >>> sorted(shuffle(lambda: range(5), 3)())
        [0, 1, 2, 3, 4]
    """
    check_count("buf_size", buf_size, least=0)

    def shuffled() -> Iterator[Any]:
        samples = samples_of(reader)
        while buffer := list(islice(samples, max(buf_size, 1))):
            for i in generator().permutation(len(buffer)):
                yield buffer[i]

    return shuffled


@checked
def chain(*readers: Reader) -> Reader:
    """One reader after another.

    Example:
        >>> list(chain(lambda: [1, 2], lambda: [3])())
        [1, 2, 3]
    """
    return lambda: chained.from_iterable(samples_of(r) for r in readers)


@checked
def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """Readers side by side: each sample is a flat tuple of the samples of all.

    Args:
        readers: the readers; their samples are tuples or single values.
        check_alignment: raise when one ends before the others; otherwise the shortest ends the pass.

    Raises:
        ComposeNotAligned: while reading, when the readers have unequally many samples.

    Example:
        >>> list(compose(lambda: [(1, 2), (3, 4)], lambda: [5, 6])())
        [(1, 2, 5), (3, 4, 6)]
    """
    missing = object()

    def composed() -> Iterator[tuple[Any, ...]]:
        passes = [samples_of(r) for r in readers]
        rows = zip_longest(*passes, fillvalue=missing) if check_alignment else zip(*passes, strict=False)
        for n, row in enumerate(rows):
            ended = [i for i, sample in enumerate(row) if sample is missing]
            if ended:
                raise ComposeNotAligned(
                    "Outputs of readers are not aligned.", expected="equally many samples from each reader",
                    received=f"reader {ended[0]} ended after {n} samples, others have more",
                    hint="compose(..., check_alignment=False) stops with the shortest.",
                )  # fmt: skip
            yield tuple(chained.from_iterable(s if isinstance(s, tuple) else (s,) for s in row))

    return composed


@checked
def firstn(reader: Reader, n: HowMany) -> Reader:
    """Only the first samples of each pass.

    Example:
        >>> list(firstn(lambda: range(100), 3)())
        [0, 1, 2]
    """
    return lambda: islice(samples_of(reader), n)


@checked
def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """Samples in lists.

    Args:
        batch_size: samples a list; a whole float is accepted, as in ``batch_size / devices``.
        drop_last: leave out a last list that is shorter.

    Example:
        >>> list(batch(lambda: range(5), 2)())
        [[0, 1], [2, 3], [4]]
        >>> list(batch(lambda: range(5), 2, drop_last=True)())
        [[0, 1], [2, 3]]
    """
    count = check_count("batch_size", batch_size)

    def batched() -> Iterator[list[Any]]:
        samples = samples_of(reader)
        while rows := list(islice(samples, count)):
            if len(rows) == count or not drop_last:
                yield rows

    return batched


@checked
class Fake:
    """Repeats the first sample of a reader: to time a program without its input.

    Example:
        >>> fake = Fake()(lambda: iter(range(100)), 3)
        >>> list(fake()), list(fake())
        ([0, 0, 0], [0, 0, 0])
    """

    def __init__(self) -> None:
        self.data: list[Any] = []

    def __call__(self, reader: Reader, length: int) -> Reader:
        """A reader of `length` times the first sample."""

        def fake() -> Iterator[Any]:
            if not self.data:
                self.data.extend(islice(samples_of(reader), 1))
            for _ in range(length):
                yield from self.data

        return fake
