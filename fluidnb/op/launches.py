"""Launches of CUDA kernels as data: which calls of a binder launch kernels, and which."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class KernelFile(Protocol):
    """A file of CUDA kernels."""

    path: Path

    def pieces(self) -> list[tuple[Path, str]]:
        """The files that it includes, in order, then itself, each without its lines of includes."""


class KernelFunction(Protocol):
    """A CUDA kernel of a file."""

    @property
    def name(self) -> str:
        """Its name, with its template arguments."""

    @property
    def source(self) -> KernelFile:
        """Its file."""


class Launch(NamedTuple):
    """A launch of a kernel, or a copy on the device.

    Attributes:
        kernel: the kernel; None for a copy of the second argument to the first.
        grid: blocks in each direction.
        block: threads in each direction.
        shared: bytes of dynamic shared memory.
        args: arrays, numbers of numpy, None for a null pointer.
    """

    kernel: KernelFunction | None
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    args: tuple[Any, ...]


#: Takes the arguments of a call, returns its launches.
Rule = Callable[..., Sequence[Launch]]
_rules: dict[Any, Rule] = {}


def register_launches(function: Any, rule: Rule) -> None:
    """Registers the launches that a function makes; they may depend on shapes and numbers, never on values.

    Args:
        function: a function that kernels emit, or the class of such objects; then the rule gets the object first.
        rule: takes the arguments of a call, returns its launches.
    """
    _rules[function] = rule


def launches_of(function: Any, args: Sequence[Any]) -> Sequence[Launch] | None:
    """The launches of a call; None where it does something else.

    Args:
        function: the function of the call.
        args: its arguments.
    """
    if type(function) in _rules:
        return _rules[type(function)](function, *args)
    rule = _rules.get(function)
    return None if rule is None else rule(*args)
