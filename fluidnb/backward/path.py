"""Variables that need a gradient, and operators on the path to a target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView

from fluidnb.errors import OpTypeError
from fluidnb.program import Parameter, Variable
from fluidnb.proto.desc import BlockDesc, OpDesc
from fluidnb.values import dtypes
from fluidnb.values.dtypes import VarType

_DIFFERENTIABLE = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS, VarType.LOD_TENSOR_ARRAY)


def names_of(given: Iterable[Variable | str] | None, argument: str) -> KeysView[str]:
    """The names in an argument that holds variables or names.

    Args:
        given: variables or names, or None.
        argument: its name, for the message.

    Returns:
        Their names, each once, in order.

    Raises:
        OpTypeError: it holds something else.

    Example:
        >>> names_of(["x", "y"], "no_grad_set") == {"x", "y"}
        True
    """
    names: dict[str, None] = {}
    for item in [given] if isinstance(given, str | Variable) else given or ():
        if not isinstance(item, str | Variable):
            raise OpTypeError(
                f"{argument} holds variables or their names.", expected="Variable or str",
                received=f"{item!r} ({type(item).__name__})",
            )  # fmt: skip
        names[item if isinstance(item, str) else item.name] = None
    return names.keys()


def is_floating(block: BlockDesc, name: str) -> bool:
    """Whether a variable can have a gradient: a tensor, or an array of tensors, of a floating dtype.

    Args:
        block: a block that sees the variable.
        name: its name.
    """
    var = block.find_var_recursive(name)
    return var is not None and var.type() in _DIFFERENTIABLE and dtypes.is_floating(var.dtype())


def is_array(block: BlockDesc, name: str) -> bool:
    """Whether a variable is an array of tensors.

    Args:
        block: a block that sees the variable.
        name: its name.
    """
    var = block.find_var_recursive(name)
    return var is not None and var.type() == VarType.LOD_TENSOR_ARRAY


class Wanted:
    """The rule that says whether a variable wants a gradient: ``wanted(name)`` is a bool.

    Args:
        block: the block.
        no_grad: names of those that do not.
        asked: names that the user requested; their ``stop_gradient`` does not count.
        reachable: None, or the names that depend on what the user requested; others need no gradient.
    """

    def __init__(
        self, block: BlockDesc, no_grad: Collection[str], asked: Collection[str], reachable: set[str] | None
    ) -> None:
        self._block, self._no_grad, self._asked, self._reachable = block, no_grad, asked, reachable
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        answer = self._known.get(name)
        if answer is None:
            var = self._block.find_var_recursive(name)
            answer = self._known[name] = (
                var is not None
                and name not in self._no_grad
                and (self._reachable is None or name in self._reachable)
                and (name in self._asked or not (var.stop_gradient() or _frozen(var.view)))
                and is_floating(self._block, name)
            )
        return answer

    def inside(self, block: BlockDesc, also: Iterable[str]) -> Wanted:
        """The same rule for a block inside.

        Args:
            block: the block.
            also: its variables that depend on what the user requested, beside those that its operators declare.

        Returns:
            The rule.
        """
        found = self._reachable
        if found is not None:
            found = found | dependents(block.ops, found.union(also))
        return Wanted(block, self._no_grad, self._asked, found)


def _frozen(view: object) -> bool:
    return isinstance(view, Parameter) and not view.trainable


def dependents(ops: Iterable[OpDesc], inputs: Iterable[str]) -> set[str]:
    """The names that depend on some variables, these included.

    Args:
        ops: operators in order.
        inputs: names.

    Example:
        >>> from fluidnb.proto.desc import OpDesc
        >>> sorted(dependents([OpDesc("relu", {"X": ["x"]}, {"Out": ["y"]})], ["x"]))
        ['x', 'y']
    """
    reached = set(inputs)
    for op in ops:
        if not reached.isdisjoint(op.input_arg_names()):
            reached.update(op.output_arg_names())
    return reached
