"""hypothesis draws with the run's seed; a full run tries more."""

from __future__ import annotations

import hypothesis
import pytest

from tests.tools.sampling import SEED


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many cases are tried, and from which seed."""
    full = config.getoption("--full")
    hypothesis.settings.register_profile("sampled", deadline=None, print_blob=True)
    hypothesis.settings.register_profile("full", deadline=None, print_blob=True, max_examples=1000)
    hypothesis.settings.load_profile("full" if full else "sampled")
    if not config.getoption("--hypothesis-seed"):
        hypothesis.core.global_force_seed = SEED
