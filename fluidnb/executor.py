"""Fluid's ``executor`` module: the Executor, and the scope in which programs run.

Example:
    >>> from fluidnb import executor
    >>> with executor.scope_guard(executor.Scope()):
    ...     executor.Executor(fluid.CPUPlace()).run(fluid.Program())
    []
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.errors import EnforceNotMet, NotFound, OpTypeError, near
from fluidnb.runtime import Executor, Scope, global_scope, scope_guard, switch_scope
from fluidnb.values import LoDTensor

#: Fluid's names.
_switch_scope = switch_scope

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name == "g_scope":  # version 0.11's name of the global scope; it may be another one tomorrow
            return global_scope()
        raise AttributeError(f"fluid.executor has no {name}. {near(name, __all__)}".rstrip())


def as_numpy(tensor: Any) -> Any:
    """A fetched tensor as an ndarray; a list of them as a list.

    Args:
        tensor: a LoDTensor without LoD, or a list.

    Raises:
        EnforceNotMet: it has LoD, which an ndarray cannot keep.

    Example:
        >>> as_numpy(LoDTensor(np.ones(2)))
        array([1., 1.])
    """
    if isinstance(tensor, list):
        return [as_numpy(t) for t in tensor]
    if isinstance(tensor, LoDTensor) and tensor.lod_:
        raise EnforceNotMet(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray.",
            received=f"LoD {tensor.lod()}", hint="keep the LoDTensor; np.array(tensor) drops the LoD.",
        )  # fmt: skip
    return np.array(tensor)


@checked
def fetch_var(name: Any, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """The value of a variable in a scope, without running anything.

    Args:
        name: a Variable or its name.
        return_numpy: a copy as ndarray (True) or the LoDTensor itself (False).

    Raises:
        NotFound: the scope does not hold it.

    Example:
        >>> scope = Scope(); scope.var("x").get_tensor().set(np.ones(2, "float32"), fluid.CPUPlace())
        >>> fetch_var("x", scope)
        array([1., 1.], dtype=float32)
    """
    name = name if isinstance(name, str) else getattr(name, "name", name)
    if not isinstance(name, str):
        raise OpTypeError("fetch_var takes a Variable or its name.", received=repr(name))
    scope = global_scope() if scope is None else scope
    variable = scope.find_var(name)
    if variable is None:
        raise NotFound(
            f'Cannot find "{name}" in the scope. Perhaps you need to make the variable persistable by using '
            "var.persistable = True in your program.",
            received=name, hint=near(name, scope.local_var_names()) or "fetch it from exe.run while its program runs.",
        )  # fmt: skip
    return as_numpy(variable.get_tensor()) if return_numpy else variable.get_tensor()


_fetch_var = fetch_var

__all__ = ["Executor", "Scope", "as_numpy", "fetch_var", "global_scope", "scope_guard", "switch_scope"]
