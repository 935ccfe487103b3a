"""Context, the interface of a shape rule: operands by slot, attributes, and outputs to set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

from fluidnb.errors import EnforceNotMet, Operand, OpValueError
from fluidnb.values import strict_feeds as declared
from fluidnb.values.lod_text import draw_all
from fluidnb.where import Where

if TYPE_CHECKING:
    from fluidnb.op.define import OpDef

#: LoD inside the project: offsets of each level, or (None, …) with one entry a level while building.
Lod = tuple[Any, ...]

EMPTY = "@EMPTY@"
GRAD = "@GRAD"


class RuleError(EnforceNotMet, OpValueError):
    """A broken rule of an operator: both a ValueError (while building) and an EnforceNotMet (while running)."""


class Context(ABC):
    """Common interface of shape inference while building (`CompileContext`) and of running (`Binder`).

    Attributes:
        definition: the operator's OpDef.
        inputs: slot -> variable names, slots without arguments left out.
        outputs: slot -> variable names; a name may be ``@EMPTY@`` where the output has no consumer.
        runtime: whether operands are arrays (True) or descriptions with -1 for unknown sizes (False).
    """

    __slots__ = ()

    definition: OpDef
    inputs: dict[str, list[str]]
    outputs: dict[str, list[str]]
    attrs: dict[str, Any]
    runtime: bool

    @abstractmethod
    def all(self, slot: str) -> list[Any]:
        """Every operand of a slot, in order."""

    @abstractmethod
    def lods(self, slot: str) -> list[Lod]:
        """The LoD of every input of a slot, in order."""

    @abstractmethod
    def set(self, slot: str, shape: Any, dtype: Any, lod: Lod = (), i: int = 0) -> Any:
        """Say that output ``i`` of ``slot`` has this shape, dtype and LoD."""

    @abstractmethod
    def is_rows(self, slot: str) -> bool:
        """Whether every operand of an input slot is SelectedRows."""

    @abstractmethod
    def text(self) -> str:
        """The operator as text: its index, type and block."""

    @abstractmethod
    def where(self) -> Where | None:
        """The user's line that made the operator."""

    def __getitem__(self, slot: str) -> Any:
        """The first operand of a slot: an input, or an output that has been set; None when there is none."""
        found = self.all(slot)
        return found[0] if found else None

    def has(self, slot: str) -> bool:
        """Whether an input slot has an argument."""
        return bool(self.inputs.get(slot))

    def lod(self, slot: str = "X", i: int = 0) -> Lod:
        """The LoD of input ``i`` of a slot; () when it has none."""
        found = self.lods(slot)
        return found[i] if i < len(found) else ()

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value; the OpDef's default where the operator does not carry it.

        Args:
            name: the attribute.
            default: for attributes that the OpDef does not know either.
        """
        value = self.attrs.get(name)
        if value is None:
            spec = self.definition.attrs.get(name)
            return default if spec is None or not isinstance(spec.default, int | float | str | list) else spec.default
        return value

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output ``i`` of a slot has a name that somebody may read."""
        names = self.outputs.get(slot)
        return names is not None and i < len(names) and names[i] != EMPTY

    def name(self, slot: str, i: int = 0) -> str:
        """The name of a variable of a slot, for messages."""
        names = self.inputs.get(slot) or self.outputs.get(slot) or []
        return names[i] if i < len(names) else "?"

    def require(
        self,
        condition: object,
        message: str,
        *,
        hint: str = "",
        expected: object = None,
        received: object = None,
        late: bool = False,
    ) -> None:
        """Raise unless a condition holds, in words that name the operator, its operands and the user's line.

        Args:
            condition: what must be true.
            message: one sentence.
            hint: what to do next.
            expected: what would have been right.
            received: what came instead.
            late: whether Fluid sees it only when the operator runs; so do we while values have the last word.

        Raises:
            RuleError: the condition is false.
        """
        if not condition and (self.runtime or declared.binding or not late):
            self.fail(message, hint=hint, expected=expected, received=received)

    def fail(
        self,
        message: str,
        *,
        hint: str = "",
        expected: object = None,
        received: object = None,
        batch: Collection[str] = (),
    ) -> NoReturn:
        """Raise a `RuleError` about this operator.

        Args:
            message: see `require`.
            hint: see `require`.
            expected: see `require`.
            received: see `require`.
            batch: input slots whose rows are drawn although they have no sequences.

        Raises:
            RuleError: always; while the operator runs, it draws the sequences of the inputs.
        """
        raise RuleError(
            message, op=self.text(), slots=self.operands(), where=self.where(),
            expected=expected, received=received, hint=hint or self._contract(), batch=self._drawn(batch),
        )  # fmt: skip

    def _drawn(self, slots: Collection[str]) -> list[str]:
        """The sequences of the inputs below each other, while running; also rows of ``slots`` without any."""
        if not self.runtime:
            return []
        return draw_all(
            (name, lod, len(value))
            for slot, names in self.inputs.items()
            for name, value, lod in zip(names, self.all(slot), self.lods(slot), strict=False)
            if (lod or slot in slots) and isinstance(getattr(value, "shape", None), tuple) and value.shape
        )

    def _contract(self) -> str:
        """The documented inputs of the operator: a hint where a rule has none."""
        takes = "; ".join(f"{slot.name}, {slot.doc}" for slot in self.definition.inputs.values())
        return f"{self.definition.type} takes {takes}." if takes else ""

    def operands(self) -> list[Operand]:
        """Every input as (slot, variable, dtype, shape), for messages."""
        rows: list[Operand] = []
        for slot, names in self.inputs.items():
            for n, v in zip(names, self.all(slot), strict=False):
                shape, dtype = getattr(v, "shape", None), getattr(v, "dtype", None)
                if callable(shape):  # SelectedRows
                    shape = shape()
                rows.append((slot, n, None if dtype is None else str(dtype), shape))
        return rows

    # The names that the developer guide gives to these.
    def has_input(self, slot: str) -> bool:
        """Fluid's ``HasInput``."""
        return self.has(slot)

    def has_output(self, slot: str) -> bool:
        """Fluid's ``HasOutput``."""
        return self.wants(slot)

    def get_input_dim(self, slot: str) -> tuple[int, ...]:
        """Fluid's ``GetInputDim``: the shape of the first input of a slot."""
        shape: tuple[int, ...] = self[slot].shape
        return shape

    def set_output_dim(self, slot: str, shape: tuple[int, ...]) -> None:
        """Fluid's ``SetOutputDim``: the output takes the dtype of the first input."""
        self.set(slot, shape, self[next(iter(self.inputs))].dtype)
