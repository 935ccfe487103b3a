"""Random numbers that depend on nothing but the seed, the operator, the run and the iteration.

Which operators draw the same numbers:

- An operator with a seed attribute: all of its type with this seed, in every run, whatever their variables are called.
  Initializers copy the startup program's ``random_seed`` when they append their operator, as in Fluid. So a second run
  of the startup program gives the same parameters, and so do parameters of one shape and distribution.
- An operator without one, in a program with a ``random_seed``: the operator with the same number among those of its
  type in another program with this seed, in the same run of a scope. Dropout and noise change from run to run. Fluid
  copies the program's seed into dropout too, which then has one mask for all runs: not so here.
- Without any seed, the session's: by the name of the first output, so that cells can be run again in any order.

A counter-based generator (Philox 4x64-10; Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) gives
word n of a stream without the words before it, so that every place can draw the same numbers and a debugger that goes
back draws them again.
"""

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Session:
    """The seed of the session: drawn at start, or fixed by `seed`; ``times`` counts how often that was done."""

    value: int = secrets.randbits(63)
    times: int = 0


def seed(n: int) -> None:
    """Sets the seed of all random streams that have no seed attribute.

    Example:
        >>> seed(1)
    """
    _Session.value = n & (2**63 - 1)
    _Session.times += 1


def times_seeded() -> int:
    """The number of times the session has been seeded; runs are counted from 0 after each."""
    return _Session.times


class Clock:
    """The state of random streams in a run: the program's seed (0 for the session's), run index and iteration."""

    __slots__ = ("path", "run", "seed")

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.run, self.path = seed, 0, 0


class Stream:
    """The random numbers of one operator.

    Args:
        name: the name of the first output; distinguishes operators under the session's seed.
        seed: the operator's own seed; not 0 gives the same numbers in every run, as Fluid does.
        kind: the operator's type; distinguishes operators under their own seed or the program's.
        number: its index among the program's operators of this type; distinguishes them under the program's seed.

    Example:
        >>> a, b = np.empty(3), np.empty(3)
        >>> s = Stream("mask", Clock(5)); uniform(s, a, 0.0, 1.0); uniform(s, b, 0.0, 1.0); bool((a == b).all())
        True
    """

    __slots__ = ("_bits", "_of", "_state", "clock", "generator", "kind", "name", "number", "seed")

    def __init__(self, name: str, clock: Clock, seed: int = 0, kind: str = "", number: int = 0) -> None:
        self.name, self.clock, self.seed, self.kind, self.number = name, clock, seed, kind, number
        self._bits = np.random.Philox(0)
        self._state: Any = self._bits.state
        self._of: str | None = None
        self.generator = np.random.Generator(self._bits)

    def rewind(self) -> np.random.Generator:
        """The generator at the start of this run's and iteration's numbers."""
        clock = self.clock
        if self.seed:
            source = f"{self.seed}/0/{self.kind}"
        elif clock.seed:
            source = f"{clock.seed}/1/{self.kind}/{self.number}"
        else:
            source = f"{_Session.value}/2/{self.name}"
        if source != self._of:
            digest = hashlib.blake2b(source.encode(), digest_size=16).digest()
            self._state["state"]["key"] = np.frombuffer(digest, np.uint64).copy()
            self._of = source
        counter = self._state["state"]["counter"]
        counter[0] = 0
        counter[1] = clock.path & (2**64 - 1)
        counter[2] = 0 if self.seed else clock.run
        self._state["buffer_pos"], self._state["has_uint32"] = 4, 0
        self._bits.state = self._state
        return self.generator


def uniform(stream: Stream, out: NDArray[Any], low: float, high: float) -> None:
    """Fills a float array of any shape with numbers from [low, high)."""
    unit(stream, out)
    np.multiply(out, out.dtype.type(high - low), out)
    np.add(out, out.dtype.type(low), out)


def unit(stream: Stream, out: NDArray[Any]) -> None:
    """Fills a float array of any shape with numbers from [0, 1): 24 random bits for float32, 53 for float64."""
    generator = stream.rewind()
    if out.flags.c_contiguous and out.dtype.char in "fd":
        generator.random(out=out, dtype=out.dtype)
    else:
        wide = np.float64 if out.dtype.itemsize == 8 else np.float32
        np.copyto(out, generator.random(out.shape, dtype=wide), casting="unsafe")


def normal(stream: Stream, out: NDArray[Any], mean: float, std: float) -> None:
    """Fills a float array with normal numbers by Box and Muller's method: without rejection, alike on every place."""
    generator = stream.rewind()
    half = (out.size + 1) // 2
    u = generator.random((2, half))
    radius = np.sqrt(-2.0 * np.log1p(-u[0]))
    angle = 2.0 * np.pi * u[1]
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[: out.size]
    np.copyto(out, (mean + std * both).reshape(out.shape), casting="unsafe")
