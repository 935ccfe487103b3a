"""A whole operator written on the spot: everything about it is checked before it may stay."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fluidnb import op as sdk
from fluidnb.errors import NotFound, near
from fluidnb.op import OpDef, get_op, kernel, registry
from fluidnb.op.kernel_type import Kernel
from fluidnb.testing import OpTest
from fluidnb.values import kernel_packages
from fluidnb.viz import lines_html, plain
from fluidnb_kernels.lab.cases import Case, cases
from fluidnb_kernels.lab.checks import Slopes, check_slopes
from fluidnb_kernels.lab.compile import Compilation, KernelRefused, compile_cuda
from fluidnb_kernels.lab.cuda_text import Setting, read_cuda
from fluidnb_kernels.lab.launch import Launcher
from fluidnb_kernels.lab.layer import layer_of
from fluidnb_kernels.lab.python_text import run_python
from fluidnb_kernels.lab.trial import USUAL, compare_all, dtypes_of, watched_by, wrong_results

#: What a text may use of the operator SDK without importing it.
NAMES = (
    "Attr", "aliases", "broadcast_dim", "default_grad", "grad_op", "kernel", "like_forward", "linear_grad", "op",
    "product", "same", "second_grad",
)  # fmt: skip
#: Cases that both executors run, at most.
_WALKED = 3


@dataclass(frozen=True, slots=True)
class OpTrial:
    """The result of writing an operator."""

    op: str  # its type
    defined: tuple[str, ...]  # operators that the text defined, and those to which it added kernels
    tried: tuple[tuple[str, str], ...] = ()  # the cases on which it was tried, as (shapes, dtype)
    slopes: Slopes = field(default_factory=Slopes)  # the comparison with central differences
    # operator -> what the compiler said, what ran it, and the largest distance from numpy's results
    on_cuda: Mapping[str, tuple[Compilation, str, float]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()  # what is wrong, when it was taken all the same
    changes: Changes | None = field(default=None, compare=False)  # of the registry, to be undone

    @property
    def layer(self) -> Callable[..., Any]:
        """A function that appends it to a program."""
        return layer_of(self.op)

    @property
    def installed(self) -> bool:
        """Whether it is registered."""
        return _written_ops.get(self.op) is self

    def take_back(self) -> None:
        """Forget the operator, and what else its text defined."""
        if self.installed and self.changes is not None:
            del _written_ops[self.op]
            self.changes.undo()

    def __str__(self) -> str:
        from fluidnb_kernels.lab.report import op_lines

        return plain(op_lines(self))

    def __repr__(self) -> str:
        return f"<operator {self.op}>"

    def _repr_html_(self) -> str:
        from fluidnb_kernels.lab.report import op_lines

        return lines_html(op_lines(self))


_written_ops: dict[str, OpTrial] = {}


def written_ops() -> list[OpTrial]:
    """The operators that were written in this process, the oldest first."""
    return list(_written_ops.values())


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of the registry that a text made."""

    # type -> the definition it registered, and the one in whose place it stands
    made: Mapping[str, tuple[OpDef, OpDef | None]]
    kernels: Sequence[tuple[str, Kernel]]  # (type, kernel) that it added to operators which were there

    def undo(self) -> None:
        """Take them back; what others have changed since then stays."""
        for type, (mine, former) in self.made.items():
            if registry.ops.get(type) is mine:
                if former is None:
                    del registry.ops[type]
                else:
                    registry.ops[type] = former
        for type, added in self.kernels:
            definition = registry.ops.get(type)
            if definition is not None:
                definition.kernels = [k for k in definition.kernels if k is not added]
        registry.version += 1


class _Before:
    """The registry as it is now."""

    def __init__(self) -> None:
        kernel_packages.load()
        self._ops = dict(registry.ops)
        self._kernels = {type: list(d.kernels) for type, d in self._ops.items()}

    def changes(self) -> Changes:
        """The changes since then."""
        made = {t: (d, self._ops.get(t)) for t, d in registry.ops.items() if self._ops.get(t) is not d}
        added = [
            (t, k) for t, d in registry.ops.items() if t not in made
            for k in d.kernels if not any(k is old for old in self._kernels[t])
        ]  # fmt: skip
        return Changes(made, added)

    def restore(self) -> None:
        """Make it so again."""
        registry.ops.clear()
        registry.ops.update(self._ops)
        for type, kernels in self._kernels.items():
            self._ops[type].kernels = list(kernels)
        registry.version += 1


