"""A kernel on trial: checked, registered in place of the previous one, and removed on demand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fluidnb.errors import NotFound, OpValueError, near
from fluidnb.op import get_op, kernel, registry, remove_kernel
from fluidnb.op.define import KernelFunction
from fluidnb.viz import lines_html, plain
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import backend
from fluidnb_kernels.lab.cases import Case, cases
from fluidnb_kernels.lab.checks import Difference, Slopes, check_slopes, compare_case
from fluidnb_kernels.lab.compile import ARCHITECTURE, Compilation, KernelRefused, compile_cuda
from fluidnb_kernels.lab.cuda_text import DTYPES, CudaText, Setting, read_cuda
from fluidnb_kernels.lab.figures import LaunchFacts, launch_facts, time_of
from fluidnb_kernels.lab.launch import Launcher
from fluidnb_kernels.lab.python_text import read_python
from fluidnb_kernels.lab.watched import launches_in, watch

#: Shapes on which a kernel is timed; the first one that the operator takes.
TIMED = ((512, 512), (64, 3, 32, 32))
#: The same on a GPU.
TIMED_THERE = ((4096, 4096), (64, 64, 64, 64))
#: Dtypes of templates, and of kernels for the processor, where nobody says.
USUAL = ("float32", "float64")


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of writing a kernel."""

    op: str  # the operator
    place: str  # ``cpu`` or ``cuda``
    dtypes: tuple[str, ...]  # the dtypes that the kernel takes
    function: KernelFunction  # the kernel
    ran_on: str  # what ran it, in words
    tried: tuple[tuple[str, str], ...] = ()  # the cases on which it was tried, as (shapes, dtype)
    far: float = 0.0  # the largest distance from numpy's results, relative to numbers above 1
    slopes: Slopes = field(default_factory=Slopes)  # the comparison with central differences
    compilation: Compilation | None = None  # what the compiler said, for CUDA
    difference: Difference | None = None  # where it is wrong, when it was taken all the same
    launches: tuple[LaunchFacts, ...] = ()  # its launches on the largest case
    former: tuple[LaunchFacts, ...] = ()  # those of the kernel before
    measured_on: str = ""  # the shapes on which it was timed
    times: tuple[float, float] | None = None  # seconds on the processor, and of the kernel before
    instead_of: str = ""  # the kernel that it replaced, in words

    @property
    def installed(self) -> bool:
        """Whether it is in its place."""
        return any(k.function is self.function for k in get_op(self.op).kernels)

    def take_back(self) -> None:
        """Take the kernel out; the operator has the kernels that it had before."""
        remove_kernel(self.op, self.function)
        for key in [key for key, trial in _written.items() if trial is self]:
            del _written[key]

    def __str__(self) -> str:
        from fluidnb_kernels.lab.report import trial_lines

        return plain(trial_lines(self))

    def __repr__(self) -> str:
        return f"<kernel of {self.op} on {self.place}, {', '.join(self.dtypes)}>"

    def _repr_html_(self) -> str:
        from fluidnb_kernels.lab.report import trial_lines

        return lines_html(trial_lines(self))


#: (operator, place, dtypes) -> what was written for it last
_written: dict[tuple[str, str, tuple[str, ...]], Trial] = {}


def written(type: str = "") -> list[Trial]:
    """The kernels written in this process, of one operator or all, that are in their places; the oldest first."""
    return [t for t in _written.values() if t.installed and type in ("", t.op)]


def take_back(type: str, place: str = "") -> list[Trial]:
    """Removes the kernels that were written for an operator, by default on both places; NotFound where none was."""
    found = [t for t in written(type) if place in ("", t.place)]
    if not found:
        names = [t.op for t in written()]
        raise NotFound(
            f"no kernel was written for {type}{f' on {place}' if place else ''} in this session.",
            expected=" or ".join(dict.fromkeys(names)) or "a kernel that a %%kernel cell wrote", received=type,
            hint=near(type, names),
        )  # fmt: skip
    for trial in found:
        trial.take_back()
    return found


