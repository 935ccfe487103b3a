"""CoNLL-2005: words and props of the archive, the three dicts, the word vectors, and the synthetic data."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data import dataset
from fluidnb.data.dataset import conll05
from fluidnb.data.dataset.roles import corpus, labels
from fluidnb.errors import EnforceNotMet
from tests.tools.refused import refused

WORDS = "The\nold cat\nsaw\nand\nate\nit\n\nRain\n\nGo\n\n".replace("old cat", "cat")
PROPS = """\
-     (A0*   (A0*
-     *)     *)
see   (V*)   *
-     *      *
eat   *      (V*)
-     *      (A1*)

-

go    (V*)

"""
FILES = "conll05st-release/test.wsj/words/test.wsj.words.gz", "conll05st-release/test.wsj/props/test.wsj.props.gz"


@pytest.fixture
def files(serve, tar) -> None:
    """Three sentences: with two verbs, with none, and with one that is all of it."""
    texts = {name: gzip.compress(text.encode()) for name, text in zip(FILES, (WORDS, PROPS), strict=True)}
    serve(conll05, "DATA_MD5", "conll05st/conll05st-tests.tar.gz", tar({"conll05st-release/README": b"", **texts}))
    serve(conll05, "WORDDICT_MD5", "conll05st/wordDict.txt", b"unknown\nbos\neos\nThe\ncat\nsaw\nate\nit\n")
    serve(conll05, "VERBDICT_MD5", "conll05st/verbDict.txt", b"eat\nsee\ngo\n")
    serve(conll05, "TRGDICT_MD5", "conll05st/targetDict.txt", b"B-V\nB-A0\nI-A0\nB-A1\nI-V\nO\n")
    serve(conll05, "EMB_MD5", "conll05st/emb", b"h" * 16 + np.arange(8 * 32, dtype="f4").tobytes())


def test_the_dicts(files: None) -> None:
    words, verbs, roles = conll05.get_dict()
    assert words == {w: i for i, w in enumerate(["unknown", "bos", "eos", "The", "cat", "saw", "ate", "it"])}
    assert verbs == {"eat": 0, "see": 1, "go": 2}
    assert roles == {"B-V": 0, "I-V": 1, "B-A0": 2, "I-A0": 3, "B-A1": 4, "I-A1": 5, "O": 6}
    words.clear()
    assert conll05.get_dict()[0]  # what a user does to a dict stays there


def test_the_embedding(files: None) -> None:
    path = conll05.get_embedding()
    assert (np.fromfile(path, np.float32, offset=16) == np.arange(8 * 32)).all()


def test_a_sample_for_each_verb(files: None, capsys: pytest.CaptureFixture[str]) -> None:
    saw, ate, go = conll05.test()()
    ids = [3, 4, 5, 0, 6, 7]
    assert saw == (ids, [3] * 6, [4] * 6, [5] * 6, [0] * 6, [6] * 6, [1] * 6, [1, 1, 1, 1, 1, 0], [2, 3, 0, 6, 6, 6])
    assert ate == (ids, [5] * 6, [0] * 6, [6] * 6, [7] * 6, [2] * 6, [0] * 6, [0, 0, 1, 1, 1, 1], [2, 3, 6, 6, 0, 4])
    assert go == ([0], [1], [1], [0], [2], [2], [2], [1], [0])
    assert "synthetic" not in capsys.readouterr().err


def test_labels() -> None:
    assert list(labels(["(A1*", "*", "*)", "*", "(AM-TMP*)", "(V*)"])) == [
        "B-A1",
        "I-A1",
        "I-A1",
        "O",
        "B-AM-TMP",
        "B-V",
    ]
    for wrong in ("A1*)", "(*", "(A1", "**", "*))", ""):
        with pytest.raises(ValueError, match="Unexpected label"):
            list(labels([wrong]))


@pytest.mark.parametrize(
    ("words", "props", "message"),
    [
        ("a\n\n", "see (V*)\n- *\n\n", 'the words and the props of "a" end at different lines'),
        ("a\nb\n\n", "see (V*)\n\n\n", 'the words and the props of "a" end at different lines'),
        ("a\nb\n\n", "see (V*)\n-\n\n", '"a b" has 1 verbs and another number of columns'),
        ("a\n\n", "see (V\n\n", "Unexpected label: "),
        ("a\n\n", "see (A0*)\n\n", "'B-V' is not in list"),
        ("a\n\n", "fly (V*)\n\n", "conll05st-tests.tar.gz cannot be read: fly"),
        ("a\nb\n\n", "see (V*)\n- (A9*)\n\n", "conll05st-tests.tar.gz cannot be read: B-A9"),
    ],
)
def test_lines_that_do_not_fit_are_named(files: None, serve, tar, words: str, props: str, message: str) -> None:
    texts = {name: gzip.compress(text.encode()) for name, text in zip(FILES, (words, props), strict=True)}
    serve(conll05, "DATA_MD5", "conll05st/conll05st-tests.tar.gz", tar(texts))
    with refused(EnforceNotMet, message) as e:
        list(conll05.test()())
    assert "conll05st-tests.tar.gz" in str(e.value)


def test_an_archive_without_props_is_named(files: None, serve, tar) -> None:
    serve(conll05, "DATA_MD5", "conll05st/conll05st-tests.tar.gz", tar({FILES[0]: gzip.compress(b"a\n")}))
    with pytest.raises(EnforceNotMet, match=f"has no {FILES[1]}"):
        list(conll05.test()())
    serve(conll05, "DATA_MD5", "conll05st/conll05st-tests.tar.gz", tar({FILES[0]: b"a\n", FILES[1]: b""}))
    with pytest.raises(EnforceNotMet, match=f"{FILES[0]} of .* cannot be read: Not a gzipped file"):
        list(conll05.test()())


def test_true_dicts_with_vectors_made_up(files: None) -> None:
    conll05.get_dict()
    dataset.download(False)
    conll05.test()
    assert np.fromfile(conll05.get_embedding(), "f4", offset=16).shape == (8 * 32,)


def test_one_file_that_is_missing_makes_all_a_stand_in(files: None, cache, capsys) -> None:
    conll05.get_dict()
    dataset.download(False)
    next((cache / "conll05st").glob("*verbDict*")).unlink()
    assert len(conll05.get_dict()[0]) > 50
    assert "conll05 is synthetic data" in capsys.readouterr().err


def test_the_stand_in() -> None:
    words, verbs, roles = conll05.get_dict()
    samples = list(conll05.test()())
    assert len(samples) == 5_267 and roles["O"] == len(roles) - 1
    assert {w for s in samples for field in s[:6] for w in field} <= set(range(1, len(words)))  # none is unknown
    assert {v for s in samples for v in s[6]} <= set(range(len(verbs)))
    assert 20 < np.mean([len(s[0]) for s in samples]) < 30
    assert {r for s in samples for r in s[8]} <= set(roles.values())
    assert all(sum(s[7]) == len(set(range(k - 2, k + 3)) & set(range(len(s[0])))) for s in samples
               for k in [s[8].index(roles["B-V"])])  # fmt: skip
    path = conll05.get_embedding()
    values = np.fromfile(path, np.float32, offset=16)
    assert values.size == 32 * len(words) and np.abs(values).max() <= 0.1 and conll05.get_embedding() == path


def test_the_last_sentence_needs_no_empty_line() -> None:
    assert len(list(corpus(["Go"], ["go (V*)"]))) == 1


def test_batches_feed_a_program() -> None:
    vs = [fluid.layers.data(f"f{i}", [1], dtype="int64", lod_level=1) for i in range(9)]
    batch = next(iter(fluid.batch(conll05.test(), 4)()))
    fed = fluid.DataFeeder(vs, fluid.CPUPlace()).feed(batch)
    assert {str(fed[f"f{i}"].recursive_sequence_lengths()) for i in range(9)} == {str([[len(s[0]) for s in batch]])}
