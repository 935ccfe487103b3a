"""Networks that run their operators for each step of a sequence or node of a tree, and their backward."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any
from weakref import WeakSet

import numpy as np

from fluidnb.backward import gradients
from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.net.base import Net, OpContext, OptAttrs, attempted, net_desc, span, var_def
from fluidnb.net.net_pb2 import NetDesc, OpDef, State
from fluidnb.net.plain import PlainNet, drop
from fluidnb.net.scope import put, value_of
from fluidnb.program import Operator, Parameter, Variable, grad_var_name, program_guard
from fluidnb.runtime import Scope, global_scope
from fluidnb.values.dtypes import np_dtype

Array = np.ndarray[Any, Any]


class Sweep:
    """The backward of a `SteppedNet`."""

    def __init__(self, net: SteppedNet, costs: list[str]) -> None:
        self.net, self.costs, self.update = net, costs, PlainNet()
        for name in costs:
            if name not in net.desc.outlinks:
                raise NotFound(
                    f'"{name}" is no outlink.', expected=", ".join(net.desc.outlinks) or "an outlink", received=name,
                    hint=near(name, net.desc.outlinks) or None,
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
            grad_vars = gradients([step.var(name) for name in self.targets], inputs, seeds)
        self.grads = {v.name: g.name for v, g in zip(inputs, grad_vars, strict=True) if g is not None}
        self.params = [v.name for v in inputs if isinstance(v, Parameter) and v.name in self.grads]

    def optimize(self, attrs: OptAttrs) -> None:
        """Let every sweep be followed by an update of the parameters."""
        if len(self.update):
            raise OpValueError("The network has its optimizer operators already.")
        variables = [self.net.step.var(name) for name in self.params]
        desc = NetDesc(vars=[v.desc.pb for v in variables])
        desc.vars.extend(var_def(grad_var_name(v.name), v.shape, v.dtype) for v in variables)
        update = PlainNet(desc)
        pairs = [(update.var(name), update.var(grad_var_name(name))) for name in self.params]
        with program_guard(update.program, update.startup):
            attrs.make().apply_gradients(pairs)  # type: ignore[arg-type]  # they are parameters by their description
        self.update = update

    def run(self, scope: Scope, steps: list[Scope], before: list[list[int]], context: OpContext) -> None:
        """Go through the steps in reverse, leave gradients in the scope around, and update parameters."""
        desc = self.net.desc
        weights = {name: self._weights(scope, name) for name in self.costs}
        state_grads: list[dict[str, Array]] = [{} for _ in steps]  # gradients of states, from the steps that read them
        sums: dict[str, Array] = {}
        for index in reversed(order(before)):
            inner = steps[index]
            for name in self.targets:
                seed = np.zeros_like(np.asarray(value_of(inner, name)))
                if name in weights:
                    seed += weights[name][index].reshape(seed.shape)
                if name in state_grads[index]:
                    seed += state_grads[index][name]
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
                        _add(state_grads[earlier], state.name, part)
        for name, total in sums.items():
            put(scope, grad_var_name(name), total)
        for name in desc.inlinks:
            rows = [self._gradient(inner, name) for inner in steps]
            if all(r is not None for r in rows):
                shape = np.asarray(value_of(scope, name)).shape
                put(scope, grad_var_name(name), np.stack([r for r in rows if r is not None]).reshape(shape))
        if len(self.update):
            self.update.run_in(scope, context)

    @staticmethod
    def _weights(scope: Scope, name: str) -> Array:
        value, variable = np.asarray(value_of(scope, name)), scope.find_var(grad_var_name(name))
        if variable is None or variable.value is None:
            return np.ones_like(value)
        weights = np.asarray(variable.value)
        if weights.shape != value.shape:
            raise OpValueError(
                f'"{grad_var_name(name)}" has another shape than "{name}".', expected=list(value.shape),
                received=list(weights.shape),
            )  # fmt: skip
        return weights

    def _gradient(self, inner: Scope, name: str) -> Array | None:
        return np.asarray(value_of(inner, self.grads[name])) if name in self.grads else None


def seed_name(name: str) -> str:
    """The variable of the step net with what backward starts from."""
    return f"{name}@SEED"


def _add(sums: dict[str, Array], name: str, part: Array | None) -> None:
    if part is not None:
        sums[name] = sums[name] + part if name in sums else np.array(part)


class SteppedNet(Net):
    """Base class of networks that run a step net several times, each time in a new scope.

    Each run of the step net gets a scope inside the one in which the network runs. There it finds its row of each
    inlink, and the states of the runs before it; persistable variables and all else that it does not write itself it
    sees in the scope around. When all are done, the rows of each outlink are stacked in the scope around.

    Args:
        desc: the step net's operators and variables, and what crosses steps: ``inlinks``, ``outlinks``, ``states``.

    Raises:
        NotFound: an inlink, outlink or state is not a variable of the step net.
    """

    def __init__(self, desc: NetDesc | bytes | None = None) -> None:
        self.desc = net_desc(desc)
        self.step = PlainNet(NetDesc(ops=self.desc.ops, vars=self.desc.vars, init_ops=self.desc.init_ops))
        known = self.step.program.global_block().desc.vars
        for name in (
            *self.desc.inlinks,
            *self.desc.outlinks,
            *(n for s in self.desc.states for n in (s.name, s.previous)),
        ):
            if name not in known:
                raise NotFound(
                    f'The step net has no variable "{name}".', received=name,
                    expected="inlinks, outlinks and states that its variables and operators declare",
                    hint=near(name, known) or f'vars=[var_def("{name}", shape), ...] declares it.',
                )  # fmt: skip
        self._steps: WeakSet[Scope] = WeakSet()
        self._sweep: Sweep | None = None

    @abstractmethod
    def before(self, scope: Scope) -> list[list[int]]:
        """For each run of the step net, the runs whose states it reads."""

    @abstractmethod
    def previous(self, states: list[Array]) -> Array:
        """The state input of a run of the step net: the states of earlier runs, combined."""

    @abstractmethod
    def unprevious(self, gradient: Array) -> list[Array]:
        """The gradient of `previous`."""

    @property
    def ops(self) -> list[Operator]:
        """The step net's operators in order."""
        return self.step.ops

    def scopes(self, scope: Scope) -> list[Scope]:
        """The scopes of the last run's steps or nodes, in order, until the next run destroys them."""
        return [kid for kid in scope.kids if kid in self._steps]

    def add_op(self, type: OpDef | str, inputs: Any = None, outputs: Any = None, attrs: Any = None) -> int:
        if self._sweep is not None:
            raise OpValueError("A step net takes no operators after backward.", received=f"{type}"[:80])
        return self.step.add_op(type, inputs, outputs, attrs)

    @attempted
    def add_backward_ops(self, cost: Any = None) -> None:
        """Let every run be followed by a sweep through the steps in reverse, which leaves gradients in the scope.

        The gradient of parameter ``w`` is ``w@GRAD`` there, of inlink ``x`` ``x@GRAD`` with a row a step, and of the
        state before the first ``boot@GRAD``.

        Args:
            cost: an outlink; default all. Its elements are summed, unless the scope holds ``cost@GRAD`` of its shape,
                with which they are weighted then.
        """
        if self._sweep is not None:
            raise OpValueError("The network has its backward operators already.")
        self._sweep = Sweep(self, list(self.desc.outlinks) if cost is None else [getattr(cost, "name", cost)])

    @attempted
    def add_optimizer_ops(self, attrs: OptAttrs | None = None) -> None:
        if self._sweep is None:
            raise OpValueError(
                "There are no gradients to optimize with.", expected="add_backward_ops() first",
                received="a network without backward",
            )  # fmt: skip
        self._sweep.optimize(attrs or OptAttrs())

    @attempted
    def infer_shape(self, scope: Scope) -> None:
        inner = Scope(scope)
        self._enter(scope, inner, 0, [], {})
        self.step.infer_shape(inner).check()
        for name in self.desc.outlinks:
            tensor = inner.var(name).get_tensor()
            if tensor.array is None and scope.var(name).value is None:
                scope.var(name).get_tensor().set_dims([len(self.before(scope)), *tensor.shape()])

    @attempted
    def run(self, scope: Scope | None = None, context: OpContext | None = None, begin: int = -1, end: int = -1) -> None:
        """Run the step net once for each step or node.

        Args:
            end: index of the last one, which runs too; negative: the last of all, and backward when there is one.
        """
        scope, context = scope or global_scope(), context or OpContext()
        forward = len(self.step) if self._sweep is None else self._sweep.start
        first, stop = span(begin, end, forward)
        before = self.before(scope)
        self.step.init_missing(scope, context)
        drop(scope, self._steps)
        steps = [scope.new_scope() for _ in before]
        self._steps.update(steps)
        for index in order(before):
            states = [steps[i] for i in before[index]]
            boots = {s.previous: s.boot for s in self.desc.states}
            self._enter(scope, steps[index], index, states, boots)
            if stop > first:
                self.step.run_in(steps[index], context, first, stop - 1)
        written = {name for op in self.ops[first:stop] for name in op.output_arg_names}
        for name in written.intersection(self.desc.outlinks):
            put(scope, name, np.stack([np.asarray(value_of(step, name)) for step in steps]))
        if self._sweep is not None and end < 0 and first == 0:
            self._sweep.run(scope, steps, before, context)

    def _enter(self, scope: Scope, inner: Scope, index: int, states: list[Scope], boots: dict[str, str]) -> None:
        """Prepare the scope of one run of the step net."""
        known = self.step.program.global_block().desc.vars
        own = {*self.desc.inlinks, *(s.previous for s in self.desc.states)}
        own.update(name for op in self.ops for name in op.output_arg_names)
        for name in {name for op in self.ops for name in op.input_arg_names} - own:
            outer = scope.find_var(name)
            if outer is not None and not known[name].persistable():
                inner.vars[name] = outer
        for name in self.desc.inlinks:
            put(inner, name, row(np.asarray(value_of(scope, name)), index))
        for state in self.desc.states:
            if states:
                value = self.previous([np.asarray(value_of(before, state.name)) for before in states])
            else:
                value = np.asarray(value_of(scope, _boot(state)))
            put(inner, state.previous, value)

    def length(self, scope: Scope) -> int:
        """The number of rows of the inlinks."""
        rows = {name: np.asarray(value_of(scope, name)).shape[:1] for name in self.desc.inlinks}
        if len(set(rows.values())) != 1 or () in rows.values():
            raise OpValueError(
                "The inlinks must have the same number of rows.", expected="one inlink or more",
                received=", ".join(f"{n}: {shape[0] if shape else 'none'}" for n, shape in rows.items()) or "none",
            )  # fmt: skip
        return int(next(iter(rows.values()))[0])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.step)} operators a step>"


