"""0.11 to 1.4: readers put together in every way."""

import functools

import numpy as np
import paddle.reader
import paddle.reader.creator


def ten():
    yield from range(10)


def part(index):
    for i in range(index, 30, 3):
        yield [i, [i + 1]]


assert list(paddle.reader.map_readers(lambda a, b: a + b, ten, ten)()) == list(range(0, 20, 2))
for size in range(4):
    assert list(paddle.reader.buffered(ten, size)()) == list(ten())
for size, same in ((0, True), (1, True), (10, False)):
    mixed = list(paddle.reader.shuffle(ten, size)())
    assert sorted(mixed) == list(ten()) and (not same or mixed == list(ten()))
assert list(paddle.reader.chain(ten, ten)()) == list(ten()) * 2
assert list(paddle.reader.compose(ten, functools.partial(part, 0))())[1] == (1, [3, [4]])
try:
    for _ in paddle.reader.compose(paddle.reader.chain(ten, ten), ten)():
        pass
except paddle.reader.ComposeNotAligned as error:
    print(error)
assert len(list(paddle.reader.compose(paddle.reader.chain(ten, ten), ten, check_alignment=False)())) == 10
for order in (True, False):
    for threads in (1, 4):
        squares = list(paddle.reader.xmap_readers(lambda i: i * i, ten, threads, 3, order)())
        assert (squares if order else sorted(squares)) == [i * i for i in ten()]
together = paddle.reader.multiprocess_reader([functools.partial(part, i) for i in range(3)], True, 100)
assert sorted(together()) == sorted(sample for i in range(3) for sample in part(i))
assert list(paddle.reader.firstn(ten, 3)()) == [0, 1, 2]
assert list(paddle.reader.cache(ten)()) == list(ten())
assert list(paddle.reader.Fake()(ten, 5)()) == [0] * 5
with open("lines.txt", "w") as file:
    file.write("0 1\n2 3\n")
assert list(paddle.reader.creator.text_file("lines.txt")()) == ["0 1", "2 3"]
assert list(paddle.reader.PipeReader("cat lines.txt", bufsize=2).get_line()) == ["0 1", "2 3"]
assert [row.tolist() for row in paddle.reader.creator.np_array(np.eye(2, dtype="int32"))()] == [[1, 0], [0, 1]]
print("done")
