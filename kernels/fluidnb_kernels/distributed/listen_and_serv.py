"""listen_and_serv: a parameter server, which runs a block for each gradient that trainers have sent."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fluidnb.op import Array, Attr, Binder, Control, op
from fluidnb.op.engine import Arrival, engine_at
from fluidnb.op.transform import cross
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.copies import on_host, put

#: Bytes of gradients of earlier blocks that are kept, so that a debugger can step back into them.
_KEPT_BYTES = 64 << 20


class _Server(Control):
    """Runs the blocks for what trainers have sent: all in a synchronous step, else those of the gradients that came."""

    records = False

    def __init__(self, b: Binder) -> None:
        blocks = list(b.attr("optimize_blocks"))
        super().__init__(b, [], block=blocks[0])
        self.endpoint: str = b.attr("endpoint")
        self.sync = bool(b.attr("sync_mode"))
        self.routes = {name: int(at) for name, _, at in (row.rpartition(":") for row in b.attr("grad_to_block_id"))}
        self.blocks = blocks
        self.schedule = [at for at in blocks if at not in self.routes.values()]
        block = b.op.desc.block
        self.received = [(name, b.scope.cell(name)[0]) for name in b.inputs.get("X", ())]
        gradients = {*b.inputs.get("X", ()), *self.routes}
        declared = block.vars.items() if block else ()
        self.kept = [
            (name, b.scope.cell(name)[0]) for name, var in declared if var.persistable() and name not in gradients
        ]
        self.turns: list[tuple[int, Mapping[str, Any], bool]] = []  # block, what it needs stored before, ends a step
        self.first, self.bytes = 0, 0  # number of turns[0]; bytes of all that are kept
        self.updates = 0  # number of the first turn whose update trainers do not know

    def begin(self) -> None:
        super().begin()
        self.side = engine_at(self.endpoint).server(self.endpoint)
        self.turns, self.first, self.bytes, self.updates = [], 0, 0, 0
        self._publish(False)

    def _publish(self, updated: bool) -> None:
        values = {name: _host_value(cell.value) for name, cell in self.kept}
        self.side.publish({name: value for name, value in values.items() if value is not None}, updated)

    def enter(self, k: int) -> Any:
        if k == self.first + len(self.turns):
            arrival = self.side.take(self.executor.check)
            if arrival is None:
                return None
            self._plan(arrival)
        self.block_index, values, _ = self.turns[k - self.first]
        for name, cell in self.received:
            if name in values:
                self._store(name, cell, values[name])
        return self.scope

    def _plan(self, arrival: Arrival) -> None:
        """Add a turn for each block that an arrival runs; drop the oldest turns."""
        blocks = self.blocks
        if not self.sync:
            first = arrival.trainer == 0 and next(iter(self.routes), None) in arrival.values
            blocks = [*(self.schedule if first else ()), *(self.routes[name] for name in arrival.values)]
        self.bytes += sum(_bytes(value) for value in arrival.values.values())
        while self.turns and self.bytes > _KEPT_BYTES:
            self.bytes -= sum(_bytes(value) for value in self.turns.pop(0)[1].values())
            self.first += 1
        for i, block in enumerate(blocks):
            self.turns.append((block, {} if i else arrival.values, i == len(blocks) - 1))

    def _store(self, name: str, cell: Any, value: Any) -> None:
        """Give a variable what a trainer has sent; bound blocks know its buffer, or its SelectedRows."""
        if isinstance(value, SelectedRows):
            cell.value = rows = self.executor.holder(name, SelectedRows)
            rows.value = LoDTensor(place=self.executor.place)
            cross(value, rows, self.executor.place)
            return
        tensor = cell.value
        if type(tensor) is not LoDTensor or tensor.array is None or tensor.array.shape != value.shape:
            tensor = cell.value = LoDTensor(place=self.executor.place)
            tensor.array = self.executor.real(value.shape, value.dtype)
        put(tensor.array, value)

    def leave(self, k: int, scope: Any) -> None:
        if self.turns[k - self.first][2]:
            self._publish(k >= self.updates)  # a debugger may have stepped back, and run this update again
            self.updates = max(self.updates, k + 1)

    def changes(self) -> Iterable[Array]:
        arrays = (getattr(cell.value, "array", None) for _, cell in self.received)
        return [array for array in arrays if array is not None]

    def sets(self) -> Iterable[Any]:
        return [cell for _, cell in self.received]


def _host_value(value: Any) -> Any:
    """A tensor's array or SelectedRows on the host, not copied where they are there; None without a value."""
    if isinstance(value, SelectedRows):
        return SelectedRows(value.rows_, value.height_, LoDTensor(np.asarray(value.value)))
    array = getattr(value, "array", None)
    return None if array is None else on_host(array)


def _bytes(value: Any) -> int:
    """Bytes of an array or of SelectedRows."""
    return int(np.asarray(value.value if isinstance(value, SelectedRows) else value).nbytes)


@op(
    "listen_and_serv",
    inputs={"X*?": "variables that trainers send"},
    attrs={
        "optimize_blocks": Attr("blocks", [], "the blocks to run"),
        "endpoint": Attr("string", "", "its endpoint"),
        "Fanin": Attr("int", 1, "how many trainers there are", ge=1),
        "sync_mode": Attr("bool", True, "whether to wait for all trainers in each step"),
        "grad_to_block_id": Attr("strings", [], "gradient:block for each gradient"),
        "prefetch_var_name_to_block_id": Attr("strings", [], "variable:block for each table that is looked up"),
    },
    unset=("X",),
    side_effect=True,
    control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)
def listen_and_serv(b: Binder) -> Control:
    """Wait for gradients, run the block of each, let trainers read the parameters; until training is over.

    Source: Fluid's listen_and_serv_op.
    """
    return _Server(b)
