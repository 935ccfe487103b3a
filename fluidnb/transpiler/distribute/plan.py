"""Plan of a division: parameters, their slices and servers, and the operators of each part of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.program import Program
from fluidnb.program.constants import OpRole
from fluidnb.proto.desc import OpDesc
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.transpiler.distribute.config import DistributeTranspilerConfig
from fluidnb.transpiler.distribute.slices import Slice, Table, block_sizes
from fluidnb.utils.source_location import warn

#: Operators that compute one number from all elements, for example a norm: they need the whole parameter or gradient.
WHOLE = frozenset({"lamb", "lars_momentum", "clip_by_norm", "squared_l2_norm", "l1_norm", "norm", "mean"})


@dataclass
class Plan:
    """The division of a training program among trainers and parameter servers.

    Attributes:
        program: the program with backward and optimizer operators; it is not changed.
        startup: its startup program, without operators of an earlier division.
        trainers: how many trainers there are.
        sync: whether the servers wait for all trainers in each step.
        endpoints: of the parameter servers.
        updates: parameter -> the operators that clip and regularize its gradient and update it.
        schedule: the operators that compute learning rates.
        slices: parameter -> its slices, each with the server that keeps it; without those that are tables.
        tables: parameter of an embedding with ``is_distributed`` -> the table.
    """

    program: Program
    startup: Program
    trainers: int
    sync: bool
    endpoints: list[str]
    config: DistributeTranspilerConfig
    updates: dict[str, list[OpDesc]]
    schedule: list[OpDesc]
    slices: dict[str, list[Slice]]
    tables: dict[str, Table]

    @classmethod
    def of(
        cls, program: Program, startup: Program, trainers: int, sync: bool, endpoints: list[str],
        config: DistributeTranspilerConfig,
    ) -> Plan:  # fmt: skip
        """The plan of a program.

        Raises:
            OpValueError: nothing is optimized, or an operator needs the gradients of several parameters at once.
        """
        updates = updates_of(program)
        schedule = [op for op in program.desc.block(0).ops if is_schedule(op)]
        plan = cls(program, startup, trainers, sync, endpoints, config, updates, schedule, {}, {})
        plan._refuse_shared()
        plan._find_tables()
        plan._place()
        return plan

    @property
    def kept(self) -> list[str]:
        """Parameters that no optimizer updates, such as running averages: each trainer has its own."""
        return [p.name for p in self.program.all_parameters() if p.name not in self.updates]

    @property
    def logical(self) -> list[str]:
        """The endpoints by which operators find their engine."""
        return self.endpoints

    @property
    def per_trainer(self) -> bool:
        """Whether each trainer sends its gradients under separate names."""
        return self.sync and self.trainers > 1

    def on(self, endpoint: str) -> Iterator[Slice]:
        """The slices that a server keeps."""
        return (part for row in self.slices.values() for part in row if part.endpoint == endpoint)

    def _place(self) -> None:
        """Divide the parameters and choose a server for each slice."""
        rows = [(name, ops[0].attrs["op_role_var"][1]) for name, ops in self.updates.items() if name not in self.tables]
        if not self.config.slice_var_up:  # Fluid does so, to spread large weights and small biases evenly
            np.random.RandomState(self.program.random_seed).shuffle(rows)
        dispatcher = self.config.dispatcher(self.endpoints)
        placed: dict[str, list[Slice]] = {}
        for parameter, gradient in rows:
            cut = self._cut(parameter, gradient)
            places = self._checked(dispatcher.dispatch([part.name for part in cut]), parameter, len(cut))
            placed[parameter] = [
                Slice(**{**part.__dict__, "endpoint": endpoint}) for part, endpoint in zip(cut, places, strict=True)
            ]
        self.slices = {parameter: placed[parameter] for parameter, _ in rows}

    def _checked(self, places: Sequence[str], parameter: str, count: int) -> Sequence[str]:
        """Endpoints from a dispatcher, which may be the user's: one for each slice, of those given to `transpile`."""
        strange = [endpoint for endpoint in places if endpoint not in self.endpoints]
        if len(places) != count or strange:
            method = type(self.config.dispatcher(self.endpoints)).__name__
            raise OpValueError(
                f"{method} does not give the slices of {parameter} an endpoint each.",
                expected=f"{count} of {', '.join(self.endpoints)}",
                received=", ".join(map(str, places)) or "none",
                hint="dispatch(names) returns as many endpoints as names, out of those that it was made with.",
            )  # fmt: skip
        return places

    def _find_tables(self) -> None:
        block = self.program.desc.block(0)
        for op in block.ops:
            if op.optype != "lookup_table" or not op.attrs.get("is_distributed") or op.ins["W"][0] not in self.updates:
                continue
            name = op.ins["W"][0]
            gradient = self.updates[name][0].attrs["op_role_var"][1]
            if block.vars[gradient].type() != VarType.SELECTED_ROWS:
                raise OpValueError(
                    f"The table {name} is distributed and has a dense gradient.", op=op.label(),
                    expected="layers.embedding(is_sparse=True, is_distributed=True)", received="is_sparse=False",
                    where=None if op.view is None else op.view.where, hint="set is_sparse=True: servers update rows.",
                )  # fmt: skip
            height, width = block.vars[name].shape()
            self.tables[name] = Table(name, gradient, height, width, len(self.endpoints))
            used = [update.optype for update in self.updates[name]]
            if used != ["sgd"]:
                warn(f"The table {name} is updated by sgd on its servers, not by {used[-1]}: its rows have no moments.")

    def _cut(self, parameter: str, gradient: str) -> list[Slice]:
        block = self.program.desc.block(0)
        shape = tuple(block.vars[parameter].shape())
        rows = block.vars[gradient].type() == VarType.SELECTED_ROWS
        used = {op.optype for op in self.updates[parameter]}
        whole = any(name in WHOLE or name.startswith("reduce_") for name in used)
        most = len(self.endpoints) if self.config.slice_var_up and not whole else 1
        sizes = block_sizes(shape, most, self.config.min_block_size)
        width = int(np.prod(shape[1:], dtype=np.int64))
        starts = np.concatenate([[0], np.cumsum(sizes)]) // width
        return [
            Slice(parameter, gradient, i, len(sizes) == 1, (int(end - start), *shape[1:]), int(start), rows)
            for i, (start, end) in enumerate(zip(starts, starts[1:], strict=False))
        ]

    def _refuse_shared(self) -> None:
        """Refuse operators that read what belongs to another parameter's update, such as a global norm."""
        owner = {
            name: parameter for parameter, ops in self.updates.items() for op in ops for name in op.output_arg_names()
        }
        for parameter, ops in self.updates.items():
            for op in ops:
                for name in op.input_arg_names():
                    if owner.get(name, parameter) != parameter:
                        raise OpValueError(
                            f"{op.optype} needs the gradients of several parameters at once, and no server has them.",
                            op=op.label(), expected=f"what the update of {parameter} computes",
                            received=f"{name}, from the update of {owner[name]}",
                            where=None if op.view is None else op.view.where,
                            hint="clip each gradient by itself: fluid.clip.GradientClipByNorm or GradientClipByValue.",
                        )  # fmt: skip


