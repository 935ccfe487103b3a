"""Variable: a named cell of a scope that holds a value of any type."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from fluidnb.errors import EnforceNotMet
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.reader import Reader
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray

T = TypeVar("T")


class Variable:
    """A named cell of a scope. The first `get_…` of an empty one makes a value of that type.

    Args:
        name: the variable's name.
        value: its value, or None.

    Source: Fluid's framework::Variable.

    Example:
        >>> v = Variable("x")
        >>> v.get_tensor()
        LoDTensor(no value)
        >>> v.get_lod_tensor_array()
        Traceback (most recent call last):
        fluidnb.errors.EnforceNotMet: Variable "x" must be type LoDTensorArray, the holding type is LoDTensor.
    """

    __slots__ = ("__weakref__", "name", "value")

    #: The class of the networks that `get_net` gives. Set by the core.
    net_type: ClassVar[type[Any] | None] = None

    def __init__(self, name: str = "", value: Any = None) -> None:
        self.name = name
        self.value = value

    def get(self, kind: type[T]) -> T:
        """The value, which must be there and of a type.

        Args:
            kind: the type.

        Returns:
            The value.

        Raises:
            EnforceNotMet: empty, or of another type.
        """
        if self.value is None:
            raise EnforceNotMet(
                f'Variable "{self.name}" must hold some thing.',
                expected=kind.__name__,
                hint="feed it, or run the startup program or the operator that writes it first.",
            )
        if not isinstance(self.value, kind):
            raise EnforceNotMet(
                f'Variable "{self.name}" must be type {kind.__name__}, the holding type is {type(self.value).__name__}.'
            )
        return self.value

    def get_mutable(self, kind: type[T]) -> T:
        """The value of a type, made if the variable is empty.

        Args:
            kind: a type that can be made without arguments.

        Returns:
            The value.

        Raises:
            EnforceNotMet: it holds another type.
        """
        if self.value is None:
            self.value = kind()
        return self.get(kind)

    def get_tensor(self) -> LoDTensor:
        """The LoDTensor held; it knows the variable's name."""
        tensor = self.get_mutable(LoDTensor)
        if not tensor.name:
            tensor.name = self.name
        return tensor

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """The LoDTensorArray held."""
        return self.get_mutable(LoDTensorArray)

    def get_selected_rows(self) -> SelectedRows:
        """The SelectedRows held."""
        return self.get_mutable(SelectedRows)

    def get_lod_rank_table(self) -> LoDRankTable:
        """The LoDRankTable held."""
        return self.get_mutable(LoDRankTable)

    def get_reader(self) -> Reader:
        """The Reader held.

        Raises:
            EnforceNotMet: there is none: the startup program has not run.
        """
        return self.get(Reader)

    def get_fetch_list(self) -> LoDTensorArray:
        """The list of fetched tensors held."""
        return self.get_mutable(LoDTensorArray)

    def get_net(self) -> Any:
        """The ``core.Net`` held (versions 0.10 and 0.11).

        Raises:
            EnforceNotMet: it holds another type, or nothing and there are no networks yet.
        """
        return self.get(object) if self.net_type is None else self.get_mutable(self.net_type)

    def is_int(self) -> bool:
        """Whether an int is held."""
        return isinstance(self.value, int)

    def set_int(self, value: int) -> None:
        """Hold an int."""
        self.value = int(value)

    def get_int(self) -> int:
        """The int held."""
        return self.get(int)

    def is_float(self) -> bool:
        """Whether a float is held."""
        return isinstance(self.value, float)

    def set_float(self, value: float) -> None:
        """Hold a float."""
        self.value = float(value)

    def get_float(self) -> float:
        """The float held."""
        return self.get(float)

    def __repr__(self) -> str:
        return f"Variable({self.name}: {self.value!r})"
