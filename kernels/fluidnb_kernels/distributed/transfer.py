"""send, recv and their barriers: a trainer's side of a training step with parameter servers."""

from collections.abc import Sequence

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.op import Array, Attr, Binder, Context, op
from fluidnb.op.engine import engine_at
from fluidnb.op.memory_policy import Memory
from fluidnb.values import dtypes

_TRAINER = Attr("int", 0, "number of the trainer")
_EPMAP = Attr("strings", [], "endpoint of each variable")
_ENDPOINTS = Attr("strings", [], "endpoints of all parameter servers")
_ASYNC = Attr("bool", False, "whether servers do not wait for all trainers")
_HOST = "hands values to an engine, which works on the host"


def _check(c: Context, slot: str) -> None:
    names = c.inputs.get(slot, ()) if slot == "X" else c.outputs.get(slot, ())
    c.require(
        len(names) == len(c.attr("epmap")),
        f"{c.definition.type} needs an endpoint for each variable.", expected=f"{len(names)} in epmap",
        received=f"{len(c.attr('epmap'))}", hint="DistributeTranspiler writes both.",
    )  # fmt: skip


def _signal(c: Context) -> None:
    """The output that only orders operators."""
    if c.wants("Out"):
        c.set("Out", (1,), np.int64)


def _send_rule(c: Context) -> None:
    _check(c, "X")
    _signal(c)


def send_value(endpoint: str, trainer: int, name: str, value: Array) -> None:
    """Send one gradient."""
    engine_at(endpoint).trainer(trainer).send(endpoint, name, value)


def signal(out: Array) -> None:
    """Write the output that only orders operators."""
    out.fill(1)


@op(
    "send",
    inputs={"X*": "gradients: tensors or SelectedRows"},
    outputs={"Out?": "orders what comes after"},
    attrs={"epmap": _EPMAP, "trainer_id": _TRAINER, "sync_mode": _ASYNC},
    infer=_send_rule,
    side_effect=True,
    host_only=_HOST,
)
def send(b: Binder) -> None:
    """Send each variable of X to its endpoint; the engine copies it.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0", trainers=2)
        >>> ops = t.get_trainer_program().global_block().ops
        >>> [op.input("X") for op in ops if op.type == "send"]
        [['fc_0.b_0@GRAD.trainer_0'], ['fc_0.w_0@GRAD.trainer_0']]

    Source: Fluid's send_op.
    """
    for name, value, endpoint in zip(b.inputs["X"], b.all("X"), b.attr("epmap"), strict=True):
        b(send_value, endpoint, b.attr("trainer_id"), name, value)
    if b.wants("Out"):
        b(signal, b["Out"])


def end_of_gradients(endpoints: Sequence[str], trainer: int) -> None:
    """Say that all gradients of a step are sent."""
    if endpoints:
        engine_at(endpoints[0]).trainer(trainer).send_barrier(endpoints)


@op(
    "send_barrier",
    inputs={"X*?": "what comes before"},
    outputs={"Out?": "orders what comes after"},
    attrs={"endpoints": _ENDPOINTS, "trainer_id": _TRAINER, "sync_mode": Attr("bool", True, "always True")},
    infer=_signal,
    side_effect=True,
    host_only=_HOST,
)
def send_barrier(b: Binder) -> None:
    """Say that all gradients of this training step are sent: the servers update when every trainer has said so.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0", trainers=2)
        >>> ops = t.get_trainer_program().global_block().ops
        >>> [op.attr("endpoints") for op in ops if op.type == "send_barrier"]
        [['ps:0']]

    Source: Fluid's send_barrier_op.
    """
    b(end_of_gradients, b.attr("endpoints"), b.attr("trainer_id"))
    if b.wants("Out"):
        b(signal, b["Out"])


def _receive_rule(c: Context) -> None:
    _check(c, "Out")
    names, outs = c.attr("varnames"), c.outputs["Out"]
    c.require(
        len(names) in (0, len(outs)), "recv needs a name on the server for each variable.",
        expected=f"{len(outs)} in varnames, or none", received=len(names),
        hint="without varnames the variables have the same names on servers.",
    )  # fmt: skip


