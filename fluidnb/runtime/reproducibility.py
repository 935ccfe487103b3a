"""One seed for everything random, and a fresh start."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fluidnb.arguments import checked
from fluidnb.op import rng
from fluidnb.program import Program, program_guard, unique_name
from fluidnb.runtime.scope import Scope, scope_guard
from fluidnb.values import seeding


@checked
def seed(n: int) -> None:
    """Fix everything random of the session: initialisers, random operators, readers, random LoDTensors, Python, numpy.

    The same programs then give the same bits in every process that has the same code for products of matrices. With
    FLAGS_native=auto the first process on a machine has that of BLAS, and compiles C code for large ones in later ones.
    """
    rng.seed(n)
    seeding.seed(n)
    random.seed(n)
    np.random.seed(n % 2**32)


@contextmanager
def fresh() -> Iterator[tuple[Program, Program]]:
    """New main and startup programs, a new scope and new name counters inside a ``with``.

    Example:
        >>> with fresh() as (main, startup):
        ...     fluid.default_main_program() is main
        True
    """
    main, startup = Program(), Program()
    with program_guard(main, startup), scope_guard(Scope()), unique_name.guard():
        yield main, startup
