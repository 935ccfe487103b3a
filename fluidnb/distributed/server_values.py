"""Values of a training program's variables, divided among servers and trainers and put together again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fluidnb.proto.framework_pb2 import VarType
from fluidnb.runtime.scope import Scope
from fluidnb.transpiler import DistributeTranspiler
from fluidnb.transpiler.distribute.collective import CollectivePlan
from fluidnb.transpiler.distribute.plan import Plan
from fluidnb.values import LoDTensor, SelectedRows
from fluidnb.values.place import CPUPlace


def divided_values(transpiler: DistributeTranspiler, endpoint: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a server's variables get.

    Args:
        transpiler: after its `transpile`.
        endpoint: of the server.
        values: whole arrays by the names of the training program: parameters, accumulators, learning rates.

    Returns:
        Arrays and SelectedRows by the names of the server's program; variables without a value are left out.
    """
    server = transpiler.server(endpoint)
    here: dict[str, Any] = {}
    for name, var in server.block.desc.vars.items():
        source, part = server.sources.get(name, (name, None))
        if not var.persistable() or source not in values:
            continue
        array = np.asarray(values[source])
        if name in server.tables:
            table, number = server.tables[name]
            rows = np.arange(number, table.height, table.servers)
            here[name] = SelectedRows(rows, table.height, LoDTensor(array[rows].copy()))
        elif part is None or part.whole:
            here[name] = array
        else:
            here[name] = array[part.start : part.start + part.shape[0]]
    return here


def trainer_names(plan: Plan) -> list[str]:
    """Persistable tensors that no server keeps: all without servers."""
    if not isinstance(plan, CollectivePlan):
        return plan.kept
    declared = plan.program.desc.block(0).vars.items()
    return [name for name, var in declared if var.persistable() and var.type() == VarType.LOD_TENSOR]


def trainer_values(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that each trainer's variables get.

    Args:
        plan: of the division.
        values: whole arrays by name.
    """
    return {name: np.asarray(values[name]) for name in trainer_names(plan) if name in values}


def whole_values(transpiler: DistributeTranspiler, values: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The values of all servers, put together under the names of the training program.

    Args:
        transpiler: after its `transpile`.
        values: endpoint -> the values of that server by name.
    """
    whole: dict[str, Any] = {}
    slices: dict[str, dict[int, Any]] = {}
    for endpoint, row in values.items():
        server = transpiler.server(endpoint)
        for name, value in row.items():
            source, part = server.sources.get(name, (name, None))
            if isinstance(value, SelectedRows):
                table, _ = server.tables[name]
                array = np.asarray(value.value.array)
                target = whole.setdefault(source, np.empty((table.height, table.width), array.dtype))
                target[value.rows_] = array
            elif part is None or part.whole:
                whole.setdefault(source, value)
            else:
                slices.setdefault(source, {})[part.index] = value
    for source, parts in slices.items():
        whole[source] = np.concatenate([parts[index] for index in sorted(parts)])
    return whole


def store(scope: Scope, values: Mapping[str, Any]) -> None:
    """Give variables of a scope values: arrays or SelectedRows."""
    for name, value in values.items():
        if isinstance(value, SelectedRows):
            scope.var(name).value = value
        else:
            scope.var(name).get_tensor().set(value, CPUPlace())
