"""The table of converters of one direction: operators, and the functions that convert them."""

from collections.abc import Callable
from typing import Any, TypeVar

Converter = TypeVar("Converter", bound=Callable[[Any, Any], None])


class Unsupported(Exception):
    """An operator or node that has no counterpart; the text says what of it."""


class Converters(dict[str, Callable[[Any, Any], None]]):
    """Operator -> its converter; called with operators, it registers the function below.

    Example:
        >>> converts = Converters()
        >>> @converts("relu", "tanh")
        ... def unary(state, op): ...
        >>> sorted(converts)
        ['relu', 'tanh']
    """

    def __call__(self, *operators: str) -> Callable[[Converter], Converter]:
        """Registers the converter of some operators."""

        def register(converter: Converter) -> Converter:
            self.update(dict.fromkeys(operators, converter))
            return converter

        return register
