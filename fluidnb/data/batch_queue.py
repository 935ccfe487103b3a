"""The queue of ``layers.py_reader``: between a Python reader, which a thread reads, and ``read`` operators."""

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.data.feeder import DataFeeder
from fluidnb.data.reader.decorators import Reader, samples_of
from fluidnb.data.reader.threads import PATIENCE, Ahead
from fluidnb.errors import EnforceNotMet, FluidError, OpValueError
from fluidnb.runtime.feed_fetch import as_fed
from fluidnb.runtime.scope import global_scope
from fluidnb.utils.source_location import SourceLocation
from fluidnb.values.reader import Batch, Check
from fluidnb.values.tensor import LoDTensor

_INTERNAL = ("fluidnb.", "fluidnb_kernels.")


@checked
class BatchQueue:
    """A bounded queue of batches, filled by a thread while a pass is under way.

    Args:
        feeds: variables with the shape, dtype and LoD level of each tensor of a batch.
    """

    #: What a message calls it: users call its methods on the reader variable.
    argument_name = "reader"

    def __init__(self, capacity: int, name: str, feeds: Sequence[Any]) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise OpValueError(
                "A reader's queue must hold at least one batch.", expected="capacity of 1 or more", received=capacity
            )
        self._capacity, self.name, self._feeds = capacity, name, list(feeds)
        self._batches: Callable[[], Iterable[Batch]] | None = None
        self._pass: Ahead | None = None
        self._over = False

    def decorate_paddle_reader(self, reader: Callable[[], Iterable[Any]], places: Any = None) -> None:
        """Take the batches of a reader of lists of samples, as `fluid.batch` gives them."""
        feeder = DataFeeder(self._feeds)
        decorated, names = feeder.decorate_reader(reader), feeder.feed_names
        self._batches = lambda: (tuple((feed[n].array, feed[n].lod_) for n in names) for feed in decorated())

    def decorate_tensor_provider(self, reader: Reader, places: Any = None) -> None:
        """Take whole batches: a list with an array or LoDTensor for each tensor."""
        self._batches = lambda: map(self._batch, samples_of(reader))

    def methods(self) -> dict[str, Any]:
        """Attributes of Fluid's reader variables by name."""
        return {
            "decorate_batch_generator": self.decorate_tensor_provider,
            "decorate_paddle_reader": self.decorate_paddle_reader,
            "decorate_sample_list_generator": self.decorate_paddle_reader,
            "decorate_tensor_provider": self.decorate_tensor_provider,
            "queue": self,
            "reset": self.reset,
            "start": self.start,
        }

    def _batch(self, values: Any) -> Batch:
        fields = list(values) if isinstance(values, list | tuple) else [values]
        if len(fields) != len(self._feeds):
            raise OpValueError(
                f"{self.name} takes a list with an array for each tensor.", expected=f"{len(self._feeds)} arrays",
                received=f"{len(fields)}", hint="yield [image, label], or decorate_paddle_reader for lists of samples.",
            )  # fmt: skip
        own = map(own_copy, fields)
        return tuple(as_fed(value, variable.desc) for value, variable in zip(own, self._feeds, strict=True))

    def start(self) -> None:
        """Begin a pass: a thread fills the queue from now on."""
        if self._batches is None:
            raise EnforceNotMet(
                f"{self.name} has nothing to read yet.", expected="a Python reader", received="none",
                hint="reader.decorate_paddle_reader(paddle.batch(...)) or decorate_tensor_provider(generator) first.",
            )  # fmt: skip
        if self._pass is not None and not self._over:
            raise EnforceNotMet(
                f"{self.name} has been started already.", expected="one start() for each pass",
                received="a second start() before the pass is over", hint="reader.reset() ends the pass.",
            )  # fmt: skip
        self.reset()
        self._over = False
        self._pass = Ahead(self._batches, self._capacity, f"fluidnb {self.name}")

    def pull(self, check: Check) -> Batch | None:
        """The next batch, which it waits for; None at the end of the pass."""
        if self._pass is None:
            raise EnforceNotMet(
                f"{self.name} has not been started.", expected="reader.start() before the first run of a pass",
                received="a run without it", hint="call reader.start(), and reader.reset() at the end of the pass.",
            )  # fmt: skip
        batch, error, more = self._pass.get(check)
        self._over = not more
        if isinstance(error, FluidError) or not isinstance(error, Exception | None):
            raise error
        if error is not None:
            raise self._failed(error) from error
        checked: Batch | None = batch
        return checked

    def _failed(self, error: Exception) -> EnforceNotMet:
        """The error of a run whose Python reader raised; it names the reader's own line."""
        where = _line_of(error)
        return EnforceNotMet(
            f"The Python reader of {self.name} raised {type(error).__name__}: {error}",
            expected="batches until the end of the pass",
            received=type(error).__name__ if where is None else f"{where.short()}:  {where.source}",
            hint="mend the reader, then reader.reset() and reader.start().",
        )

    def reset(self) -> None:
        """End the pass: batches that were not read are dropped, the thread ends."""
        under_way, self._pass = self._pass, None
        if under_way is not None:
            under_way.leave(PATIENCE)

    def size(self) -> int:
        """Number of batches that are ready to be read."""
        return 0 if self._pass is None else self._pass.ready()

    def capacity(self) -> int:
        """Largest number of batches that the queue keeps."""
        return self._capacity

    def is_closed(self) -> bool:
        """Whether no pass is under way."""
        return self._pass is None or self._over

    def __repr__(self) -> str:
        state = "not started" if self._pass is None else f"{self.size()} of {self._capacity} batches ready"
        return f"BatchQueue({self.name}: {state})"


def own_copy(value: Any) -> Any:
    """A copy of an array or LoDTensor, also in a tuple with lengths: generators fill one again and again."""
    if isinstance(value, LoDTensor) and value.array is not None:
        return LoDTensor(value.array.copy(), value.lod_, value.place, value.name)
    if isinstance(value, tuple):
        return tuple(map(own_copy, value))
    return np.array(value) if isinstance(value, np.ndarray) else value


def publish(name: str, queue: BatchQueue) -> None:
    """Put a queue into the global scope, where the operator that opens its reader looks for it."""
    global_scope().var(name).value = queue


def _line_of(error: BaseException) -> SourceLocation | None:
    """The innermost line outside this project that an error came through."""
    location = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not frame.f_globals.get("__name__", "").startswith(_INTERNAL):
            location = SourceLocation(frame.f_code.co_filename, line, frame.f_code.co_name)
    return location
