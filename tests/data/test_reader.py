"""Reader decorators: what they give, every pass anew, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from fluidnb.data import reader, seeding
from fluidnb.data.reader.threads import Ahead
from fluidnb.errors import OpTypeError, OpValueError

TEN = lambda: iter(range(10))  # noqa: E731 - a reader


@pytest.fixture(autouse=True)
def no_seed_left():
    """Entropy again after the test."""
    yield
    seeding.seed(None)


@pytest.mark.parametrize(
    ("decorated", "expected"),
    [
        (reader.cache(TEN), list(range(10))),
        (reader.map_readers(lambda a, b: 10 * a + b, TEN, lambda: [3, 4]), [3, 14]),
        (reader.buffered(TEN, 3), list(range(10))),
        (reader.compose(TEN, TEN), [(i, i) for i in range(10)]),
        (reader.chain(TEN, TEN), [*range(10), *range(10)]),
        (reader.firstn(TEN, 4), [0, 1, 2, 3]),
        (reader.firstn(TEN, 40), list(range(10))),
        (reader.xmap_readers(lambda x: x + 1, TEN, 3, 4, order=True), list(range(1, 11))),
        (reader.batch(TEN, 4), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        (reader.batch(TEN, 4, drop_last=True), [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (reader.batch(TEN, 5, drop_last=True), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        (reader.batch(TEN, 100), [list(range(10))]),
        (reader.Fake()(TEN, 3), [0, 0, 0]),
        (reader.creator.np_array(np.arange(3)), [0, 1, 2]),
        (reader.creator.np_array(7), [7]),
        (reader.chain(), []),
    ],
)
def test_each_pass_gives_the_same(decorated: reader.Reader, expected: list[object]) -> None:
    assert list(decorated()) == expected
    assert list(decorated()) == expected


def test_unordered_xmap_gives_everything_once() -> None:
    decorated = reader.xmap_readers(lambda x: x * x, lambda: range(100), 4, 7)
    for _ in range(2):
        assert sorted(decorated()) == [x * x for x in range(100)]


def test_xmap_works_in_parallel_and_reads_no_further_than_its_buffer() -> None:
    together = threading.Barrier(3, timeout=60)
    read: list[int] = []

    def source() -> Iterator[int]:
        for i in range(12):
            read.append(i)
            yield i

    results = iter(reader.xmap_readers(lambda x: together.wait() and 0 or x, source, 3, 3, order=True)())
    assert next(results) == 0
    assert read == [0, 1, 2, 3]
    together.abort()


def test_cache_reads_once_even_if_the_first_pass_is_left() -> None:
    passes = []

    def source() -> Iterator[int]:
        passes.append(1)
        yield from range(5)

    cached = reader.cache(source)
    assert passes == []
    assert next(iter(cached())) == 0
    assert list(cached()) == [0, 1, 2, 3, 4] and len(passes) == 1


def test_fake_repeats_the_first_sample_and_reads_it_once() -> None:
    reads = []
    fake = reader.Fake()(lambda: iter([reads.append(1) or "first", "second"]), 2)
    assert [list(fake()), list(fake())] == [["first", "first"]] * 2 and len(reads) == 1
    left = fake()
    next(iter(left))
    assert list(fake()) == ["first", "first"]  # a pass that was left does not shorten the next


def test_shuffle_keeps_samples_within_their_buffer() -> None:
    shuffled = reader.shuffle(lambda: range(10), 4)
    seen = [list(shuffled()) for _ in range(20)]
    for samples in seen:
        assert [sorted(samples[i : i + 4]) for i in (0, 4, 8)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(set(map(tuple, seen))) > 10


def test_shuffle_obeys_the_seed() -> None:
    shuffled = reader.shuffle(lambda: range(50), 50)
    seeding.seed(5)
    first = [list(shuffled()), list(shuffled())]
    seeding.seed(5)
    assert [list(shuffled()), list(shuffled())] == first
    assert first[0] != first[1]
    seeding.seed(6)
    assert list(shuffled()) != first[0]


def test_compose_flattens_tuples_and_checks_lengths() -> None:
    pairs = lambda: [(1, 2), (3, 4)]  # noqa: E731
    assert list(reader.compose(pairs, lambda: [None, [5]])()) == [(1, 2, None), (3, 4, [5])]
    rows = iter(reader.compose(pairs, TEN)())
    assert [next(rows), next(rows)] == [(1, 2, 0), (3, 4, 1)]
    with pytest.raises(reader.ComposeNotAligned, match="not aligned") as e:
        next(rows)
    assert "reader 0 ended after 2 samples" in str(e.value)
    assert isinstance(e.value, ValueError)
    assert len(list(reader.compose(pairs, TEN, check_alignment=False)())) == 2
    with pytest.raises(TypeError, match="check_aligment"):
        reader.compose(pairs, check_aligment=False)  # type: ignore[call-arg]


def failing() -> Iterator[int]:
    """Two samples, then an error."""
    yield 1
    yield 2
    raise KeyError("the disk is gone")


def test_buffered_raises_the_sources_error_in_its_place() -> None:
    samples = iter(reader.buffered(failing, 10)())
    assert [next(samples), next(samples)] == [1, 2]
    with pytest.raises(KeyError, match="the disk is gone"):
        next(samples)


def wait_for(condition: Callable[[], bool]) -> bool:
    """Whether something becomes true soon."""
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def test_buffered_reads_ahead_and_no_further_than_its_size() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for i in range(100):
            read.append(i)
            yield i

    samples = iter(reader.buffered(source, 4)())
    assert next(samples) == 0
    assert wait_for(lambda: len(read) == 6)  # one given, four ready, one waiting for room
    time.sleep(0.02)
    assert len(read) == 6


def readers_alive() -> int:
    """Threads of readers that are still there."""
    return sum(t.name.startswith("fluidnb reader") for t in threading.enumerate())


@pytest.mark.parametrize(
    "decorate", [lambda r: reader.buffered(r, 2), lambda r: reader.xmap_readers(abs, r, 2, 2)], ids=["buffered", "xmap"]
)
def test_a_pass_that_is_left_leaves_no_threads(decorate: Callable[[reader.Reader], reader.Reader]) -> None:
    for _ in range(5):
        for sample in decorate(lambda: iter(range(10**9)))():
            if sample >= 3:
                break
    assert wait_for(lambda: readers_alive() == 0)


def end_with_a_pass_left_open(decorated: str, wait: str, patience: float) -> tuple[int, str, str]:
    """Exit code, output and errors of a program that reads one sample; each later one takes ``wait``."""
    program = f"""
