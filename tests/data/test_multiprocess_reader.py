"""Readers in processes of their own: all samples come, errors are told, a pass left early leaves no process behind."""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fluidnb.data import reader
from fluidnb.errors import EnforceNotMet, OpTypeError, OpValueError


def part(index: int, count: int = 60) -> Iterator[Any]:
    """Every third of some samples."""
    for i in range(count):
        if i % 3 == index:
            yield [[i], [i + 1, i + 2], np.full(3, i)]


@pytest.mark.parametrize("options", [{}, {"use_pipe": False}, {"queue_size": 1}])
def test_all_samples_of_all_readers_come_in_every_pass(options: dict[str, Any]) -> None:
    read = reader.multiprocess_reader([functools.partial(part, i) for i in range(3)], **options)
    for _ in range(2):
        rows = sorted(read(), key=lambda row: row[0])
        assert [row[0][0] for row in rows] == list(range(60)) and all((row[2] == row[0][0]).all() for row in rows)
    assert not multiprocessing.active_children()


def test_they_run_in_other_processes_side_by_side() -> None:
    def slow() -> Iterator[int]:
        time.sleep(0.2)
        yield os.getpid()

    found = set(reader.multiprocess_reader([slow, slow, slow])())
    assert len(found) == 3 and os.getpid() not in found


def test_an_error_of_a_reader_is_told() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise KeyError("no such file")

    with pytest.raises(EnforceNotMet, match=r"Reader 1 of multiprocess_reader failed: KeyError: 'no such file'\."):
        list(reader.multiprocess_reader([lambda: iter(()), broken])())
    with pytest.raises(EnforceNotMet, match="Reader 0 of multiprocess_reader failed: .*lambda"):
        list(reader.multiprocess_reader([lambda: iter([lambda: 1])])())
    assert not multiprocessing.active_children()


def test_a_process_that_ends_is_told() -> None:
    def gone() -> Iterator[int]:
        yield 1
        os._exit(3)

    with pytest.raises(EnforceNotMet, match=r"process of reader 0 ended before its pass did\.(.|\n)*exit status 3"):
        list(reader.multiprocess_reader([gone])())


def test_a_pass_left_early_leaves_nothing_running() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    samples = reader.multiprocess_reader([endless, endless])()
    assert next(samples) == 1 and len(multiprocessing.active_children()) == 2
    samples.close()
    assert not multiprocessing.active_children()


def test_what_are_no_readers() -> None:
    for wrong in ([], part, "reader"):
        with pytest.raises(OpTypeError, match="multiprocess_reader takes readers|must be a list of readers"):
            reader.multiprocess_reader(wrong)  # type: ignore[arg-type]
    with pytest.raises(OpValueError, match="queue_size"):
        reader.multiprocess_reader([lambda: part(0)], queue_size=0)
