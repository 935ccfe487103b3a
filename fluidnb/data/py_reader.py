"""PyReader: batches made ready by a thread while the program runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fluidnb.arguments import checked, shown
from fluidnb.data.batch_queue import BatchQueue, own_copy
from fluidnb.data.feeder import DataFeeder
from fluidnb.data.reader import batch, buffered
from fluidnb.data.reader.decorators import samples_of
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.layers.readers import reader_of
from fluidnb.program import default_main_program
from fluidnb.values import CPUPlace, LoDTensor, Place

Feed = dict[str, LoDTensor]


@checked
class PyReader:
    """Feeds from a generator, prepared ahead in a thread.

    Args:
        feed_list: the data variables that it feeds.
        capacity: how many batches may be ready.
        use_double_buffer: ignored (compatibility); a thread always reads ahead.
        iterable: True: iterate over it and give what it yields to ``exe.run(feed=...)``. False: the main program
            reads the variables by itself between ``start()`` and ``reset()``; the end of a pass raises
            ``fluid.core.EOFException`` in the run.
        return_list: yield a list in the order of ``feed_list`` instead of a dict.

    Example:
        >>> x = fluid.layers.data("x", shape=[2])
        >>> reader = PyReader([x], capacity=2)
        >>> reader.decorate_sample_generator(lambda: iter([([1.0, 2.0],), ([3.0, 4.0],)]), batch_size=2)
        >>> [feed["x"].shape() for feed in reader()]
        [[2, 2]]
    """

    def __init__(
        self, feed_list: Sequence[Any] | None = None, capacity: int | None = None, use_double_buffer: bool = True,
        iterable: bool = True, return_list: bool = False,
    ) -> None:  # fmt: skip
        if not feed_list:
            raise OpValueError("PyReader needs the variables that it feeds.", expected="feed_list=[x]", received="none")
        if capacity is None or capacity < 1:
            raise OpValueError("PyReader has no capacity.", expected="capacity of 1 or more", received=capacity)
        wrong = [v for v in feed_list if not hasattr(v, "lod_level") and not (iterable and isinstance(v, str))]
        if wrong:
            raise OpTypeError(
                "feed_list of PyReader is a list of variables.", expected="for example feed_list=[x]",
                received=shown(wrong[0]), hint="fluid.layers.data(...) makes such a variable.",
            )  # fmt: skip
        self._variables, self._capacity, self._as_list = list(feed_list), int(capacity), return_list
        self._batches: Callable[[], Iterable[Any]] | None = None
        self._feeder: DataFeeder | None = None
        self._place: Place = CPUPlace()
        self._queue: BatchQueue | None = None
        if not iterable:
            reader = reader_of(self._capacity, self._variables, None, use_double_buffer)
            block = default_main_program().current_block()
            block.append_op(type="read", inputs={"Reader": [reader]}, outputs={"Out": self._variables})
            self._queue = vars(reader)["queue"]

    @property
    def iterable(self) -> bool:
        """Whether it is iterated over, and no part of the program."""
        return self._queue is None

    def decorate_sample_generator(
        self, sample_generator: Callable[[], Iterable[Any]], batch_size: int, drop_last: bool = True, places: Any = None
    ) -> None:
        """Take samples one by one; they are put together into batches.

        Args:
            sample_generator: gives an iterator over tuples, a field for each variable.
            batch_size: samples in a batch.
            drop_last: leave a smaller last batch out.
            places: where the batches live; default the CPU.
        """
        self.decorate_sample_list_generator(batch(sample_generator, batch_size, drop_last), places)

    def decorate_sample_list_generator(self, reader: Callable[[], Iterable[Any]], places: Any = None) -> None:
        """Take lists of samples, as `fluid.batch` gives them.

        Args:
            reader: gives an iterator over lists of tuples.
        """
        self._place = _one_place(places)
        if self._queue is not None:
            self._queue.decorate_paddle_reader(reader)
        self._feeder = DataFeeder(self._variables, self._place)
        self._batches = reader

    def decorate_batch_generator(self, reader: Callable[[], Iterable[Any]], places: Any = None) -> None:
        """Take whole batches: an array or LoDTensor for each variable.

        Args:
            reader: gives an iterator over tuples of arrays.
        """
        self._place, self._feeder, self._batches = _one_place(places), None, reader
        if self._queue is not None:
            self._queue.decorate_tensor_provider(reader)

    def start(self) -> None:
        """Begin a pass of a reader with ``iterable=False``.

        Raises:
            EnforceNotMet: no generator has been given yet, or a pass is under way.
        """
        self._own_queue("start").start()

    def reset(self) -> None:
        """End a pass of a reader with ``iterable=False``; batches that were not read are dropped."""
        self._own_queue("reset").reset()

    def _own_queue(self, method: str) -> BatchQueue:
        if self._queue is None:
            raise OpValueError(
                f"{method}() is for iterable=False.", expected="a reader that the program reads",
                received="PyReader(iterable=True)", hint="for feed in reader(): exe.run(feed=feed, ...).",
            )  # fmt: skip
        return self._queue

    def __call__(self) -> Iterator[Any]:
        """A pass over the data.

        Yields:
            A dict for ``exe.run(feed=...)``, or a list of LoDTensors.
        """
        if self._queue is not None:
            raise OpValueError(
                "A PyReader with iterable=False cannot be iterated.", expected="PyReader(iterable=True)",
                received="iterable=False", hint="reader.start(), then exe.run(...) without feed until EOFException.",
            )  # fmt: skip
        if self._batches is None:
            raise OpValueError("This PyReader has nothing to read yet.", hint="call a decorate_ method first.")
        batches = self._batches
        return iter(buffered(lambda: map(self._feed, samples_of(batches)), self._capacity)())

    __iter__ = __call__

    def _feed(self, values: Any) -> Any:
        feed = self._whole(values) if self._feeder is None else self._feeder.feed(values)
        return list(feed.values()) if self._as_list else feed

    def _whole(self, values: Any) -> Feed:
        arrays = list(values) if isinstance(values, tuple | list) else [values]
        names = [v if isinstance(v, str) else v.name for v in self._variables]
        if len(arrays) != len(names):
            raise OpValueError(
                f"The number of fields in data ({len(arrays)}) does not match len(feed_list) ({len(names)}).",
                expected=", ".join(names), received=f"{len(arrays)} arrays",
            )  # fmt: skip
        feed: Feed = {}
        for name, array in zip(names, arrays, strict=True):
            if isinstance(array, LoDTensor):
                feed[name] = own_copy(array)
            else:
                feed[name] = LoDTensor(name=name)
                feed[name].set(array, self._place)
        return feed


def _one_place(places: Any) -> Place:
    if places is None:
        return CPUPlace()
    chosen = list(places) if isinstance(places, list | tuple) else [places]
    if len(chosen) != 1 or not isinstance(chosen[0], Place):
        raise OpTypeError("PyReader feeds one place.", expected="one place", received=repr(places))
    return chosen[0]
