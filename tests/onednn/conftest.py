"""Convolutions by oneDNN in each test, and the flags of before afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fluidnb as fluid
from fluidnb.extras import command
from fluidnb.memory import flags
from fluidnb_kernels.onednn import library


@pytest.fixture(autouse=True)
def by_onednn() -> Iterator[None]:
    """New programs, and FLAGS_use_mkldnn."""
    if library.path() is None:
        pytest.skip(f"oneDNN is not installed ({command('onednn')})")
    before = dict(flags.values)
    fluid.set_flags({"FLAGS_use_mkldnn": True})
    with fluid.fresh():
        yield
    flags.values.update(before)
