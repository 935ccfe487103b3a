"""Initialization of parameters without a value, at the next run."""

from collections.abc import Collection

from fluidnb.program import Program
from fluidnb.proto.desc import OpDesc, VarDesc
from fluidnb.runtime import Executor, Scope
from fluidnb.values.dtypes import VarType, np_dtype
from fluidnb.values.tensor import LoDTensor


class InitialValues:
    """Records the operator that initialized each persistable variable.

    A parameter keeps its trained value while its name, shape and dtype stay. Everything else that a startup program
    initializes (learning rates, moments of optimizers) starts over when its shape or its initialization changed.
    """

    def __init__(self) -> None:
        self._initializers: dict[str, bytes] = {}

    def missing(self, main: Program, startup: Program, scope: Scope) -> list[str]:
        """The variables of a startup program that have no value that fits.

        What an optimizer remembers of a parameter goes with it: when one of them starts over, all do.
        """
        block = startup.desc.blocks[0]
        writers = {name: op for op in block.ops for name in op.output_arg_names()}
        names = {
            name for name, desc in block.vars.items()
            if desc.persistable() and name in writers and not self._fits(desc, writers[name], scope)
        }  # fmt: skip
        for op in main.desc.blocks[0].ops:
            if names.intersection(op.ins.get("Param", ())):
                names.update(name for name in op.output_arg_names() if name in writers)
        return [name for name in block.vars if name in names]

    def fill(self, main: Program, startup: Program, scope: Scope, wanted: Collection[str]) -> list[str]:
        """Initializes the variables without a matching value as in a fresh start, and returns their names."""
        writers = {name: op for op in startup.desc.blocks[0].ops for name in op.output_arg_names()}
        missing = self.missing(main, startup, scope)
        names = [name for name in missing if name in wanted]
        for name in writers.keys() - set(missing):  # initialized otherwise, as the program now says
            self._initializers.setdefault(name, writers[name].serialize_to_string())
        if not names:
            return []
        from fluidnb.transpiler.distribute.plan import is_transfer, without  # a program without parameters needs none

        aside, received = Scope(), [op for op in startup.desc.blocks[0].ops if is_transfer(op)]
        # A copy: a program's first run draws the same numbers every time. What a trainer receives from parameter
        # servers is not initialized here, and would be waited for.
        Executor().run(without(startup, received), scope=aside)
        for name in names:
            variable = aside.find_var(name)
            if variable is not None and isinstance(variable.value, LoDTensor):
                scope.erase([name])
                scope.var(name).get_tensor().set(variable.value.array, variable.value.place)
            self._initializers[name] = writers[name].serialize_to_string()
        return names

    def forget(self, startup: Program, scope: Scope) -> list[str]:
        """Drop the values of all that a startup program initializes, and return the names of those that had one."""
        names = [n for op in startup.desc.blocks[0].ops for n in op.output_arg_names() if scope.find_var(n) is not None]
        scope.erase(names)
        for name in names:
            self._initializers.pop(name, None)
        return names

    def _fits(self, desc: VarDesc, writer: OpDesc, scope: Scope) -> bool:
        variable = scope.find_var(desc.name())
        value = None if variable is None else variable.value
        if not isinstance(value, LoDTensor) or value.array is None:
            return False
        if desc.type() == VarType.LOD_TENSOR and (
            value.array.shape != tuple(desc.shape()) or value.array.dtype != np_dtype(desc.dtype())
        ):
            return False
        initializer = self._initializers.get(desc.name())
        return desc.is_parameter() or initializer in (None, writer.serialize_to_string())
