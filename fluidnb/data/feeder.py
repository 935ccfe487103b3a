"""DataFeeder: rows of samples to the LoDTensors that a program is fed with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from fluidnb.arguments import checked
from fluidnb.data.reader.decorators import Reader, samples_of
from fluidnb.errors import OpTypeError, OpValueError, typed
from fluidnb.memory import flags
from fluidnb.values import CPUPlace, LoDTensor, Place, np_dtype
from fluidnb.values.place_lists import cpu_places


@checked
class DataFeeder:
    """Turns batches, lists of samples, into what an Executor is fed: a LoDTensor for each variable.

    A sample is a tuple with a field for each variable. The fields are stacked and reshaped to the variable's shape; the
    fields of a variable with lod_level 1 or more are (nested) sequences, laid end to end. Texts become numbers.
    Without ``FLAGS_strict_feeds``, other sizes are taken as they come, and fractions are cut off for integer dtypes.

    Args:
        feed_list: variables, or their names in `program`.
        place: where the tensors shall live; None is the host.
        program: where names are looked up; None is the default main program.

    Example:
        >>> from types import SimpleNamespace as V
        >>> x = V(name="x", shape=(-1, 2), dtype="float32", lod_level=0)
        >>> words = V(name="words", shape=(-1, 1), dtype="int64", lod_level=1)
        >>> feed = DataFeeder([x, words], CPUPlace()).feed([([1, 2], [7, 8]), ([3, 4], [9])])
        >>> feed["words"]
        LoDTensor(shape=[3, 1], dtype=int64, lod=[[0, 2, 3]], place=CPUPlace)
    """

    def __init__(self, feed_list: Sequence[Any], place: Place | None = None, program: Any = None) -> None:
        variables = [_find(entry, program) if isinstance(entry, str) else entry for entry in feed_list]
        for variable in variables:
            if not all(hasattr(variable, fact) for fact in ("name", "shape", "dtype", "lod_level")):
                raise OpTypeError("Feed list should contain a list of variable.", received=repr(variable))
        self.place = CPUPlace() if place is None else place
        self.feed_names = [v.name for v in variables]
        self._columns = [_Column(v) for v in variables]

    def __repr__(self) -> str:
        return f"DataFeeder({self.feed_names}, {self.place})"

    def feed(self, iterable: Iterable[Any]) -> dict[str, LoDTensor]:
        """One batch.

        Returns:
            name -> LoDTensor.
        """
        rows = list(iterable)
        if not rows:
            raise OpValueError("There are no samples to feed.", hint="an empty batch; is the reader used up?")
        for i, row in enumerate(rows):
            if not isinstance(row, (tuple, list)):
                raise OpTypeError(
                    "A sample is a tuple with a field for each variable.",
                    expected=f"a tuple of {', '.join(self.feed_names)}", received=f"sample {i} is {type(row).__name__}",
                    hint="feed a batch (a list of samples), and yield (x,) for a single field.",
                )  # fmt: skip
            if len(row) != len(self._columns):
                raise OpValueError(
                    f"The number of fields in data ({len(row)}) does not match len(feed_list) ({len(self._columns)}).",
                    expected=f"fields for {', '.join(self.feed_names)}", received=f"sample {i} with {len(row)} fields",
                    hint=f"a sample is ({', '.join(self.feed_names)},); feed_list names the variables that it has.",
                )  # fmt: skip
        return {
            column.name: column.tensor([row[k] for row in rows], self.place) for k, column in enumerate(self._columns)
        }

    def decorate_reader(
        self, reader: Reader, multi_devices: bool = False, num_places: int | None = None, drop_last: bool = True
    ) -> Callable[[], Iterator[Any]]:
        """A reader of batches as a reader of feeds.

        Args:
            multi_devices: whether each item is a list with a feed for each place, as ``ParallelExecutor.run`` takes it.
            num_places: how many places, with `multi_devices`; None for CPU_NUM of the environment, else 1.
            drop_last: whether the last batches are dropped where there are fewer than places.

        Returns:
            A reader of name -> LoDTensor, or of lists of these.

        Raises:
            OpValueError: from the reader, where batches are left and ``drop_last`` is False.

        Example:
            >>> feeder = DataFeeder([fluid.layers.data("x", [1])], fluid.CPUPlace())
            >>> batches = lambda: iter([[(1.0,), (2.0,)], [(3.0,)]])
            >>> feeds = feeder.decorate_reader(batches, multi_devices=True, num_places=2)
            >>> [[feed["x"].shape() for feed in item] for item in feeds()]
            [[[2, 1], [1, 1]]]
        """

        def feeds() -> Iterator[Any]:
            if not multi_devices:
                yield from map(self.feed, samples_of(reader))
                return
            count, item = self._places(num_places), []
            for batch in samples_of(reader):
                item.append(batch)
                if len(item) == count:
                    yield list(self.feed_parallel(item, count))
                    item = []
            if item and not drop_last:
                raise OpValueError(
                    f"{len(item)} batch{' is' if len(item) == 1 else 'es are'} left for {count} places.",
                    expected=f"a multiple of {count} batches", received=f"{len(item)} more",
                    hint="drop_last=True leaves them out.",
                )  # fmt: skip

        return feeds

    def feed_parallel(self, iterable: Iterable[Any], num_places: int | None = None) -> Iterator[dict[str, LoDTensor]]:
        """Feeds for several places, of a batch for each.

        Args:
            num_places: how many places; None for CPU_NUM of the environment, else 1.
        """
        count, batches = self._places(num_places), list(iterable)
        if len(batches) != count:
            raise OpValueError(
                "feed_parallel takes a batch for each place.", expected=f"a list of {count}",
                received=f"a list of {len(batches)}", hint="feed(batch) takes the batch of one place.",
            )  # fmt: skip
        return map(self.feed, batches)

    def _places(self, number: int | None) -> int:
        """Number of places."""
        if number is not None and number < 1:
            raise OpValueError("num_places must be a number of places.", expected="1 or more", received=number)
        if number is not None:
            return number
        return len(cpu_places()) if self.place.kind == "cpu" else 1


class _Column:
    """One variable: its fields of a batch to a LoDTensor."""

    def __init__(self, variable: Any) -> None:
        self.name: str = variable.name
        self.shape: tuple[int, ...] = tuple(variable.shape)
        self.dtype = np_dtype(variable.dtype)
        self.lod_level: int = variable.lod_level or 0

    def tensor(self, fields: list[Any], place: Place) -> LoDTensor:
        lengths: list[list[int]] = [[] for _ in range(self.lod_level)]
        steps: list[Any] = []
        for i, field in enumerate(fields):
            self._flatten(field, 0, lengths, steps, i)
        result = LoDTensor(name=self.name)
        result.set(self._fit(self._array(steps), len(steps)), place)
        if lengths:
            result.set_recursive_sequence_lengths(lengths)
        return result

    def _flatten(self, field: Any, level: int, lengths: list[list[int]], steps: list[Any], sample: int) -> None:
        if level == self.lod_level:
            steps.append(field)
            return
        try:
            lengths[level].append(len(field))
        except TypeError:
            raise OpTypeError(
                f'Variable "{self.name}" has lod_level {self.lod_level}: its fields are sequences.',
                expected=f"{self.lod_level} levels of lists",
                received=f"sample {sample} has {type(field).__name__} at level {level}",
            ) from None
        for part in field:
            self._flatten(part, level + 1, lengths, steps, sample)

    def _array(self, steps: list[Any]) -> np.ndarray[Any, Any]:
        try:
            array = np.asarray(steps)
        except ValueError:  # unequal shapes; numpy's words for it are about itself
            array = np.empty(0, object)
        if array.dtype != object:
            return self._cast(array)
        if any(isinstance(step, LoDTensor) for step in steps):  # numpy takes one without axes for an object
            return self._array([np.asarray(step) if isinstance(step, LoDTensor) else step for step in steps])
        shapes = sorted({np.shape(step) for step in steps}) if all(map(_is_even, steps)) else ["uneven lists"]
        raise OpValueError(
            f'The fields of variable "{self.name}" do not make one array.',
            expected=f"numbers of one shape, for a variable of shape {list(self.shape)}",
            received=f"fields of shapes {', '.join(map(str, shapes[:4]))}",
            hint="sequences of unequal lengths need a variable with lod_level=1.",
        )

    def _cast(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if array.dtype == self.dtype:
            return array
        if array.dtype.kind in "SU":  # fields of a text file
            try:
                return array.astype(self.dtype)
            except (ValueError, OverflowError):
                raise self._misfit(array) from None
        with np.errstate(invalid="ignore", over="ignore"):
            cast = (
                array.astype(self.dtype)
                if array.dtype.kind in ("biufcV" if self.dtype.kind == "c" else "biufV")
                else None
            )
        if cast is None:
            raise self._misfit(array)
        # Rounding to a narrower float is what everyone wants; losing a fraction or an overflowing int is a mistake.
        exact = self.dtype.kind in "biu" and flags.values["strict_feeds"]
        if exact and array.size and not np.array_equal(cast, array):
            raise self._misfit(array)
        return cast

    def _misfit(self, array: np.ndarray[Any, Any]) -> OpValueError:
        return OpValueError(
            f'The data of variable "{self.name}" does not fit its dtype.',
            expected=f"values of {self.dtype}",
            received=f"{array.dtype} values such as {array.reshape(-1)[:3].tolist()}",
            hint="change the reader, or declare the variable with another dtype.",
        )

    def _fit(self, array: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
        shape, received, strict = self.shape, list(array.shape), flags.values["strict_feeds"]
        if sum(n < 0 for n in shape) > 1:  # several unknown sizes: only the number of dimensions is known
            fits = array.ndim == len(shape) or not strict
        elif array.ndim != len(shape):
            try:
                array = array.reshape(shape)
                fits = shape[:1] != (-1,) or len(array) == rows or not strict
            except ValueError:
                fits = False
        else:
            fits = True
        if not fits or strict and any(a != b and b >= 0 for a, b in zip(array.shape, shape, strict=True)):
            raise OpValueError(
                f"Shape not match. What is defined in data layer is {list(shape)}, but receive {received}.",
                slots=[("variable", self.name, str(self.dtype), shape)],
                hint="each field is one row of the variable (without the batch size).",
            )
        return array


def feed_of(feeder: DataFeeder, batch: Any) -> dict[str, Any]:
    """A batch as a feed: arrays where there is no LoD, which executors take the short way.

    Args:
        batch: samples, or a feed.

    Example:
        >>> x = fluid.layers.data("x", [2])
        >>> feed_of(DataFeeder([x], fluid.CPUPlace()), [([1.0, 2.0],)])
        {'x': array([[1., 2.]], dtype=float32)}
    """
    if isinstance(batch, dict):
        return batch
    return {name: t if t.lod_ else np.asarray(t) for name, t in feeder.feed(batch).items()}


def data_variables(program: Any) -> list[Any]:
    """The variables of a program that are fed, in the order of their declaration.

    Example:
        >>> x, y = fluid.layers.data("x", [2]), fluid.layers.data("y", [1])
        >>> [v.name for v in data_variables(fluid.default_main_program())]
        ['x', 'y']
    """
    block = program.global_block()
    return [block.var(name) for name, v in program.desc.blocks[0].vars.items() if v.is_data()]


def _is_even(step: Any) -> bool:
    try:
        np.shape(step)
    except ValueError:
        return False
    return True


def _find(name: str, program: Any) -> Any:
    if program is None:
        from fluidnb.program.defaults import default_main_program

        program = default_main_program()
    if not hasattr(program, "global_block"):
        raise OpTypeError(
            "program of DataFeeder must be a Program.", expected="where names are looked up", received=typed(program)
        )
    return program.global_block().var(name)
