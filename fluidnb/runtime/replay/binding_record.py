"""Records of bindings: the effects of binding each operator of a segment."""

from typing import Any, NamedTuple

from fluidnb.op.binder import Binder, Call
from fluidnb.op.context import Lod
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.runtime.feed_fetch import Fed
from fluidnb.runtime.replay.replay_memory import Made, ReplayMemory
from fluidnb.runtime.scope import Scope
from fluidnb.values.tensor import LoDTensor

Array = Any


class Output(NamedTuple):
    """A variable after the binding of an operator; ``array`` None where it holds no tensor."""

    name: str
    array: Array | None
    lod: Lod
    local: bool


class OpRecord(NamedTuple):
    """The effects of binding an operator.

    Attributes:
        lods: the LoDs of its inputs.
        whole: whether calls, buffers and outputs are all of it.
        folded: whether its calls were made while binding.
    """

    op: LoweredOp
    calls: list[Call]
    made: list[Made]
    shared: list[Array]
    decisions: list[tuple[Any, tuple[Any, ...], bool]]
    outputs: list[Output]
    inputs: list[Array]
    lods: list[Lod]
    whole: bool
    folded: bool


class Record:
    """The binding of a segment for one size.

    Args:
        sizes: all sizes of the feeds.
        same: what bindings have in common that are compared.
        outer: array and LoD of the variables of the user's scope.

    Attributes:
        joins: whether a call may take in others, which a template would not do.
    """

    def __init__(
        self, bound: ReplayMemory, sizes: tuple[int, ...], same: tuple[Any, ...], feeds: dict[str, Fed],
        outer: dict[str, tuple[Any, Any]],
    ) -> None:  # fmt: skip
        self.bound, self.sizes, self.same, self.feeds, self.outer = bound, sizes, same, feeds, outer
        self.ops: list[OpRecord] = []
        self.joins = False

    def begin(self) -> None:
        """Begin to record."""
        self.ops.clear()
        self.joins = False
        self.bound.made, self.bound.newly_shared = [], []

    def add(self, op: LoweredOp, binder: Binder, calls: list[Call], scope: Scope, folded: bool) -> None:
        """Record an operator that has been bound."""
        outputs, bound = [], self.bound
        for name in op.writes():
            cell, owner = scope.cell(name)
            array, lod = (cell.value.array, cell.value.lod_) if type(cell.value) is LoDTensor else (None, ())
            outputs.append(Output(name, array, lod, owner is scope))
        whole = binder.control is None and not binder.transforms and all(o.array is not None for o in outputs)
        read = binder.lods_read
        lods = [lod for slot in op.inputs for lod in binder.lods(slot) if lod]
        whole = whole and not (read and lods)
        assert bound.made is not None and bound.newly_shared is not None
        values = [scope.cell(name)[0].value for name in op.reads()]
        inputs = [value.array for value in values if type(value) is LoDTensor and value.array is not None]
        self.ops.append(
            OpRecord(op, calls, bound.made, bound.newly_shared, binder.decisions, outputs, inputs, lods, whole, folded)
        )
        self.joins = self.joins or any(hasattr(call[0], "takes_in") for call in calls)
        bound.made, bound.newly_shared = [], []

    def end(self) -> None:
        """End the recording."""
        self.bound.made = self.bound.newly_shared = self.bound.record = None
        del self.bound