def write_op(
    type: str, text: str, *, inputs: Mapping[str, Any] | None = None, attrs: Mapping[str, Any] | None = None,
    names: Mapping[str, Any] | None = None, force: bool = False, file: str = "", first: int = 1,
) -> OpTrial:  # fmt: skip
    """Write an operator: proto, shape rule, gradient and kernels in one Python text.

    The text uses the decorators of `fluidnb.op`, which it need not import: ``@op``, ``@grad_op``, ``@kernel``,
    ``Attr``, ``default_grad``, ``same`` and others. ``cuda("name", "CUDA C++", grid=..., block=...)`` adds a CUDA
    kernel.

    Args:
        type: the operator's type; the text defines it.
        text: Python.
        inputs: slot -> value for the checks, instead of random numbers in several shapes.
        attrs: attribute -> value for the checks; those without a default get any value.
        names: what the text may use.
        force: whether an operator with faults is taken all the same.
        file: what tracebacks call the text.
        first: the number of its first line.

    Raises:
        NotFound: the text defines no operator of that name.
        SyntaxError: the text is no Python.
        KernelRefused: something about it is wrong; the operators are as before then.
        BaseException: what the text raises; the operators are as before then.

    Example:
        >>> trial = write_op("doctest_twice", '''
        ... @op("doctest_twice", inputs={"X": "numbers"}, outputs={"Out": "2 X"}, infer=same(),
        ...     grad=default_grad("Out@GRAD"))
        ... def twice(b):
        ...     "Out = 2 X."
        ...     b(np.add, b["X"], b["X"], out=b["Out"])
        ... @grad_op("doctest_twice_grad", infer=aliases({"X@GRAD": "Out@GRAD"}))
        ... def twice_grad(b):
        ...     b(np.add, b["Out@GRAD"], b["Out@GRAD"], out=b["X@GRAD"])
        ... ''')
        >>> trial.defined, trial.slopes.cases
        (('doctest_twice', 'doctest_twice_grad'), 3)
        >>> trial.take_back()
    """
    file = file or f"<op {type}>"
    tree = ast.parse("\n" * (first - 1) + text, file)
    before = _Before()
    old = _written_ops.get(type)
    try:
        if old is not None and old.changes is not None:
            old.changes.undo()
        ground = _Before()
        made: dict[str, list[Compilation]] = {}

        def cuda(type: str, source: str, *, dtypes: Sequence[str] = (), **launch: str) -> None:
            at = text.find(source)
            read = read_cuda(source, "cell", first + text[:at].count("\n") if at >= 0 else 1)
            chosen = tuple(dtypes) or dtypes_of(type, read)
            made.setdefault(type, []).append(compile_cuda(read, type, chosen))
            settings = [Setting(name, expression) for name, expression in launch.items()]
            kernel(type, place="cuda", dtypes=chosen)(Launcher(read, settings, chosen))

        space = {name: getattr(sdk, name) for name in NAMES} | {"cuda": cuda}
        run_python(tree, text, {**(names or {}), **space}, file, first)
        changes = ground.changes()
        if type not in changes.made:
            raise NotFound(
                f"the text defines no operator {type}.", expected=f'@op("{type}", ...)',
                received=", ".join(changes.made) or "no operator at all", hint=near(type, changes.made),
            )  # fmt: skip
        trial = _check(type, changes, made, inputs, attrs, force)
    except BaseException:
        before.restore()
        raise
    _written_ops[type] = trial
    return trial


