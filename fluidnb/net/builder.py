"""NetBuilder: networks in few words."""

from typing import Any

from fluidnb import layers
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.net.base import Error, OpContext, OptAttrs, attempted
from fluidnb.net.plain import PlainNet
from fluidnb.op import get_op
from fluidnb.program import Variable, program_guard
from fluidnb.program.snapshot import Snapshot
from fluidnb.runtime import Scope


class NetBuilder:
    """Builds a network with the layer functions, and trains it.

    Args:
        net: the network; default a new one.

    Example:
        >>> from fluidnb.net import NetDesc, Scope, var_def
        >>> data = [var_def("image", [-1, 4]), var_def("label", [-1, 1], "int64")]
        >>> builder = NetBuilder(PlainNet(NetDesc(vars=data)))
        >>> prediction = builder.add_op("fc", input="image", size=3, activation="Softmax")
        >>> cost = builder.add_op("mean", builder.add_op("cross_entropy", input=prediction, label="label"))
        >>> builder.backward_from(cost), builder.add_optimization(1e-4, "adam")
        (<Error: none>, <Error: none>)
        >>> scope = Scope()
        >>> scope.var("image").get_tensor().set(np.ones((2, 4), "float32"), fluid.CPUPlace())
        >>> scope.var("label").get_tensor().set(np.array([[0], [2]]), fluid.CPUPlace())
        >>> builder.run(scope)
        <Error: none>
    """

    def __init__(self, net: PlainNet | None = None) -> None:
        self.net = PlainNet() if net is None else net
        if not isinstance(self.net, PlainNet):
            raise OpTypeError("A NetBuilder builds a PlainNet.", expected="a PlainNet", received=typed(net))
        self._cost: Variable | None = None
        self._attrs: OptAttrs | None = None
        self._forward: tuple[Snapshot, Snapshot] | None = None

    @property
    def last_forward_op(self) -> int:
        """The index of the last operator before backward, -1 for none."""
        return self.net.last_forward_op

    @property
    def need_rebuild_net(self) -> bool:
        """Whether the next training run adds backward and optimizer operators first."""
        return self._forward is None

    def add_op(self, type: str, *inputs: Any, **config: Any) -> Any:
        """Add a layer, or an operator.

        Args:
            type: the name of a layer function, ``fc`` for example, or an operator's type.
            inputs: the layer's positional arguments; variables may be given by name.
            config: its other arguments, ``activation`` for ``act``. For an operator, its slots and attributes by name.

        Returns:
            The Variable that it gives, or a list of them.
        """
        self._drop_backward()
        block = self.net.program.global_block()
        activation = config.pop("activation", None)
        if activation is not None:
            config["act"] = activation.lower()
        config = {k: self._known(v) for k, v in config.items()}
        with program_guard(self.net.program, self.net.startup):
            function = getattr(layers, type, None)
            if callable(function):
                return function(*map(self._known, inputs), **config)
            definition = get_op(type)
            arguments = {**dict(zip(definition.inputs, map(self._known, inputs), strict=False)), **config}
            outs = {slot: arguments.pop(slot) for slot in definition.outputs if slot in arguments}
            for slot in definition.outputs.values():
                if not slot.dispensable:
                    outs.setdefault(slot.name, block.create_var())
            ins = {slot: arguments.pop(slot) for slot in definition.inputs if slot in arguments}
            block.append_op(type, ins, outs, arguments)
        results = list(outs.values())
        return results[0] if len(results) == 1 else results

    def _known(self, value: Any) -> Any:
        """A variable of the network for its name; all else as it is."""
        if isinstance(value, list):
            return [self._known(v) for v in value]
        variable = self.net.program.global_block().find_var(value) if isinstance(value, str) else None
        return value if variable is None else variable

    @attempted
    def backward_from(self, cost: Variable | str) -> None:
        """Set the cost that training minimizes.

        Args:
            cost: a variable of the network, or its name.
        """
        self._drop_backward()
        self._cost = self.net.var(cost) if isinstance(cost, str) else cost

    @attempted
    def add_optimization(self, learning_rate: float, type: str = "sgd", **settings: Any) -> None:
        """Set the optimizer.

        Args:
            type: which optimizer, for example ``adam``.
            settings: its further arguments.
        """
        attrs = OptAttrs(type, learning_rate, **settings)
        self._drop_backward()
        self._attrs = attrs

    def run(self, scope: Scope | None = None, context: OpContext | None = None, need_backward: bool = True) -> Error:
        """Run the network.

        Args:
            need_backward: whether to train: the first such run adds backward and optimizer operators (SGD with 0.01
                unless `add_optimization` says otherwise). Else only the forward operators run, and parameters stay.
        """
        if need_backward:
            return self._rebuild() or self.net.run(scope, context)
        return self.net.run(scope, context, 0, self.last_forward_op) if self.last_forward_op >= 0 else Error()

    @attempted
    def _rebuild(self) -> None:
        if self._forward is not None:
            return
        if self._cost is None:
            raise OpValueError(
                "The builder has no cost to minimize.", expected="backward_from(cost) first",
                received="a run with need_backward=True", hint="run(scope, need_backward=False) runs forward only.",
            )  # fmt: skip
        self._forward = self.net.program.snapshot(), self.net.startup.snapshot()
        try:
            self.net.add_backward_ops(self._cost).check()
            self.net.add_optimizer_ops(self._attrs).check()
        except BaseException:
            self._drop_backward()
            raise

    def _drop_backward(self) -> None:
        """Remove backward and optimizer operators, so that more can be added before them."""
        if self._forward is not None:
            main, startup = self._forward
            self.net.program.restore(main)
            self.net.startup.restore(startup)
            self.net.forget_gradients()
            self._forward = None

    #: The design document's spelling.
    AddOp = add_op
    BackwardFrom = backward_from
    AddOptimization = add_optimization
    Run = run
