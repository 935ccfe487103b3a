"""The first operator whose output differs between two runs, with what it read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fluidnb.compare.alignment import Alignment, align
from fluidnb.compare.recording import Array, Recording, Write
from fluidnb.errors import OpValueError
from fluidnb.proto.desc import OpDesc

#: Attributes that change no number.
_SILENT = ("op_role", "op_role_var", "op_namescope", "op_callstack", "op_device", "with_quant_attr", "use_mkldnn",
           "use_cudnn", "mkldnn_data_type", "workspace_size_MB", "exhaustive_search", "sub_block",
           "is_test")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest allowed distance of two numbers: ``atol + rtol * scale``, where scale is a tensor's largest number.

    Args:
        rtol: relative to the largest number of the tensor.
        atol: absolute.
    """

    rtol: float = 1e-4
    atol: float = 1e-6

    def __post_init__(self) -> None:
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if not value >= 0:  # nor is NaN
                raise OpValueError(
                    f"{name} must be a number from 0 on.", expected="0 or more, for example 1e-4", received=value
                )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values compared.

    Args:
        first, second: the variables.
        equal: whether they agree within the tolerance.
        problem: why they cannot be compared number by number: shapes or dtypes; else empty.
        largest: the largest difference.
        scale: the largest number of the second.
        count: how many numbers differ by more than the tolerance.
        size: how many there are.
        at: the index of the largest difference.
        values: the two numbers there.
    """

    first: str
    second: str
    equal: bool
    problem: str = ""
    largest: float = 0.0
    scale: float = 0.0
    count: int = 0
    size: int = 0
    at: tuple[int, ...] = ()
    values: tuple[float, float] = (0.0, 0.0)


def compare(first: str, a: Array, second: str, b: Array, tolerance: Tolerance) -> Comparison:
    """Compares two values.

    Example:
        >>> compare("x", np.array([1.0, 2.0]), "y", np.array([1.0, 2.5]), Tolerance()).values
        (2.0, 2.5)
    """
    if a.shape != b.shape:
        return Comparison(first, second, False, f"shape {list(a.shape)} and {list(b.shape)}")
    if a.dtype.kind != b.dtype.kind and {a.dtype.kind, b.dtype.kind} != {"i", "u"}:
        return Comparison(first, second, False, f"dtype {a.dtype} and {b.dtype}")
    if a.size == 0:
        return Comparison(first, second, True)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.asarray(np.abs(x - y))  # of two scalars numpy makes a number
    apart[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
    apart[np.isnan(apart)] = np.inf
    finite = np.abs(y[np.isfinite(y)])
    scale = float(finite.max()) if finite.size else 0.0
    rtol = max(tolerance.rtol, 8 * np.finfo(a.dtype).eps) if a.dtype.kind == "f" else tolerance.rtol
    allowed = tolerance.atol + rtol * scale if a.dtype.kind == "f" else 0.0
    over = apart > allowed
    place = np.unravel_index(int(apart.argmax()), apart.shape)
    at = tuple(int(n) for n in place)
    return Comparison(
        first, second, not over.any(), "", float(apart.max()), scale, int(over.sum()), a.size, at,
        (float(x[place]), float(y[place])),
    )  # fmt: skip


@dataclass
class Difference:
    """The difference between two runs.

    Args:
        first, second: the two recordings.
        names: variable of the first -> that of the second.
        results: the comparison of each result.
        op: the first operator whose output differs while what it reads agrees; None where the results agree.
        other: the operator of the second that computes the same; None where none was found.
        output: the comparison of its output.
        inputs: the comparisons of what it reads.
        changes: attributes, types, parameters that differ, as sentences.
        between: operators from the one that is named on, whose outputs the second does not have.
        compared: how many variables were compared, and how many agree.
        healed: variables that differ although all results agree, or what follows from them does.
        pairs: operator of the first -> that of the second, each by block and place.
        states: position of each operator of the first in its recording -> True where its outputs agree, False where one
            differs, None where none was compared.
        outputs: position of each operator of the first -> the comparisons of its outputs.
    """

    first: Recording
    second: Recording
    names: dict[str, str]
    results: list[Comparison]
    op: Write | None = None
    other: Write | None = None
    output: Comparison | None = None
    inputs: list[Comparison] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    between: list[Write] = field(default_factory=list)
    compared: tuple[int, int] = (0, 0)
    healed: list[str] = field(default_factory=list)
    pairs: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    states: dict[int, bool | None] = field(default_factory=dict)
    outputs: dict[int, list[Comparison]] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether all results agree."""
        return all(each.equal for each in self.results)

    def data(self) -> dict[str, Any]:
        """The finding as data for JSON."""

        def of(each: Comparison | None) -> dict[str, Any] | None:
            return None if each is None else {**asdict(each), "text": described(each)}

        def named(write: Write | None) -> dict[str, Any] | None:
            if write is None:
                return None
            return {"type": None if write.op is None else write.op.optype, "block": write.block, "index": write.index,
                    "iterations": list(write.iterations)}  # fmt: skip

        return {
            "first": self.first.title, "second": self.second.title, "equal": self.equal,
            "results": [of(each) for each in self.results], "operator": named(self.op), "other": named(self.other),
            "output": of(self.output), "inputs": [of(each) for each in self.inputs], "changes": self.changes,
            "compared": self.compared[0], "agree": self.compared[1], "healed": self.healed,
        }  # fmt: skip