class RecurrentNet(SteppedNet):
    """A network that runs its operators once for each row of its inlinks, and hands states to the next step.

    Args:
        desc: see `SteppedNet`; a state's ``boot`` names what the first step reads as its ``previous``.

    Example:
        >>> from fluidnb.net import NetDesc, Recurrent, Scope, State, op_def, var_def
        >>> net = RecurrentNet(NetDesc(
        ...     model_type=Recurrent, inlinks=["x"], outlinks=["h"],
        ...     states=[State(name="h", previous="before", boot="zero")],
        ...     vars=[var_def("x", [1]), var_def("before", [1])],
        ...     ops=[op_def("elementwise_add", {"X": "x", "Y": "before"}, {"Out": "h"})]))
        >>> scope = Scope()
        >>> scope.var("x").get_tensor().set(np.array([[1.0], [2.0], [3.0]], "float32"), fluid.CPUPlace())
        >>> scope.var("zero").get_tensor().set(np.zeros(1, "float32"), fluid.CPUPlace())
        >>> net.run(scope)
        <Error: none>
        >>> np.array(scope.find_var("h").get_tensor()).ravel()
        array([1., 3., 6.], dtype=float32)
    """

    def before(self, scope: Scope) -> list[list[int]]:
        return [[] if i == 0 else [i - 1] for i in range(self.length(scope))]

    def previous(self, states: list[Array]) -> Array:
        return states[0]

    def unprevious(self, gradient: Array) -> list[Array]:
        return [gradient]


