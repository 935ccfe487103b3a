"""MQ2007: the lines of its files, the four formats, what has to be unpacked, and a ranking that can be learnt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data.dataset import mq2007
from fluidnb.errors import EnforceNotMet, OpValueError


def line(score: int, question: int, first: float, comment: str = "#docid = GX1") -> str:
    """A line of the file: the first feature, and 45 times 0.5."""
    return f"{score} qid:{question} 1:{first} {' '.join(f'{i}:0.5' for i in range(2, 47))} {comment}\n"


@pytest.fixture
def fold(cache: Path) -> Path:
    """An unpacked archive: question 10 with three documents, question 11 without a good one, question 12."""
    folder = cache / "MQ2007" / "MQ2007" / "Fold1"
    folder.mkdir(parents=True)
    rows = [line(0, 10, 0.1), line(2, 10, 0.2), line(1, 10, 0.3), line(0, 11, 0.4), "\n", line(1, 12, 0.6)]
    (folder / "train.txt").write_text("".join(rows))
    return folder


@pytest.mark.usefixtures("fold")
def test_the_four_formats(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(label.tolist(), better[0], other[0]) for label, better, other in mq2007.train()]
    assert pairs == [([1], 0.2, 0.3), ([1], 0.2, 0.1), ([1], 0.3, 0.1)]
    lists = [(scores.tolist(), features[:, 0].tolist()) for scores, features in mq2007.train(format="listwise")]
    assert lists == [([[2], [1], [0]], [0.2, 0.3, 0.1]), ([[1]], [0.6])]
    assert [(score, x[0]) for score, x in mq2007.train("pointwise")] == [(2, 0.2), (1, 0.3), (0, 0.1), (1, 0.6)]
    assert [(n, s) for n, s, _ in mq2007.train("plain_txt")] == [(10, 2), (10, 1), (10, 0), (12, 1)]
    assert all(x.shape == (46,) and x.dtype == np.float64 for _, x in mq2007.train("pointwise"))
    assert capsys.readouterr().err == ""


def test_damaged_lines_are_named(fold: Path) -> None:
    (fold / "test.txt").write_text("1 qid:7 1:0.5 2:0.5 #docid\n")
    with pytest.raises(EnforceNotMet, match="test.txt cannot be read: qid:7 has a line without 46 features"):
        list(mq2007.test())


def test_an_archive_has_to_be_unpacked_by_hand(serve) -> None:
    name = mq2007.URL.rpartition("/")[2]
    serve(mq2007, "MD5", f"MQ2007/{name}", b"Rar!")
    with pytest.raises(EnforceNotMet, match=r"MQ2007.rar is not unpacked(.|\n)*Fold1/train.txt(.|\n)*unrar"):
        mq2007.train()


def test_an_unknown_format_is_told_at_once() -> None:
    with pytest.raises(OpValueError, match=r"no format called 'pairwize'(.|\n)*Did you mean .pairwise"):
        mq2007.train(format="pairwize")


def test_a_linear_model_learns_the_stand_ins_ranking() -> None:
    differences = np.array([better - other for _, better, other in mq2007.train()])
    weights = np.zeros(46)
    for _ in range(200):  # logistic regression on the pairs
        weights += differences.T @ (1 / (1 + np.exp(differences @ weights))) / len(differences)
    right = [(better - other) @ weights > 0 for _, better, other in mq2007.test()]
    assert len(right) > 100 and np.mean(right) > 0.85


def test_the_functions_are_readers_themselves() -> None:
    batches = list(fluid.batch(mq2007.test, 8)())
    assert len(batches[0]) == 8 and len(batches[0][0]) == 3
