"""Control-flow operators, which run blocks. Both executors drive the object that their kernel returns.

All state between iterations is the number ``k`` and the values of variables, so a debugger can step out of an
iteration, and back into it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.memory import flags
from fluidnb.op.context import GRAD
from fluidnb.values.copies import on_host, put
from fluidnb.values.device_context import DeviceContext
from fluidnb.values.selected_rows import SelectedRows
from fluidnb.values.tensor import LoDTensor

#: A function and its arguments.
Call = tuple[Any, tuple[Any, ...]]


class Control:
    """The base of what the kernel of a control operator returns.

    Args:
        b: the binder of the operator; its attribute ``sub_block`` names the block to run.
        steps: the list of finished iterations (the value of StepScopes).
        block: index of the first block to run, for an operator without ``sub_block``.

    Attributes:
        op: the operator.
        block_index: the block to run; `enter` may set another one for each iteration.
        scope: the operator's scope; parent of the scopes of its iterations.
        records: whether finished iterations are appended to ``steps``.
        inputs_key: name, shape and dtype of what `prepare` sets; with another key the block is bound again.
        executor: ``real(shape, dtype)`` allocates persistent memory, ``reopen(scope, step)`` returns the scope of a
            finished iteration as seen from another scope.
        roots: cache of the executor: block and id of the scope around it -> bound body.
        unrolled: cache of the executor: all iterations as one list of calls; False where that cannot be.
    """

    records = True
    #: Whether its outputs are the same arrays in every run, where its blocks neither move variables nor test values.
    is_fixed = False
    #: Whether `entering` and `leaving` are all that happens around iterations of its block, ``count`` in every run.
    only_copies = False
    count = 0

    def __init__(self, b: Any, steps: list[Any], block: int | None = None) -> None:
        b.require(
            isinstance(steps, list), f"{b.definition.type} walks steps that are not there.",
            expected="the step scopes of an operator that has run before it", received=type(steps).__name__,
            hint="the program was changed: the operator whose steps these are is missing, or comes later.",
        )  # fmt: skip
        self.op = b.op
        self.scope = b.scope
        self.block_index: int = b.attr("sub_block") if block is None else block
        self.steps = steps
        self.executor: Any = None
        self.inputs_key: tuple[Any, ...] = ()
        self.roots: dict[tuple[int, int], Any] = {}
        self.unrolled: Any = None

    def begin(self) -> None:
        """Called once before the first iteration."""
        self.steps.clear()

    def enter(self, k: int) -> Any:
        """The scope around iteration ``k``, or None when there is no such iteration."""
        raise NotImplementedError

    def prepare(self, k: int, scope: Any) -> None:
        """Sets the variables that the operator itself computes before iteration ``k`` runs in ``scope``."""
        for function, args in self.entering(k, scope):
            function(*args)

    def entering(self, k: int, scope: Any) -> Iterable[Call]:
        """The calls that set these variables."""
        return ()

    def leave(self, k: int, scope: Any) -> None:
        """Called after iteration ``k``, whose variables are in ``scope``."""
        for function, args in self.leaving(k, scope):
            function(*args)

    def leaving(self, k: int, scope: Any) -> Iterable[Call]:
        """The calls that take values out of an iteration's scope."""
        return ()

    def iteration(self, k: int) -> int:
        """The iteration of the forward operator that the ``k``-th one belongs to, from 0."""
        return k

    def changes(self) -> Iterable[Any]:
        """The arrays that `leave` writes, for the debugger's journal."""
        return ()

    def sets(self) -> Iterable[Any]:
        """The runtime variables whose arrays `leave` replaces."""
        return ()

    @property
    def context(self) -> DeviceContext:
        """The device on which the block runs."""
        return DeviceContext.get(self.executor.place)

    def local(self, scope: Any, name: str, like: Any) -> Any:
        """The array of a variable of an iteration's scope, of the shape of another; it is kept over iterations."""
        variable = scope.var(name)
        tensor = variable.value
        if type(tensor) is not LoDTensor or tensor.array is None or tensor.array.shape != like.shape:
            tensor = variable.value = LoDTensor(place=self.executor.place)
            tensor.array = self.executor.real(like.shape, like.dtype)
        return tensor.array

    @staticmethod
    def copying(target: Any, source: Any) -> Call:
        """The call that copies an array into another of as many elements."""
        if source.shape != target.shape:
            if isinstance(source, np.ndarray) and not source.flags.c_contiguous:
                return _copy_in_order, (target, source)
            source = source.reshape(target.shape)
        both = isinstance(target, np.ndarray) and isinstance(source, np.ndarray)
        return np.copyto if both else put, (target, source)

    def clearing(self, target: Any) -> Call:
        """The call that writes zeros to an array."""
        if isinstance(target, np.ndarray):
            return np.copyto, (target, np.zeros((), target.dtype))
        return self.context.clear, (target,)

    @staticmethod
    def local_value(scope: Any, name: str) -> Any:
        """The array, the rows or None of a variable of this scope, without its ancestors."""
        variable = scope.vars.get(name)
        return None if variable is None else getattr(variable.value, "array", variable.value)

    held = local_value  # its earlier name


