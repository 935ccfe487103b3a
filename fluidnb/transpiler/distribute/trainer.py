"""Programs of a trainer: gradients are sent where parameters were updated, and parameters are received."""

from fluidnb.errors import OpValueError
from fluidnb.program import Block, Program, Variable
from fluidnb.program.constants import CONTROL_DEP_VAR_PREFIX, OpRole
from fluidnb.proto.framework_pb2 import VarType
from fluidnb.transpiler.distribute.plan import Plan, is_schedule, is_update, without
from fluidnb.transpiler.distribute.slices import Slice, Table


def main_program(plan: Plan, trainer: int) -> Program:
    """The program that a trainer runs for each batch.

    Args:
        trainer: its number, from 0.
    """
    ops = plan.program.desc.block(0).ops
    program = without(plan.program, [op for op in ops if is_update(op) or is_schedule(op)])
    block = program.global_block()
    sent = {parameter: _send(plan, block, parts, trainer) for parameter, parts in plan.slices.items()}
    for table in plan.tables.values():
        _look_up_remotely(plan, block, table, trainer)
        sent[table.name] = _send_rows(plan, block, table, trainer)
    arrived = list(sent.values())
    if plan.sync:
        barrier = _signal(block, "send_barrier")
        block.append_op(
            "send_barrier", {"X": arrived}, {"Out": barrier},
            {"endpoints": plan.endpoints, "sync_mode": True, "trainer_id": trainer, "op_role": OpRole.RPC},
        )  # fmt: skip
    received: list[Variable] = []
    for parameter, parts in plan.slices.items():
        after = barrier if plan.sync else sent[parameter]
        targets = _targets(block, parts)
        received += targets
        grad = parts[0].sent(trainer if plan.per_trainer else None) if parts[0].whole else parts[0].gradient
        block.append_op(
            "recv", {"X": [after]}, {"Out": targets},
            {"epmap": [part.endpoint for part in parts], "trainer_id": trainer, "sync_mode": not plan.sync,
             "op_role": OpRole.RPC, "op_role_var": [parameter, grad]},
        )  # fmt: skip
    if plan.sync:
        block.append_op(
            "fetch_barrier", {}, {"Out": received},
            {"endpoints": plan.endpoints, "trainer_id": trainer, "op_role": OpRole.RPC},
        )  # fmt: skip
    _join(block, plan)
    return program


def extend_startup(plan: Plan, startup: Program, trainer: int) -> None:
    """Append the operators that receive the parameters' initial values from the servers."""
    block = startup.global_block()
    for table in plan.tables.values():
        for index in reversed([i for i, op in enumerate(block.desc.ops) if table.name in op.output_arg_names()]):
            block.remove_op(index)
        var = block.var(table.name)
        var.desc.set_type(VarType.SELECTED_ROWS)
        block.append_op(
            "fake_init", {}, {"Out": table.name},
            {"shape": [table.height, table.width], "dtype": int(var.dtype), "op_role": OpRole.Dist},
        )  # fmt: skip
    for parts in plan.slices.values():
        block.append_op(
            "recv", {}, {"Out": _targets(block, parts)},
            {"epmap": [part.endpoint for part in parts], "trainer_id": trainer, "op_role": OpRole.RPC},
        )  # fmt: skip
    block.append_op(
        "fetch_barrier", {}, {"Out": _signal(block, "fetch_barrier")},
        {"endpoints": plan.endpoints, "trainer_id": trainer, "op_role": OpRole.RPC},
    )  # fmt: skip
    _join(block, plan)


def _send(plan: Plan, block: Block, parts: list[Slice], trainer: int) -> Variable:
    """Send a gradient after its last writer; gives the variable that orders what follows."""
    gradient, suffix = parts[0].gradient, trainer if plan.per_trainer else None
    index = 1 + max(i for i, op in enumerate(block.desc.ops) if gradient in op.output_arg_names())
    if parts[0].whole:
        if suffix is not None:
            block.rename_var(gradient, parts[0].sent(suffix))
    else:
        whole = block.var(gradient)
        kind = whole.desc.type()
        for part in parts:
            block.create_var(name=part.sent(suffix), shape=part.shape, dtype=whole.dtype, type=kind)
        name, sizes = ("split_selected_rows", "height_sections") if parts[0].rows else ("split_byref", "sections")
        block.insert_op(
            index, name, {"X": gradient}, {"Out": [part.sent(suffix) for part in parts]},
            {sizes: [part.shape[0] for part in parts], "op_role": OpRole.Dist},
        )  # fmt: skip
        index += 1
    signal = _signal(block, parts[0].gradient)
    name = parts[0].sent(suffix) if parts[0].whole else gradient
    block.insert_op(
        index, "send", {"X": [part.sent(suffix) for part in parts]}, {"Out": signal},
        {"epmap": [part.endpoint for part in parts], "trainer_id": trainer, "sync_mode": not plan.sync,
         "op_role": OpRole.RPC, "op_role_var": [parts[0].parameter, name]},
    )  # fmt: skip
    return signal