def write_kernel(
    type: str, text: str, device: str = "cpu", *, grad: bool = False, dtypes: Sequence[str] = (),
    inputs: Mapping[str, Any] | None = None, attrs: Mapping[str, Any] | None = None,
    launch: Mapping[str, str] | None = None, names: Mapping[str, Any] | None = None, force: bool = False,
    file: str = "", first: int = 1, architecture: int = ARCHITECTURE,
) -> Trial:  # fmt: skip
    """Write a kernel for an operator: it is compiled, checked, and takes the place of the one before.

    Args:
        type: the operator.
        text: its text: Python for the processor, CUDA C++ for CUDA.
        device: ``cpu`` or ``cuda``.
        grad: whether it is a kernel of the operator's gradient.
        dtypes: the dtypes that it takes; default those of its pointers, else float32 and float64.
        inputs: slot -> value, instead of random numbers in several shapes.
        attrs: attribute -> value; those without a default get any value.
        launch: ``grid``, ``block``, ``shared`` or parameter -> Python expression over the shapes.
        names: what Python text may use.
        force: whether a kernel with wrong results is taken all the same.
        file: what tracebacks and compilers call the text.
        first: the number of its first line.
        architecture: for which NVRTC compiles, 90 for sm_90.

    Raises:
        NotFound: no such operator, or a name that it does not have.
        SyntaxError: Python text that is none.
        KernelRefused: it does not compile, goes astray or gives wrong results; the kernels are as before then.

    Example:
        >>> trial = write_kernel("relu", 'b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])')
        >>> trial.installed, trial.far
        (True, 0.0)
        >>> trial.take_back(); trial.installed
        False
    """
    if device not in ("cpu", "cuda"):
        raise OpValueError("Kernels are written for cpu or cuda.", expected="cpu or cuda", received=device)
    type = f"{type}_grad" if grad else type
    get_op(type)
    if device == "cpu":
        return _try(type, "cpu", read_python(text, names, file or "<kernel>", first), tuple(dtypes) or USUAL,
                    inputs, attrs, force)  # fmt: skip
    read = read_cuda(text, file or "cell", first)
    chosen = tuple(dtypes) or dtypes_of(type, read)
    made = compile_cuda(read, type, chosen, architecture)
    settings = [Setting(name, expression) for name, expression in (launch or {}).items()]
    return _try(type, "cuda", Launcher(read, settings, chosen), chosen, inputs, attrs, force, made)


def dtypes_of(type: str, text: CudaText) -> tuple[str, ...]:
    """The dtypes that a text takes: that of the pointer that chooses the kernel, or the usual ones of a template."""
    definition = get_op(type)
    slot = definition.dtype_slot or next(iter(definition.inputs), "")
    pointers = [p for part in text.parts for p in part.parameters if p.pointer]
    deciding = next((p for p in pointers if p.name == slot), pointers[0] if pointers else None)
    if deciding is None or deciding.type not in DTYPES:
        return USUAL
    return (DTYPES[deciding.type],)


def _try(
    type: str, place: str, function: KernelFunction, dtypes: tuple[str, ...], inputs: Mapping[str, Any] | None,
    attrs: Mapping[str, Any] | None, force: bool, compilation: Compilation | None = None,
) -> Trial:  # fmt: skip
    tried = cases(type, dtypes, inputs, attrs)
    expected = [case.expected() for case in tried]
    clock = {"cpu": "cpu", "cuda": "gpu" if gpu() else ""}[place]
    timed = tried[-1] if inputs or not clock else _timed(type, dtypes[0], attrs, clock) or tried[-1]
    launcher = function if isinstance(function, Launcher) else None
    figured = tried[-1] if inputs else max((c for c in tried if c.dtype == dtypes[0]), key=lambda c: c.size)
    figured = timed if clock == "gpu" else figured
    old = _written.get((type, place, dtypes))
    has_former = any(k.place == place for k in get_op(type).kernels)
    before = time_of(timed, clock) if clock and has_former else 0.0
    former = launch_facts(figured.bind("cuda", figured.scope())) if place == "cuda" and has_former else ()
    instead = _instead_of(type, place, dtypes)
    with _on_trial(type, place, function, dtypes, old) as keep:
        ran_on = watched_by(type, tried) if place == "cuda" else "numpy"
        difference, far = compare_all(tried, expected, place)
        slopes = check_slopes(type, place, tried) if difference is None else Slopes(why="the results are wrong")
        wrong = difference or slopes.wrong
        if wrong is not None and not force:
            raise wrong_results(type, wrong, slopes.wrong is not None)
        trial = Trial(
            type, place, dtypes, function, ran_on, tuple((c.shape, c.dtype) for c in tried), far, slopes, compilation,
            wrong, launches=launch_facts(figured.bind("cuda", figured.scope()), launcher) if place == "cuda" else (),
            former=former, measured_on=(timed if clock else figured).shape,
            times=(time_of(timed, clock), before) if clock else None, instead_of=instead,
        )  # fmt: skip
        keep.append(True)
    _written[type, place, dtypes] = trial
    return trial


