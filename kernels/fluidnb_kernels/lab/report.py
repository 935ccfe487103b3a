"""The report of a written kernel, as lines of text."""

from collections.abc import Sequence

from fluidnb.viz.base.styled_text import Line, columns, plural
from fluidnb_kernels.lab.figures import LaunchFacts
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
        at = f"{wrong.name}{list(wrong.index)}" if wrong.index is not None else wrong.name
        say(
            "results",
            f"WRONG, taken all the same: {at} is {wrong.received} for {wrong.expected} on {wrong.shape}",
            "warn",
        )
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


def spilled(n: int) -> str:
    """Spilled registers in words."""
    return f"{n} bytes of registers spilled" if n else "none spilled"


def shapes_of(tried: Sequence[tuple[str, str]]) -> str:
    """The shapes of cases in words, not all of them where there are many.

    Args:
        tried: (shapes, dtype) of each.

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
