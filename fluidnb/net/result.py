"""Arguments and results of running a network: context, optimizer settings, success or failure."""

from __future__ import annotations

from typing import Any

from fluidnb import optimizer as optimizers
from fluidnb.errors import FluidError, NotFound, near
from fluidnb.runtime import place_in
from fluidnb.values.place import CPUPlace, Place


class Error:
    """Result of a call on a network: false on success, so that ``if net.run(scope): ...`` handles failures.

    Args:
        cause: what went wrong, or None.

    Example:
        >>> from fluidnb.net import PlainNet
        >>> error = PlainNet().run()
        >>> bool(error), error.ok, error
        (False, True, <Error: none>)

    Source: design document "Network".
    """

    __slots__ = ("cause",)

    def __init__(self, cause: FluidError | None = None) -> None:
        self.cause = cause

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return self.cause is None

    @property
    def message(self) -> str:
        """The error message, several lines; empty on success."""
        return "" if self.cause is None else str(self.cause)

    def check(self) -> None:
        """Raise what went wrong, if anything did.

        Raises:
            FluidError: the cause.
        """
        if self.cause is not None:
            raise self.cause

    def __bool__(self) -> bool:
        return self.cause is not None

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return "<Error: none>" if self.cause is None else f"<Error: {self.message}>"


class OpContext:
    """Context of a run: the place of its operators.

    Args:
        place: the place; default the CPU.

    Raises:
        OpTypeError: it is not a place.

    Example:
        >>> OpContext().place
        CPUPlace
    """

    __slots__ = ("place",)

    def __init__(self, place: Place | None = None) -> None:
        self.place = place_in(CPUPlace() if place is None else place)


class OptAttrs:
    """Optimizer of a network.

    Args:
        type: its name in any case: ``sgd``, ``momentum``, ``adam``, ….
        learning_rate: step size.
        settings: further arguments of the optimizer, for example ``momentum=0.9``.

    Raises:
        NotFound: there is no such optimizer.

    Example:
        >>> OptAttrs("adam", 1e-4).make().type
        'adam'
    """

    __slots__ = ("learning_rate", "settings", "type")

    def __init__(self, type: str = "sgd", learning_rate: float = 0.01, **settings: Any) -> None:
        known = {name.lower() for name in optimizers.__all__ if not name.endswith("Optimizer")}
        if type.lower() not in known:
            raise NotFound(
                f'There is no optimizer "{type}".', expected=", ".join(sorted(known)), received=type,
                hint=near(type.lower(), known) or None,
            )  # fmt: skip
        self.type, self.learning_rate, self.settings = type.lower(), learning_rate, settings

    def make(self) -> optimizers.Optimizer:
        """A new optimizer."""
        kinds = {name.lower(): getattr(optimizers, name) for name in optimizers.__all__}
        made: optimizers.Optimizer = kinds[self.type](self.learning_rate, **self.settings)
        return made
