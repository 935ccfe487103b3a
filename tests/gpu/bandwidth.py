"""The share of a device's copy bandwidth that the kernels bound by it reach.

Each operator works on tensors of a given size in float32; what it moves at least (every operand read once, every result
written once) by its time, as a share of what a copy on the device reaches between the same two clocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fluidnb.op import Binder, Clock, OpDesc, check_desc, get_op
from fluidnb.runtime import Scope
from fluidnb.runtime.compile.lowering import LoweredOp
from fluidnb.values import LoDTensor
from fluidnb_kernels.cuda import backend
from tests.cuda.devices import OnCupy

#: The share of the copy bandwidth that every row should reach, for tensors of 64 MB and more.
GOAL = 0.85
_WIDTH = 1024


@dataclass(frozen=True)
class Case:
    """An operator and its operands.

    Args:
        type: the operator.
        inputs: slot -> shape of float32 numbers, with rows for the first size.
        outputs: slots.
        attrs: attribute -> value.
    """

    type: str
    inputs: dict[str, tuple[int, ...]]
    outputs: Sequence[str]
    attrs: dict[str, Any]


def cases(rows: int) -> list[Case]:
    """The kernels that are measured.

    Args:
        rows: rows of 1,024 numbers in the large tensors.
    """
    big, line, one = (rows, _WIDTH), (_WIDTH,), (1,)
    adam = {"Param": big, "Grad": big, "Moment1": big, "Moment2": big, "LearningRate": one, "Beta1Pow": one}
    return [
        Case("relu", {"X": big}, ["Out"], {}),
        Case("gelu", {"X": big}, ["Out"], {}),
        Case("tanh_grad", {"Out": big, "Out@GRAD": big}, ["X@GRAD"], {}),
        Case("scale", {"X": big}, ["Out"], {"scale": 2.0}),
        Case("elementwise_add", {"X": big, "Y": big}, ["Out"], {}),
        Case("elementwise_mul", {"X": big, "Y": line}, ["Out"], {"axis": -1}),
        Case("dropout", {"X": big}, ["Out", "Mask"], {"dropout_prob": 0.5, "seed": 1, "fix_seed": True}),
        Case("transpose2", {"X": big}, ["Out"], {"axis": [1, 0]}),
        Case("concat", {"X": big}, ["Out"], {"axis": 0}),
        Case("reduce_sum", {"X": big}, ["Out"], {"dim": [1]}),
        Case("reduce_sum", {"X": big}, ["Out"], {"dim": [0]}),
        Case("reduce_sum", {"X": big}, ["Out"], {"reduce_all": True}),
        Case("softmax", {"X": big}, ["Out"], {"axis": -1}),
        Case("softmax_grad", {"Out": big, "Out@GRAD": big}, ["X@GRAD"], {"axis": -1}),
        Case("layer_norm", {"X": big, "Scale": line, "Bias": line}, ["Y", "Mean", "Variance"], {}),
        Case("momentum", {"Param": big, "Grad": big, "Velocity": big, "LearningRate": one}, ["ParamOut", "VelocityOut"],
             {"mu": 0.9}),
        Case("adam", {**adam, "Beta2Pow": one},
             ["ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut"], {}),
    ]  # fmt: skip


def bound(case: Case) -> tuple[list[Any], int]:
    """The calls of an operator on a device, and the bytes that it moves at least.

    Args:
        case: the operator.
    """
    desc = OpDesc(case.type, {s: [s] for s in case.inputs}, {s: [f"{s}@out"] for s in case.outputs}, dict(case.attrs))
    check_desc(get_op(case.type), desc)
    scope, rng = Scope(), np.random.default_rng(1)
    for slot, shape in case.inputs.items():
        scope.var(slot).value = OnCupy.taken(LoDTensor(rng.uniform(0.1, 0.9, shape).astype("float32")))
    calls = Binder(LoweredOp(desc, 0, 0), OnCupy(Clock(1)), scope).bind()
    moved = [scope.find_var(s).value.array for s in case.inputs]
    moved += [scope.find_var(f"{s}@out").value.array for s in case.outputs]
    return calls, sum(int(array.nbytes) for array in moved)


def seconds(work: Callable[[], None], repeat: int) -> float:
    """The time of some work on the device, the least of several.

    Args:
        work: puts it into the current stream.
        repeat: how often it is timed.
    """
    cuda = backend.cupy().cuda
    times = []
    for _ in range(repeat + 2):  # the first ones compile, and wake the device
        begin, end = cuda.Event(), cuda.Event()
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(cuda.get_elapsed_time(begin, end) / 1e3)
    return min(times[2:])


def table(megabytes: int, repeat: int) -> list[tuple[str, float, float]]:
    """Operator, GB/s, share of the copy's.

    Args:
        megabytes: size of the large tensors.
        repeat: how often each is timed.
    """
    rows = max(megabytes * (1 << 20) // (4 * _WIDTH), 1)
    cupy = backend.cupy()
    source, target = (cupy.ndarray((rows, _WIDTH), np.float32) for _ in range(2))
    kind = cupy.cuda.runtime.memcpyDeviceToDevice

    def copy() -> None:
        stream = cupy.cuda.get_current_stream().ptr
        cupy.cuda.runtime.memcpyAsync(target.data.ptr, source.data.ptr, source.nbytes, kind, stream)

    made = []
    for case in cases(rows):
        calls, moved = bound(case)

        def work(calls: list[Any] = calls) -> None:
            for function, args, kw in calls:
                function(*args, **kw)

        fast = 2 * source.nbytes / seconds(copy, repeat)  # beside each operator: clocks change
        speed = moved / seconds(work, repeat)
        dims = case.attrs.get("dim", "all" if case.attrs.get("reduce_all") else "")
        made.append((f"{case.type} {dims}".strip(), speed / 1e9, speed / fast))
    return made


def lines(rows: Sequence[tuple[str, float, float]], judged: bool) -> list[str]:
    """The table of bandwidths.

    Args:
        rows: what was measured.
        judged: whether the times mean anything.
    """
    made = [f"| operator | GB/s | of a copy (goal {GOAL:.0%}) |", "|---|---:|---:|"]
    for name, speed, share in rows:
        said = f", {'met' if share >= GOAL else 'MISSED'}" if judged else ""
        made.append(f"| {name} | {speed:.1f} | {share:.0%}{said} |")
    return made
