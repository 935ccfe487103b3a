"""Programs of a parameter server: an operator that listens, and a block for each slice that it updates."""

import math
from collections.abc import Mapping
from typing import Any

from fluidnb.errors import OpValueError
from fluidnb.op import get_op
from fluidnb.program import Block, Operator, Program
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import OpDesc, VarDesc
from fluidnb.proto.framework_pb2 import BLOCK, VarType
from fluidnb.transpiler.distribute.plan import Plan
from fluidnb.transpiler.distribute.slices import Slice, Table


class ServerPrograms:
    """Builds the main program of one parameter server, and its startup program.

    Args:
        plan: what is optimized where.
        endpoint: of the server.

    Attributes:
        main: the program with ``listen_and_serv``.
        sources: variable of ``main`` -> the variable of the training program that it is made from, for slices and
            accumulators.
    """

    def __init__(self, plan: Plan, endpoint: str) -> None:
        self.plan, self.endpoint = plan, endpoint
        self.origin = plan.program.desc.block(0)
        self.main = Program()
        self.main.random_seed = plan.program.random_seed
        self.block = self.main.global_block()
        self.sources: dict[str, tuple[str, Slice | None]] = {}
        self.tables: dict[str, tuple[Table, int]] = {}  # each with this server's number
        parts = list(plan.on(endpoint))
        inputs = [name for part in parts for name in self._declare(part)]
        number = plan.endpoints.index(endpoint)
        inputs += [name for table in plan.tables.values() for name in self._declare_table(table, number)]
        blocks = self._schedule_block()
        routes = []
        for part in parts:
            block = self._update_block(part)
            blocks.append(block)
            routes.append(f"{part.merged}:{block.idx}")
        lookups = []
        for table in plan.tables.values():
            block = self._table_block(table, number)
            blocks.append(block)
            routes.append(f"{table.merged(number)}:{block.idx}")
            lookups.append(self._lookup_block(table, number))
        if not blocks:  # a server without parameters still has a block
            blocks.append(self._block())
        self.block.append_op(
            "listen_and_serv", {"X": inputs}, {},
            {"optimize_blocks": [block.idx for block in blocks], "endpoint": endpoint, "Fanin": plan.trainers,
             "sync_mode": plan.sync, "grad_to_block_id": routes, "prefetch_var_name_to_block_id": lookups},
        )  # fmt: skip

    def startup(self) -> Program:
        """The startup program: those initializers of the training program whose variables are on this server."""
        program = Program()
        program.random_seed = self.plan.startup.random_seed
        block = program.global_block()
        here: dict[str, list[str]] = {}
        for name, (source, _) in self.sources.items():
            here.setdefault(source, []).append(name)
        for name, var in self.block.desc.vars.items():
            if var.persistable() and name not in self.sources:
                here.setdefault(name, []).append(name)
        for op in self.plan.startup.desc.block(0).ops:
            written = op.output_arg_names()
            for name in here.get(written[0], ()) if written else ():
                self._initialize(block, op, written[0], name)
        return program

    def _initialize(self, block: Block, op: OpDesc, whole: str, name: str) -> None:
        """Append the initializer of a variable, or of the rows of it that are here."""
        _copy_var(block, self.block.desc.vars[name], name)
        attrs, part = dict(op.attrs), self.sources.get(name, ("", None))[1]
        if part is not None and not part.whole:
            attrs.update(_of_rows(op, whole, part.shape, part.start))
        if name in self.tables:
            table, number = self.tables[name]
            shape = (table.rows(number), table.width)
            attrs.update(_of_rows(op, whole, shape, number, table.servers))
        outs = {slot: [name if n == whole else n for n in names] for slot, names in op.outs.items()}
        block.append_op(op.optype, op.ins, outs, attrs)

    def _declare(self, part: Slice) -> list[str]:
        """Declare a slice and its gradients; gives the names that trainers send."""
        gradient = self.origin.vars[part.gradient]
        _copy_var(self.block, self.origin.vars[part.parameter], part.name, part.shape)
        self.sources[part.name] = part.parameter, part
        _copy_var(self.block, gradient, part.merged, part.shape, persistable=True)
        if not self.plan.per_trainer:
            return [part.merged]
        names = [part.sent(trainer) for trainer in range(self.plan.trainers)]
        for name in names:
            _copy_var(self.block, gradient, name, part.shape, persistable=True)  # else it would be fed
        return names

    def _declare_table(self, table: Table, number: int) -> list[str]:
        """Declare the rows of a table and their gradients; gives the names that trainers send."""
        shape = (math.ceil(table.height / table.servers), table.width)
        dtype = self.origin.vars[table.name].dtype()
        facts: dict[str, Any] = {"type": VarType.SELECTED_ROWS, "dtype": dtype, "persistable": True}
        self.block.create_var(name=table.name, shape=list(shape), stop_gradient=True, **facts)
        self.sources[table.name] = table.name, None
        self.tables[table.name] = table, number
        sent = range(self.plan.trainers) if self.plan.per_trainer else ()
        names = [table.sent(trainer, number) for trainer in sent] or [table.merged(number)]
        for name in {table.merged(number), *names}:
            self.block.create_var(name=name, shape=[table.height, table.width], stop_gradient=True, **facts)
        return names

    def _table_block(self, table: Table, number: int) -> Block:
        """The block that merges the gradients of a table's rows and updates them."""
        block, gradient = self._block(), table.merged(number)
        self._merge(block, [table.sent(t, number) for t in range(self.plan.trainers)], gradient)
        rate = self.plan.updates[table.name][-1].ins["LearningRate"][0]
        _copy_var(self.block, self.origin.vars[rate], rate)
        block.append_op(
            "sgd", {"Param": table.name, "Grad": gradient, "LearningRate": rate}, {"ParamOut": table.name},
            {"op_role": OpRole.Optimize, "op_role_var": [table.name, table.gradient]},
        )  # fmt: skip
        return block

    def _lookup_block(self, table: Table, number: int) -> str:
        """The block that looks up rows of a table; gives its variable and index, as ``listen_and_serv`` lists them."""
        ids = f"prefetch_compress_in_tmp_{table.name}_{number}"
        self.block.create_var(name=ids, shape=[-1, 1], dtype="int64", persistable=True, stop_gradient=True)
        block = self._block()
        block.append_op(
            "lookup_sparse_table", {"W": table.name, "Ids": ids},
            {"Out": f"prefetch_compress_out_tmp_{table.name}_{number}"},
        )  # fmt: skip
        return f"{ids}:{block.idx}"

    def _merge(self, block: Block, names: list[str], merged: str) -> None:
        """Append the mean of the gradients of all trainers."""
        if self.plan.per_trainer:
            block.append_op("sum", {"X": names}, {"Out": merged})
            block.append_op("scale", {"X": merged}, {"Out": merged}, {"scale": 1.0 / self.plan.trainers})

    def _block(self, parent: int = 0) -> Block:
        with self.main.block_guard(parent) as block:
            return block

    def _schedule_block(self) -> list[Block]:
        """The block that computes learning rates, if there is one."""
        if not self.plan.schedule:
            return []
        block = self._block()
        read = {name for ops in self.plan.updates.values() for op in ops for name in op.input_arg_names()}
        for op in self.plan.schedule:
            for name in op.output_arg_names():
                if name in read and not self.block.has_var(name):  # the blocks of updates see no variable of this one
                    _copy_var(self.block, self.origin.vars[name], name)
            self._copy_op(block, op, {})
        return [block]

    def _update_block(self, part: Slice) -> Block:
        """The block that merges the gradients of a slice and updates it."""
        block = self._block()
        self._merge(block, [part.sent(trainer) for trainer in range(self.plan.trainers)], part.merged)
        names_here = {part.parameter: part.name, part.gradient: part.merged}
        for op in self.plan.updates[part.parameter]:
            for name in op.input_arg_names():
                self._accumulator(op, name, part, names_here)
            self._copy_op(block, op, names_here)
        return block

    def _accumulator(self, op: OpDesc, name: str, part: Slice, names_here: dict[str, str]) -> None:
        """Declare a persistable variable that an update reads: in the shape of the slice where it has the whole's."""
        var = self.origin.vars.get(name)
        if name in names_here or var is None or not var.persistable():
            return
        if "Param" not in op.ins or name in op.ins.get("LearningRate", ()):
            _copy_var(self.block, var, name)
            return
        whole = tuple(self.origin.vars[part.parameter].shape())
        sliced = tuple(var.shape()) == whole
        here = name if name not in self.sources else f"{name}.block{part.index}"  # two slices on one server
        _copy_var(self.block, var, here, part.shape if sliced else None)
        self.sources[here] = name, part if sliced else None
        names_here[name] = here

    def _copy_op(self, block: Block, op: OpDesc, names: Mapping[str, str]) -> Operator:
        """Append a copy of an operator of the training program, with the blocks that it runs."""
        for name in (*op.input_arg_names(), *op.output_arg_names()):
            var = op.block.find_var_recursive(name) if op.block is not None else None
            if name in names or var is None or block.desc.find_var_recursive(name) is not None:
                continue
            _copy_var(self.block if var.persistable() else block, var, name)
        attrs: dict[str, Any] = {name: value for name, value in op.attrs.items() if op.attr_type(name) != BLOCK}
        for name in (n for n in op.attrs if op.attr_type(n) == BLOCK):
            attrs[name] = self._copy_block(op.attrs[name], block.idx).idx
        return block.append_op(op.optype, _renamed(op.ins, names), _renamed(op.outs, names), attrs)

    def _copy_block(self, index: int, parent: int) -> Block:
        """A copy of a block of the training program."""
        source, block = self.plan.program.desc.block(index), self._block(parent)
        for name, var in source.vars.items():
            _copy_var(block, var, name)
        for op in source.ops:
            self._copy_op(block, op, {})
        return block


