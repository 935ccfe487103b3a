"""DataFeeder: batches to LoDTensors, and errors that name the variable."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from fluidnb import memory
from fluidnb.data import DataFeeder, reader
from fluidnb.errors import OpTypeError, OpValueError
from fluidnb.values import CPUPlace, CUDAPinnedPlace, LoDTensor, VarType


def var(name: str, shape: tuple[int, ...], dtype: object = "float32", lod_level: int = 0) -> SimpleNamespace:
    """A variable with all that a DataFeeder reads of one."""
    return SimpleNamespace(name=name, shape=shape, dtype=dtype, lod_level=lod_level)


X, Y = var("x", (-1, 3)), var("y", (-1, 1), "int64")


def feed_one(variable: SimpleNamespace, fields: list[object]) -> LoDTensor:
    """Fields of one variable, fed."""
    return DataFeeder([variable], CPUPlace()).feed([(f,) for f in fields])[variable.name]


def test_what_is_no_batch() -> None:
    with pytest.raises(OpTypeError, match="iterable of DataFeeder.feed must be a list"):
        DataFeeder([]).feed(3)  # type: ignore[arg-type]


def test_rows_become_tensors_of_the_declared_shape_and_dtype() -> None:
    feed = DataFeeder([X, Y], CPUPlace()).feed([([1, 2, 3], 0), (np.array([4.0, 5, 6]), 1)])
    assert list(feed) == ["x", "y"]
    x, y = feed["x"], feed["y"]
    assert np.array(x).tolist() == [[1, 2, 3], [4, 5, 6]] and x.array.dtype == "float32" and x.lod() == []
    assert np.array(y).tolist() == [[0], [1]] and y.array.dtype == "int64"
    assert memory.contains(CPUPlace(), np.asarray(x).ctypes.data)


def test_flat_images_are_reshaped() -> None:
    image = var("image", (-1, 1, 4, 5), VarType.FP32)
    assert feed_one(image, [np.arange(20), np.arange(20)]).shape() == [2, 1, 4, 5]


def test_sequences_by_lod_level() -> None:
    t = feed_one(var("words", (-1, 1), "int64", 1), [[1, 2], [], [3]])
    assert np.array(t).tolist() == [[1], [2], [3]] and t.recursive_sequence_lengths() == [[2, 0, 1]]
    t = feed_one(var("text", (-1, 1), "int64", 2), [[[1, 2], [3]], [[4, 5, 6]]])
    assert t.recursive_sequence_lengths() == [[2, 1], [2, 1, 3]] and t.shape() == [6, 1]
    t = feed_one(var("frames", (-1, 2), "float32", 1), [np.ones((3, 2)), np.zeros((1, 2))])
    assert t.lod() == [[0, 3, 4]] and t.shape() == [4, 2]


def test_a_batch_of_one_from_a_generator() -> None:
    feed = DataFeeder(feed_list=[X, Y], place=None).feed(iter([([1, 2, 3], 4)]))
    assert feed["x"].shape() == [1, 3] and feed["x"]._place() == CPUPlace()
    assert DataFeeder([X], CUDAPinnedPlace()).feed([([1, 2, 3],)])["x"]._place() == CUDAPinnedPlace()


def test_names_are_looked_up_in_the_program() -> None:
    program = SimpleNamespace(global_block=lambda: SimpleNamespace(var={"x": X}.__getitem__))
    assert DataFeeder(["x"], CPUPlace(), program).feed([([1, 2, 3],)])["x"].shape() == [1, 3]


def test_decorated_readers_give_feeds() -> None:
    rows = reader.batch(lambda: [([1, 2, 3], 0), ([4, 5, 6], 1), ([7, 8, 9], 2)], 2)
    feeder = DataFeeder([X, Y], CPUPlace())
    feeds = feeder.decorate_reader(rows, multi_devices=False)
    for _ in range(2):
        assert [f["y"].shape() for f in feeds()] == [[2, 1], [1, 1]]


def test_a_reader_without_samples_is_refused() -> None:
    feeds = DataFeeder([X, Y], CPUPlace()).decorate_reader(np.float64)
    with pytest.raises(OpTypeError, match="A reader must return the samples of one pass"):
        next(feeds())


def test_one_device_takes_what_is_for_several() -> None:
    rows = reader.batch(lambda: [([1, 2, 3], 0), ([4, 5, 6], 1), ([7, 8, 9], 2)], 2)
    feeder = DataFeeder([X, Y], CPUPlace())
    for options in ({}, {"num_places": 1, "drop_last": False}):
        feeds = feeder.decorate_reader(rows, multi_devices=True, **options)
        assert [[f["y"].shape() for f in item] for item in feeds()] == [[[2, 1]], [[1, 1]]]
    (feed,) = feeder.feed_parallel([[([1, 2, 3], 0)]], 1)
    assert feed["x"].shape() == [1, 3]
    for wrong in ([], [[([1, 2, 3], 0)]] * 2):
        with pytest.raises(OpValueError, match=r"a batch for each place(.|\n)*a list of 1"):
            feeder.feed_parallel(wrong)
    with pytest.raises(OpValueError, match=r"num_places must be(.|\n)*1 or more"):
        feeder.feed_parallel([], 0)


@pytest.mark.parametrize("wrong", [[X, 5], [None], "x y", 7, X])
def test_the_feed_list_holds_variables(wrong: object) -> None:
    with pytest.raises(OpTypeError, match="Feed list should contain|feed_list of DataFeeder"):
        DataFeeder(wrong, CPUPlace())  # type: ignore[arg-type]


def test_samples_have_a_field_for_each_variable() -> None:
    feeder = DataFeeder([X, Y], CPUPlace())
    with pytest.raises(OpValueError, match=r"fields in data \(1\) does not match len\(feed_list\) \(2\)") as e:
        feeder.feed([([1, 2, 3], 0), ([1, 2, 3],)])
    assert "sample 1" in str(e.value) and "x, y" in str(e.value)
    for sample in (np.zeros(3), 5, "ab"):
        with pytest.raises(OpTypeError, match="A sample is a tuple"):
            feeder.feed([sample])
    with pytest.raises(OpValueError, match="no samples"):
        feeder.feed([])


@pytest.mark.parametrize(
    ("variable", "fields", "received"),
    [
        (X, [[1, 2], [3, 4]], r"\[-1, 3\], but receive \[2, 2\]"),
        (X, [1, 2, 3], r"\[-1, 3\], but receive \[3\]"),  # one row of three would be another batch size
        (X, [np.zeros((1, 3))] * 2, None),
        (X, [np.zeros((2, 3))] * 2, r"\[-1, 3\], but receive"),
        (var("im", (-1, 1, 4, 5)), [np.zeros(21)], r"\[-1, 1, 4, 5\], but receive \[1, 21\]"),
        (var("fixed", (2, 3)), [[1, 2, 3]], r"\[2, 3\], but receive \[1, 3\]"),
        (var("any", (-1, -1)), [[[1]]], r"\[-1, -1\], but receive \[1, 1, 1\]"),
        (var("any", (-1, -1)), [[1, 2, 3, 4]], None),
    ],
)
def test_shapes(variable: SimpleNamespace, fields: list[object], received: str | None) -> None:
    if received is None:
        assert feed_one(variable, fields).shape()[0] == len(fields)
        return
    with pytest.raises(OpValueError, match="Shape not match. What is defined in data layer is " + received) as e:
        feed_one(variable, fields)
    assert variable.name in str(e.value)


@pytest.mark.parametrize(
    ("fields", "received"),
    [
        ([[1, 2, 3], [1, 2]], r"shapes \(2,\), \(3,\)"),
        ([[1, [2, 3]]], "uneven lists"),
        ([None], "fields of shapes"),
    ],
)
def test_fields_of_unequal_shapes_are_named(fields: list[object], received: str) -> None:
    with pytest.raises(OpValueError, match='fields of variable "x" do not make one array') as e:
        feed_one(X, fields)
    assert __import__("re").search(received, str(e.value)) and "lod_level=1" in str(e.value)


@pytest.mark.parametrize(
    ("dtype", "field"),
    [
        ("int64", 1.5),
        ("int64", float("nan")),
        ("uint8", 300),
        ("uint8", -1),
        ("bool", 2),
        ("int64", "seven"),
        ("int64", "7.5"),
        ("float32", ""),
        ("float32", 1j),
    ],
)
def test_values_that_do_not_fit_the_dtype_are_refused(dtype: str, field: object) -> None:
    with pytest.raises(OpValueError, match=f'variable "n" does not fit its dtype(.|\n)*values of {dtype}'):
        feed_one(var("n", (-1, 1), dtype), [field])


@pytest.mark.parametrize(
    ("dtype", "field"),
    [("int64", 2.0), ("float32", 3), ("float32", 0.1), ("bool", 1), ("float16", True), ("bfloat16", 1.5),
     ("int64", "7"), ("float32", "-2.5e3"), ("float32", b"7"), ("int64", "-9007199254740993")],
)
def test_values_that_fit_are_converted(dtype: str, field: object) -> None:
    t = feed_one(var("n", (-1, 1), dtype), [field])
    assert t.array.dtype.name == dtype and float(t.array[0, 0]) == pytest.approx(float(field), rel=1e-2)


def test_a_number_where_a_sequence_belongs_is_named() -> None:
    with pytest.raises(OpTypeError, match='"words" has lod_level 1') as e:
        feed_one(var("words", (-1, 1), "int64", 1), [[1, 2], 3])
    assert "sample 1 has int at level 0" in str(e.value)


@pytest.fixture
def loose() -> Iterator[None]:
    """Feeds are not compared with declared sizes, as in scripts for Fluid."""
    memory.set_flags({"strict_feeds": False})
    yield
    memory.set_flags({"strict_feeds": True})


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize(
    ("variable", "fields", "shape"),
    [
        (X, [[1, 2], [3, 4]], [2, 2]),  # as many dimensions as declared: the sizes are the reader's
        (X, [1, 2, 3], [1, 3]),
        (X, [np.zeros((2, 3))] * 2, [4, 3]),
        (var("any", (-1, -1)), [[[1]]], [1, 1, 1]),
        (var("n", (-1, 1), "int64"), ["3"], [1, 1]),
    ],
)
def test_without_strict_feeds_sizes_are_the_readers(
    variable: SimpleNamespace, fields: list[object], shape: list[int]
) -> None:
    assert feed_one(variable, fields).shape() == shape


@pytest.mark.usefixtures("loose")
def test_without_strict_feeds_what_cannot_be_reshaped_is_still_refused() -> None:
    with pytest.raises(OpValueError, match="Shape not match"):
        feed_one(var("im", (-1, 1, 4, 5)), [np.zeros(21)])
    assert feed_one(var("n", (-1, 1), "int64"), [1.75]).array.tolist() == [[1]]


def test_a_tensor_is_a_field_of_two_levels() -> None:
    tensor = LoDTensor()
    tensor.set(np.array([[1], [2], [3]], "float32"))
    fed = DataFeeder([var("x", (-1, 1), lod_level=2)], CPUPlace()).feed([(tensor,)])["x"]
    assert fed.lod() == [[0, 3], [0, 1, 2, 3]] and np.asarray(fed).tolist() == [[1], [2], [3]]
