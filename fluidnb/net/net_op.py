"""NetOp: a network that is an operator of another network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError, typed
from fluidnb.net.base import OpContext, attempted, var_def
from fluidnb.net.net_pb2 import NetDesc, OpDef
from fluidnb.net.plain import PlainNet
from fluidnb.net.scope import value_of
from fluidnb.op import EMPTY
from fluidnb.runtime import Scope
from fluidnb.values.tensor import LoDTensor


class NetOp:
    """Operators and networks as one operator, with the inputs and outputs of the whole.

    It takes operators until `complete_add_op` seals it; from then on it can run, and be part of another one.

    Example:
        >>> from fluidnb.net import Scope, op_def
        >>> fc = NetOp()
        >>> fc.append_op(op_def("mul", {"X": "X", "Y": "W"}, {"Out": "pre_activation"}))
        >>> fc.append_op(op_def("sigmoid", {"X": "pre_activation"}, {"Out": "fc.out"}))
        >>> fc.complete_add_op()
        >>> print(fc)
        Op(plain_net), inputs:{all[W, X]}, outputs:{all[fc.out, pre_activation]}.
            Op(mul), inputs:{X[X], Y[W]}, outputs:{Out[pre_activation]}.
            Op(sigmoid), inputs:{X[pre_activation]}, outputs:{Out[fc.out]}.
        >>> fc.output_vars()
        ['fc.out']
    """

    def __init__(self) -> None:
        self._ops: list[OpDef | NetOp] = []
        self._sealed = False
        self._inputs: list[str] = []
        self._outputs: list[str] = []
        self._intermediate: set[str] = set()

    @property
    def ops(self) -> list[OpDef | NetOp]:
        """Its operators and networks in order; copies of the messages that were given."""
        return list(self._ops)

    @property
    def sealed(self) -> bool:
        """Whether `complete_add_op` has been called."""
        return self._sealed

    def append_op(self, op: OpDef | NetOp) -> None:
        """Add an operator or a network at the end."""
        self._insert(len(self._ops), op, "AppendOp")

    def insert_op(self, index: int, op: OpDef | NetOp) -> None:
        """Add an operator or a network before another one; as `append_op`.

        Args:
            index: where, from 0 to the number of operators.
        """
        if not 0 <= index <= len(self._ops):
            raise OpValueError(f"The network has no place {index}.", expected=f"0 to {len(self._ops)}")
        self._insert(index, op, "InsertOp")

    def _insert(self, index: int, op: OpDef | NetOp, what: str) -> None:
        if self._sealed:
            raise EnforceNotMet(
                f"Cannot {what} when this network is sealed", received="a call after complete_add_op()",
                hint="make another NetOp with this one in it.",
            )  # fmt: skip
        if isinstance(op, NetOp):
            if not op._sealed:
                raise EnforceNotMet(
                    "Must clone a sealed NetOp, invoke Net::CompleteAddOp before clone",
                    received=f"a NetOp of {len(op._ops)} operators that is not sealed",
                    hint="complete_add_op() seals it.",
                )  # fmt: skip
            self._ops.insert(index, op)
        elif isinstance(op, OpDef):
            copy = OpDef()
            copy.CopyFrom(op)
            self._ops.insert(index, copy)
        else:
            raise OpTypeError(
                "A NetOp holds operators and networks.", expected="an OpDef or a NetOp", received=typed(op)
            )

    def complete_add_op(self, calc: bool = True) -> None:
        """Seal the network.

        Args:
            calc: whether to find the inputs and outputs of the whole.
        """
        self._sealed = True
        if not calc:
            return
        inputs: set[str] = set()
        outputs: set[str] = set()
        self._intermediate = set()
        for op in self._ops:
            reads, writes = _names(op)
            self._intermediate |= reads & outputs
            inputs |= reads - outputs
            outputs |= writes
        self._inputs, self._outputs = sorted(inputs), sorted(outputs)

    def input_vars(self) -> list[str]:
        """Variables read before any of its operators writes them, sorted."""
        return list(self._inputs)

    def output_vars(self, has_intermediate: bool = False) -> list[str]:
        """Variables that it writes, sorted.

        Args:
            has_intermediate: whether to name also what its own operators read again.
        """
        return [name for name in self._outputs if has_intermediate or name not in self._intermediate]

    def flat(self) -> Iterator[OpDef]:
        """Its operators, those of the networks in it too, in the order in which they run."""
        for op in self._ops:
            if isinstance(op, NetOp):
                yield from op.flat()
            else:
                yield op

    @attempted
    def infer_shape(self, scope: Scope) -> None:
        """Create what it writes in a scope, with the shapes that it will have."""
        self._plain(scope).infer_shape(scope).check()

    @attempted
    def run(self, scope: Scope, context: OpContext | None = None) -> None:
        """Run its operators on the variables of a scope."""
        self._plain(scope).run_in(scope, context or OpContext())

    def _plain(self, scope: Scope) -> PlainNet:
        """The network without its inner ones, its inputs declared as the scope holds them."""
        if not self._sealed:
            raise EnforceNotMet("A NetOp runs once it is sealed.", hint="complete_add_op() seals it.")
        variables = []
        for name in self._inputs:
            value = value_of(scope, name)
            if isinstance(value, LoDTensor):
                array = np.asarray(value)
                variables.append(var_def(name, array.shape, array.dtype, lod_level=len(value.lod_)))
        return PlainNet(NetDesc(vars=variables, ops=self.flat()))

    def lines(self) -> Iterator[str]:
        """It as text: a line for the whole, one for each operator, networks in it indented."""
        yield op_line("plain_net", {"all": self._inputs}, {"all": self._outputs})
        for op in self._ops:
            if isinstance(op, NetOp):
                yield from (f"    {line}" for line in op.lines())
            else:
                ins, outs = ({s.parameter: list(s.arguments) for s in side} for side in (op.inputs, op.outputs))
                yield "    " + op_line(op.type, ins, outs)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<NetOp: {len(self._ops)} operators{', sealed' if self._sealed else ''}>"

    # Paddle's spelling.
    AppendOp = append_op
    InsertOp = insert_op
    CompleteAddOp = complete_add_op
    InferShape = infer_shape
    Run = run


def _names(op: OpDef | NetOp) -> tuple[set[str], set[str]]:
    if isinstance(op, NetOp):
        return set(op._inputs), set(op._outputs)
    ins, outs = ({n for slot in side for n in slot.arguments if n != EMPTY} for side in (op.inputs, op.outputs))
    return ins, outs


def op_line(type: str, inputs: dict[str, list[str]], outputs: dict[str, list[str]]) -> str:
    """An operator as text, as Fluid writes it.

    Example:
        >>> op_line("sum", {"X": ["a", "b"]}, {"Out": ["c"]})
        'Op(sum), inputs:{X[a, b]}, outputs:{Out[c]}.'
    """
    ins, outs = (", ".join(f"{slot}[{', '.join(row)}]" for slot, row in side.items()) for side in (inputs, outputs))
    return f"Op({type}), inputs:{{{ins}}}, outputs:{{{outs}}}."
