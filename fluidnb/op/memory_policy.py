"""Memory policy of an executor: allocation and sharing of the arrays of its binders."""

from typing import Any, Protocol

from fluidnb.op.rng import Clock
from fluidnb.values.tensor import LoDTensorArray

Array = Any


class Memory(Protocol):
    """Memory policy of an executor: where the arrays of its binders are stored and which may be shared."""

    clock: Clock

    @property
    def place(self) -> Any:
        """The place of the variables."""

    @property
    def place_kind(self) -> str:
        """Its kind."""

    def fixed(self, name: str, outer: bool) -> bool:
        """Whether a variable must keep its buffer, which another block or the user reads."""

    def is_constant(self, name: str) -> bool:
        """Whether a variable is persistable and no operator of the program writes it."""

    def alloc(self, shape: tuple[int, ...], dtype: Any, name: str | None, outer: bool, order: Any, where: int) -> Array:
        """A new buffer; ``name`` None for workspace."""

    def alloc_on(self, kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """A workspace on another kind of place."""

    def may_alias(self, array: Array, name: str) -> bool:
        """Whether a variable may be a view of another's buffer."""

    def is_shared(self, array: Array) -> bool:
        """Whether another variable is a view of this buffer, so that nothing may be written in place."""

    def share(self, array: Array) -> None:
        """Records that a buffer has a view."""

    def array(self, name: str, where: int) -> LoDTensorArray:
        """The tensor array of a variable of block ``where``; -1 for a user's scope."""

    def holder(self, name: str, make: Any) -> Any:
        """An object that keeps its identity over runs while its content changes."""

    def moves(self, name: str, scope: Any, owner: Any) -> bool:
        """Records that an operator in ``scope`` replaces buffer or LoD of a variable of the enclosing scope ``owner``.

        Returns whether it has to do so in every run, not just now; the variable is still as it was before.
        """

    def check(self) -> None:
        """Raises if the run is to stop; a call that waits for something outside calls it repeatedly."""


class UnsharedMemory:
    """The part of a `Memory` in which no buffer has views and every operator is bound for each run."""

    def is_constant(self, name: str) -> bool:
        """See `Memory`: not known."""
        return False

    def may_alias(self, array: Array, name: str) -> bool:
        """See `Memory`: never."""
        return False

    def is_shared(self, array: Array) -> bool:
        """See `Memory`: yes, nothing is written in place unless its address is fixed."""
        return True

    def share(self, array: Array) -> None:
        """See `Memory`."""
        raise AssertionError("nothing is shared: may_alias says no")

    def array(self, name: str, where: int) -> LoDTensorArray:
        """See `Memory`."""
        return LoDTensorArray()

    def holder(self, name: str, make: Any) -> Any:
        """See `Memory`."""
        return make()

    def moves(self, name: str, scope: Any, owner: Any) -> bool:
        """See `Memory`: never beyond this run."""
        return False