def receive_value(endpoint: str, trainer: int, name: str, memory: Memory, out: Array) -> None:
    """Receive one parameter."""
    value = np.asarray(engine_at(endpoint).trainer(trainer).receive(endpoint, name, memory.check))
    if value.shape != out.shape or value.dtype != out.dtype:
        raise EnforceNotMet(
            f"{endpoint} keeps {name} in another form than this trainer expects.",
            expected=f"{out.dtype}{list(out.shape)}", received=f"{value.dtype}{list(value.shape)}",
            hint="the program was changed after transpile: call transpile again on all trainers and servers.",
        )  # fmt: skip
    np.copyto(out, value)


@op(
    "recv",
    inputs={"X*?": "what comes before"},
    outputs={"Out*": "parameters, or slices of them"},
    attrs={
        "epmap": _EPMAP, "trainer_id": _TRAINER, "sync_mode": _ASYNC,
        "varnames": Attr("strings", [], "name of each variable on its server; those of Out where it is empty"),
    },
    infer=_receive_rule,
    side_effect=True,
    host_only=_HOST,
)
def recv(b: Binder) -> None:
    """Receive each variable of Out from its endpoint, as it is after this trainer's last step.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0", trainers=2)
        >>> ops = t.get_trainer_program().global_block().ops
        >>> [op.output("Out") for op in ops if op.type == "recv"]
        [['fc_0.b_0'], ['fc_0.w_0']]

    Source: Fluid's recv_op.
    """
    block = b.op.desc.block
    there = b.attr("varnames") or b.outputs["Out"]
    for i, (name, endpoint) in enumerate(zip(b.outputs["Out"], b.attr("epmap"), strict=True)):
        var = None if block is None else block.find_var_recursive(name)
        if var is None or any(size < 0 for size in var.shape()):
            b.fail(
                f"recv needs the shape of {name}.", expected="a declared variable with known sizes",
                received="none" if var is None else str(list(var.shape())),
            )  # fmt: skip
        out = b.set("Out", tuple(var.shape()), dtypes.np_dtype(var.dtype()), (), i)
        if out is not None:
            b(receive_value, endpoint, b.attr("trainer_id"), there[i], b.memory, out)


def end_of_parameters(endpoints: Sequence[str], trainer: int) -> None:
    """Say that all parameters are received."""
    if endpoints:
        engine_at(endpoints[0]).trainer(trainer).fetch_barrier(endpoints)


@op(
    "fetch_barrier",
    inputs={"X*?": "what comes before"},
    outputs={"Out*?": "what was received; it is not changed"},
    attrs={"endpoints": _ENDPOINTS, "trainer_id": _TRAINER},
    side_effect=True,
    host_only=_HOST,
)
def fetch_barrier(b: Binder) -> None:
    """Say that all parameters are received: this trainer's next step begins.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> ops, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> t = fluid.DistributeTranspiler()
        >>> t.transpile(0, pservers="ps:0", trainers=2)
        >>> ops = t.get_trainer_program().global_block().ops
        >>> [op.output("Out") for op in ops if op.type == "fetch_barrier"]
        [['fc_0.b_0', 'fc_0.w_0']]

    Source: Fluid's fetch_barrier_op.
    """
    b(end_of_parameters, b.attr("endpoints"), b.attr("trainer_id"))


def save_remotely(endpoint: str, name: str, path: str, memory: Memory) -> None:
    """Let a server write a variable into a file."""
    engine_at(endpoint).trainer(0).save(endpoint, name, path, memory.check)


@op(
    "checkpoint_notify",
    attrs={
        "epmap": _ENDPOINTS,
        "dir": Attr("string", "", "folder, on the machines of the servers"),
        "lookup_table": Attr("string", "", "name of the variable"),
    },
    side_effect=True,
    host_only=_HOST,
)
def checkpoint_notify(b: Binder) -> None:
    """Let each server save its part of a table: server i writes it into the file ``dir/lookup_table_i``.

    Example:
        >>> block = fluid.Program().global_block()
        >>> parts = {"epmap": ["ps:0", "ps:1"], "dir": "saved", "lookup_table": "table"}
        >>> op = block.append_op("checkpoint_notify", {}, {}, parts)
        >>> op.attr("epmap")
        ['ps:0', 'ps:1']

    Source: Fluid's checkpoint_notify_op.
    """
    name = b.attr("lookup_table")
    for i, endpoint in enumerate(b.attr("epmap")):
        b(save_remotely, endpoint, name, f"{b.attr('dir')}/{name}_{i}", b.memory)
