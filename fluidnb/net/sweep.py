"""Backward through the steps of a stepped network: the step net's gradients, in reverse, summed over steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.backward import gradients
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.net.desc import var_def
from fluidnb.net.net_pb2 import NetDesc
from fluidnb.net.plain import PlainNet
from fluidnb.net.result import OpContext, OptAttrs
from fluidnb.net.scope import held, put
from fluidnb.program import Parameter, Variable, grad_var_name, program_guard
from fluidnb.runtime import Scope
from fluidnb.values.dtypes import np_dtype
from fluidnb.where import capture

if TYPE_CHECKING:
    from fluidnb.net.stepped import SteppedNet

Array = np.ndarray[Any, Any]


class Sweep:
    """The backward of a `SteppedNet`.

    Args:
        net: the network; gradient operators are appended to its step net.
        costs: the outlinks that are differentiated.

    Attributes:
        start: the index of the first gradient operator.
        grads: variable of the step net -> the name of its gradient there.

    Raises:
        NotFound: a cost is no outlink.
        OpValueError: no parameter has an influence on the costs, or an operator has no gradient.
    """

    def __init__(self, net: SteppedNet, costs: list[str]) -> None:
        self.net, self.costs, self.update = net, costs, PlainNet()
        for name in costs:
            if name not in net.desc.outlinks:
                raise NotFound(
                    f'"{name}" is no outlink.', where=capture(4), expected=", ".join(net.desc.outlinks) or "an outlink",
                    received=name, hint=near(name, net.desc.outlinks) or None,
                )  # fmt: skip
        step, block = net.step, net.step.program.global_block()
        self.start = len(step)
        self.targets = list(dict.fromkeys([*costs, *(state.name for state in net.desc.states)]))
        wanted = [*net.desc.inlinks, *(state.previous for state in net.desc.states)]
        inputs: list[Variable] = [p for p in block.all_parameters() if p.trainable]
        inputs += [v for v in map(step.var, wanted) if np_dtype(v.dtype).kind == "f"]
        with program_guard(step.program, step.startup):
            seeds = [
                block.create_var(name=seed_name(name), shape=step.var(name).shape, dtype=step.var(name).dtype)
                for name in self.targets
            ]
            found = gradients([step.var(name) for name in self.targets], inputs, seeds)
        self.grads = {v.name: g.name for v, g in zip(inputs, found, strict=True) if g is not None}
        self.params = [v.name for v in inputs if isinstance(v, Parameter) and v.name in self.grads]

    def optimize(self, attrs: OptAttrs) -> None:
        """Let every sweep be followed by an update of the parameters.

        Args:
            attrs: which optimizer.

        Raises:
            OpValueError: there is nothing to optimize, or there is an update already.
        """
        if len(self.update):
            raise OpValueError("The network has its optimizer operators already.", where=capture(4))
        variables = [self.net.step.var(name) for name in self.params]
        desc = NetDesc(vars=[v.desc.pb for v in variables])
        desc.vars.extend(var_def(grad_var_name(v.name), v.shape, v.dtype) for v in variables)
        update = PlainNet(desc)
        pairs = [(update.var(name), update.var(grad_var_name(name))) for name in self.params]
        with program_guard(update.program, update.startup):
            attrs.make().apply_gradients(pairs)  # type: ignore[arg-type]  # they are parameters by their description
        self.update = update

    def run(self, scope: Scope, steps: list[Scope], before: list[list[int]], context: OpContext) -> None:
        """Go through the steps in reverse, leave gradients in the scope around, and update parameters.

        Args:
            scope: the scope around the steps.
            steps: their scopes, which hold what they wrote.
            before: for each step, those whose states it read.
            context: where to run.

        Raises:
            FluidError: an operator failed.
        """
        from fluidnb.net.stepped import order

        desc = self.net.desc
        weights = {name: self._weights(scope, name) for name in self.costs}
        owed: list[dict[str, Array]] = [{} for _ in steps]  # gradients of states, from the steps that read them
        sums: dict[str, Array] = {}
        for index in reversed(order(before)):
            inner = steps[index]
            for name in self.targets:
                seed = np.zeros_like(np.asarray(held(inner, name)))
                if name in weights:
                    seed += weights[name][index].reshape(seed.shape)
                if name in owed[index]:
                    seed += owed[index][name]
                put(inner, seed_name(name), seed)
            self.net.step.run_in(inner, context, self.start, len(self.net.step) - 1)
            for name in self.params:
                _add(sums, name, self._gradient(inner, name))
            for state in desc.states:
                gradient = self._gradient(inner, state.previous)
                if not before[index]:
                    _add(sums, state.boot, gradient)
                elif gradient is not None:
                    for earlier, part in zip(before[index], self.net.unprevious(gradient), strict=True):
                        _add(owed[earlier], state.name, part)
        for name, total in sums.items():
            put(scope, grad_var_name(name), total)
        for name in desc.inlinks:
            rows = [self._gradient(inner, name) for inner in steps]
            if all(r is not None for r in rows):
                shape = np.asarray(held(scope, name)).shape
                put(scope, grad_var_name(name), np.stack([r for r in rows if r is not None]).reshape(shape))
        if len(self.update):
            self.update.run_in(scope, context)

    @staticmethod
    def _weights(scope: Scope, name: str) -> Array:
        value, given = np.asarray(held(scope, name)), scope.find_var(grad_var_name(name))
        if given is None or given.value is None:
            return np.ones_like(value)
        weights = np.asarray(given.value)
        if weights.shape != value.shape:
            raise OpValueError(
                f'"{grad_var_name(name)}" has another shape than "{name}".', where=capture(5),
                expected=list(value.shape), received=list(weights.shape),
            )  # fmt: skip
        return weights

    def _gradient(self, inner: Scope, name: str) -> Array | None:
        return np.asarray(held(inner, self.grads[name])) if name in self.grads else None


def seed_name(name: str) -> str:
    """The variable of the step net with what backward starts from.

    Example:
        >>> seed_name("h")
        'h@SEED'
    """
    return f"{name}@SEED"


def _add(sums: dict[str, Array], name: str, part: Array | None) -> None:
    if part is not None:
        sums[name] = sums[name] + part if name in sums else np.array(part)
