"""MovieLens: the three tables of the archive, people and films in numbers, the split, and the synthetic data."""

from __future__ import annotations

import io
import itertools
import zipfile

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.data.dataset import movielens
from fluidnb.errors import EnforceNotMet, OpValueError
from tests.tools.refused import refused

TABLES = {
    "users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n6::M::25::0::55117\n",
    "movies.dat": "1::Toy Story (1995)::Animation|Children's|Comedy\n3::Misérables, Les (1995)::Drama|Musical\n"
    "9::Story of Us, The (1999)::Comedy|Drama\n",
    "ratings.dat": "".join(f"{u}::{m}::{r}::978300760\n" for u in (1, 2, 6) for m in (1, 3, 9) for r in range(1, 6)),
}


def archive(tables: dict[str, str]) -> bytes:
    """A zip archive as GroupLens makes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("ml-1m/README", "about")
        for name, text in tables.items():
            made.writestr(f"ml-1m/{name}", text.encode("latin-1"))
    return out.getvalue()


@pytest.fixture
def files(serve) -> None:
    """Three people, three films, 45 ratings."""
    serve(movielens, "MD5", "movielens/ml-1m.zip", archive(TABLES))


def test_people_and_films(files: None) -> None:
    assert (movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()) == (6, 9, 16)
    assert movielens.age_table == [1, 18, 25, 35, 45, 50, 56]
    assert movielens.user_info()[6].value() == [6, 0, 2, 0] and movielens.user_info()[1].value() == [1, 1, 0, 10]
    kinds, words = movielens.movie_categories(), movielens.get_movie_title_dict()
    assert kinds == {"Animation": 0, "Children's": 1, "Comedy": 2, "Drama": 3, "Musical": 4}
    assert words == {w: i for i, w in enumerate(["les", "misérables,", "of", "story", "the", "toy", "us,"])}
    film = movielens.movie_info()[1]
    assert film.value() == [1, [0, 1, 2], [5, 3]] and film.title == "Toy Story "
    assert movielens.movie_info()[3].value() == [3, [3, 4], [1, 0]]
    assert repr(film) == "<MovieInfo id(1), title(Toy Story ), categories(['Animation', \"Children's\", 'Comedy'])>"
    assert str(movielens.user_info()[2]) == "<UserInfo id(2), gender(M), age(56), job(16)>"


def test_ratings_and_their_split(files: None) -> None:
    train, test = list(movielens.train()()), list(movielens.test()())
    assert len(train) + len(test) == 45
    is_test = np.random.RandomState(0).random_sample(45) < 0.1  # one draw a line, as Paddle
    assert 0 < len(test) == is_test.sum()
    everything = iter(range(45))
    a, b = iter(train), iter(test)
    for n, flag in zip(everything, is_test, strict=True):
        sample = next(b if flag else a)
        user, film, rating = [1, 2, 6][n // 15], [1, 3, 9][n // 5 % 3], n % 5 + 1
        assert sample == [
            *movielens.user_info()[user].value(),
            *movielens.movie_info()[film].value(),
            [rating * 2 - 5.0],
        ]
    assert list(movielens.test(rand_seed=5)()) != test and len(list(movielens.test(test_ratio=1)())) == 45
    with pytest.raises(OpValueError, match="test_ratio should be a fraction"):
        movielens.train(test_ratio=2)


def test_the_split_leaves_numpys_generator_alone(files: None) -> None:
    np.random.seed(3)
    first = np.random.random()
    np.random.seed(3)
    list(movielens.train()())
    assert np.random.random() == first


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            archive(TABLES | {"movies.dat": "1::Toy Story::Comedy\n"}),
            "movies.dat of .*: the title 'Toy Story' does not",
        ),
        (archive(TABLES | {"movies.dat": "1::Toy Story (1995)\n"}), "movies.dat of .*: not enough values"),
        (archive(TABLES | {"users.dat": "1::F::2::10::48067\n"}), "users.dat of .*: 2 is not in list"),
        (archive(TABLES | {"ratings.dat": "7::1::5::0\n"}), "ratings.dat of .*ml-1m.zip cannot be read: 7"),
        (archive({k: v for k, v in TABLES.items() if k != "users.dat"}), "no item named 'ml-1m/users.dat'"),
        (archive(TABLES)[:-30], "movies.dat of .*: File is not a zip file"),
    ],
    ids=["year", "fields", "age", "person", "missing", "cut"],
)
def test_another_content_is_named(serve, data: bytes, message: str) -> None:
    serve(movielens, "MD5", "movielens/ml-1m.zip", data)
    with refused(EnforceNotMet, message):
        list(movielens.train(test_ratio=0.0)())


def test_the_stand_in_can_be_learnt() -> None:
    train = list(itertools.islice(movielens.train()(), 30_000))
    test = list(itertools.islice(movielens.test()(), 3_000))
    ratings = np.array([s[7][0] for s in train])
    assert set(ratings) == {-3.0, -1.0, 1.0, 3.0, 5.0}
    kinds = movielens.movie_categories()

    def columns(sample: list) -> np.ndarray:
        """Age and job against categories."""
        liked = np.bincount(sample[5], minlength=len(kinds)) / len(sample[5])
        return np.r_[np.outer(np.eye(7)[sample[2]], liked).ravel(), np.outer(np.eye(21)[sample[3]], liked).ravel()]

    x, tx = (np.stack([columns(s) for s in part]) for part in (train, test))
    w = np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ (ratings - ratings.mean()))
    seen = np.array([s[7][0] for s in test])
    assert ((tx @ w + ratings.mean() - seen) ** 2).mean() < 0.6 * seen.var()


def test_batches_feed_a_program() -> None:
    names = ["user", "gender", "age", "job", "movie", "category", "title", "score"]
    kinds = {"category": {"lod_level": 1}, "title": {"lod_level": 1}}
    vs = [fluid.layers.data(n, [1], dtype="float32" if n == "score" else "int64", **kinds.get(n, {})) for n in names]
    batch = next(iter(fluid.batch(movielens.train(), 16)()))
    fed = fluid.DataFeeder(vs, fluid.CPUPlace()).feed(batch)
    assert np.array(fed["score"]).shape == (16, 1)
    assert fed["title"].recursive_sequence_lengths() == [[len(s[6]) for s in batch]]
