"""0.11: chunks and edit distances, added up by the program over a pass."""

import numpy as np
import paddle.v2 as paddle
import paddle.v2.fluid as fluid

TAGS = 5  # B and I of two kinds, and O

found = fluid.layers.data(name="found", shape=[1], dtype="int64", lod_level=1)
right = fluid.layers.data(name="right", shape=[1], dtype="int64", lod_level=1)
chunks = fluid.evaluator.ChunkEvaluator(input=found, label=right, chunk_scheme="IOB", num_chunk_types=2)
distance = fluid.evaluator.EditDistance(input=found, label=right)

place = fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder(feed_list=[found, right], place=place)

rng = np.random.RandomState(0)
sentences = []
for length in rng.randint(2, 8, 40):
    tags = rng.randint(0, TAGS, length)
    guess = np.where(rng.rand(length) < 0.8, tags, rng.randint(0, TAGS, length))
    sentences.append((guess.tolist(), tags.tolist()))


def starts(tags):
    """Chunks as (first, one after the last, kind)."""
    out, begin = [], None
    for i, tag in enumerate([*tags, 4]):
        kind, inside = divmod(tag, 2)
        if begin is not None and (tag == 4 or not inside or kind != begin[1]):
            out.append((begin[0], i, begin[1]))
            begin = None
        if tag != 4 and begin is None:
            begin = i, kind
    return set(out)


for pass_id in range(2):
    chunks.reset(exe)
    distance.reset(exe)
    for data in paddle.batch(lambda: iter(sentences), batch_size=7)():
        fetched = exe.run(
            fluid.default_main_program(), feed=feeder.feed(data), fetch_list=chunks.metrics + distance.metrics
        )
        assert len(fetched) == 5
    precision, recall, f1 = (float(value[0]) for value in chunks.eval(exe))
    mean, wrong = (float(np.ravel(value)[0]) for value in distance.eval(exe))
    print("pass", pass_id, precision, recall, f1, mean, wrong)
    both = [(starts(a), starts(b)) for a, b in sentences]
    hits = sum(len(a & b) for a, b in both)
    assert abs(precision - hits / sum(len(a) for a, _ in both)) < 1e-6
    assert abs(recall - hits / sum(len(b) for _, b in both)) < 1e-6
    assert abs(wrong - np.mean([a != b for a, b in sentences])) < 1e-6
    assert 0 < mean < 1
print("done")
