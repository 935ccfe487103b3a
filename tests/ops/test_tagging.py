"""Conditional random fields, chunks, edit distances and CTC, against every way there is."""

from itertools import product

import numpy as np
import pytest

from fluidnb.errors import EnforceNotMet, OpValueError
from fluidnb.op import RuleError
from fluidnb.testing import run_op
from tests.ops.cases import Differentiable, Forward, family, values
from tests.ops.sequence_cases import rows, split
from tests.tools.refused import refused

LENGTHS = {"": [[2, 3, 1]], "/empty": [[3, 0, 2]]}
TAGS = 3


def score(x, transition, way):
    """The score of one way of tagging a sequence."""
    inner = sum(transition[2 + a, b] for a, b in zip(way[:-1], way[1:], strict=True))
    return transition[0, way[0]] + transition[1, way[-1]] + inner + sum(x[range(len(way)), list(way)])


def ways(x):
    return list(product(range(x.shape[1]), repeat=len(x)))


def crf_cost(x, transition, tags):
    if not len(x):
        return 0.0
    return np.log(sum(np.exp(score(x, transition, way)) for way in ways(x))) - score(x, transition, tags)


def best(x, transition):
    return max(ways(x), key=lambda way: score(x, transition, way)) if len(x) else ()


def words(lengths, bound, seed=0):
    return np.random.default_rng(seed).integers(0, bound, (rows(lengths), 1))


def padded(x, lengths, steps):
    out = np.zeros((len(lengths[0]), steps, x.shape[1]), x.dtype)
    for row, part in zip(out, split(x, lengths), strict=True):
        row[: len(part)] = part
    return out


def crf_cases():
    transition = values(TAGS + 2, TAGS, seed=1)
    for name, lengths in LENGTHS.items():
        x, label = values(rows(lengths), TAGS), words(lengths, TAGS)
        pairs = list(zip(split(x, lengths), split(label[:, 0], lengths), strict=True))
        costs = np.array([[crf_cost(part, transition, tags)] for part, tags in pairs])
        path = np.array([[tag] for part, _ in pairs for tag in best(part, transition)])
        inputs = {"Emission": (x, lengths), "Transition": transition, "Label": (label, lengths)}
        outside = {
            "Emission": padded(x, lengths, 4), "Transition": transition, "Label": padded(label, lengths, 4),
            "Length": np.array(lengths[0])[:, None],
        }  # fmt: skip
        for kind, given in (("", inputs), ("/padded", outside)):
            yield f"linear_chain_crf{kind}{name}", {
                "inputs": given, "outputs": {"LogLikelihood": costs}, "grads": ("Emission", "Transition"),
                "loss": ("LogLikelihood",),
            }  # fmt: skip
        yield f"crf_decoding{name}", {
            "inputs": {s: v for s, v in inputs.items() if s != "Label"}, "outputs": {"ViterbiPath": (path, lengths)},
        }  # fmt: skip
        right = (path == label).astype("int64")
        yield f"crf_decoding/right{name}", {"inputs": inputs, "outputs": {"ViterbiPath": (right, lengths)}}
        yield f"crf_decoding/padded{name}", {
            "inputs": {s: v for s, v in outside.items() if s != "Label"},
            "outputs": {"ViterbiPath": padded(path, lengths, 4)[..., 0]},
        }  # fmt: skip


CRF = dict(crf_cases())
family(globals(), Differentiable, {name: case for name, case in CRF.items() if "loss" in case})
family(globals(), Forward, {name: case for name, case in CRF.items() if "loss" not in case})

MEANING = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": "P"}


def chunks_of(labels, scheme, types):
    """First word, last word and type of each chunk, word by word."""
    found, begin = set(), None
    before, last = "O", None
    for i, label in enumerate([*labels, types * len(MEANING[scheme])]):
        kind, tag = divmod(int(label), len(MEANING[scheme]))
        letter = "O" if kind == types else MEANING[scheme][tag]
        new = letter == "O" or kind != last or letter in "BS" or before in "ES"
        if new:
            if begin is not None:
                found.add((begin, i - 1, last))
            begin = None if letter == "O" else i
        before, last = letter, kind
    return found


def chunk_case(scheme, types, seed, excluded=()):
    rng = np.random.default_rng(seed)
    lengths = [rng.integers(1, 20, 4).tolist()]
    bound = types * len(MEANING[scheme]) + 1
    found, right = words(lengths, bound, seed), words(lengths, bound, seed + 1)
    found = np.where(rng.random(found.shape) < 0.6, right, found)
    counts = np.zeros(3, "int64")
    for mine, theirs in zip(split(found[:, 0], lengths), split(right[:, 0], lengths), strict=True):
        one, other = (
            {c for c in chunks_of(labels, scheme, types) if c[2] not in excluded} for labels in (mine, theirs)
        )
        counts += len(one), len(other), len(one & other)
    assert 0 < counts[2] < counts[:2].min()
    precision, recall = counts[2] / counts[:2]
    shares = (precision, recall, 2 * precision * recall / (precision + recall))
    outputs = {s: np.array([v], "float32") for s, v in zip(("Precision", "Recall", "F1-Score"), shares, strict=True)}
    names = ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    outputs |= {s: np.array([v]) for s, v in zip(names, counts, strict=True)}
    attrs = {"num_chunk_types": types, "chunk_scheme": scheme, "excluded_chunk_types": list(excluded)}
    return {"inputs": {"Inference": (found, lengths), "Label": (right, lengths)}, "attrs": attrs, "outputs": outputs}


