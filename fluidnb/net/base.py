"""Nets: their description, arguments, results, and methods of every network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

from fluidnb import optimizer as optimizers
from fluidnb.errors import FluidError, NotFound, OpTypeError, OpValueError, near, typed
from fluidnb.initializer import default_bias_initializer, default_weight_initializer
from fluidnb.net.net_pb2 import ModelType, NetDesc, OpDef
from fluidnb.program import Program
from fluidnb.proto import framework_pb2 as pb2
from fluidnb.proto.desc import BlockDesc, OpDesc, VarDesc
from fluidnb.proto.wire import parse
from fluidnb.runtime import Scope, place_in
from fluidnb.values.dtypes import VarType, np_dtype, var_type
from fluidnb.values.place import CPUPlace, Place

#: The attributes of an operator by name.
OprAttr = dict[str, Any]


def op_def(
    type: str, inputs: Mapping[str, str | Sequence[str]] | None = None,
    outputs: Mapping[str, str | Sequence[str]] | None = None, attrs: OprAttr | None = None,
) -> OpDef:  # fmt: skip
    """An operator of a network.

    Args:
        inputs: slot -> name or names.
        outputs: the same for outputs.
        attrs: attribute -> value.

    Example:
        >>> op_def("scale", {"X": "x"}, {"Out": "y"}, {"scale": 2.0}).outputs[0].arguments
        ['y']
    """

    def rows(slots: Mapping[str, str | Sequence[str]] | None) -> dict[str, Sequence[str]]:
        return {slot: [names] if isinstance(names, str) else names for slot, names in (slots or {}).items()}

    return OpDef.FromString(OpDesc(type, rows(inputs), rows(outputs), attrs).serialize_to_string())


def var_def(
    name: str, shape: Sequence[int] = (), dtype: Any = "float32", parameter: bool = False, lod_level: int = 0
) -> pb2.VarDesc:
    """A variable of a network: a tensor.

    Args:
        shape: sizes, -1 for one that is not known.
        parameter: whether it persists and training changes it.

    Example:
        >>> var_def("w", [13, 1], parameter=True).persistable
        True
    """
    var = VarDesc(name)
    var.set_shape(shape)
    var.set_dtype(var_type(dtype))
    var.set_lod_level(lod_level)
    if parameter:
        var.set_persistable(True)
        var.set_is_parameter(True)
    return var.pb


def net_desc(desc: NetDesc | bytes | None = None) -> NetDesc:
    """The description that a caller means: a NetDesc, the bytes of one, or None for an empty one."""
    if isinstance(desc, bytes):
        return parse(NetDesc, desc, "net_desc")  # type: ignore[no-any-return]
    if desc is not None and not isinstance(desc, NetDesc):
        raise OpTypeError(
            "A network is built from a NetDesc.", expected="fluid.net.NetDesc(ops=[...], vars=[...])",
            received=typed(desc),
        )  # fmt: skip
    result = NetDesc()
    if desc is not None:
        result.CopyFrom(desc)
    return result


def declare(block: BlockDesc, variables: Iterable[pb2.VarDesc]) -> None:
    """Declare variables of a network in a block."""
    for var in variables:
        block.add_var(VarDesc.parse_from_string(var.SerializeToString()))


def startup_program(desc: NetDesc) -> Program:
    """The program that initializes a network's persistable variables.

    Args:
        desc: the network. What its ``init_ops`` do not write gets Fluid's defaults: Xavier for parameters of two and
            more dimensions, zeros for the rest.
    """
    program = Program()
    block = program.global_block()
    declare(block.desc, [var for var in desc.vars if var.persistable])
    for op in desc.init_ops:
        block.put_desc(OpDesc.parse_from_string(op.SerializeToString()))
    written = {name for op in block.desc.ops for name in op.output_arg_names()}
    for variable in list(block.vars.values()):
        if variable.name not in written and variable.desc.type() == VarType.LOD_TENSOR:
            weight = len(variable.shape) > 1 and np_dtype(variable.dtype).kind == "f"
            (default_weight_initializer() if weight else default_bias_initializer())(variable, block)
    return program


class Error:
    """Result of a call on a network: false on success, so that ``if net.run(scope): ...`` handles failures.

    Example:
        >>> from fluidnb.net import PlainNet
        >>> error = PlainNet().run()
        >>> bool(error), error.ok, error
        (False, True, <Error: none>)
    """

    __slots__ = ("cause",)

    def __init__(self, cause: FluidError | None = None) -> None:
        self.cause = cause

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return self.cause is None

    @property
    def message(self) -> str:
        """The error message, several lines; empty on success."""
        return "" if self.cause is None else str(self.cause)

    def check(self) -> None:
        """Raise what went wrong, if anything did."""
        if self.cause is not None:
            raise self.cause

    def __bool__(self) -> bool:
        return self.cause is not None

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        return "<Error: none>" if self.cause is None else f"<Error: {self.message}>"


class OpContext:
    """Context of a run: the place of its operators.

    Args:
        place: the place; default the CPU.
    """

    __slots__ = ("place",)

    def __init__(self, place: Place | None = None) -> None:
        self.place = place_in(CPUPlace() if place is None else place)


class OptAttrs:
    """Optimizer of a network.

    Args:
        type: its name in any case: ``sgd``, ``momentum``, ``adam``, ….
        settings: further arguments of the optimizer, for example ``momentum=0.9``.

    Example:
        >>> OptAttrs("adam", 1e-4).make().type
        'adam'
    """

    __slots__ = ("learning_rate", "settings", "type")

    def __init__(self, type: str = "sgd", learning_rate: float = 0.01, **settings: Any) -> None:
        known = {name.lower() for name in optimizers.__all__ if not name.endswith("Optimizer")}
        if type.lower() not in known:
            raise NotFound(
                f'There is no optimizer "{type}".', expected=", ".join(sorted(known)), received=type,
                hint=near(type.lower(), known) or None,
            )  # fmt: skip
        self.type, self.learning_rate, self.settings = type.lower(), learning_rate, settings

    def make(self) -> optimizers.Optimizer:
        """A new optimizer."""
        kinds = {name.lower(): getattr(optimizers, name) for name in optimizers.__all__}
        made: optimizers.Optimizer = kinds[self.type](self.learning_rate, **self.settings)
        return made


P = ParamSpec("P")


def renamed(name: str) -> Any:
    """A method under a second name, which follows when a subclass defines the first anew."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"See `{name}`."
    return method


