"""recurrent: runs a step net along time, with memories from one step to the next; and its gradient."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from fluidnb.errors import EnforceNotMet
from fluidnb.op import GRAD, Array, Attr, Binder, Context, OpDef, OpDesc, grad_op, op
from fluidnb.op.control import Backward, Call, Control, sums_of
from fluidnb.op.grad import grad_desc, grad_names
from fluidnb.values import LoDTensor
from fluidnb.values.copies import put


def _check(b: Binder) -> int:
    """The number of steps, after a check that every sequence has as many."""
    sequences, names = b.all("inputs"), b.inputs["inputs"]
    lengths = {n: x.shape[0] if x.ndim else 0 for n, x in zip(names, sequences, strict=True)}
    steps = next(iter(lengths.values()))
    b.require(
        all(n == steps for n in lengths.values()),
        "The sequences of a recurrent operator must have the same length.",
        expected="the same size of axis 0", received=", ".join(f"{n}: {k}" for n, k in lengths.items()),
        hint="axis 0 is time: transpose batch-first data.",
    )  # fmt: skip
    b.require(steps > 0, "A recurrent operator needs at least one step.", received="0 steps")
    return steps


class _Recurrent(Control):
    """One iteration a step: slices of the sequences in, copies of the memories on, outputs into their place."""

    is_fixed = only_copies = True

    def __init__(self, b: Binder, steps: list[Any]) -> None:
        super().__init__(b, steps)
        self.count, self.reverse = _check(b), bool(b.attr("reverse"))
        self.sequences = list(zip(b.inputs["inputs"], b.all("inputs"), strict=True))
        self.previous, self.states = list(b.attr("ex_states")), list(b.attr("states"))
        self.starts = b.all("initial_states") if b.has("initial_states") else []
        self.carried = [b.keep(s.shape, s.dtype) for s in self.starts]
        self.inputs_key = tuple(
            [(n, x.shape[1:], x.dtype) for n, x in self.sequences]
            + [(n, x.shape, x.dtype) for n, x in zip(self.previous, self.carried, strict=True)]
        )
        self.outputs = [(n, b.scope.cell(n)[0]) for n in b.outputs["outputs"]]
        self.text, self.where = b.text(), b.where()

    def begin(self) -> None:
        super().begin()
        for carried, start in zip(self.carried, self.starts, strict=True):
            put(carried, start)

    def enter(self, k: int) -> Any:
        return self.scope if k < self.count else None

    def at(self, k: int) -> int:
        """The index into the sequences of iteration ``k``."""
        return self.count - 1 - k if self.reverse else k

    def entering(self, k: int, scope: Any) -> Iterator[Call]:
        for name, sequence in self.sequences:
            step = sequence[self.at(k), ...]
            yield self.copying(self.local(scope, name, step), step)
        for name, carried in zip(self.previous, self.carried, strict=True):
            yield self.copying(self.local(scope, name, carried), carried)

    def _made(self, scope: Any, name: str) -> Array:
        """The value that the step net has computed under a name."""
        value = self.local_value(scope, name)
        if not isinstance(getattr(value, "shape", None), tuple):
            raise EnforceNotMet(
                f"The step net of a recurrent operator must compute {name}, which is one of its memories or outputs.",
                op=self.text, where=self.where, expected=f"a tensor {name} in block {self.block_index}",
                received="no value" if value is None else type(value).__name__,
            )  # fmt: skip
        return value

    def leaving(self, k: int, scope: Any) -> Iterator[Call]:
        for name, carried in zip(self.states, self.carried, strict=True):
            value = self._made(scope, name)
            if value.shape != carried.shape:
                raise EnforceNotMet(
                    "A memory of a recurrent operator must keep its shape.", op=self.text, where=self.where,
                    slots=[("states", name, str(value.dtype), value.shape)],
                    expected=f"shape {list(carried.shape)}, as it starts with", received=f"shape {list(value.shape)}",
                )  # fmt: skip
            yield self.copying(carried, value)
        for name, variable in self.outputs:
            value = self._made(scope, name)
            tensor, shape = variable.value, (self.count, *value.shape)
            if type(tensor) is not LoDTensor:
                tensor = variable.value = LoDTensor(place=self.executor.place)
            if tensor.array is None or tensor.array.shape != shape or tensor.array.dtype != value.dtype:
                tensor.array = self.executor.real(shape, value.dtype)
                self.context.clear(tensor.array)  # who looks between two steps sees no remains of other values
            yield self.copying(tensor.array[self.at(k) : self.at(k) + 1], value[None])

    def changes(self) -> Iterable[Array]:
        arrays = [getattr(variable.value, "array", None) for _, variable in self.outputs]
        return [*self.carried, *(a for a in arrays if a is not None)]

    def sets(self) -> Iterable[Any]:
        return [variable for _, variable in self.outputs]


def _grad(desc: OpDesc, definition: OpDef, no_grad: Collection[str]) -> list[OpDesc]:
    ins = {slot: list(names) for slot, names in (*desc.ins.items(), *desc.outs.items())}
    ins["outputs" + GRAD] = [n + GRAD for n in desc.outs["outputs"]]
    slots = [s for s in ("inputs", "initial_states", "parameters") if s in desc.ins]  # Paddle asks for empty ones too
    return [grad_desc("recurrent_grad", desc, ins, {s + GRAD: grad_names(desc, s, no_grad) for s in slots})]


def _infer(c: Context) -> None:
    if not c.runtime:
        c.require(
            len(c.attr("states")) == len(c.attr("ex_states")) == len(c.inputs.get("initial_states", ())),
            "Every memory of a recurrent operator has a start, a name and a name for its previous value.",
            expected="as many initial_states as states and ex_states",
        )


@op(
    "recurrent",
    inputs={
        "inputs*: any[steps, …]": "sequences, time first; the block sees one step of each under the same name",
        "initial_states*?": "what the memories start with",
        "parameters*?": "outer variables that the block reads",
    },
    outputs={"outputs*": "what the block computes, stacked along time", "step_scopes": "the scope of each step"},
    attrs={
        "sub_block": Attr("block", doc="the step net"),
        "ex_states": Attr("strings", [], "names of the memories' previous values inside the block"),
        "states": Attr("strings", [], "names of the memories' new values inside the block"),
        "has_states": Attr("bool", False, "whether there are memories"),
        "reverse": Attr("bool", False, "whether to go from the last step to the first"),
        "is_train": Attr("bool", True, "whether the steps are kept for backward"),
        "skip_eager_deletion_vars": Attr("strings", [], "ignored (compatibility)"),
    },
    infer=_infer,
    grad=_grad,
    unset=("parameters",),
    side_effect=True,
    control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)
def recurrent(b: Binder) -> Control:
    """For each step t run the block on x[t] and the memories; outputs[t] is what it computes.

    Source: design document on RNNOp; Fluid's recurrent_op.
    """
    return _Recurrent(b, b.put("step_scopes", []))


class _Backward(Backward):
    """The steps in reverse: gradients of outputs and of the next step's memories in, gradients of sequences out.

    In Paddle a variable that is a memory and an output at once gets the gradient of the one or of the other, never the
    sum. Its layers copy a memory first, so that the two have different names. Our backward asks for the sum.
    """

    only_copies = True

    def __init__(self, b: Binder) -> None:
        super().__init__(b, b["step_scopes"], sums_of(b, ["parameters"]))
        self.reverse, self.sum_states = bool(b.attr("reverse")), bool(b.attr("sum_states", False))
        self.states, self.previous = list(b.attr("states")), list(b.attr("ex_states"))
        self.arriving = dict(zip(b.inputs["outputs"], b.all("outputs" + GRAD), strict=True))
        self.inputs = self._wanted(b, "inputs")
        starts = b.all("initial_states") if b.has("initial_states") else []
        wanted = dict(self._wanted(b, "initial_states", self.previous))
        self.carried = [
            wanted[p] if p in wanted else b.keep(s.shape, s.dtype) for p, s in zip(self.previous, starts, strict=True)
        ]
        self.inputs_key = tuple(
            [(n, x.shape[1:], x.dtype) for n, x in self.arriving.items()]
            + [(n, x.shape, x.dtype) for n, x in zip(self.states, self.carried, strict=True)]
        )

    @staticmethod
    def _wanted(b: Binder, slot: str, inside: list[str] | None = None) -> list[tuple[str, Array]]:
        """(name inside the block, array of the gradient) of the variables of a slot that want one."""
        names = b.inputs.get(slot, []) if inside is None else inside
        rows = zip(names, b.all(slot), b.lods(slot), strict=True) if b.has(slot) else ()
        found = []
        for i, (name, x, lod) in enumerate(rows):
            if b.wants(slot + GRAD, i):
                found.append((name, b.set(slot + GRAD, x.shape, x.dtype, lod, i)))
        return found

    def begin(self) -> None:
        super().begin()
        self.count = len(self.steps)
        for array in (*(a for _, a in self.inputs), *self.carried):
            self.context.clear(array)

    def at(self, k: int) -> int:
        """The index into the sequences of the ``k``-th gradient step."""
        return k if self.reverse else len(self.steps) - 1 - k

    def entering(self, k: int, scope: Any) -> Iterator[Call]:
        arriving = {n: a[self.at(k), ...] for n, a in self.arriving.items()}
        for name, carried in zip(self.states, self.carried, strict=True):
            if self.sum_states and name in arriving:
                outside = arriving.pop(name)
                total = self.local(scope, name + GRAD, outside)
                yield self.copying(total, outside)
                yield from self.adding(total, carried)
            elif k or name not in arriving:  # Paddle's way: what the next step sends hides what comes from outside
                arriving[name] = carried
        for name, gradient in arriving.items():
            yield self.copying(self.local(scope, name + GRAD, gradient), gradient)

    def leaving(self, k: int, scope: Any) -> Iterator[Call]:
        yield from super().leaving(k, scope)
        for name, array in self.inputs:
            gradient = self.local_value(scope, name + GRAD)
            if gradient is None:
                continue
            step = array[self.at(k) : self.at(k) + 1]
            if gradient.size != step.size:
                raise self.misfit(name + GRAD, gradient, step[0])
            yield self.copying(step, gradient)
        for name, carried in zip(self.previous, self.carried, strict=True):
            yield self.clearing(carried)
            yield from self.adding(carried, self.local_value(scope, name + GRAD), name + GRAD)

    def changes(self) -> Iterable[Array]:
        return [*super().changes(), *(a for _, a in self.inputs), *self.carried]


@grad_op(
    "recurrent_grad",
    infer=None, unset=("parameters", "outputs", "step_scopes", "step_scopes@GRAD"), control=True,
    host_only="runs blocks, whose operators choose their own kernels",
)  # fmt: skip
def recurrent_grad(b: Binder) -> Control:
    """Backward through time: the gradient block over the steps in reverse.

    Source: design document on RNNOp; Fluid's recurrent_grad.
    """
    return _Backward(b)
