"""WMT14 and WMT16: pairs of sentences in the archives, their dicts, and the synthetic data."""

from __future__ import annotations

import itertools

import pytest

import fluidnb as fluid
from fluidnb.data.dataset import wmt14, wmt16
from fluidnb.errors import EnforceNotMet, OpValueError
from tests.tools.refused import refused

SRC = "<s> <e> <unk> the cat sat".split()
TRG = "<s> <e> <unk> le chat".split()
PAIRS14 = (
    "the cat\tle chat\nno translation\na\tb\tc\nthe dog sat\tle chien\n"
    + "the " * 79
    + "\tle\nthe\t"
    + "le " * 81
    + "\n"
)
PAIRS16 = "a cat sat\teine Katze saß\nonly one\na cat\teine Kätzin\n"


@pytest.fixture
def files(serve, tar) -> None:
    """Both archives."""
    fourteen = {
        "wmt14/train/train": PAIRS14,
        "wmt14/src.dict": "\n".join(SRC) + "\n",
        "wmt14/test/test": "sat\tchat\n",
        "wmt14/gen/gen": "cat\tchat\n",
        "wmt14/trg.dict": "\n".join(TRG) + "\n",
    }
    serve(wmt14, "MD5_TRAIN", "wmt14/wmt14.tgz", tar({k: v.encode() for k, v in fourteen.items()}))
    sixteen = {"wmt16/train": PAIRS16, "wmt16/test": "cat\tKatze\n", "wmt16/val": "a a\tHund eine\n"}
    serve(wmt16, "DATA_MD5", "wmt16/wmt16.tar.gz", tar({k: v.encode() for k, v in sixteen.items()}))


def test_wmt14(files: None, mirror) -> None:
    assert list(wmt14.train(30)()) == [
        ([0, 3, 4, 1], [0, 3, 4], [3, 4, 1]),
        ([0, 3, 2, 5, 1], [0, 3, 2], [3, 2, 1]),
    ]  # longer ones are left out, lines without a pair too
    assert list(wmt14.train(4)())[0] == ([0, 3, 2, 1], [0, 3, 2], [3, 2, 1])
    assert list(wmt14.test(30)()) == [([0, 5, 1], [0, 4], [4, 1])]
    assert list(wmt14.gen(30)()) == [([0, 4, 1], [0, 4], [4, 1])]
    assert len(mirror.asked) == 1


def test_sentences_of_80_are_kept(files: None, serve, tar) -> None:
    text = "the " * 78 + "\t" + "le " * 80 + "\n"
    names = {"src.dict": "\n".join(SRC), "trg.dict": "\n".join(TRG), "train/train": text}
    serve(wmt14, "MD5_TRAIN", "wmt14/wmt14.tgz", tar({f"wmt14/{k}": v.encode() for k, v in names.items()}))
    assert [tuple(map(len, s)) for s in wmt14.train(30)()] == [(80, 81, 81)]


def test_dicts_of_wmt14(files: None) -> None:
    source, target = wmt14.get_dict(5)
    assert source == dict(enumerate(SRC[:5])) and target == dict(enumerate(TRG))
    source, target = wmt14.get_dict(100, reverse=False)
    assert source == {w: i for i, w in enumerate(SRC)} and target["chat"] == 4


def test_a_dict_of_another_kind_is_named(files: None, serve, tar) -> None:
    serve(wmt14, "MD5_TRAIN", "wmt14/wmt14.tgz", tar({"a/src.dict": b"x\n", "a/trg.dict": b"<s>\nle\n"}))
    with pytest.raises(EnforceNotMet, match="trg.dict of .*wmt14.tgz cannot be read: it does not begin with <s>, <e>"):
        wmt14.get_dict(5)
    serve(wmt14, "MD5_TRAIN", "wmt14/wmt14.tgz", tar({"a/src.dict": b"x\n"}))
    with pytest.raises(EnforceNotMet, match="there is no file trg.dict in it"):
        list(wmt14.train(6)())


def test_wmt16(files: None, mirror) -> None:
    en, de = wmt16.get_dict("en", 100), wmt16.get_dict("de", 100)
    assert list(en) == ["<s>", "<e>", "<unk>", "a", "cat", "sat"]  # by count, equal ones as they come
    assert list(de) == ["<s>", "<e>", "<unk>", "eine", "Katze", "saß", "Kätzin"]
    assert wmt16.get_dict("de", 4, reverse=True) == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "eine"}
    assert list(wmt16.train(100, 100)()) == [
        ([0, 3, 4, 5, 1], [0, 3, 4, 5], [3, 4, 5, 1]),
        ([0, 3, 4, 1], [0, 3, 6], [3, 6, 1]),
    ]
    assert list(wmt16.test(100, 4)()) == [([0, 4, 1], [0, 2], [2, 1])]
    assert list(wmt16.validation(100, 100)()) == [([0, 3, 3, 1], [0, 2, 3], [2, 3, 1])]
    assert list(wmt16.validation(100, 100, "de")()) == [([0, 2, 3, 1], [0, 3, 3], [3, 3, 1])]
    assert len(mirror.asked) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wmt14.train(2), "dict_size should be an int of 3 or more"),
        (lambda: wmt14.get_dict(True), "dict_size should be an int of 3 or more"),
        (lambda: wmt16.train(3.0, 5), "src_dict_size should be an int of 3 or more"),
        (lambda: wmt16.test(3, -1), "trg_dict_size should be an int of 3 or more"),
        (lambda: wmt16.validation(3, 3, "fr"), "An error language type in src_lang"),
        (lambda: wmt16.get_dict("fr", 3), "An error language type in lang"),
    ],
)
def test_wrong_arguments(call, message: str) -> None:
    with refused(OpValueError, message):
        call()


def test_the_sizes_of_wmt16_have_a_limit(files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(wmt16._TOTALS, "en", 4)
    assert list(wmt16.get_dict("en", 100)) == ["<s>", "<e>", "<unk>", "a"]
    assert list(wmt16.test(100, 100)()) == [([0, 2, 1], [0, 4], [4, 1])]


def test_the_stand_ins_translate_word_by_word() -> None:
    first, second = wmt14.get_dict(30_000)
    for source, target, following in itertools.islice(wmt14.test(30_000)(), 60):
        assert [first[i][::-1] for i in source[1:-1]] == [second[i] for i in target[1:]]
        assert following == [*target[1:], 1]
    english, german = wmt16.get_dict("en", 11_250, reverse=True), wmt16.get_dict("de", 19_220, reverse=True)
    for source, target, _ in itertools.islice(wmt16.validation(11_250, 19_220)(), 60):
        pairs = zip((english[i][::-1] for i in source[1:-1]), (german[i] for i in target[1:]), strict=True)
        assert all(word in (base, f"{base}en") for base, word in pairs)
    assert {tuple(s) for s, _, _ in wmt16.test(99, 99)()} != {tuple(s) for s, _, _ in wmt16.validation(99, 99)()}


def test_batches_feed_a_program() -> None:
    vs = [fluid.layers.data(n, [1], dtype="int64", lod_level=1) for n in ("source", "target", "next")]
    batch = next(iter(fluid.batch(wmt16.train(50, 50, "de"), 5)()))
    fed = fluid.DataFeeder(vs, fluid.CPUPlace()).feed(batch)
    assert fed["next"].recursive_sequence_lengths() == [[len(s[2]) for s in batch]]
