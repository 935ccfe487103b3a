"""A small change in any file of kernels makes some case of its operators fail."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import fluidnb_kernels
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import Source, sources
from tests.cuda.changed import NOTICED, REFUSED, ROOT, name_of, outcome, surveyed
from tests.cuda.mutants import Mutant, affected, mutants, touches
from tests.tools.sampling import SEED, takes_all

fluidnb_kernels.import_all()  # so that all sources are known
pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

#: Changes of a file of which one has to be noticed, and cases that look at each.
TRIES, CASES = 12, 6
#: Headers that hold more than macros.
HEADERS = sorted(str(p.relative_to(ROOT)) for p in ROOT.rglob("*.cuh") if any(mutants(p.read_text(), p.name)))
FILES = [*(name_of(source) for source in sources), *HEADERS]

Survey = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    """Case -> the kernels it launches."""
    return surveyed(tmp_path_factory.mktemp("survey") / "kernels.json", takes_all())


def users(file: str) -> list[Source]:
    """The file itself, or those that include it."""
    mark = f'#line 1 "{Path(file).name}"\n'
    return [s for s in sources if (mark in s.text if file in HEADERS else name_of(s) == file)]


def looking(mutant: Mutant, file: str, survey: Survey) -> list[str]:
    """Cases that launch a kernel which a change may have made another, those with few such kernels first.

    Those of operators come before tests of this folder.
    """
    names = {name_of(source): affected(source.text, mutant.unit) for source in users(file)}
    counts = {
        case: sum(touches(kernel, names[at]) for at, kernel in launched if at in names)
        for case, launched in survey.items()
    }
    found = [case for case, count in counts.items() if count]
    random.Random(f"{SEED} {mutant}").shuffle(found)
    found.sort(key=counts.__getitem__)
    tests = [case for case in found if "::" in case]
    return [*[case for case in found if "::" not in case][:CASES], *tests[:CASES]]


def in_some_order(file: str) -> list[Mutant]:
    """The changes of a file, those of different parts in turn."""
    found = list(mutants((ROOT / file).read_text(), Path(file).name))
    random.Random(f"{SEED} {file}").shuffle(found)
    seen: dict[str, int] = {}

    def turn(mutant: Mutant) -> int:
        seen[mutant.unit] = seen.get(mutant.unit, 0) + 1
        return seen[mutant.unit]

    return sorted(found, key=turn)


def tried(file: str, survey: Survey, cache: Path) -> Iterator[tuple[Mutant, str, bool]]:
    """Changes of a file that compile and that some case launches, the case that ended it, and whether it noticed."""
    within, sound = "" if file in HEADERS else file, dict[str, bool]()
    for mutant in in_some_order(file):
        cases = looking(mutant, file, survey)
        while cases := [case for case in cases if sound.get(case, True)]:
            code, last, said = outcome(mutant, within, cases, cache)
            if code == 0:
                yield mutant, f"not noticed by {', '.join(cases)}", False
            if code in (0, None, REFUSED):
                break
            sound[last] = outcome(None, within, [last], cache)[0] == 0  # some cannot run without their test
            if sound[last]:
                yield mutant, f"{last}: {said.splitlines()[-1] if code == NOTICED else f'ends with {code}'}", True
                break


def check(file: str, survey: Survey, cache: Path) -> bool:
    """Try changes of a file until one is noticed; false where no case launches what they change."""
    lines = []
    for mutant, how, noticed in tried(file, survey, cache):
        lines.append(f"{mutant}: {how}")
        print(lines[-1])
        if noticed:
            return True
        if len(lines) == TRIES:
            break
    assert not lines, f"none of {len(lines)} changes was noticed:\n" + "\n".join(lines)
    return False


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("place", [0, 1])
def test_a_change_of_some_file_is_noticed(place: int, survey: Survey, tmp_path: Path) -> None:
    files = random.Random(SEED).sample(FILES, len(FILES))[place::2]
    assert any(check(file, survey, tmp_path) for file in files)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", FILES)
def test_a_change_of_each_file_is_noticed(file: str, survey: Survey, tmp_path: Path) -> None:
    assert check(file, survey, tmp_path), f"no case launches a kernel of {file}"


def test_a_case_that_is_as_it_should_be_notices_nothing(survey: Survey, tmp_path: Path) -> None:
    file = "loss/elementwise_losses.cu"
    case = next(case for case, launched in survey.items() if any(at == file for at, _ in launched))
    assert outcome(None, file, [case], tmp_path)[:2] == (0, case)


@pytest.mark.parametrize(("old", "new", "code"), [
    ("C first =", "for (volatile int k = 0;;) k = 1; C first =", -signal.SIGPROF),
    ("one[i]", "one[i + 100000000000]", -signal.SIGSEGV),
    ("one[i]", "one[", REFUSED),
])  # fmt: skip
def test_loops_and_crashes_end_a_process_of_their_own(
    survey: Survey, tmp_path: Path, old: str, new: str, code: int
) -> None:
    file = "loss/elementwise_losses.cu"
    number, line = next((n, x) for n, x in enumerate((ROOT / file).read_text().split("\n"), 1) if old in x)
    mutant = Mutant("elementwise_losses.cu", number, line.index(old), old, new, "terms")
    cases = looking(mutant, file, survey)[:1]
    assert outcome(mutant, file, cases, tmp_path, 1.0)[:2] == (code, *cases)
