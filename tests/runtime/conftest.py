"""Fixtures for tests of runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from fluidnb.op.binder import Binder


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """A counter of bindings by kernels: type of operator -> how many operators of it were bound."""
    counts: Counter[str] = Counter()
    bind = Binder.bind

    def counted(self: Binder) -> Any:
        counts[self.definition.type] += 1
        return bind(self)

    monkeypatch.setattr(Binder, "bind", counted)
    return counts
