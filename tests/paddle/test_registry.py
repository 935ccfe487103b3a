"""The stored attributes of Paddle's operations are those of the installed Paddle 3."""

from __future__ import annotations

import pytest

from tests.paddle.harness import require_paddle
from tests.paddle.registry import FILE, VERSION, headers, registry, stored

pytestmark = pytest.mark.paddle


def test_the_stored_attributes_are_those_of_paddle() -> None:
    require_paddle(VERSION)
    operations = registry(headers())
    assert len(operations) > 1500
    assert FILE.read_text() == stored(operations), "python -m tests.paddle.registry writes it"
