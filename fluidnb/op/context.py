"""Context, the interface of a shape rule: operands by slot, attributes, and outputs to set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fluidnb.errors import EnforceNotMet, Operand, OpValueError
from fluidnb.op.input_spec import DTYPE_KINDS
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values import strict_feeds as declared
from fluidnb.values.lod_text import draw_all

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
        """Sets shape, dtype and LoD of output ``i`` of a slot."""

    @abstractmethod
    def is_rows(self, slot: str) -> bool:
        """Whether every operand of an input slot is SelectedRows."""

    @abstractmethod
    def text(self) -> str:
        """The operator as text: its index, type and block."""

    @abstractmethod
    def where(self) -> SourceLocation | None:
        """The user's line that created the operator."""

    def __getitem__(self, slot: str) -> Any:
        """The first operand of a slot: an input, or an output that has been set; None when there is none."""
        operands = self.all(slot)
        return operands[0] if operands else None

    def has(self, slot: str) -> bool:
        """Whether an input slot has an argument."""
        return bool(self.inputs.get(slot))

    def lod(self, slot: str = "X", i: int = 0) -> Lod:
        """The LoD of input ``i`` of a slot; () when it has none."""
        lods = self.lods(slot)
        return lods[i] if i < len(lods) else ()

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value; without one, the default of the OpDef, or ``default`` of an unknown attribute."""
        value = self.attrs.get(name)
        if value is None:
            spec = self.definition.attrs.get(name)
            return default if spec is None or not isinstance(spec.default, int | float | str | list) else spec.default
        return value

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output ``i`` of a slot has a consumer."""
        names = self.outputs.get(slot)
        return names is not None and i < len(names) and names[i] != EMPTY

    def name(self, slot: str, i: int = 0) -> str:
        """The name of a variable of a slot, for messages."""
        names = self.inputs.get(slot) or self.outputs.get(slot) or []
        return names[i] if i < len(names) else "?"

    def require(
        self, condition: object, message: str, *, hint: str = "", expected: object = None, received: object = None,
        late: bool = False,
    ) -> None:  # fmt: skip
        """Raises a `RuleError` with operator, operands and line unless a condition holds.

        Args:
            message: one sentence.
            late: whether Fluid checks it only when the operator runs; without strict feeds so does fluidnb.
        """
        if not condition and (self.runtime or declared.binding or not late):
            self.fail(message, hint=hint, expected=expected, received=received)

    def check_inputs(self, *slots: str, late: bool = False) -> None:
        """Requires that inputs have the shapes, and the integer and bool dtypes, that their slots declare.

        A number is a size; ``[1]`` is one element in any shape; a name has one size in all these slots; a formula such
        as ``3 · width`` is not checked. A size of -1 fits anything.

        Args:
            slots: input slots, in the order of the checks; none for all.
            late: as in `require`.
        """
        sizes: dict[str, tuple[int, str]] = {}  # axis -> its size, and the slot that has it
        for name in slots or self.definition.inputs:
            specs = [spec for spec in self.definition.inputs[name].specs if spec.is_tensor]
            message = f"Input({name}) of {self.definition.type} must "
            want = "bool" if specs and specs[0].dtype_class == "bool" else "int64"
            for i, value in enumerate(self.all(name) if specs and self.has(name) else ()):
                shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
                if not isinstance(shape, tuple) or dtype is None:  # no tensor
                    only = all(spec.is_tensor for spec in self.definition.inputs[name].specs)
                    self.require(
                        self.runtime or not only, message + "be a tensor.", expected="a variable that holds a tensor",
                        received=self.name(name, i), late=late,
                        hint="layers.data(type=...) says what a variable holds.",
                    )  # fmt: skip
                    continue
                kind = np.dtype(dtype).kind
                fitting = [spec for spec in specs if kind in DTYPE_KINDS.get(spec.dtype_class, kind)]
                if not fitting:
                    self.require(
                        False, message + f"hold {'booleans' if specs[0].dtype_class == 'bool' else 'integers'}.",
                        expected="bool" if specs[0].dtype_class == "bool" else "int32 or int64",
                        received=np.dtype(dtype).name, late=late,
                        hint=f'layers.cast({self.name(name, i)}, "{want}") converts it.',
                    )  # fmt: skip
                known = {axis: n for axis, (n, _) in sizes.items()}
                found = next((f for spec in fitting if (f := spec.sizes(shape, known)) is not None), None)
                if found is None:
                    shapes = " or ".join(dict.fromkeys(spec.text_of_axes for spec in specs))
                    axes = {axis for spec in specs for axis in spec.axes or ()}
                    given = [f"{a} = {n} as in Input({of})" for a, (n, of) in sizes.items() if a in axes]
                    self.require(
                        False, message + f"have the shape {shapes}.", expected=", ".join([shapes, *given]),
                        received=list(shape), late=late,
                    )  # fmt: skip
                sizes = {a: (n, name) for a, n in (found or {}).items()} | sizes

    def fail(
        self, message: str, *, hint: str = "", expected: object = None, received: object = None,
        batch: Collection[str] = (),
    ) -> NoReturn:  # fmt: skip
        """Raises a `RuleError` about this operator; while it runs, with a drawing of its input sequences.

        Args:
            batch: input slots whose rows are drawn although they have no sequences.
        """
        raise RuleError(
            message, op=self.text(), slots=self.operands(), where=self.where(),
            expected=expected, received=received, hint=hint or self._hint(), batch=self._drawn(batch),
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

    def _hint(self) -> str:
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
