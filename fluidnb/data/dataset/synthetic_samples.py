"""Generators of synthetic data: digits in dots, and sentences of a small, learnable grammar."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

NOUNS = (
    "baker bird boat cat child clock dog doctor farmer fish garden horse house king letter moon poet queen river "
    "sailor ship star teacher tree wolf writer"
).split()
ADJECTIVES = "big blue bright cold dark gentle green happy old quiet red small tall warm wise young".split()
VERBS = "admires calls draws finds follows guards hears helps loves paints remembers sees watches wants".split()
DETERMINERS = "a every one that the this".split()
PLACES = "above behind below beside near under".split()
TIMES = "again alone often now slowly today".split()

_DIGITS = (  # five dots a row, seven rows, from the highest bit on the left
    "0e11131519110e 040c040404040e 0e11010204081f 1f02040201110e 02060a121f0202 1f101e0101110e 0608101e11110e "
    "1f010204080808 0e11110e11110e 0e11110f01020c"
).split()


def dots() -> np.ndarray[Any, Any]:
    """The ten digits in a font of 7 rows of 5 dots: 0 and 1, of shape (10, 7, 5)."""
    rows = np.array([list(bytes.fromhex(digit)) for digit in _DIGITS])
    return rows[..., None] >> np.arange(4, -1, -1) & 1


class Phrase(NamedTuple):
    """A part of a sentence and what it is to the verb."""

    role: str  # of semantic roles: A0 who, V the verb, A1 whom, AM-LOC where, AM-TMP when
    words: tuple[str, ...]


@functools.cache
def sentences(count: int, seed: int) -> tuple[tuple[Phrase, ...], ...]:
    """Sentences in which a noun says much about its verb, and a verb about its object."""
    random = np.random.RandomState(seed)

    def pick(words: list[str], of: int, spread: int) -> int:
        return (of * 5 + random.randint(spread)) % len(words)

    def thing(noun: int) -> tuple[str, ...]:
        words = [DETERMINERS[random.randint(len(DETERMINERS))]]
        if random.randint(2):
            words.append(ADJECTIVES[pick(ADJECTIVES, noun, 3)])
        return (*words, NOUNS[noun])

    def sentence() -> tuple[Phrase, ...]:
        who = random.randint(len(NOUNS))
        verb = pick(VERBS, who, 2)
        whom = pick(NOUNS, verb, 6)
        phrases = [Phrase("A0", thing(who)), Phrase("V", (VERBS[verb],)), Phrase("A1", thing(whom))]
        if random.randint(3) == 0:
            place = (PLACES[random.randint(len(PLACES))], *thing(random.randint(len(NOUNS))))
            phrases.append(Phrase("AM-LOC", place))
        if random.randint(3) == 0:
            phrases.append(Phrase("AM-TMP", (TIMES[random.randint(len(TIMES))],)))
        return tuple(phrases)

    return tuple(sentence() for _ in range(count))
