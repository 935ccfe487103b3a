"""Persistable variables of a trainer that parameter servers keep, into files."""

from collections.abc import Sequence

from fluidnb.program import Program
from fluidnb.program.remote_part import RemotePart
from fluidnb.runtime.executor import Executor
from fluidnb.runtime.save_load import chosen, path_of
from fluidnb.values import VarType

#: The folder of the tables that servers save, as in Fluid.
TABLES = "__lookup_table__"


def save_with_servers(executor: Executor, dirname: str, program: Program, filename: str | None) -> None:
    """Save all persistable variables of a trainer's program, with what servers keep of it.

    Slices are received and put together. A table is saved by its servers: server i writes ``TABLES/NAME_i`` into the
    folder, on its machine.

    Args:
        executor: runs the saving program.
        dirname: the folder.
        program: of a trainer; servers answer while its engine runs.
        filename: one file for all but tables; None for a file each.
    """
    assert program.remote is not None, "the program of a trainer with servers"
    remote = program.remote()
    variables = chosen(program, None, None)
    tables = [v.name for v in variables if v.name in remote and v.type == VarType.SELECTED_ROWS]
    away = [v.name for v in variables if v.name in remote and v.name not in tables]
    here = [v.name for v in variables if v.name not in remote]
    saving = Program()
    block = saving.global_block()
    for name in here:
        var = program.global_block().var(name)
        block.create_var(name=name, shape=var.shape, dtype=var.dtype, persistable=True)
    endpoints = list(dict.fromkeys(endpoint for name in away for endpoint, _, _ in remote[name]))
    block.append_op("fetch_barrier", {}, {}, {"endpoints": endpoints})  # what was received before is older
    for name in away:
        _receive(saving, program, name, remote[name])
    block.append_op("fetch_barrier", {}, {}, {"endpoints": endpoints})
    names = sorted([*here, *away])
    for group, path in [(names, filename)] if filename is not None else [([name], name) for name in names]:
        kind = "save" if filename is None else "save_combine"
        block.append_op(kind, {"X": group}, {}, {"file_path": path_of(dirname, path)})
    for name in tables:
        block.append_op(
            "checkpoint_notify", {}, {},
            {"epmap": [endpoint for endpoint, _, _ in remote[name]], "dir": path_of(dirname, TABLES),
             "lookup_table": name},
        )  # fmt: skip
    executor.run(saving)


def _receive(saving: Program, program: Program, name: str, parts: Sequence[RemotePart]) -> None:
    """Append operators that receive a variable from its servers."""
    block, var = saving.global_block(), program.global_block().var(name)
    block.create_var(name=name, shape=var.shape, dtype=var.dtype)
    names = [name] if len(parts) == 1 else [f"{part}@{endpoint}" for endpoint, part, _ in parts]
    for part, (_, _, shape) in zip(names, parts, strict=True):
        if part != name:
            block.create_var(name=part, shape=shape, dtype=var.dtype)
    there = {"epmap": [endpoint for endpoint, _, _ in parts], "varnames": [part for _, part, _ in parts]}
    block.append_op("recv", {}, {"Out": names}, there)
    if len(parts) > 1:
        block.append_op("concat", {"X": names}, {"Out": [name]}, {"axis": 0})
