"""Pairs of sentences as numbers: what the data sets of translation share."""

from collections import Counter
from collections.abc import Iterable, Mapping

from fluidnb.errors import OpValueError

START, END, UNK = "<s>", "<e>", "<unk>"


def check_size(what: str, size: int) -> int:
    """Raises if a dictionary size is smaller than its three special entries."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 3:
        raise OpValueError(
            f"{what} should be an int of 3 or more.", received=size,
            hint=f'the first three words are "{START}", "{END}" and "{UNK}".',
        )  # fmt: skip
    return size


def count_words(sentences: Iterable[str]) -> list[str]:
    """All words, the most frequent first, equal ones as they come.

    Example:
        >>> count_words(["a rose", "is a rose", "is"])
        ['a', 'rose', 'is']
    """
    counts = Counter(word for sentence in sentences for word in sentence.split())
    return [word for word, _ in counts.most_common()]


def sample(
    line: str, dicts: tuple[Mapping[str, int], Mapping[str, int]], unknown: int, source: int = 0
) -> tuple[list[int], list[int], list[int]] | None:
    """The source with both ends, the target after "<s>", the target before "<e>"; None without a pair."""
    columns = line.strip().split("\t")
    if len(columns) != 2:
        return None
    first, second = dicts
    target = [second.get(word, unknown) for word in columns[1 - source].split()]
    ids = [first.get(word, unknown) for word in (START, *columns[source].split(), END)]
    return ids, [second[START], *target], [*target, second[END]]


def turned(words: Mapping[str, int]) -> dict[int, str]:
    """A dict the other way round."""
    return {number: word for word, number in words.items()}
