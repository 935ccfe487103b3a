"""Memory policy of an executor: allocation and sharing of the arrays of its binders."""

from __future__ import annotations

from typing import Any, Protocol

from fluidnb.op.rng import Clock
from fluidnb.values.tensor import LoDTensorArray

Array = Any


class Memory(Protocol):
    """Memory policy of an executor: where the arrays of its binders are stored and which may be shared."""

    clock: Clock

    @property
    def place(self) -> Any:
        """The place on which variables live."""

    @property
    def place_kind(self) -> str:
        """Its kind."""

    def fixed(self, name: str, outer: bool) -> bool:
        """Whether a variable must keep its buffer: another block or the user sees it."""

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A new buffer; ``name`` None for workspace."""

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """A workspace on another kind of place."""

    def may_alias(self, array: Array, name: str) -> bool:
        """Whether a variable may be a view of another's buffer."""

    def is_shared(self, array: Array) -> bool:
        """Whether another variable is a view of this buffer, so that nothing may be written in place."""

    def share(self, array: Array) -> None:
        """Note that a buffer has a view."""

    def array(self, name: str, where: int) -> LoDTensorArray:
        """The tensor array that a variable of block ``where`` holds; -1 for a user's scope."""

    def holder(self, name: str, make: Any) -> Any:
        """An object that keeps its identity over runs while its content changes."""

    def moves(self, name: str, scope: Any, owner: Any) -> bool:
        """Note that an operator in ``scope`` gives a variable of a scope around, ``owner``, another buffer or LoD.

        Says whether it has to do so in every run, not just now; the variable still is as it was before.
        """

    def check(self) -> None:
        """Raise if the run is to stop; a call that waits for something outside makes it again and again."""
