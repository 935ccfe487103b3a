"""The core's own Net: operators and networks that run one after another in a scope (versions 0.10 and 0.11)."""

from __future__ import annotations

from fluidnb.core.operator import Operator
from fluidnb.errors import EnforceNotMet, OpTypeError, typed
from fluidnb.net import NetOp, OpDef
from fluidnb.runtime import Scope
from fluidnb.values import DeviceContext, Place, Variable


class Net:
    """Operators and networks as one operator; `fluidnb.net.NetOp` for the core's operators.

    It takes operators until `complete_add_op` seals it; from then on it can run, and be part of another one.
    """

    __slots__ = ("__weakref__", "_net", "_ops")

    def __init__(self) -> None:
        self._net = NetOp()
        self._ops: list[Operator | Net] = []

    @staticmethod
    def create() -> Net:
        """An empty network."""
        return Net()

    @property
    def ops(self) -> list[Operator | Net]:
        """Its operators and networks, in order."""
        return list(self._ops)

    def append_op(self, op: Operator | Net) -> None:
        """Add an operator or a network at the end.

        Args:
            op: the operator; or a network, which is sealed.
        """
        self.insert_op(len(self._ops), op)

    add_op = append_op

    def insert_op(self, index: int, op: Operator | Net) -> None:
        """Add an operator or a network before another one; as `append_op`.

        Args:
            index: where, from 0 to the number of operators.
        """
        if not isinstance(op, Operator | Net):
            raise OpTypeError(
                "A Net holds operators and networks.", expected="a core.Operator or a core.Net", received=typed(op)
            )
        self._net.insert_op(index, op._net if isinstance(op, Net) else _message(op))
        self._ops.insert(index, op)

    def complete_add_op(self, calculate: bool = True) -> None:
        """Seal the network."""
        self._net.complete_add_op(calculate)

    def infer_shape(self, scope: Scope) -> None:
        """Give the tensors that its operators write the shapes that they will have; as `Operator.infer_shape`."""
        for op in self._ops:
            op.infer_shape(scope)

    def run(self, scope: Scope, place: Place | DeviceContext) -> None:
        """Run its operators in order."""
        if not self._net.sealed:
            raise EnforceNotMet("A Net runs once it is sealed.", hint="complete_add_op() seals it.")
        for op in self._ops:
            op.run(scope, place)

    def type(self) -> str:
        """Its type as an operator."""
        return "plain_net"

    def inputs(self) -> dict[str, list[str]]:
        """``{"all": …}``: what it reads before any of its operators writes it, sorted."""
        return {"all": self._net.input_vars()}

    def outputs(self) -> dict[str, list[str]]:
        """``{"all": …}``: what it writes, sorted."""
        return {"all": self._net.output_vars(True)}

    def input_vars(self) -> list[str]:
        """Variables read before any of its operators writes them, sorted."""
        return self._net.input_vars()

    def output_vars(self) -> list[str]:
        """Variables that it writes, sorted."""
        return self._net.output_vars(True)

    def no_intermediate_outputs(self) -> list[str]:
        """Variables that it writes and does not read itself, sorted."""
        return self._net.output_vars()

    def support_gpu(self) -> bool:
        """Whether each of its operators has a CUDA kernel."""
        return all(op.support_gpu() for op in self._ops)

    def __str__(self) -> str:
        return f"{self._net}\n"  # Fluid ends each line of a network, the last one too

    def __repr__(self) -> str:
        return f"<core.Net: {len(self._ops)} operators{', sealed' if self._net.sealed else ''}>"


def _message(op: Operator) -> OpDef:
    """The description of an operator, slots in order of their names."""
    message = OpDef.FromString(op.desc.serialize_to_string())
    for side in (message.inputs, message.outputs):
        side.sort(key=lambda slot: slot.parameter)
    return message


Variable.net_type = Net
