"""The profiler under the core's names: states and sorting keys as numbers, where `fluidnb.profiler` takes words."""

from enum import IntEnum

from fluidnb import profiler


class ProfilerState(IntEnum):
    """Scope of profiling; operators are timed on every place."""

    kDisabled = 0
    kCPU = 1
    kCUDA = 2
    kAll = 3


class EventSortingKey(IntEnum):
    """The order of the table's rows."""

    kDefault = 0
    kCalls = 1
    kTotal = 2
    kMin = 3
    kMax = 4
    kAve = 5


_WORDS = {ProfilerState.kCPU: "CPU", ProfilerState.kCUDA: "GPU", ProfilerState.kAll: "All"}


def enable_profiler(state: ProfilerState) -> None:
    """Begin to time every operator that runs.

    Args:
        state: what is timed; ``kDisabled`` times nothing.
    """
    if ProfilerState(state) in _WORDS:
        profiler.start_profiler(_WORDS[ProfilerState(state)])


def disable_profiler(sorted_key: EventSortingKey, profile_path: str | None = "/tmp/profile") -> None:
    """Stop timing, print the table and write the timeline.

    Args:
        profile_path: file for the timeline; None writes none.
    """
    key = EventSortingKey(sorted_key)
    profiler.stop_profiler(None if key == EventSortingKey.kDefault else key.name[1:].lower(), profile_path)


def is_profiler_enabled() -> bool:
    """Whether operators are timed now."""
    return profiler.is_running()


reset_profiler = profiler.reset_profiler