IOB = chunk_case("IOB", 2, 3)
family(
    globals(),
    Forward,
    {f"chunk_eval/{scheme}{types}": chunk_case(scheme, types, 5) for scheme in MEANING for types in (2, 3)}
    | {
        "chunk_eval/excluded": chunk_case("IOB", 3, 2, excluded=(0, 2)),
        "chunk_eval/padded": IOB | {
            "inputs": {slot: padded(*given, 20) for slot, given in IOB["inputs"].items()}
            | {"SeqLength": np.array(IOB["inputs"]["Label"][1][0])[:, None]},
        },
        "edit_distance": {
            "inputs": {
                "Hyps": (np.array([[1], [2], [3], [1], [1]]), [[3, 2, 0]]),
                "Refs": (np.array([[1], [3], [3], [4], [2], [7]]), [[4, 0, 2]]),
            },
            "outputs": {"Out": np.array([[2], [2], [2]], "float32"), "SequenceNum": np.array([3])},
        },
        "edit_distance/normalized": {
            "inputs": {"Hyps": (np.array([[1], [2], [3]]), [[3]]), "Refs": (np.array([[2], [3], [4], [5]]), [[4]])},
            "attrs": {"normalized": True},
            "outputs": {"Out": np.array([[0.75]], "float32"), "SequenceNum": np.array([1])},
        },
        "edit_distance/padded": {
            "inputs": {
                "Hyps": np.array([[1, 2, 9], [5, 9, 9]]), "HypsLength": np.array([2, 1]),
                "Refs": np.array([[2, 9], [5, 6]]), "RefsLength": np.array([1, 2]),
            },
            "outputs": {"Out": np.array([[1], [1]], "float32"), "SequenceNum": np.array([2])},
        },
        "ctc_align": {
            "inputs": {"Input": (np.array([[0], [2], [2], [0], [2], [3], [3], [1]]), [[5, 0, 3]])},
            "outputs": {"Output": (np.array([[2], [2], [3], [1]]), [[2, 0, 2]])},
        },
        "ctc_align/as_it_is": {
            "inputs": {"Input": (np.array([[0], [2], [2], [1]], "int32"), [[4]])},
            "attrs": {"merge_repeated": False, "blank": 1},
            "outputs": {"Output": (np.array([[0], [2], [2]], "int32"), [[3]])},
        },
        "ctc_align/padded": {
            "inputs": {"Input": np.array([[1, 1, 0, 1], [0, 2, 2, 2]]), "InputLength": np.array([[4], [1]])},
            "attrs": {"padding_value": 7},
            "outputs": {"Output": np.array([[1, 1, 7, 7], [7, 7, 7, 7]]), "OutputLength": np.array([[2], [0]])},
        },
    },
)  # fmt: skip


def said(way, blank):
    """The labels that a class for each time step stands for: blanks and repetitions are left out."""
    return tuple(c for i, c in enumerate(way) if c != blank and (not i or c != way[i - 1]))


def ctc_cost(x, label, blank):
    chances = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    total = sum(np.prod(chances[range(len(x)), list(way)]) for way in ways(x) if said(way, blank) == tuple(label))
    return -np.log(total)


def ctc_cases():
    steps, counts, classes = [[4, 3, 5]], [[2, 1, 2]], 4
    for blank in (0, 3):
        x, label = values(rows(steps), classes), np.array([[1], [1], [2], [2], [1]], "int32")
        costs = [[ctc_cost(*pair, blank)] for pair in zip(split(x, steps), split(label[:, 0], counts), strict=True)]
        case = {"outputs": {"Loss": np.array(costs)}, "loss": ("Loss",), "grads": ("Logits",)}
        case["attrs"] = {"blank": blank}
        inputs = {"Logits": (x, steps), "Label": (label, counts)}
        yield f"warpctc/{blank}", case | {"inputs": inputs}
        lengths = {"LogitsLength": np.array(steps[0]), "LabelLength": np.array(counts[0])}
        inputs = {"Logits": padded(x, steps, 6).swapaxes(0, 1).copy(), "Label": padded(label, counts, 3)[..., 0]}
        yield f"warpctc/padded{blank}", case | {"inputs": inputs | lengths}
    x = values(3, 3)
    yield "warpctc/silence", {
        "inputs": {"Logits": (x, [[2, 1]]), "Label": (np.array([[1]]), [[0, 1]])},
        "outputs": {"Loss": np.array([[ctc_cost(x[:2], [], 0)], [ctc_cost(x[2:], [1], 0)]])},
        "loss": ("Loss",), "grads": ("Logits",),
    }  # fmt: skip


