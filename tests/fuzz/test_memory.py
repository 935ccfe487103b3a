"""A broken file takes at most twice the memory that the valid one takes; archives have a limit in `archives`."""

from __future__ import annotations

import contextlib
import gc
import random
import struct
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import fluidnb as fluid
from tests.fuzz import files

pytestmark = pytest.mark.fuzz

#: Broken files of each kind.
COUNT = 20
#: Bytes for the text of the error and its traceback.
ROOM = 64 << 10


def taken(read: Callable[[], Any]) -> int:
    """Bytes that Python objects and arrays took at most while something was read."""
    gc.collect()
    tracemalloc.start()
    try:
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with fluid.fresh():
                read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", files.KINDS)
def test_a_broken_file(kind: str) -> None:
    data, read = files.valid(kind), files.KINDS[kind][1]
    cases = [files.case(random.Random(seed))["edits"] for seed in range(COUNT)]
    broken = [files.broken(data, edits) for edits in cases]
    for part in (data, *broken):  # the first refusal of a kind imports modules and reads source lines
        taken(lambda part=part: read(part))  # type: ignore[misc]
    whole = taken(lambda: read(data))
    worst, edits = max((taken(lambda b=b: read(b)), edits) for b, edits in zip(broken, cases, strict=True))  # type: ignore[misc]
    assert worst <= 2 * whole + ROOM, f"{worst:,} bytes against {whole:,}: {edits}"


def test_a_size_that_a_file_claims_is_no_reason_to_take_it() -> None:
    data = files.valid("tensor")
    whole = taken(lambda: files.KINDS["tensor"][1](data))
    at = data.index(struct.pack("<Q", 0)) if struct.pack("<Q", 0) in data else 4
    claims = data[:at] + struct.pack("<Q", 1 << 33) + data[at + 8 :]
    assert taken(lambda: files.KINDS["tensor"][1](claims)) <= 2 * whole + ROOM
