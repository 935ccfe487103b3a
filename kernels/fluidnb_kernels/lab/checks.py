"""A kernel held against numpy's, and against central differences."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fluidnb.op import GRAD, Array, get_op
from fluidnb.testing.numeric import slopes
from fluidnb.values import LoDTensor
from fluidnb.viz.base.styled_text import plural
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator.raw import ORDERS
from fluidnb_kernels.lab.cases import Case, gradients

#: dtype -> how far a result may be from numpy's, relative to numbers above 1.
CLOSE = {"float64": 1e-11, "float32": 3e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
#: dtype -> how far a slope may be from the central difference, which is taken in float64.
STEEP = {"float64": 1e-5, "float32": 2e-3}
#: Cases up to so many elements are held against central differences, and how many of them at most.
SMALL, FEW = 400, 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A result that differs from the expected one."""

    name: str  # the output
    index: tuple[int, ...] | None  # the first element that differs; None where shapes or dtypes do
    expected: str  # what numpy gives there
    received: str  # what came
    count: int  # how many elements differ
    size: int  # how many there are
    shape: str  # the shapes of the operands in words
    dtype: str
    hint: str = ""  # what it may come from

    @property
    def element(self) -> str:
        """The element, or the whole output, in words."""
        return self.name if self.index is None else f"{self.name}{list(self.index)}"


def slot_of(name: str) -> str:
    """The slot of an output variable of a case."""
    return name.removesuffix("@out")


def compare_case(case: Case, place: str, expected: Mapping[str, Array]) -> tuple[Difference | None, float]:
    """Run a case and compare; kernels of CUDA in three orders of threads. See `compare`."""
    far = 0.0
    for order in ORDERS if place == "cuda" else ("",):
        with emulator.running(order) if order else nullcontext():
            got = case.run(place, blind=True)
        for name, want in expected.items():
            found, distance = compare(case, name, got.get(name), want)
            if found is not None and place == "cpu":
                if compare(case, name, case.run(place).get(name), want)[0] is None:
                    return replace(found, hint="it read values while it was bound; a binding serves all of them."), far
            if found is not None:
                if order not in ("", ORDERS[0]):
                    hint = f"with threads in {order} order; {ORDERS[0]} they gave the right result: threads race."
                    found = replace(found, hint=hint)
                return found, far
            far = max(far, distance)
    return None, far


def compare(case: Case, name: str, got: Array | None, want: Array) -> tuple[Difference | None, float]:
    """Compare one result: the difference or None, and the largest distance."""
    slot = slot_of(name)
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        received = "nothing" if got is None else f"{got.dtype}{list(got.shape)}"
        text = f"{want.dtype}{list(want.shape)}"
        return Difference(slot, None, text, received, want.size, want.size, case.shape, case.dtype), 0.0
    close = CLOSE.get(want.dtype.name, 0.0)
    have, need = got, want
    if close:
        have, need = got.astype(np.float64), want.astype(np.float64)
        with np.errstate(all="ignore"):
            off = ~(np.isclose(have, need, rtol=close, atol=close, equal_nan=True))
    else:
        off = have != need
    if not off.any():
        return None, _distance(have, need) if close else 0.0
    index = tuple(int(i) for i in np.argwhere(off)[0]) if off.ndim else ()
    hint = _hint(have, need, off) if close else ""
    count = int(off.sum())
    return (
        Difference(slot, index, str(want[index]), str(got[index]), count, want.size, case.shape, case.dtype, hint), 0.0
    )  # fmt: skip


def _distance(have: Array, need: Array) -> float:
    finite = np.isfinite(need) & np.isfinite(have)
    if not finite.any():
        return 0.0
    return float((np.abs(have[finite] - need[finite]) / np.maximum(np.abs(need[finite]), 1)).max())


def _hint(have: Array, need: Array, off: Array) -> str:
    """A likely cause of a difference."""
    bare = np.isnan(have) & ~np.isnan(need) & off
    if bare.sum() == off.sum():
        return "they are NaN: uninitialized memory is NaN here, shared memory too."
    flat = np.flatnonzero(off.reshape(-1))
    with np.errstate(all="ignore"):
        ratio = have[off] / need[off]
    if (have[off] == 0).all():
        return "they are all 0."
    if len(flat) > 1 and np.isfinite(ratio).all() and np.ptp(ratio) <= 1e-6 * abs(ratio[0]):
        return f"they are all {ratio[0]:.6g} times what is expected."
    if len(flat) > 1 and flat[0] > 0 and (np.diff(flat) == 1).all() and flat[-1] == off.size - 1:
        return f"all from element {flat[0]} of {off.size} on: does every element have a thread?"
    return ""


