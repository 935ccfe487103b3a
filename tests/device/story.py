"""A model before and after a run in which something goes wrong."""

from __future__ import annotations

from typing import Any

from fluidnb_kernels.cuda_emulator_backend.streams import get_current_stream, streams
from tests.device.faults import live
from tests.device.models import Job, Values


class Story:
    """A model that has run a few times, and what comes of it when nothing goes wrong.

    Args:
        name: the model.
        place: where.
        done: how many runs there were.
    """

    def __init__(self, name: str, place: Any, done: int) -> None:
        self.job, self.done, self.place = Job(name, place), done, place
        self.job.start()
        self._first = self.job.arrays()
        self.job.forget()
        self.held = live(place)
        self.told()
        self.before, self._arrays = self.job.values(), self.job.arrays()
        self.want = [self.job.step(done)]
        self.after: Values = self.job.values()
        self.want.append(self.job.step(done + 1))

    def told(self) -> Job:
        """The model, having run that often since it was prepared."""
        self.job.forget()
        self.job.put(self._first)
        for number in range(self.done):
            self.job.step(number)
        return self.job

    def is_left_in_order(self) -> None:
        """Parameters are as before or as after their operator, and nothing is under way."""
        now = self.job.values()
        assert {n for n, value in now.items() if value not in (self.before[n], self.after[n])} == set()
        assert set(now) == set(self.before) and self.job.scope.kids == []
        assert not any(stream.is_capturing() for stream in list(streams.values()))
        assert get_current_stream().ptr == 0

    def goes_on(self) -> None:
        """From where it was before, everything is as if nothing had happened."""
        self.job.put(self._arrays)
        assert [self.job.step(self.done), self.job.step(self.done + 1)] == self.want

    def leaves_no_memory(self) -> None:
        """What runs have bound is all that they hold."""
        self.job.forget()
        assert live(self.place) == self.held