class Loop(Control):
    """Runs its block while a condition holds; no longer than FLAGS_max_loop_iterations allows.

    Args:
        condition: the runtime variable with a bool of one element.
    """

    is_fixed = True

    def __init__(self, b: Any, steps: list[Any], condition: Any) -> None:
        super().__init__(b, steps)
        self.condition = condition
        self.records = not b.attr("is_test", False)

    def more(self) -> bool:
        """Whether the condition holds now."""
        array = on_host(self.condition.value.array)
        if array.size != 1:  # the block has written another one
            raise EnforceNotMet(
                f"The condition of {self.op.desc.optype} must hold one element.", op=self.op.text(),
                slots=[("Condition", self.op.inputs["Condition"][0], str(array.dtype), array.shape)],
                where=self.op.where(), expected="one element", received=f"{array.size} elements",
                hint="the block compares two numbers: reduce_all() makes one of many.",
            )  # fmt: skip
        return bool(array.item())

    def enter(self, k: int) -> Any:
        if not self.more():
            return None
        limit = flags.values["max_loop_iterations"]
        if limit and k >= limit:
            raise self.endless(k)
        return self.scope

    def endless(self, k: int) -> EnforceNotMet:
        """The error of a loop that exceeds its limit of ``k`` iterations."""
        array = self.condition.value.array
        return EnforceNotMet(
            f"{self.op.desc.optype} has run block {self.block_index} {k} times, and its condition still holds.",
            op=self.op.text(), slots=[("Condition", self.op.inputs["Condition"][0], str(array.dtype), array.shape)],
            where=self.op.where(), expected=f"at most {k} iterations (FLAGS_max_loop_iterations)",
            received=f"iteration {k + 1}",
            hint="let the block change what it compares and compare again, for example increment(i); "
            'less_than(i, n, cond=cond). set_flags({"FLAGS_max_loop_iterations": 0}) lifts the limit.',
        )  # fmt: skip


class Branch(Control):
    """Runs its block once, or not at all.

    Args:
        taken: called when the operator begins; whether to run the block.
    """

    def __init__(self, b: Any, steps: list[Any], taken: Any) -> None:
        super().__init__(b, steps)
        self.taken = taken

    def enter(self, k: int) -> Any:
        return self.scope if k == 0 and self.taken() else None


class Backward(Control):
    """Runs a gradient block over the finished iterations of its forward operator, the last first.

    A name in the block is looked up in the block, then in the forward iteration, then around the gradient operator.
    Gradients of outer variables that several iterations read are summed.

    Args:
        sums: (array, name): to which array the block's variable of that name is added after each iteration.
    """

    records = False
    is_fixed = True

    def __init__(self, b: Any, steps: list[Any], sums: Sequence[tuple[Any, str]]) -> None:
        super().__init__(b, steps)
        self.sums = list(sums)

    def begin(self) -> None:
        for total, _ in self.sums:
            self.context.clear(total)

    def enter(self, k: int) -> Any:
        n = len(self.steps)
        return None if k >= n else self.executor.reopen(self.scope, self.steps[n - 1 - k])

    def iteration(self, k: int) -> int:
        return len(self.steps) - 1 - k

    def leaving(self, k: int, scope: Any) -> Iterator[Call]:
        for total, name in self.sums:
            yield from self.adding(total, self.local_value(scope, name), name)

    def changes(self) -> Iterable[Any]:
        return [total for total, _ in self.sums]

    def adding(self, total: Any, gradient: Any, name: str = "") -> Iterator[Call]:
        """The call that adds a gradient (an array of as many elements, rows of it, or None) to a sum of gradients."""
        rows = isinstance(gradient, SelectedRows)
        array = gradient.value.array if rows else gradient
        if array is None:
            return
        if array.shape[1:] != total.shape[1:] if rows else array.size != total.size:
            raise self.misfit(name, array, total)
        if rows:
            yield self.context.add_rows, (total, gradient)
        elif isinstance(total, np.ndarray) and array.flags.c_contiguous:
            yield np.add, (total, array.reshape(total.shape), total)
        else:
            yield self.context.add, (total, array.reshape(total.shape))

    def misfit(self, name: str, gradient: Any, variable: Any) -> EnforceNotMet:
        """The error of a gradient of the block that does not have the shape of its variable."""
        return EnforceNotMet(
            f"Block {self.block_index} computes a gradient that does not have the shape of its variable.",
            op=self.op.text(), slots=[("gradient", name, str(gradient.dtype), gradient.shape)],
            where=self.op.where(), expected=f"shape {list(variable.shape)}", received=f"shape {list(gradient.shape)}",
            hint="build the gradient operators again with append_backward: the program was changed afterwards.",
        )  # fmt: skip


def _copy_in_order(target: Any, source: Any) -> None:
    """Copies an array that is not dense into one of another shape."""
    np.copyto(target, source.reshape(target.shape))


def sums_of(b: Any, slots: Sequence[str]) -> list[tuple[Any, str]]:
    """The outputs ``<slot>@GRAD`` of a gradient operator as sums over iterations.

    A gradient that the block does not declare is the outer variable itself: the block reads and rewrites it, and there
    is nothing to sum.

    Returns:
        (array, name of the variable inside the block) for each output with a consumer.
    """
    inside = b.op.desc.block.program.blocks[b.attr("sub_block")].vars
    sums = []
    for slot in slots:
        for i, (x, lod) in enumerate(zip(b.all(slot) if b.has(slot) else (), b.lods(slot), strict=True)):
            name = b.inputs[slot][i] + GRAD
            if b.wants(slot + GRAD, i) and isinstance(getattr(x, "shape", None), tuple) and name in inside:
                sums.append((b.set(slot + GRAD, x.shape, x.dtype, lod, i), name))
    return sums