def _of_rows(op: OpDesc, whole: str, shape: tuple[int, ...], start: int, step: int = 1) -> dict[str, Any]:
    """The attributes with which an initializer makes some rows of a variable."""
    attrs: dict[str, Any] = {"shape": list(shape)}
    if op.optype == "fill_constant" and step == 1:
        return attrs
    if op.optype == "assign_value" and step == 1:
        name = next(n for n in op.attrs if n.endswith("_values") and op.attrs[n])
        width = len(op.attrs[name]) // op.attrs["shape"][0]
        return {**attrs, name: op.attrs[name][start * width : (start + shape[0]) * width]}
    if "slice_of" not in get_op(op.optype).attrs:
        raise OpValueError(
            f"The initializer {op.optype} of {whole} makes the whole parameter, and its rows are on several servers.",
            op=op.label(), expected="an initializer that can make some rows", received=op.optype,
            hint="initialize it with Uniform, or keep each parameter on one server: config.slice_var_up = False.",
        )  # fmt: skip
    rows = {"slice_of": whole, "slice_whole": op.attrs["shape"], "slice_start": start, "slice_step": step}
    return {**attrs, **rows}


def _renamed(slots: Mapping[str, list[str]], names: Mapping[str, str]) -> dict[str, list[str]]:
    """Slots with some variables under other names."""
    return {slot: [names.get(name, name) for name in row] for slot, row in slots.items()}


def _copy_var(
    block: Block, var: VarDesc, name: str, shape: tuple[int, ...] | None = None, persistable: bool | None = None
) -> None:
    """Declare a variable like another one."""
    kind = var.type()
    facts: dict[str, Any] = {}
    if kind in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS):
        facts = {"shape": list(var.shape()) if shape is None else list(shape), "dtype": var.dtype()}
    if kind == VarType.LOD_TENSOR:
        facts["lod_level"] = var.lod_level()
    kept = var.persistable() if persistable is None else persistable
    block.create_var(name=name, type=kind, persistable=kept, stop_gradient=True, **facts)