def _check(
    type: str, changes: Changes, made: Mapping[str, Sequence[Compilation]], inputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None, force: bool,
) -> OpTrial:  # fmt: skip
    """Hold an operator against everything that an operator has to keep to."""
    faults: list[KernelRefused] = []

    def fault(error: KernelRefused) -> None:
        if not force:
            raise error
        faults.append(error)

    for lacks in incomplete(get_op(type)):
        fault(KernelRefused(f"{type} is not complete: {lacks}.", hint="people read it in %fluid ops."))
    dtypes = [d for d in USUAL if any(k.place == "cpu" and k.takes(d) for k in get_op(type).kernels)]
    tried = cases(type, dtypes or ["int64"], inputs, attrs, strict=True)
    for case in tried:
        unwritten = _unwritten(case)
        if unwritten is not None:
            fault(unwritten)
            break
    for case in [c for c in tried if c.size][:_WALKED]:
        _walk(case, fault)
    slopes = check_slopes(type, "cpu", tried)
    if slopes.wrong is not None:
        fault(wrong_results(type, slopes.wrong, True))
    on_cuda = {}
    for name in dict.fromkeys([*changes.made, *(t for t, _ in changes.kernels)]):
        if name in made:
            on_cuda[name] = _check_cuda(name, made[name][-1], inputs, attrs, fault)
    touched = (*changes.made, *(t for t, _ in changes.kernels if t not in changes.made))
    said = tuple(f.summary for f in faults)
    return OpTrial(
        type, tuple(dict.fromkeys(touched)), tuple((c.shape, c.dtype) for c in tried), slopes, on_cuda, said, changes
    )


def incomplete(definition: OpDef) -> list[str]:
    """The missing parts of an operator's proto."""
    out = [] if inspect.cleandoc(definition.doc).strip() else ["its kernel has no docstring"]
    sides = (("input", definition.inputs), ("output", definition.outputs))
    out += [f"{side} {slot.name} has no phrase" for side, slots in sides for slot in slots.values() if not slot.doc]
    out += [f"attribute {name} has no phrase" for name, attr in definition.attrs.items() if not attr.doc]
    if not definition.outputs and not definition.side_effect:
        out.append("it has no output")
    if definition.infer is None:
        out.append("it has no shape rule (infer=)")
    return out


def _unwritten(case: Case) -> KernelRefused | None:
    """Whether a kernel leaves a part of an output as it was."""
    one, two = case.run("cpu"), case.run("sevens")
    for name, a in one.items():
        b = two.get(name)
        if b is None or a.shape != b.shape:
            continue
        off = ~((a == b) | ((a != a) & (b != b)))
        if off.any():
            index = [int(i) for i in np.argwhere(off)[0]]
            return KernelRefused(
                f"The kernel of {case.desc.optype} does not write {name.removesuffix('@out')}{index}.",
                slots=[("on", f"{case.shape}, {case.dtype}", None, None)], expected="every element written",
                received=f"{int(off.sum())} of {off.size} as they were",
            )  # fmt: skip
    return None


def _walk(case: Case, fault: Callable[[KernelRefused], None]) -> None:
    """Runs it with both executors, with the batch size unknown, over other data, in column order."""
    test = OpTest()
    test.op_type, test.attrs, test.outputs = case.desc.optype, dict(case.desc.attrs), {}
    test.inputs = {slot: [(n, case.values[n]) for n in row] for slot, row in case.desc.ins.items() if row}
    try:
        test.check_output()
    except AssertionError as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        fault(
            KernelRefused(
                f"{case.desc.optype} breaks a rule of operators: {said}",
                slots=[("on", f"{case.shape}, {case.dtype}", None, None)],
                hint="a kernel emits calls and reads no values while it binds; its shape rule says what it writes.",
            )
        )


def _check_cuda(
    type: str, made: Compilation, inputs: Mapping[str, Any] | None, attrs: Mapping[str, Any] | None,
    fault: Callable[[KernelRefused], None],
) -> tuple[Compilation, str, float]:  # fmt: skip
    """Hold a CUDA kernel of the text against numpy's."""
    own = next(k for k in reversed(get_op(type).kernels) if k.place == "cuda")
    takes = [d for d in own.dtypes or USUAL if any(k.place == "cpu" and k.takes(d) for k in get_op(type).kernels)]
    tried = cases(type, takes, inputs, attrs)
    by = watched_by(type, tried)
    found, far = compare_all(tried, [case.expected() for case in tried], "cuda")
    if found is not None:
        fault(wrong_results(type, found, False))
    return made, by, far