import time
from fluidnb.data import reader

def source():
    try:
        while True:
            yield 1
            {wait}
    finally:
        print("closed")

reader.threads.PATIENCE = {patience}
left = iter({decorated}())
next(left)
"""
    env = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("wait", ["pass", "time.sleep(0.01)"], ids=["ready", "reading"])
@pytest.mark.parametrize("decorated", ["reader.buffered(source, 50)", "reader.xmap_readers(abs, source, 2, 2)"])
def test_the_end_of_the_program_closes_the_sources_of_passes_left_open(decorated: str, wait: str) -> None:
    assert end_with_a_pass_left_open(decorated, wait, 30) == (0, "closed\n", "")


def test_a_source_that_hangs_does_not_hold_up_the_end_of_the_program() -> None:
    assert end_with_a_pass_left_open("reader.buffered(source, 2)", "time.sleep(1000)", 0.1) == (0, "", "")


@pytest.mark.parametrize("order", [True, False])
def test_xmap_raises_the_mappers_error(order: bool) -> None:
    with pytest.raises(ZeroDivisionError):
        list(reader.xmap_readers(lambda x: 1 // (x - 3), TEN, 2, 2, order)())
    with pytest.raises(KeyError, match="disk"):
        list(reader.xmap_readers(abs, failing, 2, 2, order)())


def test_text_file(tmp_path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("eins \n\nzwölf", encoding="utf-8")
    lines = reader.creator.text_file(str(file))
    assert list(lines()) == list(lines()) == ["eins ", "", "zwölf"]
    with pytest.raises(OpValueError, match="nowhere.txt"):
        reader.creator.text_file(tmp_path / "nowhere.txt")


@pytest.mark.parametrize(
    "decorate",
    [
        reader.cache,
        reader.compose,
        reader.chain,
        lambda r: reader.map_readers(abs, r),
        lambda r: reader.buffered(r, 2),
        lambda r: reader.shuffle(r, 2),
        lambda r: reader.firstn(r, 2),
        lambda r: reader.xmap_readers(abs, r, 1, 1),
        lambda r: reader.batch(r, 2),
        lambda r: reader.Fake()(r, 1),
    ],
)
def test_a_generator_instead_of_a_reader_is_refused_at_once(decorate: Callable[[object], object]) -> None:
    with pytest.raises(OpTypeError, match="must be a reader") as e:
        decorate(i for i in range(3))
    assert "pass the function itself" in str(e.value)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", True, None])
def test_counts_are_positive_ints(n: object) -> None:
    for make, what in (
        (lambda: reader.batch(TEN, n), "batch_size"),
        (lambda: reader.xmap_readers(abs, TEN, n, 1), "process_num"),
        (lambda: reader.xmap_readers(abs, TEN, 1, n), "buffer_size"),
    ):
        with pytest.raises(OpValueError, match=f"{what} (should be a positive|of .* must be an) int(.|\n)*{n!r}"):
            make()
    if n != 0:
        for make, what in ((lambda: reader.shuffle(TEN, n), "buf_size"), (lambda: reader.buffered(TEN, n), "size")):
            with pytest.raises(OpValueError, match=f"{what} (should be an integer|of .* must be an int)(.|\n)*{n!r}"):
                make()


def test_a_whole_float_is_a_batch_size() -> None:
    assert list(reader.batch(TEN, 8 / 2)()) == list(reader.batch(TEN, 4)())


@pytest.mark.parametrize("make", [reader.shuffle, reader.buffered])
def test_a_buffer_of_none_keeps_the_order(make) -> None:
    assert list(make(TEN, 0)()) == list(TEN())


@pytest.mark.parametrize("make", [lambda f: reader.map_readers(f, TEN), lambda f: reader.xmap_readers(f, TEN, 1, 1)])
def test_a_mapper_is_a_function(make: Callable[[object], object]) -> None:
    with pytest.raises(OpTypeError, match=r"must be a function of (a|one) sample\.(.|\n)*received: 3 \(int\)"):
        make(3)


def test_reading_very_far_ahead_begins_at_once() -> None:
    start = time.process_time()
    assert list(reader.buffered(lambda: range(4), 2**31)()) == [0, 1, 2, 3]
    assert time.process_time() - start < 5


def test_reading_ahead_that_was_interrupted_while_it_was_made() -> None:
    """The destructor of an object whose `__init__` did not run raises nothing and leaves nothing to wait for."""
    unmade = Ahead.__new__(Ahead)
    unmade.__del__()
    assert vars(unmade) == {}


def test_files_that_are_no_text_and_folders(tmp_path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes("ä\n".encode("latin-1"))
    with pytest.raises(OpValueError, match="not a text file in UTF-8"):
        list(reader.creator.text_file(file)())
    with pytest.raises(OpValueError, match="There is no file"):
        reader.creator.recordio(str(tmp_path))
