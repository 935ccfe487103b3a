"""detection_map: average precision, batch by batch."""

import numpy as np
import pytest

from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops import boxes as plain
from tests.ops.cases import Forward, family, values
from tests.tools.refused import refused

CLASSES = 4


def batch(seed, images=3, difficult=True):
    """Detections near objects and elsewhere: rows and lengths of both."""
    rng = np.random.default_rng(seed)
    objects, found, counts = [], [], ([], [])
    for _ in range(images):
        n, m = rng.integers(0, 5), rng.integers(0, 7)
        corner = rng.uniform(0, 0.6, (n, 2))
        own = np.concatenate([corner, corner + rng.uniform(0.1, 0.4, (n, 2))], 1)
        kinds = rng.integers(1, CLASSES, (n, 1))
        objects.append(np.concatenate([kinds, rng.integers(0, 2, (n, 1 * difficult)), own], 1))
        near = own[rng.integers(0, n, m)] + rng.normal(0, 0.03, (m, 4)) if n else rng.uniform(0, 1, (m, 4))
        kinds = np.where(rng.random((m, 1)) < 0.7, rng.integers(1, CLASSES, (m, 1)), rng.integers(0, CLASSES, (m, 1)))
        found.append(np.concatenate([kinds, rng.permutation(m)[:, None] / 9 + 0.05, near], 1))
        counts[0].append(n)
        counts[1].append(m)
    return (np.concatenate(found), [counts[1]]), (np.concatenate(objects), [counts[0]])


def collected(found, label, limit, every):
    """Objects of each class and (class -> score, right) of all detections that count, one by one."""
    counts, rows = {}, {}
    (boxes, (many,)), (objects, (real,)) = found, label
    ends, stops = np.cumsum(many), np.cumsum(real)
    for end, m, stop, n in zip(ends, many, stops, real, strict=True):
        mine = [(int(o[0]), bool(o[1]) if len(o) == 6 else False, o[-4:]) for o in objects[stop - n : stop]]
        for kind, hard, _ in mine:
            counts[kind] = counts.get(kind, 0) + (every or not hard)
        seen = set()
        for row in sorted(boxes[end - m : end], key=lambda r: -r[1]):
            rivals = [(plain.overlap(np.clip(row[2:], 0, 1), box), -i) for i, (k, _, box) in enumerate(mine)
                      if k == int(row[0])]  # fmt: skip
            best, i = max(rivals, default=(0, 0))
            right = best > limit
            if right and not every and mine[-i][1]:
                continue
            rows.setdefault(int(row[0]), []).append((row[1], right and -i not in seen))
            seen |= {-i} if right else set()
    return {k: n for k, n in counts.items() if n}, rows


def precision(rows, objects, eleven):
    """Average precision of one class, detection by detection."""
    right, points = 0, []
    for i, (_, hit) in enumerate(sorted(rows, key=lambda r: -r[0]), 1):
        right += hit
        points.append((right / objects, right / i))
    if eleven:
        return sum(max([p for r, p in points if r >= j / 10], default=0) for j in range(11)) / 11
    return sum(p * (r - q) for (r, p), q in zip(points, [0, *(r for r, _ in points)], strict=False))


def mean(counts, rows, eleven):
    """The mean over the classes that have objects."""
    each = [precision(rows.get(k, []), n, eleven) for k, n in counts.items()]
    return np.array([np.mean(each) if each else 0.0])


def case(seed, limit=0.5, every=True, eleven=False, difficult=True):
    found, label = batch(seed, difficult=difficult)
    value = mean(*collected(found, label, limit, every), eleven)
    attrs = {"class_num": CLASSES, "overlap_threshold": limit, "evaluate_difficult": every}
    attrs["ap_type"] = "11point" if eleven else "integral"
    return {"inputs": {"DetectRes": found, "Label": label}, "outputs": {"MAP": value}, "attrs": attrs}


family(
    globals(),
    Forward,
    {
        "detection_map": case(1),
        "detection_map/easy": case(2, every=False),
        "detection_map/near": case(3, limit=0.8),
        "detection_map/eleven": case(4, eleven=True),
        "detection_map/plain": case(5, difficult=False),
    },
)


def joined(one, two):
    """The images of two batches as one batch."""
    return np.concatenate([one[0], two[0]]), [one[1][0] + two[1][0]]


def lengths(tensor):
    return np.asarray(tensor), tensor.recursive_sequence_lengths()