@dataclass(frozen=True, slots=True)
class Slopes:
    """The comparison of gradients with central differences."""

    cases: int = 0  # how many cases were held against them
    far: float = 0.0  # the largest distance
    dtype: str = "float64"  # the dtype of the gradient
    why: str = ""  # why there were none
    wrong: Difference | None = None  # the first slope that is off

    def __str__(self) -> str:
        agreed = f"agrees with central differences in {plural(self.cases, 'case')}, {self.dtype}"
        return self.why or f"{agreed}; the largest distance is {self.far:.1e}"


class _Moved:
    """A case as `slopes` wants it: an operator that is run again with other numbers."""

    def __init__(self, case: Case, place: str) -> None:
        self._case, self._place = case, place

    def program(self) -> None:
        """There is none: the operator runs by itself."""

    def array(self, name: str) -> Array:
        """An operand."""
        return self._case.values[name].array

    def run(self, program: None, names: Sequence[str]) -> dict[str, Array]:
        """Its results."""
        got = self._case.run(self._place)
        return {name: got[name] for name in names}


def check_slopes(type: str, place: str, tried: Sequence[Case]) -> Slopes:
    """Compare gradients with central differences; a new forward kernel with numpy's gradient."""
    is_grad = bool(tried) and tried[0].forward is not None
    if not is_grad and get_op(type).grad is None:
        return Slopes(why=f"{type} has no gradient")
    if get_op(type).random:
        return Slopes(why=f"{type} draws random numbers")
    dtype = next((d for d in ("float64", "float32") if any(c.dtype == d for c in tried)), "")
    if dtype == "" or (dtype != "float64" and not is_grad):
        return Slopes(why="central differences need a kernel that takes float64")
    small = [c for c in tried if c.dtype == dtype and 0 < (c.forward or c).size <= SMALL]
    far, small = 0.0, small[-FEW:]
    for case in small:
        wrong, distance = _check_case(case, place, dtype)
        if wrong is not None:
            return Slopes(len(small), far, dtype, wrong=wrong)
        far = max(far, distance)
    return Slopes(len(small), far, dtype) if small else Slopes(why="no case is small enough")


def _check_case(case: Case, place: str, dtype: str) -> tuple[Difference | None, float]:
    if case.forward is not None:
        got, given = case.run(place), case.cotangents
        moved: Any = _Moved(_widened(case.forward), "cpu")
    else:
        descs, given = gradients(case)
        got = _backward_results(case, descs, given)
        moved = _Moved(case, place)
    far = 0.0
    of = case.forward or case
    results = set(of.expected())
    used = {n: g.astype(np.float64) for n, g in given.items() if n.removesuffix(GRAD) in results}
    for name in of.values:
        have = got.get(name + GRAD)
        if have is None:
            continue
        have = have.astype(np.float64)
        for slope in slopes(moved, name, used, 1e-4):
            mine = float((have.reshape(slope.direction.shape) * slope.direction).sum())
            distance = abs(mine - slope.value) / max(abs(slope.value), 1)
            if not distance <= STEEP[dtype]:
                where = np.argwhere(slope.direction)
                index = tuple(int(i) for i in where[0]) if len(where) == 1 else None
                return (
                    Difference(
                        slot_of(name) + GRAD, index, f"{slope.value:.9g}", f"{mine:.9g}", 1, have.size, case.shape,
                        dtype, "the expected number is the central difference of the forward kernel.",
                    ),
                    far,
                )  # fmt: skip
            far = max(far, distance)
    return None, far


def _backward_results(case: Case, descs: Sequence[Any], given: Mapping[str, Array]) -> dict[str, Array]:
    """The results of numpy's gradient operators."""
    held = dict(case.values) | {n: LoDTensor(a) for n, a in (case.expected() | dict(given)).items()}
    out: dict[str, Array] = {}
    for desc in descs:
        values = {n: held[n] for n in desc.input_arg_names() if n in held}
        got = Case(desc, values, case.dtype).run("cpu")
        held |= {n: LoDTensor(a) for n, a in got.items()}
        out |= got
    return out


def _widened(case: Case) -> Case:
    """A case in float64."""
    values = {}
    for name, value in case.values.items():
        array = np.asarray(value)
        values[name] = LoDTensor(array.astype(np.float64), value.lod_) if array.dtype.kind == "f" else value
    return Case(case.desc, values, "float64")