def _look_up_remotely(plan: Plan, block: Block, table: Table, trainer: int) -> None:
    """Replace all lookups of a table by one request to its servers."""
    lookups = [op for op in block.ops if op.type == "lookup_table" and op.input("W") == [table.name]]
    ids = [op.input("Ids")[0] for op in lookups]
    outs = [op.output("Out")[0] for op in lookups]
    first = lookups[0].idx
    late = [n for op in list(block.desc.ops)[first:] for n in op.output_arg_names() if n in ids]
    if late:
        raise OpValueError(
            f"All rows of the table {table.name} are looked up at once, and {late[0]} is not known by then.",
            op=lookups[0].desc.label(), expected="Ids that are known before the first lookup", received=late[0],
            hint="compute all Ids before the first layers.embedding of this table.",
        )  # fmt: skip
    for op in reversed(lookups):
        block.remove_op(op.idx)
    block.var(table.name).desc.set_type(VarType.SELECTED_ROWS)
    servers = range(table.servers)
    numbers = [f"prefetch_compress_in_tmp_{table.name}_{i}" for i in servers]
    rows = [f"prefetch_compress_out_tmp_{table.name}_{i}" for i in servers]
    block.insert_op(first, "split_ids", {"Ids": ids}, {"Out": numbers})
    block.insert_op(
        first + 1, "prefetch", {"X": numbers}, {"Out": rows},
        {"epmap": plan.endpoints, "table_names": [table.name] * table.servers, "trainer_id": trainer,
         "width": table.width, "dtype": int(block.var(table.name).dtype)},
    )  # fmt: skip
    block.insert_op(first + 2, "merge_ids", {"Ids": ids, "Rows": numbers, "X": rows}, {"Out": outs})


def _send_rows(plan: Plan, block: Block, table: Table, trainer: int) -> Variable:
    """Send the gradient of a table, each row to its server."""
    suffix = trainer if plan.per_trainer else None
    names = [table.sent(suffix, i) for i in range(table.servers)]
    whole = block.var(table.gradient)
    for name in names:
        block.create_var(name=name, shape=whole.shape, dtype=whole.dtype, type=VarType.SELECTED_ROWS)
    index = 1 + max(i for i, op in enumerate(block.desc.ops) if table.gradient in op.output_arg_names())
    block.insert_op(index, "split_ids", {"Ids": table.gradient}, {"Out": names}, {"op_role": OpRole.Dist})
    signal = _signal(block, table.gradient)
    block.insert_op(
        index + 1, "send", {"X": names}, {"Out": signal},
        {"epmap": plan.endpoints, "trainer_id": trainer, "sync_mode": not plan.sync, "op_role": OpRole.RPC,
         "op_role_var": [table.name, table.gradient]},
    )  # fmt: skip
    return signal


def _signal(block: Block, after: str) -> Variable:
    """A variable that only orders operators."""
    return block.create_var(name=f"{CONTROL_DEP_VAR_PREFIX}@{after}", shape=[1], dtype="int64")


def _targets(block: Block, parts: list[Slice]) -> list[Variable]:
    """The variables that slices of a parameter are received into."""
    if parts[0].whole:
        return [block.var(parts[0].parameter)]
    whole = block.var(parts[0].parameter)
    return [block.create_var(name=part.name, shape=part.shape, dtype=whole.dtype) for part in parts]


def _join(block: Block, plan: Plan) -> None:
    """Put the slices of parameters together."""
    for parameter, parts in plan.slices.items():
        if not parts[0].whole:
            names = [part.name for part in parts]
            block.append_op("concat", {"X": names}, {"Out": parameter}, {"axis": 0, "op_role": OpRole.Dist})
