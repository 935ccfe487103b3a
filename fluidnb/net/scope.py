"""Scopes that make the variables of a network, and copying between scopes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fluidnb import runtime
from fluidnb.errors import NotFound, near
from fluidnb.net.base import net_desc, startup_program
from fluidnb.net.net_pb2 import NetDesc
from fluidnb.runtime import create_variables, place_in, run_ops
from fluidnb.values.place import CPUPlace, Place
from fluidnb.values.tensor import LoDTensor, LoDTensorArray


class Scope(runtime.Scope):
    """A scope on a place, which makes the variables that a network describes.

    Args:
        place: where initializers run; default the CPU.

    Example:
        >>> from fluidnb.net import NetDesc, var_def
        >>> desc = NetDesc(vars=[var_def("w", [2], parameter=True), var_def("x", [-1, 2])])
        >>> scope = Scope(fluid.CPUPlace()); scope.create_variables(desc); scope.init_variables(desc)
        >>> scope.local_var_names(), np.array(scope.find_var("w").get_tensor())
        (['w', 'x'], array([0., 0.], dtype=float32))
    """

    __slots__ = ("place",)

    def __init__(self, place: Place | None = None, parent: runtime.Scope | None = None) -> None:
        super().__init__(parent)
        self.place = place_in(CPUPlace() if place is None else place)

    def new_scope(self) -> Scope:
        """A scope inside this one, on the same place."""
        kid = Scope(self.place, self)
        self.kids.append(kid)
        return kid

    def create_variables(self, desc: NetDesc | bytes) -> None:
        """Make the variables of a network in this very scope, without values."""
        for var in net_desc(desc).vars:
            self.var(var.name)

    create_vars = create_variables

    def init_variables(self, desc: NetDesc | bytes) -> None:
        """Initializes the network's persistable variables."""
        block = startup_program(net_desc(desc)).global_block()
        create_variables(block.desc, self)
        run_ops(block, self, self.place)

    # The design document's spelling.
    CreateVariables = create_variables
    CreateVars = create_variables
    InitVariables = init_variables


def copy(source: runtime.Scope, target: runtime.Scope, names: Iterable[str] | Mapping[str, str]) -> None:
    """Copy values of variables from one scope into another; the target's own variables are made if need be.

    Args:
        source: where they are, or in a scope around it.
        target: where the copies go.
        names: the variables; or name in ``source`` -> name in ``target``, as a step's state becomes the next one's
            previous state.

    Raises:
        NotFound: the source has no such variable, or it has no value. Nothing is copied then.

    Example:
        >>> one, other = Scope(), Scope()
        >>> one.var("h").get_tensor().set(np.ones(2, "float32"), fluid.CPUPlace())
        >>> copy(one, other, {"h": "previous_state_h"})
        >>> np.array(other.find_var("previous_state_h").get_tensor())
        array([1., 1.], dtype=float32)
    """
    pairs = dict(names) if isinstance(names, Mapping) else {name: name for name in names}
    values = {name: value_of(source, name) for name in pairs}
    for name, new in pairs.items():
        put(target, new, values[name])


def value_of(scope: runtime.Scope, name: str) -> Any:
    """The value of a variable that must have one."""
    variable = scope.find_var(name)
    value = None if variable is None else variable.value
    if value is None or getattr(value, "array", 0) is None:
        raise NotFound(
            f'"{name}" has no value in this scope.' if variable is not None else f'The scope has no variable "{name}".',
            expected="a variable with a value", received=name,
            hint=near(name, scope.local_var_names()) or f'scope.var("{name}").get_tensor().set(array, place).',
        )  # fmt: skip
    return value


def put(scope: runtime.Scope, name: str, value: Any) -> None:
    """Give a variable of this very scope a copy of a value."""
    variable = scope.var(name)
    if isinstance(value, LoDTensorArray):
        variable.value = LoDTensorArray([tensor._copy(tensor.place) for tensor in value])
    elif hasattr(value, "__array__"):
        place = value.place if isinstance(value, LoDTensor) else CPUPlace()
        tensor = variable.get_tensor()
        tensor.set(value, place)
        tensor._set_offsets(value.lod_ if isinstance(value, LoDTensor) else ())
    else:
        variable.value = value
