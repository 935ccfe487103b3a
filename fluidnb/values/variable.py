"""Variable: a named cell of a scope with a value of any type."""

from typing import Any, ClassVar, TypeVar

from fluidnb.errors import EnforceNotMet
from fluidnb.utils.representations import repr_html
from fluidnb.values.rank_table import LoDRankTable
from fluidnb.values.reader import Reader
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor, LoDTensorArray

T = TypeVar("T")


class Variable:
    """A named cell of a scope. The first `get_…` of an empty one creates a value of that type.

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
        """The value, which must exist and have a type."""
        if self.value is None:
            raise EnforceNotMet(
                f'Variable "{self.name}" must hold some thing.', expected=kind.__name__,
                hint="feed it, or run the startup program or the operator that writes it first.",
            )  # fmt: skip
        if not isinstance(self.value, kind):
            raise EnforceNotMet(
                f'Variable "{self.name}" must be type {kind.__name__}, the holding type is {type(self.value).__name__}.'
            )
        return self.value

    def get_mutable(self, kind: type[T]) -> T:
        """The value of a type, created without arguments if the variable is empty."""
        if self.value is None:
            self.value = kind()
        return self.get(kind)

    def get_tensor(self) -> LoDTensor:
        """The LoDTensor, with the variable's name."""
        tensor = self.get_mutable(LoDTensor)
        if not tensor.name:
            tensor.name = self.name
        return tensor

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """The LoDTensorArray."""
        return self.get_mutable(LoDTensorArray)

    def get_selected_rows(self) -> SelectedRows:
        """The SelectedRows."""
        return self.get_mutable(SelectedRows)

    def get_lod_rank_table(self) -> LoDRankTable:
        """The LoDRankTable."""
        return self.get_mutable(LoDRankTable)

    def get_reader(self) -> Reader:
        """The Reader; without one, the startup program has not run."""
        return self.get(Reader)

    def get_fetch_list(self) -> LoDTensorArray:
        """The list of fetched tensors."""
        return self.get_mutable(LoDTensorArray)

    def get_net(self) -> Any:
        """The ``core.Net`` (versions 0.10 and 0.11)."""
        return self.get(object) if self.net_type is None else self.get_mutable(self.net_type)

    def is_int(self) -> bool:
        """Whether the value is an int."""
        return isinstance(self.value, int)

    def set_int(self, value: int) -> None:
        """Sets an int."""
        self.value = int(value)

    def get_int(self) -> int:
        """The value, an int."""
        return self.get(int)

    def is_float(self) -> bool:
        """Whether the value is a float."""
        return isinstance(self.value, float)

    def set_float(self, value: float) -> None:
        """Sets a float."""
        self.value = float(value)

    def get_float(self) -> float:
        """The value, a float."""
        return self.get(float)

    def __repr__(self) -> str:
        return f"Variable({self.name}: {self.value!r})"

    _repr_html_ = repr_html
