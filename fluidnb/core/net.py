"""The core's own Net: operators and networks that run one after another in a scope (versions 0.10 and 0.11)."""

from __future__ import annotations

from fluidnb.core.operator import Operator
from fluidnb.errors import EnforceNotMet, OpTypeError
from fluidnb.net import NetOp, OpDef
from fluidnb.runtime import Scope
from fluidnb.values import DeviceContext, Place, Variable
from fluidnb.where import capture


class Net:
    """Operators and networks under one roof; `fluidnb.net.NetOp` for the core's operators.

    It takes operators until `complete_add_op` seals it; from then on it can run, and be part of another one.

    Example:
        >>> from fluidnb.op import Operator
        >>> fc = Net.create()
        >>> fc.append_op(Operator("mul", X="X", Y="W", Out="pre_activation"))
        >>> fc.append_op(Operator("sigmoid", X="pre_activation", Out="fc.out"))
        >>> fc.complete_add_op(True)
        >>> print(fc, end="")
        Op(plain_net), inputs:{all[W, X]}, outputs:{all[fc.out, pre_activation]}.
            Op(mul), inputs:{X[X], Y[W]}, outputs:{Out[pre_activation]}.
            Op(sigmoid), inputs:{X[pre_activation]}, outputs:{Out[fc.out]}.

    Source: Fluid's operators::NetOp, as version 0.11 shows it to Python.
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

        Raises:
            EnforceNotMet: this network is sealed, or the other one is not.
            OpTypeError: it is neither.
        """
        self.insert_op(len(self._ops), op)

    add_op = append_op

    def insert_op(self, index: int, op: Operator | Net) -> None:
        """Add an operator or a network before another one; as `append_op`.

        Args:
            index: where, from 0 to the number of operators.
            op: the operator or network.

        Raises:
            OpValueError: there is no such place.
        """
        if not isinstance(op, Operator | Net):
            raise OpTypeError(
                "A Net holds operators and networks.", where=capture(), expected="a core.Operator or a core.Net",
                received=f"{op!r} ({type(op).__name__})"[:200],
            )  # fmt: skip
        self._net.insert_op(index, op._net if isinstance(op, Net) else _message(op))
        self._ops.insert(index, op)

    def complete_add_op(self, calculate: bool = True) -> None:
        """Seal the network.

        Args:
            calculate: whether to find the inputs and outputs of the whole.
        """
        self._net.complete_add_op(calculate)

    def infer_shape(self, scope: Scope) -> None:
        """Give the tensors that its operators write the shapes that they will have; as `Operator.infer_shape`.

        Args:
            scope: holds what it reads.

        Raises:
            FluidError: an operator's variables are missing, or do not fit together.
        """
        for op in self._ops:
            op.infer_shape(scope)

    def run(self, scope: Scope, place: Place | DeviceContext) -> None:
        """Run its operators in order.

        Args:
            scope: holds what it reads; what it writes is made there if need be.
            place: where to run.

        Raises:
            EnforceNotMet: it is not sealed.
            FluidError: an operator failed; those before it have run.

        Example:
            >>> from fluidnb.op import Operator
            >>> net = Net.create()
            >>> net.append_op(Operator("fill_constant", Out="x", shape=[2], value=3.0)); net.complete_add_op()
            >>> scope = fluid.Scope(); net.run(scope, fluid.CPUPlace()); np.array(scope.find_var("x").get_tensor())
            array([3., 3.], dtype=float32)
        """
        if not self._net.sealed:
            raise EnforceNotMet("A Net runs once it is sealed.", where=capture(), hint="complete_add_op() seals it.")
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
