"""PlainNet: operators that run one after another."""

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

from fluidnb.backward import append_backward
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.net.base import Net, OpContext, OptAttrs, attempted, declare, net_desc, span, startup_program
from fluidnb.net.net_pb2 import NetDesc, OpDef
from fluidnb.op import Slot, get_op
from fluidnb.program import Operator, OpRole, Program, Variable, program_guard
from fluidnb.proto.desc import OpDesc
from fluidnb.runtime import Scope, create_variables, global_scope, run_ops


class PlainNet(Net):
    """A network that runs its operators one after another.

    Args:
        desc: its variables, its operators, and those that initialize persistable variables.

    Attributes:
        program: its operators as a program; pictures and printing know how to show it.
        startup: the program that initializes persistable variables. A run first does what of it is
            missing in the scope.

    Example:
        >>> from fluidnb.net import NetDesc, OptAttrs, Scope, var_def
        >>> net = PlainNet(NetDesc(vars=[var_def("x", [-1, 2]), var_def("w", [2, 1], parameter=True)]))
        >>> net.add_op("mul", ["x", "w"], ["y"]), net.add_op("mean", ["y"], ["cost"])
        (0, 1)
        >>> net.add_backward_ops(), net.add_optimizer_ops(OptAttrs("sgd", 0.5))
        (<Error: none>, <Error: none>)
        >>> scope = Scope(); scope.var("x").get_tensor().set(np.ones((4, 2), "float32"), fluid.CPUPlace())
        >>> net.run(scope)
        <Error: none>
    """

    def __init__(self, desc: NetDesc | bytes | None = None) -> None:
        self._build(net_desc(desc))

    def _build(self, desc: NetDesc) -> None:
        self.program, self.startup = Program(), startup_program(desc)
        self._params_grads: list[Any] = []
        self._inside: WeakSet[Scope] = WeakSet()
        declare(self.program.global_block().desc, desc.vars)
        for op in desc.ops:
            self.add_op(op)

    @property
    def ops(self) -> list[Operator]:
        """Its operators in order."""
        return list(self.program.global_block().ops)

    @property
    def last_forward_op(self) -> int:
        """The index of the last operator before backward, -1 for none."""
        roles = [int(op.desc.attrs.get("op_role", 0)) for op in self.ops]
        return next((i for i, r in enumerate(roles) if r & (OpRole.Backward | OpRole.Optimize)), len(roles)) - 1

    def var(self, name: str) -> Variable:
        """One of its variables."""
        return self.program.global_block().var(name)

    def add_op(self, type: OpDef | str, inputs: Any = None, outputs: Any = None, attrs: Any = None) -> int:
        block = self.program.global_block()
        if isinstance(type, OpDef):
            block.put_desc(OpDesc.parse_from_string(type.SerializeToString()))
        elif isinstance(type, str):
            definition = get_op(type)
            ins, outs = (
                _by_slot(type, side, names, slots)
                for side, names, slots in (
                    ("input", inputs, definition.inputs), ("output", outputs, definition.outputs),
                )
            )  # fmt: skip
            block.append_op(type, ins, outs, attrs)
        else:
            raise OpTypeError(
                "add_op takes an OpDef, or an operator's type.", expected="an OpDef or a str",
                received=f"{type!r} ({type.__class__.__name__})"[:200],
            )  # fmt: skip
        return len(block.desc.ops) - 1

    @attempted
    def add_backward_ops(self, cost: Any = None) -> None:
        if self._params_grads:
            raise OpValueError(
                "The network has its backward operators already.", expected="one call",
                received=f"{len(self.ops)} operators, {self.last_forward_op + 1} of them forward",
            )  # fmt: skip
        if cost is None:
            outputs = self.ops[-1].output_arg_names if self.ops else []
            if len(outputs) != 1:
                raise OpValueError(
                    "What is to be differentiated is not clear.", expected="a last operator with one output",
                    received=", ".join(outputs) or "no operators", hint='add_backward_ops("cost") names it.',
                )  # fmt: skip
            cost = outputs[0]
        self._params_grads = append_backward(self.var(cost) if isinstance(cost, str) else cost)

    def forget_gradients(self) -> None:
        """Note that the operators of `add_backward_ops` have been taken away."""
        self._params_grads = []

    @attempted
    def add_optimizer_ops(self, attrs: OptAttrs | None = None) -> None:
        if not self._params_grads:
            raise OpValueError(
                "There are no gradients to optimize with.", expected="add_backward_ops() first",
                received=f"{len(self.ops)} operators, none of which gives a parameter its gradient",
            )  # fmt: skip
        with program_guard(self.program, self.startup):
            (attrs or OptAttrs()).make().apply_gradients(self._params_grads)

    @attempted
    def infer_shape(self, scope: Scope) -> None:
        self.program.global_block().infer_shape(scope)

    @attempted
    def run(self, scope: Scope | None = None, context: OpContext | None = None, begin: int = -1, end: int = -1) -> None:
        self.run_in(scope or global_scope(), context or OpContext(), begin, end)

    def run_in(self, scope: Scope, context: OpContext, begin: int = -1, end: int = -1) -> None:
        """Run as `run` does, but raise errors."""
        block = self.program.global_block()
        first, stop = span(begin, end, len(block.desc.ops))
        self.init_missing(scope, context)
        if first == 0:  # a mini-batch begins
            self.forget(scope)
            block.infer_shape(scope)
        create_variables(block.desc, scope)
        known = len(scope.kids)
        try:
            run_ops(block, scope, context.place, first, stop)
        finally:
            self._inside.update(scope.kids[known:])

    def init_missing(self, scope: Scope, context: OpContext) -> None:
        """Give persistable variables that have no value in a scope their first one."""
        block = self.startup.global_block()
        create_variables(block.desc, scope)
        for index, op in enumerate(block.desc.ops):
            if any(_is_empty(scope, name) for name in op.output_arg_names()):
                run_ops(block, scope, context.place, index, index + 1)

    def forget(self, scope: Scope) -> None:
        """Destroy the scopes of loops and branches that the last mini-batch left in a scope."""
        drop(scope, self._inside)

    def __len__(self) -> int:
        return len(self.program.global_block().desc.ops)

    def __bool__(self) -> bool:
        return True  # `if net:` asks whether there is one, not whether it has operators

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} operators, {self.last_forward_op + 1} of them forward>"


def drop(scope: Scope, kids: WeakSet[Scope]) -> None:
    """Destroy some of the scopes inside one."""
    for kid in [kid for kid in scope.kids if kid in kids]:
        scope.kids.remove(kid)
        kid.drop_kids()
        kid.parent = None


def _is_empty(scope: Scope, name: str) -> bool:
    variable = scope.find_var(name)
    return variable is None or variable.value is None or getattr(variable.value, "array", 0) is None


def _by_slot(type: str, side: str, names: Any, slots: Mapping[str, Slot]) -> Mapping[str, Any] | None:
    """Names in the order of the slots, the rest to a last slot that takes a list."""
    if names is None or isinstance(names, Mapping):
        return names
    if isinstance(names, str | Variable) or not isinstance(names, Sequence):
        names = [names]
    order = list(slots.values())
    if len(names) > len(order) and not (order and order[-1].duplicable):
        raise OpValueError(
            f"{type} has {len(order)} {side}s, but {len(names)} are given.", expected=", ".join(slots) or "none",
            received=", ".join(map(str, names)),
        )  # fmt: skip
    by_slot: dict[str, Any] = {slot.name: [name] for slot, name in zip(order, names, strict=False)}
    if len(names) > len(order):
        by_slot[order[-1].name] = list(names[len(order) - 1 :])
    return by_slot
