"""The reports of a written kernel and of a written operator, as lines of text."""

from collections.abc import Sequence

from fluidnb.op import get_op
from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb_kernels.lab.figures import LaunchFacts
from fluidnb_kernels.lab.new_op import OpTrial
from fluidnb_kernels.lab.trial import Trial


def trial_lines(trial: Trial) -> list[Line]:
    """The report of a written kernel."""
    lines: list[Line] = [
        [(trial.op, "name"), (f"  on {trial.place}, {', '.join(trial.dtypes)}", ""), ("   in its place", "dim")]
    ]
    rows: list[list[Line]] = []

    def say(title: str, text: str, style: str = "") -> None:
        rows.append([[("  " + title, "dim")], [(text, style)]])

    if trial.compilation is not None:
        made = trial.compilation
        figures = "" if not made.registers else f": {made.registers} registers, {spilled(made.spilled)}"
        say("compiled", f"by {made.compiler}{figures}")
        for warning in made.warnings:
            for text in warning.lines():
                say("", text, "warn" if text.startswith("line") else "")
    if trial.place == "cuda":
        say("ran on", trial.ran_on)
    if trial.difference is None:
        distance = f"; the largest distance is {trial.far:.1e}" if trial.far else ""
        say("results", f"equal numpy's in {plural(len(trial.tried), 'case')}: {shapes_of(trial.tried)}{distance}")
        say("gradient", str(trial.slopes))
    else:
        wrong = trial.difference
        text = f"{wrong.element} is {wrong.received} for {wrong.expected} on {wrong.shape}"
        say("results", f"WRONG, taken all the same: {text}", "warn")
    for i, launch in enumerate(trial.launches):
        say(f"on {trial.measured_on}" if i == 0 else "", _launch(launch))
    if trial.former:
        total = sum(launch.arguments for launch in trial.former)
        names = ", ".join(f"{x.kernel} ({_times(x.grid)} x {_times(x.block)} threads)" for x in trial.former[:3])
        say("before", f"{plural(len(trial.former), 'launch', 'es')}, arrays of {_bytes(total)}: {names}")
    if trial.times is not None:
        mine, before = trial.times
        rate = f", {sum(x.arguments for x in trial.launches) / mine / 1e9:.0f} GB/s" if trial.launches else ""
        then = f"; the kernel before took {_time(before)}" if before else ""
        say("time", f"{_time(mine)} on {trial.measured_on}{rate}{then}")
    elif trial.place == "cuda":
        say("time", "there is no GPU here, and how long the emulator takes says nothing of one")
    instead = f"instead of {trial.instead_of}; " if trial.instead_of else ""
    say("undo", f"{instead}%fluid kernels drop {trial.op} takes it back")
    return lines + columns(rows)


def op_lines(trial: OpTrial) -> list[Line]:
    """The report of a written operator."""
    definition = get_op(trial.op)
    attrs = "".join(f", {name}" for name in definition.attrs)
    signature = f"  {', '.join(definition.inputs)}{attrs} -> {', '.join(definition.outputs)}"
    lines: list[Line] = [[(trial.op, "name"), (signature, ""), ("   registered", "dim")]]
    rows: list[list[Line]] = []

    def say(title: str, text: str, style: str = "") -> None:
        rows.append([[("  " + title, "dim")], [(text, style)]])

    for fault in trial.faults:
        say("WRONG", fault, "warn")
    if not trial.faults:
        say("proto", "complete: each slot and attribute has its phrase")
        say("results", f"shapes as inferred, all written, the same in both executors: {shapes_of(trial.tried)}")
    say("gradient", str(trial.slopes))
    for name, (made, ran_on, far) in trial.on_cuda.items():
        figures = f": {made.registers} registers, {spilled(made.spilled)}" if made.registers else ""
        say("cuda", f"{name}, compiled by {made.compiler}{figures}")
        say("", f"ran on {ran_on}; the largest distance from numpy is {far:.1e}")
    others = [name for name in trial.defined if name != trial.op]
    if others:
        say("with", ", ".join(others))
    call = f"{trial.op}({', '.join(definition.inputs)}{attrs})"
    say("use", f"{call}, append_op; %fluid kernels drop {trial.op} takes it back")
    return lines + columns(rows)


def spilled(n: int) -> str:
    """Spilled registers in words."""
    return f"{n} bytes of registers spilled" if n else "none spilled"


def shapes_of(tried: Sequence[tuple[str, str]]) -> str:
    """The shapes of cases, (shapes, dtype) each, in words; not all of them where there are many.

    Example:
        >>> shapes_of([("X [7]", "float32"), ("X [7]", "float64"), ("X [0, 3]", "float32")])
        'X [7]; X [0, 3]'
    """
    shapes = list(dict.fromkeys(shape for shape, _ in tried))
    if len(shapes) > 4:
        shapes = [*shapes[:3], "...", shapes[-1]]
    return "; ".join(shapes)


def _launch(launch: LaunchFacts) -> str:
    shared = f", {launch.shared} bytes of shared memory" if launch.shared else ""
    return (
        f"{launch.kernel}: {_times(launch.grid)} blocks of {_times(launch.block)} threads{shared}; "
        f"may read {_bytes(launch.read)}, write {_bytes(launch.written)}"
    )


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _bytes(n: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000 or unit == "MB":
            return f"{n:.0f} {unit}" if unit == "bytes" or n >= 10 else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    raise AssertionError


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
