"""The flags that a test sets are those of before when it has ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Set the flags back, those that a benchmark called by a test has set too."""
    from fluidnb.memory import flags  # some plugins set up what an import of fluidnb reads

    before = dict(flags.values)
    try:
        return (yield)
    finally:
        changed = {name: before[name] for name in before if flags.values[name] != before[name]}
        if changed:
            flags.set_flags(changed)
