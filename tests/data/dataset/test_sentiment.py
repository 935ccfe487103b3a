"""Sentiment: the archive with a review a file, the order of reviews, and the synthetic data."""

from __future__ import annotations

import io
import itertools
import zipfile

import pytest

import fluidnb as fluid
from fluidnb.data.dataset import sentiment
from fluidnb.errors import EnforceNotMet


def packed(files: dict[str, str]) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


REVIEWS = {
    **{f"movie_reviews/neg/cv{i}.txt": f"bad , bad film number{i} ." for i in range(5)},
    **{f"movie_reviews/pos/cv{i}.txt": f"Good film\nnumber{i} -- it's good !" for i in range(5)},
    "movie_reviews/README": "good good good",
}


def test_it_comes_from_its_file(serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(sentiment, "MD5", "corpora/movie_reviews.zip", packed(REVIEWS))
    numbers = dict(sentiment.get_word_dict())
    words = sentiment.get_word_dict()
    assert words[:3] == [("bad", 0), ("film", 1), ("good", 2)] and [n for _, n in words] == list(range(len(words)))
    assert {"'", "--", "!", ","} <= set(numbers) and "README" not in numbers
    train, test = list(sentiment.train()), list(sentiment.test())
    assert [label for _, label in train] == [0, 1] * 4 and [label for _, label in test] == [0, 1]
    assert train[0][0] == [numbers[w] for w in "bad , bad film number0 .".split()]
    assert test[1][0] == [numbers[w] for w in "good film number4 -- it ' s good !".split()]
    assert "synthetic" not in capsys.readouterr().err


def of_another_version() -> bytes:
    """An archive whose directory asks for version 25.5 of the format."""
    data = bytearray(packed(REVIEWS))
    at = data.index(b"PK\x01\x02")
    data[at + 6] = 255
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"no zip", "not a zip file"), (packed({"a": "b"}), "no reviews in it"), (of_another_version(), "version 25.5")],
)
def test_a_damaged_file_is_named(serve, data: bytes, why: str) -> None:
    serve(sentiment, "MD5", "corpora/movie_reviews.zip", data)
    with pytest.raises(EnforceNotMet, match=f"movie_reviews.zip cannot be read: .*{why}"):
        sentiment.train()


def test_the_stand_in_alternates_and_its_verdicts_agree_with_the_labels() -> None:
    words = {number: word for word, number in sentiment.get_word_dict()}
    train = list(itertools.islice(sentiment.train(), 160))
    assert [label for _, label in train] == [0, 1] * 80
    good = {"lovely", "superb", "wonderful", "great"}
    praise = [sum(words[i] in good for i in review) for review, _ in train]
    assert sum(praise[1::2]) > 2 * sum(praise[::2]) > 0
    assert len(list(fluid.batch(sentiment.test, 8)())) == 50
