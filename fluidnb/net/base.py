"""Net: what every network can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from fluidnb.errors import FluidError, OpValueError
from fluidnb.net.desc import net_desc
from fluidnb.net.net_pb2 import ModelType, NetDesc, OpDef
from fluidnb.net.result import Error, OpContext, OptAttrs
from fluidnb.runtime import Scope
from fluidnb.where import capture


def renamed(name: str) -> Any:
    """A method under a second name, which follows when a subclass defines the first anew.

    Args:
        name: the method.

    Example:
        >>> class A:
        ...     def run(self): return 1
        ...     Run = renamed("run")
        >>> class B(A):
        ...     def run(self): return 2
        >>> B().Run()
        2
    """

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"See `{name}`."
    return method


class Net(ABC):
    """A container and controller of operators, without variables: these live in the scope in which it runs.

    One network can run in several scopes. Indices of operators count from 0 in the order in which they were added.

    Example:
        >>> from fluidnb.net import NetDesc, op_def
        >>> ops = [op_def("fill_constant", {}, {"Out": "x"}, {"shape": [2], "dtype": 5, "value": 3.0})]
        >>> net, scope = Net.create(NetDesc(ops=ops)), fluid.net.Scope()
        >>> net.run(scope)
        <Error: none>
        >>> np.array(scope.find_var("x").get_tensor())
        array([3., 3.], dtype=float32)

    Source: design document "Network".
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

        Returns:
            False when all is well, else what went wrong.
        """

    @abstractmethod
    def add_op(self, type: OpDef | str, inputs: Any = None, outputs: Any = None, attrs: Any = None) -> int:
        """Add an operator at the end.

        Args:
            type: its description; or its type, and then
            inputs: slot -> name or names; or names in the order of the operator's slots.
            outputs: the same for outputs.
            attrs: attribute -> value.

        Returns:
            Its index.

        Raises:
            FluidError: the operator is not known, or breaks a rule; nothing has changed then.
        """

    @abstractmethod
    def add_backward_ops(self, cost: Any = None) -> Error:
        """Add the operators that compute gradients.

        Args:
            cost: what to differentiate, a variable or its name; default what the last operator writes.

        Returns:
            False when all is well, else what went wrong.
        """

    @abstractmethod
    def add_optimizer_ops(self, attrs: OptAttrs | None = None) -> Error:
        """Add the operators that update parameters; `add_backward_ops` comes first.

        Args:
            attrs: which optimizer; default SGD with 0.01.

        Returns:
            False when all is well, else what went wrong.
        """

    @abstractmethod
    def infer_shape(self, scope: Scope) -> Error:
        """Create the network's variables in a scope and give them the shapes that they will have.

        Args:
            scope: the scope, with what the network reads.

        Returns:
            False when all is well, else what went wrong.
        """

    @staticmethod
    def create(desc: NetDesc | bytes | None = None) -> Net | None:
        """The network that a description describes.

        Args:
            desc: the description, or its bytes; default an empty one.

        Returns:
            A PlainNet, RecurrentNet or RecursiveNet; None for an unknown ``model_type``.

        Raises:
            FluidError: the description is no NetDesc, or an operator breaks a rule.

        Example:
            >>> from fluidnb.net import NetDesc, Recursive
            >>> type(Net.create()).__name__, Net.create(NetDesc(model_type=9)) is None
            ('PlainNet', True)
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


def attempt(action: Callable[[], object]) -> Error:
    """Do something and say how it went.

    Args:
        action: what to do.

    Returns:
        The error of a `FluidError`; other exceptions pass.

    Example:
        >>> attempt(lambda: None).ok
        True
    """
    try:
        action()
    except FluidError as error:
        return Error(error)
    return Error()


def span(begin: int, end: int, count: int) -> tuple[int, int]:
    """The range of operators that ``begin`` and ``end`` mean.

    Args:
        begin: index of the first; negative: 0.
        end: index of the last; negative: the last of all.
        count: how many there are.

    Returns:
        The first, and one past the last.

    Raises:
        OpValueError: there are no such operators.

    Example:
        >>> span(-1, -1, 5), span(1, 3, 5)
        ((0, 5), (1, 4))
    """
    first, stop = max(begin, 0), count if end < 0 else end + 1
    if stop > count or first >= stop and (begin >= 0 or end >= 0):
        raise OpValueError(
            f"The network has no operators {begin} to {end}.", where=capture(4), received=f"begin={begin}, end={end}",
            expected=f"0 <= begin <= end <= {count - 1}" if count else "no range, since it has no operators",
            hint="end is the index of the last operator that runs; -1 leaves a bound out.",
        )  # fmt: skip
    return first, stop