def is_update(op: OpDesc) -> bool:
    """Whether an operator belongs to the update of a parameter."""
    return bool(int(op.attrs.get("op_role", 0)) & OpRole.Optimize and op.attrs.get("op_role_var"))


def updates_of(program: Program) -> dict[str, list[OpDesc]]:
    """For each parameter the operators that clip and regularize its gradient and update it.

    Raises:
        OpValueError: there is none.
    """
    updates: dict[str, list[OpDesc]] = {}
    for op in program.desc.block(0).ops:
        if is_update(op):
            updates.setdefault(op.attrs["op_role_var"][0], []).append(op)
    if not updates:
        raise OpValueError(
            "The program has no optimizer: there is nothing to divide among trainers.",
            expected="operators that update parameters", received=program.short(),
            hint="call optimizer.minimize(loss) before transpile.",
        )  # fmt: skip
    return updates


def is_schedule(op: OpDesc) -> bool:
    """Whether an operator computes a learning rate."""
    return bool(int(op.attrs.get("op_role", 0)) & OpRole.LRSched)


def is_transfer(op: OpDesc) -> bool:
    """Whether a transpiler has added an operator to move values between processes."""
    return bool(int(op.attrs.get("op_role", 0)) & (OpRole.RPC | OpRole.Dist))


def without(program: Program, drop: Sequence[OpDesc]) -> Program:
    """A copy of a program without some operators of its global block."""
    ops = program.desc.block(0).ops
    gone = {id(op) for op in drop}
    copy = program.clone()
    for index in reversed([i for i, op in enumerate(ops) if id(op) in gone]):
        copy.global_block().remove_op(index)
    return copy