class Net(ABC):
    """A container and controller of operators, without variables: these live in the scope in which it runs.

    One network can run in several scopes. Indices of operators count from 0 in the order in which they were added.
    """

    @abstractmethod
    def run(
        self, scope: Scope | None = None, context: OpContext | None = None, begin: int = -1, end: int = -1
    ) -> Error:
        """Run operators in order on the variables of a scope.

        Args:
            scope: where the variables are; default the global scope.
            context: where to run; default the CPU.
            begin: index of the first operator; negative: the first of all.
            end: index of the last operator, which runs too; negative: the last of all.
        """

    @abstractmethod
    def add_op(self, type: OpDef | str, inputs: Any = None, outputs: Any = None, attrs: Any = None) -> int:
        """Add an operator at the end.

        Args:
            type: its description; or its type, and then
            inputs: slot -> name or names; or names in the order of the operator's slots.
            outputs: the same for outputs.
            attrs: attribute -> value.
        """

    @abstractmethod
    def add_backward_ops(self, cost: Any = None) -> Error:
        """Add the operators that compute gradients.

        Args:
            cost: what to differentiate, a variable or its name; default what the last operator writes.
        """

    @abstractmethod
    def add_optimizer_ops(self, attrs: OptAttrs | None = None) -> Error:
        """Add the operators that update parameters; `add_backward_ops` comes first.

        Args:
            attrs: which optimizer; default SGD with 0.01.
        """

    @abstractmethod
    def infer_shape(self, scope: Scope) -> Error:
        """Create the network's variables in a scope and give them the shapes that they will have."""

    @staticmethod
    def create(desc: NetDesc | bytes | None = None) -> Net | None:
        """The network that a description describes.

        Args:
            desc: the description, or its bytes; default an empty one.

        Returns:
            A PlainNet, RecurrentNet or RecursiveNet; None for an unknown ``model_type``.
        """
        from fluidnb.net.plain import PlainNet
        from fluidnb.net.stepped import RecurrentNet, RecursiveNet

        desc = net_desc(desc)
        kinds: dict[int, Callable[[NetDesc], Net]] = {
            ModelType.Value("NN"): PlainNet,
            ModelType.Value("Recursive"): RecursiveNet,
            ModelType.Value("Recurrent"): RecurrentNet,
        }
        kind = kinds.get(desc.model_type)
        return None if kind is None else kind(desc)

    create_net = create
    Create = create
    CreateNet = create
    Run = renamed("run")
    AddOp = renamed("add_op")
    AddBackwardOps = renamed("add_backward_ops")
    AddOptimizerOps = renamed("add_optimizer_ops")
    InferShape = renamed("infer_shape")


def attempted(action: Callable[P, object]) -> Callable[P, Error]:
    """A function that returns a `FluidError` as an `Error` instead of raising it; other exceptions pass."""

    @wraps(action)
    def attempt(*args: P.args, **kwargs: P.kwargs) -> Error:
        try:
            action(*args, **kwargs)
        except FluidError as error:
            return Error(error)
        return Error()

    return attempt


def span(begin: int, end: int, count: int) -> tuple[int, int]:
    """The range of operators that ``begin`` and ``end`` mean."""
    first, stop = max(begin, 0), count if end < 0 else end + 1
    if stop > count or first >= stop and (begin >= 0 or end >= 0):
        raise OpValueError(
            f"The network has no operators {begin} to {end}.", received=f"begin={begin}, end={end}",
            expected=f"0 <= begin <= end <= {count - 1}" if count else "no range, since it has no operators",
            hint="end is the index of the last operator that runs; -1 leaves a bound out.",
        )  # fmt: skip
    return first, stop
