"""hypothesis draws with the run's seed; a full run tries more."""

from __future__ import annotations

import hypothesis
import pytest

from tests.tools.sampling import SEED

#: Seconds for each test of a full run, which tries ten times as many cases: some take more than the usual 300.
_FULL_TIMEOUT = 3600


@pytest.hookimpl(tryfirst=True)  # before pytest-timeout reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Choose how many cases are tried, from which seed, and how long a test may take."""
    full = config.getoption("--full")
    hypothesis.settings.register_profile("sampled", deadline=None, print_blob=True)
    hypothesis.settings.register_profile("full", deadline=None, print_blob=True, max_examples=1000)
    hypothesis.settings.load_profile("full" if full else "sampled")
    if full and config.getoption("timeout", None) is None:
        config.option.timeout = _FULL_TIMEOUT
    if not config.getoption("--hypothesis-seed"):
        hypothesis.core.global_force_seed = SEED
