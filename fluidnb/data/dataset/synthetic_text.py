"""Synthetic text with the vocabulary of a real corpus: Zipf frequencies, and words that predict the next one.

Source: G. Zipf, Human Behavior and the Principle of Least Effort (1949).
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.data.dataset import synthetic_samples as grammar

_BLOCK = 1000  # sentences that are drawn at once
#: Words of praise, then as many of blame.
VERDICTS = tuple(
    "great wonderful funny beautiful moving superb charming lovely brilliant delightful "
    "bad terrible boring awful worst poor dull empty tedious dreadful".split()
)

_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]
Array = np.ndarray[Any, Any]


@functools.cache
def words(count: int, first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Different words: given ones, those of the small grammar, then words of two and more syllables."""
    common = ("the", "a", *grammar.DETERMINERS, *grammar.NOUNS, *grammar.VERBS, *grammar.ADJECTIVES)
    vocabulary = dict.fromkeys((*first, *common, *grammar.PLACES, *grammar.TIMES))
    number = 0
    while len(vocabulary) < count:
        rest, word = number + len(_SYLLABLES), ""
        while rest:
            rest, last = divmod(rest, len(_SYLLABLES))
            word = _SYLLABLES[last] + word
        vocabulary[word] = None
        number += 1
    return tuple(vocabulary)[:count]


class Language:
    """Words by frequency; every other word follows from the one before it.

    Example:
        >>> language = Language(words(100), kept=40, cutoff=50)
        >>> counts = language.counts()
        >>> sum(n > 50 for n in counts.values()), counts["the"]
        (40, 538)
        >>> [len(s) for s in language.sentences(2, seed=1, mean=8, most=20)]
        [5, 11]
    """

    _SHIFT = 3.0  # the first words are no more frequent than in English

    def __init__(self, vocabulary: Sequence[str], kept: int, cutoff: int) -> None:
        self.words = vocabulary
        ranks = np.arange(len(vocabulary)) + self._SHIFT
        self._counts = np.floor(cutoff * (kept + self._SHIFT) / (ranks + 1)).astype(np.int64) + 1
        self._cumulative = np.cumsum(self._counts) / self._counts.sum()
        self._following = self._drawn(np.random.RandomState(kept), (len(vocabulary), 3))

    def counts(self, share: float = 1.0) -> dict[str, float]:
        """Expected word counts of the corpus."""
        return dict(zip(self.words, (self._counts * share if share != 1 else self._counts).tolist(), strict=True))

    def sentences(self, count: int, seed: int, mean: float, most: int, spread: float = 0.5) -> Iterator[list[int]]:
        """Sentences as ranks of words; each block of a thousand is drawn when it is needed."""
        for block in range(0, count, _BLOCK):
            random = np.random.RandomState([seed, block])
            size = min(_BLOCK, count - block)
            lengths = random.lognormal(np.log(mean) - spread**2 / 2, spread, size).round().clip(2, most).astype(int)
            order = np.argsort(-lengths)
            table = np.empty((size, int(lengths.max())), np.int32)
            for i, active in enumerate(size - np.searchsorted(np.sort(lengths), np.arange(table.shape[1]), "right")):
                column = self._drawn(random, active)
                if i:
                    follows = self._following[table[:active, i - 1], random.randint(0, 3, active)]
                    column = np.where(random.random_sample(active) < 0.5, follows, column)
                table[:active, i] = column
            place = np.empty(size, np.int64)
            place[order] = np.arange(size)
            for row, length in zip(place, lengths, strict=True):
                yield table[row, :length].tolist()

    def texts(self, count: int, seed: int, mean: float, most: int) -> Iterator[str]:
        """The same sentences as plain text."""
        for ranks in self.sentences(count, seed, mean, most):
            yield " ".join([self.words[rank] for rank in ranks])

    def pairs(
        self, count: int, seed: int, mean: float, most: int, translated: Sequence[Sequence[str]]
    ) -> Iterator[str]:
        """Lines of a sentence, a tab, and its translation word by word."""
        for ranks in self.sentences(count, seed, mean, most):
            other = [translated[rank][i % len(translated[rank])] for i, rank in enumerate(ranks)]
            yield f"{' '.join([self.words[rank] for rank in ranks])}\t{' '.join(other)}"

    def reviews(self, count: int, seed: int, label: int, mean: float, most: int) -> Iterator[list[int]]:
        """Texts among whose words are `VERDICTS`, four of five as the label says; the vocabulary begins with them."""
        kinds = len(VERDICTS) // 2
        for number, ranks in enumerate(self.sentences(count, seed, mean, most, spread=0.7)):
            yield [
                rank if rank >= 2 * kinds else rank % kinds + kinds * (label ^ ((number + position) % 5 == 0))
                for position, rank in enumerate(ranks)
            ]

    def _drawn(self, random: np.random.RandomState, shape: int | tuple[int, ...]) -> Array:
        """Ranks by frequency alone."""
        ranks: Array = np.searchsorted(self._cumulative, random.random_sample(shape))
        return ranks