def gpu() -> str:
    """The name of the GPU that runs kernels; empty when there is none."""
    return "" if backend.missing() else backend.device_name()


def compare_all(
    tried: Sequence[Case], expected: Sequence[Mapping[str, Any]], place: str
) -> tuple[Difference | None, float]:
    """Compares a kernel with the expected results of all cases, on the emulator and on the GPU where there is one."""
    places = {"cpu": ["cpu"], "cuda": ["cuda"] * (not emulator.missing()) + ["gpu"] * bool(gpu())}[place]
    far = 0.0
    for where in places:
        for case, want in zip(tried, expected, strict=True):
            difference, distance = compare_case(case, where, want)
            far = max(far, distance)
            if difference is not None:
                return difference, far
    return None, far


def _timed(type: str, dtype: str, attrs: Mapping[str, Any] | None, clock: str) -> Case | None:
    try:
        return cases(type, [dtype], None, attrs, TIMED if clock == "cpu" else TIMED_THERE)[0]
    except OpValueError:
        return None


def _instead_of(type: str, place: str, dtypes: Sequence[str]) -> str:
    """The kernel that a new one replaces, in words."""
    own = [t.function for t in written(type)]
    found = [k for k in get_op(type).kernels if k.place == place and k.function not in own]
    found = [k for k in found if k.library == "PLAIN" and any(k.takes(d) for d in dtypes)]
    return f"that of {found[-1].function.__module__}" if found else ""


@contextmanager
def _on_trial(
    type: str, place: str, function: KernelFunction, dtypes: Sequence[str], old: Trial | None
) -> Iterator[list[bool]]:
    """Put a kernel in its place while the body runs; it stays when the body puts something into the list."""
    definition, keep = get_op(type), list[bool]()
    before = list(definition.kernels)
    try:
        if old is not None:
            remove_kernel(type, old.function)
        kernel(type, place=place, dtypes=dtypes)(function)
        yield keep
    finally:
        if not keep:
            definition.kernels = before
            registry.version += 1


def watched_by(type: str, tried: Sequence[Case]) -> str:
    """Let every launch run in another process first."""
    there = gpu()
    if emulator.missing():
        if there:
            return there
        raise KernelRefused(
            f"The kernel of {type} compiles, and nothing here can run it.", expected="g++", hint=emulator.missing()
        )
    launches = [launch for case in tried for launch in launches_in(case.bind("cuda", case.scope()))]
    by = watch(type, launches) if launches else "nothing, since it has no launches"
    return f"the emulator in three orders of threads, watched by {by}{f'; {there}' if there else ''}"


def wrong_results(type: str, wrong: Difference, is_slope: bool) -> KernelRefused:
    """The error about a kernel that gives wrong results."""
    what = "a gradient that is none" if is_slope else "wrong results"
    several = wrong.count > 1 and wrong.index is not None
    more = f", the first of {wrong.count} that are, of {wrong.size}" if several else ""
    return KernelRefused(
        f"The kernel of {type} gives {what}: {wrong.element} is off{more}.",
        slots=[("on", f"{wrong.shape}, {wrong.dtype}", None, None)], expected=wrong.expected, received=wrong.received,
        hint=wrong.hint or "the kernels of this session stay as they were; --force takes it all the same.",
    )  # fmt: skip
