"""Pairs of sentences as numbers: what the data sets of translation share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from fluidnb.errors import OpValueError

START, END, UNK = "<s>", "<e>", "<unk>"


def check_size(what: str, size: int) -> int:
    """Raises if a dictionary size is smaller than its three special entries.

    Args:
        what: the argument's name.
        size: its value.

    Returns:
        It.

    Raises:
        OpValueError: it is no int, or less than 3.

    Example:
        >>> check_size("dict_size", 30)
        30
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 3:
        raise OpValueError(
            f"{what} should be an int of 3 or more.",
            received=size,
            hint=f'the first three words are "{START}", "{END}" and "{UNK}".',
        )
    return size


def count_words(sentences: Iterable[str]) -> list[str]:
    """All words, the most frequent first, equal ones as they come.

    Args:
        sentences: texts with blanks between words.

    Returns:
        Each word once.

    Example:
        >>> count_words(["a rose", "is a rose", "is"])
        ['a', 'rose', 'is']
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(sentence.split())
    return [word for word, _ in counts.most_common()]


def sample(
    line: str, dicts: tuple[Mapping[str, int], Mapping[str, int]], unknown: int, source: int = 0
) -> tuple[list[int], list[int], list[int]] | None:
    """A line of a sentence, a tab and its translation, as numbers.

    Args:
        line: the text.
        dicts: (of the source, of the target), word to number.
        unknown: the number of every other word.
        source: which of the two sentences is the source.

    Returns:
        (the source between "<s>" and "<e>", the target after "<s>", the target before "<e>"); None for a line that has
        not two sentences.

    Example:
        >>> words = {"<s>": 0, "<e>": 1, "a": 3}
        >>> sample("a b\\ta", (words, words), 2)
        ([0, 3, 2, 1], [0, 3], [3, 1])
    """
    columns = line.strip().split("\t")
    if len(columns) != 2:
        return None
    first, second = dicts
    target = [second.get(word, unknown) for word in columns[1 - source].split()]
    given = [first.get(word, unknown) for word in (START, *columns[source].split(), END)]
    return given, [second[START], *target], [*target, second[END]]


def turned(words: Mapping[str, int]) -> dict[int, str]:
    """A dict the other way round.

    Args:
        words: word to number.

    Returns:
        Number to word.

    Example:
        >>> turned({"a": 3})
        {3: 'a'}
    """
    return {number: word for word, number in words.items()}
