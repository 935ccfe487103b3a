"""Fluid's profiler: how long each operator takes, as a table and as a timeline."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from fluidnb.debug.profile import Profile, check_key
from fluidnb.errors import EnforceNotMet, NotBuiltYet, OpValueError
from fluidnb.files.atomic_write import atomic_write
from fluidnb.runtime.observers import observers

_current = Profile()


def start_profiler(state: str) -> None:
    """Begin to time every operator that runs."""
    if state not in ("CPU", "GPU", "All"):
        raise OpValueError("The state must be 'CPU' or 'GPU' or 'All'.", received=repr(state))
    if _current.record not in observers:
        observers.append(_current.record)


def stop_profiler(sorted_key: str | None = None, profile_path: str | None = "/tmp/profile") -> Profile:
    """Stop timing, print the table and write the timeline.

    Args:
        sorted_key: ``calls``, ``total``, ``max``, ``min`` or ``ave``; None keeps the order of first appearance.
        profile_path: file for the timeline (JSON of chrome://tracing and Perfetto); None writes none.

    Returns:
        The profile: ``.rows(by="type" | "op" | "block" | "cell")``, ``.text()``, ``.chrome_trace()``.
    """
    check_key(sorted_key)
    if _current.record in observers:
        observers.remove(_current.record)
    done = Profile(list(_current.events))
    print(done.text(sorted_key=sorted_key))
    if profile_path is not None:
        with atomic_write(profile_path, text=True) as file:
            file.write(done.chrome_trace())
    return done


def is_running() -> bool:
    """Whether operators are timed now."""
    return _current.record in observers


def reset_profiler() -> None:
    """Forget what has been timed so far."""
    _current.events.clear()


def cuda_profiler(output_file: str, output_mode: str | None = None, config: Sequence[str] | None = None) -> NoReturn:
    """Not part of fluidnb: it would switch on the profiler of CUDA's own tools."""
    raise NotBuiltYet(
        "fluidnb does not drive CUDA's profiler.", hint="fluid.profiler.profiler times every operator, on any place."
    )


@contextmanager
def profiler(state: str, sorted_key: str | None = None, profile_path: str | None = "/tmp/profile") -> Iterator[Profile]:
    """Time what runs inside a ``with``; then print the table and write the timeline.

    Yields:
        The profile, which fills up while programs run.
    """
    check_key(sorted_key)
    if is_running():  # both would write into one profile
        raise EnforceNotMet(
            "Operators are timed already.", expected="one profiler at a time", received="a second one",
            hint="end the first one; fluid.profiler.stop_profiler() ends that of start_profiler.",
        )  # fmt: skip
    start_profiler(state)
    reset_profiler()
    try:
        yield _current
    finally:
        stop_profiler(sorted_key, profile_path)