family(globals(), Differentiable, dict(ctc_cases()))


def test_a_label_sequence_that_is_too_long_costs_nothing():
    inputs = {"Logits": (values(4, 3), [[2, 2]]), "Label": (np.array([[1], [1], [1]]), [[2, 1]])}
    got = run_op("warpctc", inputs)
    assert got["Loss"][0] == 0 and got["Loss"][1] > 0
    assert not got["WarpCTCGrad"][:2].any() and got["WarpCTCGrad"][2:].all()


def test_gradients_by_the_number_of_steps():
    given = {"Logits": (values(6, 3), [[2, 4]]), "WarpCTCGrad": values(6, 3, seed=1)}
    given["Loss@GRAD"] = np.array([[1.0], [3.0]])
    got = run_op("warpctc_grad", given, {"norm_by_times": True}, ["Logits@GRAD"])["Logits@GRAD"].array
    np.testing.assert_allclose(got, given["WarpCTCGrad"] * np.repeat([[0.5], [0.75]], [2, 4], 0))


def test_where_nothing_is_said():
    got = run_op("ctc_align", {"Input": (np.zeros((3, 1), "int64"), [[2, 1]])}, outputs=["Output"])["Output"]
    assert got.array.tolist() == [[-1]] and got.lod() == [[0, 0, 0]]


GOOD = CRF["linear_chain_crf"]["inputs"]
BATCH = {"Emission": values(2, 3, 3), "Transition": values(5, 3)}
WORDS = words([[3]], 3)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("linear_chain_crf", GOOD | {"Emission": GOOD["Emission"][0]}, {}, "does not contain LoD information"),
        ("linear_chain_crf", GOOD | {"Transition": values(3, 3)}, {}, "two more"),
        ("linear_chain_crf", GOOD | {"Transition": values(6, 4)}, {}, "a number for each tag"),
        ("linear_chain_crf", GOOD | {"Label": values(6, 1)}, {}, "must hold integers"),
        ("linear_chain_crf", GOOD | {"Label": np.zeros((5, 1), int)}, {}, "a tag at each position"),
        ("crf_decoding", BATCH | {"Length": [4, 1]}, {}, "fit the steps"),
        ("crf_decoding", BATCH | {"Length": [1]}, {}, "a length each"),
        ("chunk_eval", {"Inference": WORDS[:2], "Label": WORDS}, {"num_chunk_types": 1}, "same as Label"),
        (
            "chunk_eval", {"Inference": (WORDS, [[1, 2]]), "Label": (WORDS, [[3]])},
            {"num_chunk_types": 1}, "LoD must be the same",
        ),
        ("edit_distance", {"Hyps": (WORDS, [[3]]), "Refs": (WORDS, [[1, 2]])}, {}, "must be the same"),
        ("edit_distance", {"Hyps": WORDS, "Refs": WORDS, "HypsLength": [1]}, {}, "both or not"),
        ("ctc_align", {"Input": (values(3, 1), [[3]])}, {}, "must hold integers"),
        ("warpctc", {"Logits": (values(3, 4), [[3]]), "Label": (words([[1]], 3), [[1]])}, {"blank": 4}, "name a class"),
        ("warpctc", {"Logits": (values(3, 4), [[3]]), "Label": (words([[2]], 3), [[1, 1]])}, {}, "a sequence for each"),
    ],
)  # fmt: skip
def test_what_does_not_fit(op, inputs, attrs, message):
    with refused(RuleError, message):
        run_op(op, {s: np.array(v) if isinstance(v, list) else v for s, v in inputs.items()}, attrs)


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "message"),
    [
        ("linear_chain_crf", GOOD | {"Label": (np.full((6, 1), 3), [[2, 3, 1]])}, {}, "must name tags"),
        ("warpctc", {"Logits": (values(3, 4), [[3]]), "Label": (np.array([[4]]), [[1]])}, {}, "must name classes"),
        (
            "edit_distance", {"Hyps": (words([[2]], 3), [[1, 1]]), "Refs": (words([[1]], 3), [[1, 0]])},
            {"normalized": True}, "Reference string is empty",
        ),
    ],
)  # fmt: skip
def test_values_that_do_not_fit(op, inputs, attrs, message):
    with refused(EnforceNotMet, message):
        run_op(op, inputs, attrs)


def test_a_scheme_that_there_is_not():
    with pytest.raises(OpValueError, match="enum"):
        run_op("chunk_eval", IOB["inputs"], {"num_chunk_types": 2, "chunk_scheme": "IOC"})
