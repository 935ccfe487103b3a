"""MovieLens 1M: a million ratings of 3,900 films by 6,040 people.

Source: F. Harper, J. Konstan, The MovieLens Datasets, ACM TiiS 5 (2015). The archive has users.dat, movies.dat and
ratings.dat, lines of fields with "::" between them. Fluid: paddle.dataset.movielens; the numbers of categories and
words of titles are in the order of the alphabet here, where Paddle's differ from process to process.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fluidnb.data.dataset import source
from fluidnb.data.dataset.bundled import Array
from fluidnb.data.dataset.synthetic_text import words
from fluidnb.data.reader.decorators import Reader
from fluidnb.errors import OpValueError

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
MD5 = "c4d9eecfca2ab87c1945afe126590906"
_FILES = source.Files("movielens", (URL, MD5))
fetch = _FILES.fetch
#: The youngest age of each group of ages.
age_table = [1, 18, 25, 35, 45, 50, 56]
_USERS, _MOVIES, _LAST_MOVIE, _RATINGS, _WORDS = 6_040, 3_883, 3_952, 1_000_209, 5_175  # also of the synthetic ones
_CATEGORIES = (
    "Action Adventure Animation Children's Comedy Crime Documentary Drama Fantasy Film-Noir Horror Musical Mystery "
    "Romance Sci-Fi Thriller War Western"
).split()


class MovieInfo:
    """A film."""

    def __init__(self, index: int | str, categories: list[str], title: str) -> None:
        self.index = int(index)
        self.categories = categories
        self.title = title

    def value(self) -> list[Any]:
        """The film in numbers.

        Returns:
            [its number, [those of the categories], [those of the words of the title]].
        """
        catalogue = _catalogue()
        words = [catalogue.titles[word.lower()] for word in self.title.split()]
        return [self.index, [catalogue.categories[c] for c in self.categories], words]

    def __repr__(self) -> str:
        return f"<MovieInfo id({self.index}), title({self.title}), categories({self.categories})>"


class UserInfo:
    """A person who rates films."""

    def __init__(self, index: int | str, gender: str, age: int | str, job_id: int | str) -> None:
        self.index = int(index)
        self.is_male = gender == "M"
        self.age = age_table.index(int(age))
        self.job_id = int(job_id)

    def value(self) -> list[int]:
        """The person in numbers.

        Returns:
            [number, 0 for male or 1 for female, number of the group of ages, job].
        """
        return [self.index, int(not self.is_male), self.age, self.job_id]

    def __repr__(self) -> str:
        gender = "M" if self.is_male else "F"
        return f"<UserInfo id({self.index}), gender({gender}), age({age_table[self.age]}), job({self.job_id})>"


class _Catalogue(NamedTuple):
    movies: dict[int, MovieInfo]
    users: dict[int, UserInfo]
    titles: dict[str, int]
    categories: dict[str, int]


def train(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """The ratings to train with, nine of ten; the synthetic ones are as many.

    Returns:
        A reader of lists: person, gender, age, job as in `UserInfo.value`; film, categories, title as in
        `MovieInfo.value`; [the rating, 5 for the best, times 2 minus 5].
    """
    return _reader(rand_seed, test_ratio, False)


def test(rand_seed: int = 0, test_ratio: float = 0.1) -> Reader:
    """The ratings to test with; those that `train` with the same arguments leaves out; samples as in `train`."""
    return _reader(rand_seed, test_ratio, True)


def get_movie_title_dict() -> dict[str, int]:
    """Number the words of all titles, in small letters."""
    return _catalogue().titles


def movie_categories() -> dict[str, int]:
    """Number the categories of films."""
    return _catalogue().categories


def max_movie_id() -> int:
    """The greatest number of a film; numbers start at 1, and some are free."""
    return max(_catalogue().movies)


def max_user_id() -> int:
    """The greatest number of a person; numbers start at 1."""
    return max(_catalogue().users)


def max_job_id() -> int:
    """The greatest number of a job; numbers start at 0."""
    return max(user.job_id for user in _catalogue().users.values())


def user_info() -> dict[int, UserInfo]:
    """All people."""
    return _catalogue().users


def movie_info() -> dict[int, MovieInfo]:
    """All films."""
    return _catalogue().movies


def _reader(rand_seed: int, test_ratio: float, is_test: bool) -> Reader:
    if not 0 <= test_ratio <= 1:
        raise OpValueError("test_ratio should be a fraction, 0 to 1.", received=test_ratio)
    paths = _FILES.paths()

    def samples() -> Iterator[list[Any]]:
        catalogue = _parsed(paths)
        users = {number: user.value() for number, user in catalogue.users.items()}
        movies = {number: movie.value() for number, movie in catalogue.movies.items()}
        random = np.random.RandomState(rand_seed)
        with _ratings(paths) as ratings:
            for user, movie, rating in ratings:
                if (random.random_sample() < test_ratio) == is_test:
                    yield [*users[int(user)], *movies[int(movie)], [float(rating) * 2 - 5.0]]

    return samples


def _catalogue() -> _Catalogue:
    return _parsed(_FILES.paths())


@functools.lru_cache(maxsize=2)
def _parsed(paths: tuple[str, ...] | None) -> _Catalogue:
    movies: dict[int, MovieInfo] = {}
    with _lines(paths, "movies.dat") as lines:
        for line in lines:
            number, title, kinds = line.split("::")
            name = re.fullmatch(r"(.*)\(\d+\)", title)
            if name is None:
                raise ValueError(f"the title {title!r} does not end in a year")
            movies[int(number)] = MovieInfo(number, kinds.split("|"), name[1])
    with _lines(paths, "users.dat") as lines:
        people = [UserInfo(*line.split("::")[:4]) for line in lines]
    titles = sorted({word.lower() for movie in movies.values() for word in movie.title.split()})
    categories = sorted({category for movie in movies.values() for category in movie.categories})
    return _Catalogue(
        movies,
        {user.index: user for user in people},
        {word: i for i, word in enumerate(titles)},
        {category: i for i, category in enumerate(categories)},
    )


@contextmanager
def _lines(paths: tuple[str, ...] | None, name: str) -> Iterator[Iterator[str]]:
    """The lines of one of the three files; what is wrong with one becomes an error that names the file."""
    import zipfile

    if paths is None:
        yield _users() if name == "users.dat" else _movies()
        return
    with source.reading(paths[0], name), zipfile.ZipFile(paths[0]) as archive, archive.open(f"ml-1m/{name}") as file:
        yield (line.rstrip("\n") for line in io.TextIOWrapper(file, "latin-1"))


@contextmanager
def _ratings(paths: tuple[str, ...] | None) -> Iterator[Iterator[Sequence[Any]]]:
    """(person, film, stars) of each rating."""
    if paths is None:
        yield _rated()
        return
    with _lines(paths, "ratings.dat") as lines:
        yield (line.split("::")[:3] for line in lines)


class _Tastes(NamedTuple):
    """The synthetic people and films: people of one age, job or gender like the same categories."""

    ages: Array
    jobs: Array
    male: Array
    numbers: Array  # of the films; some numbers are free
    kinds: Array  # films x categories, shares
    quality: Array
    liking: Array  # people x categories


@functools.cache
def _tastes() -> _Tastes:
    random = np.random.RandomState(1)
    ages, jobs = random.randint(0, len(age_table), _USERS), random.permutation(np.arange(_USERS) % 21)
    male = random.randint(0, 2, _USERS)
    free = random.choice(np.arange(1000, _LAST_MOVIE), _LAST_MOVIE - _MOVIES, replace=False)
    kinds = random.random_sample((_MOVIES, len(_CATEGORIES))).argsort(1) < random.choice(
        [1, 2, 3], (_MOVIES, 1), p=[0.5, 0.35, 0.15]
    )
    liking = random.normal(0, 0.7, (len(age_table), len(_CATEGORIES)))[ages]
    liking += random.normal(0, 0.7, (21, len(_CATEGORIES)))[jobs] + random.normal(0, 0.5, (2, len(_CATEGORIES)))[male]
    numbers = np.setdiff1d(np.arange(1, _LAST_MOVIE + 1), free)
    quality = random.normal(3.6, 0.3, _MOVIES)
    return _Tastes(ages, jobs, male, numbers, kinds / kinds.sum(1, keepdims=True), quality, liking)


def _users() -> Iterator[str]:
    tastes = _tastes()
    for i, (age, job, male) in enumerate(zip(tastes.ages, tastes.jobs, tastes.male, strict=True), 1):
        yield f"{i}::{'FM'[male]}::{age_table[age]}::{job}::{i * 16 % 100_000:05}"


def _movies() -> Iterator[str]:
    """Films; each word of a title is in a title, so that there are as many as in the true ones."""
    tastes = _tastes()
    names = [word.title() for word in words(_WORDS)]
    common, rare = names[:60], names[60:]
    for i, (number, kinds) in enumerate(zip(tastes.numbers, tastes.kinds > 0, strict=True)):
        title = " ".join([common[i % 60], *rare[i::_MOVIES]])
        yield f"{number}::{title} ({1930 + i % 71})::{'|'.join(np.compress(kinds, _CATEGORIES))}"


def _rated() -> Iterator[tuple[int, int, int]]:
    """At least 20 of each person, and no film twice; those of one person are drawn when they are needed."""
    tastes, random = _tastes(), np.random.RandomState(2)
    weights = random.lognormal(0, 1, _USERS).clip(0, 12)
    counts = 20 + random.multinomial(_RATINGS - 20 * _USERS, weights / weights.sum())
    known = 1 / random.lognormal(0, 1, _MOVIES)
    for i, count in enumerate(counts.tolist()):
        random = np.random.RandomState([3, i])
        seen = np.argpartition(random.exponential(size=_MOVIES) * known, count)[:count]
        rating = tastes.quality[seen] + tastes.kinds[seen] @ tastes.liking[i] + random.normal(0, 0.4, count)
        stars = rating.round().clip(1, 5).astype(int)
        yield from zip([i + 1] * count, tastes.numbers[seen].tolist(), stars.tolist(), strict=True)