def first_difference(first: Recording, second: Recording, tolerance: Tolerance | None = None) -> Difference:
    """Finds the first operator whose output differs.

    An operator is named where its output differs, a result that differs depends on it, and all that it reads agrees.
    Variables that differ on the way to results that agree, as in models with operators fused, are no finding.

    Args:
        first, second: the two runs, of the same feeds.
        tolerance: how far numbers may be apart.
    """
    return _Search(first, second, tolerance or Tolerance()).run()


class _Search:
    def __init__(self, first: Recording, second: Recording, tolerance: Tolerance) -> None:
        self.first, self.second, self.tolerance = first, second, tolerance
        feeds = dict(zip(first.feeds, second.feeds, strict=False))
        fetches = dict(zip(first.fetches, second.fetches, strict=False))
        if first.program is not None and second.program is not None:
            self.alignment = align(first.program, second.program, feeds, fetches)
        else:
            shared = {name for write in second.writes for name in write.values}
            self.alignment = Alignment({name: name for name in shared} | feeds | fetches)
        self.names = self.alignment.names
        self.writes = [w for w in first.writes if w.block == 0]

    def run(self) -> Difference:
        """Compares everything."""
        done = Difference(self.first, self.second, self.names, [], pairs=self.alignment.ops)
        for name, partner in zip(self.first.fetches, self.second.fetches, strict=False):
            a, b = self.first.value(name), self.second.value(partner)
            if a is None or b is None:
                done.results.append(Comparison(name, partner, False, "one run has no value"))
            else:
                done.results.append(compare(name, a, partner, b, self.tolerance))
        compared = self.compare_outer()
        done.compared = len(compared), sum(each.equal for each in compared.values())
        done.states = self.states(compared)
        for (i, _), each in compared.items():
            done.outputs.setdefault(i, []).append(each)
        wrong = [each.first for each in done.results if not each.equal]
        if not wrong:
            done.healed = [name for (_, name), each in compared.items() if not each.equal]
            return done
        self.name_cause(done, compared, wrong)
        return done

    def compare_outer(self) -> dict[tuple[int, str], Comparison]:
        """Compares what each operator of block 0 wrote: position of the write and variable -> comparison."""
        theirs: dict[str, list[Array]] = defaultdict(list)
        for write in self.second.writes:
            if write.block == 0:
                for name, value in write.values.items():
                    theirs[name].append(value)
        found: dict[tuple[int, str], Comparison] = {}
        seen: dict[str, int] = defaultdict(int)
        for i, write in enumerate(self.writes):
            for name, value in write.values.items():
                listed = theirs.get(self.names.get(name, ""), [])
                if seen[name] < len(listed):
                    partner = self.names[name]
                    found[i, name] = compare(name, value, partner, listed[seen[name]], self.tolerance)
                seen[name] += 1
        return found

    def states(self, compared: dict[tuple[int, str], Comparison]) -> dict[int, bool | None]:
        """Whether the outputs of each operator agree; None where none was compared."""
        out: dict[int, bool | None] = {}
        for i, write in enumerate(self.writes):
            known = [compared[i, name].equal for name in write.values if (i, name) in compared]
            out[i] = all(known) if known else None
        return out

    def parameter(self, name: str) -> Comparison | None:
        """The comparison of a parameter or feed; None where the second has none."""
        a = self.first.parameters.get(name, self.first.feeds.get(name))
        partner = self.names.get(name, "")
        b = self.second.parameters.get(partner, self.second.feeds.get(partner))
        return None if a is None or b is None else compare(name, a, partner, b, self.tolerance)

    def name_cause(
        self, done: Difference, compared: dict[tuple[int, str], Comparison], wrong: list[str]
    ) -> None:
        """Goes back from the results that differ to the operators whose inputs agree; names the first of them."""
        writer: dict[str, int] = {}
        before: list[dict[str, int]] = []
        for i, write in enumerate(self.writes):
            before.append({n: writer[n] for n in self.reads(write) if n in writer})
            for name in write.values:
                writer[name] = i
        starts: list[int] = []
        seen: set[int] = set()
        queue = [writer[name] for name in wrong if name in writer]
        while queue:
            i = queue.pop()
            if i in seen:
                continue
            seen.add(i)
            suspects = [at for name, at in before[i].items() if self.suspect(at, name, compared)]
            queue += suspects
            if not suspects:
                starts.append(i)
        if not starts:
            return
        i = min(starts)
        write = self.writes[i]
        done.op = write
        done.other = self.partner(write)
        outputs = [compared[i, name] for name in write.values if (i, name) in compared]
        done.output = next((each for each in outputs if not each.equal), None)
        if done.output is None:
            done.between = [self.writes[k] for k in sorted(seen) if k != i and k < self.next_known(i, compared)]
            later = self.next_known(i, compared)
            if later < len(self.writes):
                found = [compared[later, name] for name in self.writes[later].values if (later, name) in compared]
                done.output = next((each for each in found if not each.equal), None)
        for name in self.reads(write):
            at = before[i].get(name)
            each = compared.get((at, name)) if at is not None else self.parameter(name)
            if each is not None:
                done.inputs.append(each)
        done.changes = self.changes(done)
        inner = self.inside(write, done.other)
        if inner is not None:
            done.op, done.other, done.output = inner
            done.inputs = []
            done.changes = self.changes(done) or done.changes

    def next_known(self, i: int, compared: dict[tuple[int, str], Comparison]) -> int:
        """The position of the next operator whose output was compared and differs."""
        for k in range(i, len(self.writes)):
            if any((k, name) in compared and not compared[k, name].equal for name in self.writes[k].values):
                return k
        return len(self.writes)

    def suspect(self, at: int, name: str, compared: dict[tuple[int, str], Comparison]) -> bool:
        """Whether a value differs, or was not compared and something that it depends on may."""
        each = compared.get((at, name))
        return each is None or not each.equal

    @staticmethod
    def reads(write: Write) -> list[str]:
        """The variables that an operator reads."""
        return [] if write.op is None else list(dict.fromkeys(write.op.input_arg_names()))

    def partner(self, write: Write) -> Write | None:
        """The operator of the second that computes the same."""
        at = self.alignment.ops.get((write.block, write.index))
        for each in self.second.writes:
            if at is not None and (each.block, each.index) == at and each.iterations == write.iterations:
                return each
        return None

    def inside(self, write: Write, other: Write | None) -> tuple[Write, Write | None, Comparison] | None:
        """The first operator inside a loop or branch whose output differs, with the iteration."""
        if other is None or write.op is None or "sub_block" not in write.op.attrs:
            return None
        ours, theirs = (self.body(rec, each) for rec, each in ((self.first, write), (self.second, other)))
        values: dict[tuple[str, tuple[int, ...]], list[tuple[Write, Array]]] = defaultdict(list)
        for each in theirs:
            for name, value in each.values.items():
                values[name, each.iterations].append((each, value))
        seen: dict[tuple[str, tuple[int, ...]], int] = defaultdict(int)
        for each in ours:
            for name, value in each.values.items():
                key = self.names.get(name, ""), each.iterations
                if seen[key] < len(values[key]):
                    there, their_value = values[key][seen[key]]
                    found = compare(name, value, key[0], their_value, self.tolerance)
                    if not found.equal:
                        return each, there, found
                seen[key] += 1
        return None

    @staticmethod
    def body(recording: Recording, write: Write) -> list[Write]:
        """The operators that ran inside an operator, in order."""
        end = next(i for i, each in enumerate(recording.writes) if each is write)
        start = end
        while start > 0 and len(recording.writes[start - 1].iterations) > len(write.iterations):
            start -= 1
        return recording.writes[start:end]

    def changes(self, done: Difference) -> list[str]:
        """Differences of two operators, as sentences."""
        out = [
            f"{each.first} differs: {described(each)}" for each in done.inputs
            if not each.equal and each.first in self.first.parameters
        ]
        if out or done.op is None or done.op.op is None or done.other is None or done.other.op is None:
            return out
        ours, theirs = done.op.op, done.other.op
        if ours.optype != theirs.optype:
            return [f"the operator is {ours.optype} in the first and {theirs.optype} in the second"]
        for name in sorted(ours.attrs.keys() | theirs.attrs.keys()):
            a, b = attribute(ours, name), attribute(theirs, name)
            if name not in _SILENT and a != b:
                out.append(f"attribute {name} is {_shown(a)} in the first and {_shown(b)} in the second")
        mine = {slot: [self.names.get(n, n) for n in names] for slot, names in ours.ins.items() if names}
        others = {slot: names for slot, names in theirs.ins.items() if names}
        for slot in sorted(mine.keys() | others.keys()):
            if mine.get(slot) != others.get(slot):
                out.append(f"slot {slot} reads {_listed(ours.ins.get(slot))} in the first and "
                           f"{_listed(others.get(slot))} in the second")  # fmt: skip
        return out


def attribute(op: OpDesc, name: str) -> Any:
    """An attribute as two operators are compared by: with the declared default."""
    from fluidnb.op import get_op, has_op

    if name in op.attrs:
        value = op.attrs[name]
    elif has_op(op.optype) and name in get_op(op.optype).attrs:
        value = get_op(op.optype).attrs[name].default
    else:
        return None
    return float(np.float32(value)) if isinstance(value, float) else list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    """An attribute as text; floats are of 32 bits."""
    return str(np.float32(value)) if isinstance(value, float) else str(value)


def _listed(names: list[str] | None) -> str:
    return ", ".join(names or []) or "nothing"


def described(each: Comparison) -> str:
    """A comparison in words."""
    if each.problem:
        return each.problem
    if each.equal:
        return f"equal (largest difference {each.largest:.3g})"
    place = "" if not each.at else f" at {list(each.at)}"
    share = f"{each.count:,} of {each.size:,} numbers"
    return f"{share}, by up to {each.largest:.3g}{place}: {each.values[0]:.6g} and {each.values[1]:.6g}"
