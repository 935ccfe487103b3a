"""Reads the roles of a division off the programs of trainers and servers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluidnb.proto.desc import VarDesc
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.plan import is_transfer
from fluidnb.values import dtypes
from fluidnb.viz.base.styled_text import plural
from fluidnb.viz.roles.model import Flow, Held, Link, Role, RolesPicture, RoleState


def read_roles(
    transpiler: DistributeTranspiler, states: Sequence[RoleState] = (),
    flows: Mapping[tuple[str, str], Flow] | None = None,
) -> RolesPicture:  # fmt: skip
    """The roles of a division.

    Args:
        transpiler: after its `transpile`.
        states: of the roles in a run.
        flows: (name of a trainer, name of a server) -> what has flowed between them in a run.
    """
    plan = transpiler.plan
    main, _ = transpiler.get_trainer_programs(0)
    ops = main.desc.block(0).ops
    moves = sum(map(is_transfer, ops))
    data = [name for name, var in main.desc.block(0).vars.items() if var.is_data()]
    words = (
        f"reads {', '.join(data)}" if data else "reads nothing",
        f"computes {plural(len(plan.updates), 'gradient')}",
        f"{plural(len(ops), 'operator')}, {moves} for transfers",
    )
    known = {state.name: state for state in states}
    trainers = tuple(
        Role(f"trainer{number}", "", words, state=known.get(f"trainer{number}")) for number in range(plan.trainers)
    )
    servers = tuple(_server(transpiler, number, known) for number in range(len(plan.endpoints)))
    links = tuple(_link(transpiler, number) for number in range(len(plan.endpoints)))
    return RolesPicture(trainers, servers, links, plan.sync, dict(flows or {}))


def _server(transpiler: DistributeTranspiler, number: int, known: Mapping[str, RoleState]) -> Role:
    """A parameter server."""
    name, endpoint = f"pserver{number}", transpiler.plan.endpoints[number]
    programs = transpiler.server(endpoint)
    listener = programs.block.ops[-1]
    received = {*listener.input("X"), *(row.rpartition(":")[0] for row in listener.attr("grad_to_block_id"))}
    kept = [
        (name, var) for name, var in programs.block.desc.vars.items()
        if var.persistable() and name not in received and not name.startswith("prefetch_compress_in_tmp_")
    ]  # fmt: skip
    held = [_held(name, var) for name, var in kept]
    for i, row in enumerate(held):
        if row.name in programs.tables:
            table, here = programs.tables[row.name]
            size = table.width * dtypes.np_dtype(kept[i][1].dtype()).itemsize
            facts = f"{table.rows(here):,} of {table.height:,} rows"
            held[i] = replace(row, facts=facts, size=table.rows(here) * size)
    blocks = map(programs.main.block, listener.attr("optimize_blocks"))
    updates = dict.fromkeys(op.type for block in blocks for op in block.ops if "Param" in op.input_names)
    words = [f"updates by {', '.join(updates)}"] if updates else ["updates nothing"]
    if transpiler.plan.schedule:
        words.append("computes the learning rate")
    return Role(name, endpoint, tuple(words), tuple(held), known.get(name))


def _held(name: str, var: VarDesc) -> Held:
    shape, dtype = [abs(size) for size in var.shape()], dtypes.np_dtype(var.dtype())
    return Held(name, f"{dtype}{shape}", math.prod(shape) * dtype.itemsize)


def _link(transpiler: DistributeTranspiler, number: int) -> Link:
    """The flow between a trainer and a server in a step."""
    plan = transpiler.plan
    block = plan.program.desc.block(0)
    endpoint = plan.endpoints[number]
    gradients = parameters = 0
    rows = list(plan.tables)
    for part in plan.on(endpoint):
        size = math.prod(part.shape) * dtypes.np_dtype(block.vars[part.parameter].dtype()).itemsize
        parameters += size
        if part.rows:
            rows.append(part.name)
        else:
            gradients += size
    return Link(f"pserver{number}", gradients, parameters, tuple(rows))
