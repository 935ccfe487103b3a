"""Unique names by counter, and name scopes that decorate operators."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from fluidnb.arguments import checked
from fluidnb.errors import OpAssertionError
from fluidnb.program import origin


class UniqueNameGenerator:
    """Counters by key; each call gives ``key_0``, ``key_1``, ….

    Args:
        prefix: what comes before every name.

    Example:
        >>> g = UniqueNameGenerator()
        >>> g("fc"), g("fc"), g("fc_0.tmp")
        ('fc_0', 'fc_1', 'fc_0.tmp_0')

    Source: fluid.unique_name.
    """

    __slots__ = ("__weakref__", "ids", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.ids: dict[str, int] = {}
        generators.add(self)

    def count(self, key: str) -> int:
        """The next number of a key, from 0."""
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        if origin.recorder is not None:
            origin.recorder.counted(self, key, number)
        if watch is not None:
            watch.counted.setdefault((self, key), number)
        return number

    def __call__(self, key: str) -> str:
        return f"{self.prefix}{key}_{self.count(key)}"


#: Every generator that is alive, so that a snapshot can hold their counters.
generators: weakref.WeakSet[UniqueNameGenerator] = weakref.WeakSet()
#: The generator in use.
generator = UniqueNameGenerator()


class Watch:
    """Names and counters used since its creation."""

    def __init__(self) -> None:
        self.generated: set[str] = set()
        self.counted: dict[tuple[UniqueNameGenerator, str], int] = {}

    def undo(self) -> None:
        """Reset the counters."""
        for (counter, key), number in self.counted.items():
            if number:
                counter.ids[key] = number
            else:
                counter.ids.pop(key, None)


#: Who watches now, or None.
watch: Watch | None = None


@checked
def generate(key: str) -> str:
    """A name that the process has not used yet.

    Args:
        key: start of the name.

    Returns:
        ``key_N`` with the first N not used for this key.

    Example:
        >>> with guard():
        ...     generate("fc"), generate("fc")
        ('fc_0', 'fc_1')
    """
    return fresh(key)


def fresh(key: str) -> str:
    """As `generate`, whose check of the argument costs as much again."""
    name = generator(key)
    if watch is not None:
        watch.generated.add(name)
    return name


@checked
def switch(new_generator: UniqueNameGenerator | None = None) -> UniqueNameGenerator:
    """Replace the generator in use, by default with a new one, and return the former one."""
    global generator
    old = generator
    generator = UniqueNameGenerator() if new_generator is None else new_generator
    return old


@checked
@contextmanager
def guard(new_generator: UniqueNameGenerator | str | None = None) -> Iterator[None]:
    """Use another generator inside a ``with``.

    Args:
        new_generator: a generator, the prefix of a fresh one, or None for a fresh one without prefix.

    Example:
        >>> with guard("A"):
        ...     generate("fc")
        'Afc_0'
    """
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(old)


_scopes: list[str] = []


@checked
@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Set the attribute ``op_namescope`` of operators created inside a ``with`` to the path of scopes.

    Args:
        prefix: the scope's name; entering the same name again makes ``name_1``, ``name_2``, ….

    Example:
        >>> with guard(), name_scope("encoder"), name_scope("attention"):
        ...     full_name_scope()
        '/encoder/attention/'
    """
    if not prefix:
        raise OpAssertionError(
            "namescope prefix cannot be empty.", expected="a name", received=repr(prefix),
            hint='write name_scope("encoder").',
        )  # fmt: skip
    number = generator.count("name_scope " + full_name_scope() + prefix)
    _scopes.append(f"{prefix}_{number}" if number else prefix)
    try:
        yield
    finally:
        _scopes.pop()


def full_name_scope() -> str:
    """The path of the current name scopes, with a slash at both ends."""
    return "/" if not _scopes else f"/{'/'.join(_scopes)}/"