@pytest.mark.parametrize("eleven", [False, True])
def test_two_batches_give_what_one_gives(eleven):
    attrs = {"class_num": CLASSES, "ap_type": "11point" if eleven else "integral"}
    (found, label), (more, truth) = batch(6), batch(7)
    first = run_op("detection_map", {"DetectRes": found, "Label": label}, attrs)
    states = {"HasState": np.array([1], "int32"), "PosCount": first["AccumPosCount"]}
    states |= {s: lengths(first[f"Accum{s}"]) for s in ("TruePos", "FalsePos")}
    second = run_op("detection_map", {"DetectRes": more, "Label": truth, **states}, attrs)
    whole = run_op("detection_map", {"DetectRes": joined(found, more), "Label": joined(label, truth)}, attrs)
    np.testing.assert_allclose(second["MAP"], whole["MAP"], 1e-12)
    np.testing.assert_array_equal(second["AccumPosCount"], whole["AccumPosCount"])
    assert second["AccumTruePos"].lod() == whole["AccumTruePos"].lod()
    np.testing.assert_allclose(second["MAP"], mean(*collected(joined(found, more), joined(label, truth), 0.5, True),
                                                   eleven), 1e-12)  # fmt: skip
    flat = {**states, "PosCount": first["AccumPosCount"].ravel()}
    again = run_op("detection_map", {"DetectRes": more, "Label": truth, **flat}, attrs)
    np.testing.assert_array_equal(again["AccumPosCount"], whole["AccumPosCount"])
    unread = {**states, "HasState": np.array([0], "int32")}
    alone = run_op("detection_map", {"DetectRes": more, "Label": truth, **unread}, attrs)
    np.testing.assert_allclose(alone["MAP"], mean(*collected(more, truth, 0.5, True), eleven), 1e-12)
    assert abs(alone["MAP"] - second["MAP"]) > 1e-3


def test_states_have_a_sequence_for_each_class():
    found, label = batch(1)
    out = run_op("detection_map", {"DetectRes": found, "Label": label}, {"class_num": CLASSES})
    counts, rows = collected(found, label, 0.5, True)
    for k, part in enumerate(np.split(np.asarray(out["AccumTruePos"]), out["AccumTruePos"].lod()[0][1:-1])):
        assert sorted(map(tuple, part.tolist())) == sorted(rows.get(k, []))
    np.testing.assert_array_equal(out["AccumTruePos"].array[:, 1], 1 - out["AccumFalsePos"].array[:, 1])
    assert out["AccumPosCount"].ravel().tolist() == [counts.get(k, 0) for k in range(CLASSES)]


def test_a_class_without_a_detection_counts_0():
    found = ([[1.0, 0.9, 0.0, 0.0, 0.5, 0.5]], [[1]])
    label = ([[1.0, 0.0, 0.0, 0.5, 0.5], [2.0, 0.5, 0.5, 1.0, 1.0]], [[2]])
    assert run_op("detection_map", {"DetectRes": found, "Label": label}, {"class_num": 3})["MAP"].tolist() == [0.5]


def test_no_detection_at_all():
    _, label = batch(1)
    none = (np.array([[-1.0]]), [[1]])  # what multiclass_nms gives
    out = run_op("detection_map", {"DetectRes": none, "Label": label}, {"class_num": CLASSES})
    assert out["MAP"].tolist() == [0.0] and out["AccumTruePos"].shape() == [0, 2]
    assert out["AccumPosCount"].sum() == len(label[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"DetectRes": values(2, 6)}, "does not contain LoD"),
        ({"DetectRes": (values(2, 5), [[1, 1, 0]])}, "must hold detections"),
        ({"DetectRes": (values(2, 6), [[1, 1]])}, "must have a sequence for each image"),
        ({"Label": (values(3, 4), [[1, 1, 1]])}, "must have the shape"),
        ({"PosCount": np.zeros((CLASSES, 1), "int32")}, "all its counts so far, or none"),
        (
            {"HasState": np.array([1], "int32"), "PosCount": np.zeros((2, 1), "int32"),
             "TruePos": (np.zeros((0, 2)), [[0] * 2]), "FalsePos": (np.zeros((0, 2)), [[0] * 2])},
            "must have a number per class",
        ),
        (
            {"HasState": np.array([1], "int32"), "PosCount": np.zeros((CLASSES, 1), "int32"),
             "TruePos": (np.zeros((1, 2)), [[1, 0, 0, 0]]), "FalsePos": (np.zeros((1, 2)), [[0, 1, 0, 0]])},
            "must have a sequence for each class",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit(change, message):
    found, label = batch(1)
    with refused(RuleError, message):
        run_op("detection_map", {"DetectRes": found, "Label": label, **change}, {"class_num": CLASSES})


def test_a_number_of_classes_that_no_memory_holds():
    found, label = batch(1)
    with pytest.raises(ValueError, match="class_num must be 1048576 or less"):
        run_op("detection_map", {"DetectRes": found, "Label": label}, {"class_num": 2**31 - 1})