class RecursiveNet(SteppedNet):
    """A network that runs its operators once for each node of a tree, children before parents.

    Args:
        desc: see `SteppedNet`. ``parents`` names an integer variable with the index of each node's parent, -1 for a
            root; there may be several. A node reads the states of its children stacked along a new first axis, in the
            order of their indices; a leaf reads ``boot`` in their place.

    Example:
        >>> from fluidnb.net import NetDesc, Recursive, Scope, State, op_def, var_def
        >>> net = RecursiveNet(NetDesc(
        ...     model_type=Recursive, inlinks=["x"], outlinks=["h"], parents="parents",
        ...     states=[State(name="h", previous="children", boot="leaf")],
        ...     vars=[var_def("x", [1]), var_def("children", [-1, 1])],
        ...     ops=[op_def("reduce_sum", {"X": "children"}, {"Out": "below"}, {"dim": [0]}),
        ...          op_def("elementwise_add", {"X": "x", "Y": "below"}, {"Out": "h"})]))
        >>> scope = Scope()
        >>> for name, value in {"x": [[1.0], [2.0], [4.0]], "leaf": [[0.0]]}.items():
        ...     scope.var(name).get_tensor().set(np.array(value, "float32"), fluid.CPUPlace())
        >>> scope.var("parents").get_tensor().set(np.array([-1, 0, 0]), fluid.CPUPlace())
        >>> net.run(scope)
        <Error: none>
        >>> np.array(scope.find_var("h").get_tensor()).ravel()
        array([7., 2., 4.], dtype=float32)
    """

    def before(self, scope: Scope) -> list[list[int]]:
        parents = np.asarray(value_of(scope, self.desc.parents)).ravel()
        count = self.length(scope) if self.desc.inlinks else len(parents)
        children: list[list[int]] = [[] for _ in range(count)]
        if len(parents) != count or any(not -1 <= p < count for p in parents):
            raise OpValueError(
                f'"{self.desc.parents}" does not say each node\'s parent.',
                expected=f"{count} numbers from -1 to {count - 1}", received=f"{parents.tolist()}"[:200],
            )  # fmt: skip
        for node, parent in enumerate(parents.tolist()):
            if parent >= 0:
                children[int(parent)].append(node)
        if len(order(children)) < count:
            raise OpValueError(
                f'"{self.desc.parents}" is no tree: nodes are their own ancestors.', expected="a root above every node",
                received=f"{parents.tolist()}"[:200],
            )  # fmt: skip
        return children

    def previous(self, states: list[Array]) -> Array:
        return np.stack(states)

    def unprevious(self, gradient: Array) -> list[Array]:
        return list(gradient)


def order(before: list[list[int]]) -> list[int]:
    """The runs so that each comes after those before it, low indices first; without those that wait for each other."""
    after: list[list[int]] = [[] for _ in before]
    waits = [len(row) for row in before]
    for index, earlier in enumerate(before):
        for i in earlier:
            after[i].append(index)
    ordered = [i for i, n in enumerate(waits) if n == 0]
    for index in ordered:
        for later in after[index]:
            waits[later] -= 1
            if waits[later] == 0:
                ordered.append(later)
    return ordered


def row(array: Array, index: int) -> Array:
    """A row of an array, of one dimension or more."""
    return array[index : index + 1] if array.ndim == 1 else array[index]


def _boot(state: State) -> str:
    if not state.boot:
        raise NotFound(
            f'The state "{state.name}" has no value to start from.', expected='State(boot="...")',
            received="an empty boot", hint="name a variable of the scope in which the network runs.",
        )  # fmt: skip
    return state.boot
