"""allreduce and broadcast: values that all trainers of a group have alike afterwards."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Attr, Binder, Context, op
from fluidnb.op.engine import REDUCTIONS, engine_at
from fluidnb.op.memory_policy import Memory
from fluidnb.values import CPUPlace, LoDTensor, SelectedRows
from fluidnb_kernels.rows.values import dtype_of, fill, shape_of
from fluidnb_kernels.rules import checked

_ATTRS = {
    "endpoints": Attr("strings", None, "endpoints of all trainers, in their order"),
    "trainer_id": Attr("int", None, "number of the trainer"),
    "sync_mode": Attr("bool", False, "ignored (compatibility): the operator ends when Out is there"),
}
_HOST = "hands values to an engine, which works on the host"


def _alike(c: Context) -> None:
    """Out[i] is like X[i]; SelectedRows are left to the kernel."""
    c.require(
        len(c.inputs["X"]) == len(c.outputs["Out"]),
        f"{c.definition.type} needs an output for each input.", expected=f"{len(c.inputs['X'])} in Out",
        received=len(c.outputs["Out"]), hint="DistributeTranspiler writes both.",
    )  # fmt: skip
    if c.runtime and c.is_rows("X"):
        return
    for i, x in enumerate(c.all("X")):
        c.require(
            not (c.runtime and isinstance(x, SelectedRows)),
            f"{c.definition.type} takes tensors or SelectedRows, not both.", expected="one kind",
            received=", ".join(c.inputs["X"]), hint="write an operator for each kind.",
        )  # fmt: skip
        c.set("Out", shape_of(x), dtype_of(x), c.lods("X")[i], i)


def _is_rows(c: Context) -> bool:
    return c.is_rows("X")


def together(
    how: str, endpoints: Sequence[str], trainer: int, names: Sequence[str], values: Sequence[Any],
    outs: Sequence[Any], memory: Memory,
) -> None:  # fmt: skip
    """Write what the values of all trainers give together; a trainer without values only receives."""
    side = engine_at(endpoints[0] if endpoints else "").trainer(trainer)
    results = side.all_reduce(endpoints, how, names, values, memory.check)
    for name, result, out in zip(names, results, outs, strict=True):
        if isinstance(out, SelectedRows):
            out.height_ = result.height_
            fill(out, result.rows_, np.asarray(result.value))
        elif out is not None:
            if result.shape != out.shape or result.dtype != out.dtype:
                raise EnforceNotMet(
                    f"Another trainer has {name} in another form.", expected=f"{out.dtype}{list(out.shape)}",
                    received=f"{result.dtype}{list(result.shape)}",
                    hint="call transpile on all trainers with the same program.",
                )  # fmt: skip
            np.copyto(out, result)


def _row_outputs(b: Binder) -> list[SelectedRows]:
    """SelectedRows on the host for each output, like those of X; a call fills them."""
    outs = []
    for i, x in enumerate(b.all("X")):
        empty = LoDTensor(np.empty((0, *shape_of(x)[1:]), dtype_of(x)), (), CPUPlace())
        outs.append(b.put("Out", SelectedRows((), x.height_, empty), i))
    return outs


def _emit(b: Binder, how: str, values: Sequence[Any]) -> None:
    outs = _row_outputs(b) if b.is_rows("X") else b.all("Out")
    b(together, how, b.attr("endpoints") or [], b.attr("trainer_id") or 0, b.inputs["X"], values, outs, b.memory)


@op(
    "allreduce",
    inputs={"X*: any | rows": "tensors, or SelectedRows"},
    outputs={"Out*": "the reduction of each over all trainers, the same on every one"},
    attrs={"reduce_type": Attr("int", 0, "0 sum, 1 max, 2 min, 3 product", enum=range(4)), **_ATTRS},
    infer=checked(_alike),
    rows=_is_rows,
    inplace=True,
    side_effect=True,
    host_only=_HOST,
)
def allreduce(b: Binder) -> None:
    """Out = the sum of X over all trainers, in the order of their numbers; or maximum, minimum, product.

    SelectedRows have a sum only: the rows of all trainers one after another, so a row may occur again. All variables
    travel in one message.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.mode = "collective"
        >>> t = fluid.DistributeTranspiler(config)
        >>> t.transpile(0, trainers=2)
        >>> ops = t.get_trainer_program().global_block().ops
        >>> [op.input("X") for op in ops if op.type == "allreduce"]
        [['fc_0.b_0@GRAD', 'fc_0.w_0@GRAD']]

    Source: Fluid's allreduce_op.
    """
    _emit(b, REDUCTIONS[b.attr("reduce_type")], b.all("X"))


@op(
    "broadcast",
    inputs={"X*: any | rows": "tensors, or SelectedRows; only those of the root count"},
    outputs={"Out*": "the values of the root"},
    attrs={"root": Attr("int", 0, "number of the trainer whose values all get", ge=0), **_ATTRS},
    infer=checked(_alike),
    rows=_is_rows,
    inplace=True,
    side_effect=True,
    host_only=_HOST,
)
def broadcast(b: Binder) -> None:
    """Out = X of the trainer ``root``.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> config = fluid.DistributeTranspilerConfig()
        >>> config.mode = "collective"
        >>> fluid.DistributeTranspiler(config).transpile(0, trainers=2)
        >>> op = fluid.default_startup_program().global_block().ops[-1]
        >>> op.type, op.input("X")
        ('broadcast', ['fc_0.w_0', 'fc_0.b_0', 'learning_rate_0'])

    Source: Fluid's broadcast_op.
    """
    _emit(b, "sum", b.all("X") if (b.attr("trainer_id") or 0) == b.attr("root") else [])
