"""Faults at the n-th call of something, and what must be as before when one is over."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import fluidnb as fluid
from fluidnb.memory import pools
from fluidnb.memory.buddy import BuddyAllocator
from fluidnb.values import device_context
from fluidnb_kernels.cuda_emulator_backend import memory, runtime


class Count:
    """The number of calls of a function.

    Attributes:
        made: the number of calls.
    """

    def __init__(self) -> None:
        self.made = 0


@contextmanager
def nth(owner: Any, name: str, at: int, fault: Callable[..., Any], lasting: bool = False) -> Iterator[Count]:
    """While the body runs, one call of a function goes wrong.

    Args:
        owner: the class or module.
        name: the function's name there.
        at: which call, from 0; -1 counts them only.
        fault: called in its place, with its arguments.
        lasting: whether all calls after it go wrong too.
    """
    count, function = Count(), getattr(owner, name)

    def called(*args: Any, **kw: Any) -> Any:
        count.made += 1
        if count.made - 1 == at or (lasting and 0 <= at < count.made):
            return fault(*args, **kw)
        return function(*args, **kw)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, called)
        yield count


def no_memory(at: int) -> Any:
    """While the body runs, one of the pools has no memory at a certain call.

    Args:
        at: which call, from 0; -1 counts them only.
    """

    def refuse(pool: BuddyAllocator, rounded: int, asked: int) -> int:
        raise pool._out_of_memory(asked, "by a test")

    return nth(BuddyAllocator, "_take", at, refuse)


def live(place: Any) -> int:
    """Bytes in use on a place."""
    gc.collect()
    return fluid.memory.stats(place).used


@contextmanager
def two_devices() -> Iterator[list[Any]]:
    """While the body runs there is a second device; what is made of it is gone afterwards, and this thread's device is
    the one of before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory.chosen, "device", memory.chosen.device)
        patch.setattr(runtime, "_devices", 2)
        patch.setattr(device_context, "_contexts", {})
        patch.setattr(pools, "_pools", {**pools._pools})
        places = [fluid.CUDAPlace(0), fluid.CUDAPlace(1)]
        with fluid.fresh():
            yield places
        gc.collect()
        pools.pool(places[1]).release_idle()
