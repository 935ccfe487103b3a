"""Variables that need a gradient, and operators on the path to a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView

from fluidnb.errors import OpTypeError, typed
from fluidnb.program import Parameter, Variable
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType

_DIFFERENTIABLE = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


def names_of(items: Iterable[Variable | str] | None, argument: str) -> KeysView[str]:
    """The names in an argument that has variables or names, or is None."""
    names: dict[str, None] = {}
    for item in [items] if isinstance(items, str | Variable) else items or ():
        if not isinstance(item, str | Variable):
            raise OpTypeError(
                f"{argument} holds variables or their names.", expected="Variable or str", received=typed(item)
            )
        names[item if isinstance(item, str) else item.name] = None
    return names.keys()


def is_floating(block: BlockDesc, name: str) -> bool:
    """Whether a variable can have a gradient: a tensor, or an array of tensors, of a floating dtype."""
    var = block.find_var_recursive(name)
    return var is not None and var.type() in _DIFFERENTIABLE and dtypes.is_floating(var.dtype())


def is_array(block: BlockDesc, name: str) -> bool:
    """Whether a variable is an array of tensors."""
    var = block.find_var_recursive(name)
    return var is not None and var.type() == VarType.LOD_TENSOR_ARRAY


class Wanted:
    """The rule whether a variable needs a gradient: only those in ``reachable``, unless that is None."""

    def __init__(
        self, block: BlockDesc, no_grad: Collection[str], requested: Collection[str], reachable: set[str] | None
    ) -> None:
        self._block, self._no_grad, self._requested, self._reachable = block, no_grad, requested, reachable
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        answer = self._known.get(name)
        if answer is None:
            var = self._block.find_var_recursive(name)
            answer = self._known[name] = (
                var is not None
                and name not in self._no_grad
                and (self._reachable is None or name in self._reachable)
                and (name in self._requested or not (var.stop_gradient() or _frozen(var.view)))
                and is_floating(self._block, name)
            )
        return answer

    def inside(self, block: BlockDesc, also: Iterable[str]) -> Wanted:
        """The rule for a nested block; ``also``: further variables that depend on the requested ones."""
        reachable = self._reachable
        if reachable is not None:
            reachable = reachable | dependents(block.ops, reachable.union(also))
        return Wanted(block, self._no_grad, self._requested, reachable)


def _frozen(view: object) -> bool:
    return isinstance(view, Parameter) and not view.trainable


def dependents(ops: Iterable[OpDesc], inputs: Iterable[str]) -> set[str]:
    """The names that depend on some variables, these included."""
    reached = set(inputs)
    for op in ops:
        if not reached.isdisjoint(op.input_arg_names()):
            reached.update(op.output_arg_names())
    return reached
