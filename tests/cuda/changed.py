"""Tests with changed texts of kernels, each change in a new process, since it may loop or crash.

``python -m tests.cuda.changed survey FILE`` writes which kernels the cases of operators launch, and with ``all`` behind
it the tests of this folder too; ``... run`` reads a change and cases as JSON and ends with 0 when no case noticed it.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
import fluidnb_kernels
import tests.ops
from fluidnb.op import EMPTY
from fluidnb.runtime import Scope
from fluidnb.testing import OpTest
from fluidnb.testing.one_op import OneOp
from fluidnb.values import LoDTensor
from fluidnb_kernels.cuda import Source, sources
from fluidnb_kernels.cuda.source import backends
from fluidnb_kernels.emulator import CompileError
from tests.cuda.mutants import Mutant, affected, changed, touches
from tests.cuda.twins import has_kernel, run_twins

fluidnb_kernels.import_all()  # so that all sources are known
ROOT = Path(fluidnb_kernels.__file__).parent
#: How a process ends in which a case failed, and one whose text did not compile.
NOTICED, REFUSED = 3, 4
#: How pytest is called: with all there is, and apart from the run around it.
_QUIETLY = ("-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:resume", "--full")
#: Processor seconds after which a launch counts as endless; seconds for all of a process, and for a survey.
_LAUNCH, _PROCESS, _SURVEY = 20, 600, 3000


def name_of(source: Source) -> str:
    """The path of a file of kernels in the package."""
    return str(source.path.relative_to(ROOT))


# ---- cases


def cases() -> Iterator[str]:
    """Names of the operators' test classes, as ``module:class``."""
    for module in pkgutil.iter_modules(tests.ops.__path__):
        if module.name.startswith("test_"):
            for name, value in vars(importlib.import_module(f"tests.ops.{module.name}")).items():
                if isinstance(value, type) and issubclass(value, OpTest) and value.op_type and value.inputs:
                    yield f"{module.name}:{name}"


def run_case(case: str, failed: Callable[[Exception], None]) -> None:
    """Run the operators of a case, gradients too, with numpy and on the emulator.

    Args:
        case: as `cases` gives it.
        failed: gets what an operator raises.
    """
    module, _, name = case.partition(":")
    test = getattr(importlib.import_module(f"tests.ops.{module}"), name)()
    test.setUp()
    with fluid.fresh():
        one = OneOp(test.op_type, test.inputs, test.attrs, test._outputs())
        program, fed = one.program(), dict[str, Any]()
        with suppress(fluid.errors.FluidError):  # it has no gradient
            program, fed = one.backward(getattr(test, "loss", None), set())
        descs = program.global_block().desc.ops
        scope = Scope()
        for row in one.inputs.values():
            for variable, value in row:
                scope.var(variable).value = value
        for variable, array in fed.items():
            scope.var(variable).value = LoDTensor(np.array(array), one._lods.get(variable, ()))
        for desc in descs if any(map(has_kernel, descs)) else ():
            if any(n != EMPTY and scope.find_var(n) is None for n in desc.input_arg_names()):
                continue  # the gradient of something that has none
            try:
                run_twins(desc, scope)
            except Exception as error:
                failed(error)


# ---- which kernels they launch


class _Recorder:
    """A backend that records launches and runs nothing."""

    def __init__(self) -> None:
        self.files = {source.text: name_of(source) for source in sources}
        self.seen: set[tuple[str, str]] = set()
        self.found: dict[str, list[tuple[str, str]]] = {}

    def __call__(self, text: str, file: str, name: str) -> Callable[..., None]:
        return lambda *args, **kw: self.seen.add((self.files[text], name))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.seen = set()

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        self.found[item.nodeid] = sorted(self.seen)


def survey(whole: bool) -> dict[str, list[tuple[str, str]]]:
    """The kernels that each case launches, as (file, kernel).

    Args:
        whole: whether the tests of this folder are cases too, called as pytest calls them.
    """
    recorder = backends["emulator"] = _Recorder()
    found = recorder.found
    for case in cases():
        recorder.seen = set()
        with suppress(Exception):  # a case that cannot run this way
            run_case(case, lambda error: None)
        found[case] = sorted(recorder.seen)
    if whole:
        others = [f"--ignore=tests/cuda/test_{name}.py" for name in ("mutants", "compile", "sanitized")]
        pytest.main([*_QUIETLY, *others, "tests/cuda"], plugins=[recorder])
    return {case: launched for case, launched in found.items() if launched}


# ---- cases with a change


class _Launch:
    """A kernel with a time limit for each launch, after which the process ends."""

    def __init__(self, kernel: Any, cache: str, seconds: float) -> None:
        self.kernel, self.cache, self.seconds = kernel, cache, seconds

    def __call__(self, *args: Any, **kw: Any) -> None:
        self._compile()
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        self.kernel(*args, **kw)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _compile(self) -> None:
        """Compile it without an entry in the cache, which is for unchanged kernels."""
        before = os.environ.get("FLUIDNB_CACHE")
        os.environ["FLUIDNB_CACHE"] = self.cache
        _ = self.kernel.signature
        del os.environ["FLUIDNB_CACHE"]
        if before is not None:
            os.environ["FLUIDNB_CACHE"] = before


def _change(mutant: Mutant, within: str, cache: str, seconds: float) -> None:
    """Change the kernels of a file, or of all that include it."""
    plain = backends["emulator"]
    texts = {s.text: name_of(s) for s in sources if within in ("", name_of(s))}
    names: dict[str, set[str]] = {}

    def compiled(text: str, file: str, name: str) -> Any:
        other = changed(text, mutant) if text in texts else text
        if other != text:
            if text not in names:
                names[text] = affected(text, mutant.unit)
            if touches(name, names[text]):
                return _Launch(plain(other, file, name), cache, seconds)
        return plain(text, file, name)

    backends["emulator"] = compiled


class _First:
    """A plugin that keeps the exception of the first failed test."""

    error: BaseException | None = None

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        if self.error is None and call.excinfo is not None:
            self.error = call.excinfo.value


def _run_test(test: str) -> None:
    """Run a test and let its exception pass to the caller."""
    first = _First()
    pytest.main([*_QUIETLY, test], plugins=[first])
    if first.error is not None:
        raise first.error


def _run(job: dict[str, Any]) -> int:
    if job["mutant"] is not None:
        _change(Mutant(**job["mutant"]), job["within"], job["cache"], job["seconds"])

    def failed(error: Exception) -> None:
        raise error

    for case in job["cases"]:
        print(case, flush=True)
        try:
            if "::" in case:
                _run_test(case)
            else:
                run_case(case, failed)
        except CompileError as error:
            print(error)
            return REFUSED
        except (Exception, pytest.fail.Exception) as error:
            print(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
            return NOTICED
    return 0


def _here() -> dict[str, Any]:
    """The folder and the environment of a process that imports the same modules."""
    return {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}}


def surveyed(file: Path, whole: bool) -> dict[str, list[list[str]]]:
    """The result of `survey`, in another process.

    Args:
        file: where it writes.
        whole: as in `survey`.
    """
    command = [sys.executable, "-m", "tests.cuda.changed", "survey", str(file), *(["all"] if whole else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SURVEY, **_here())
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[list[str]]] = json.loads(file.read_text())
    return found


def outcome(
    mutant: Mutant | None, within: str, given: Sequence[str], cache: Path, seconds: float = _LAUNCH
) -> tuple[int | None, str, str]:
    """Run cases in another process.

    Args:
        mutant: the change; None for none.
        within: the file of kernels that is changed, where the change is not in a header.
        given: the cases.
        cache: a folder for what is compiled.
        seconds: processor time after which a launch of a changed kernel counts as endless.

    Returns:
        How the process ended, None where it took too long; and the last case that it began, with what it said.
    """
    job: dict[str, Any] = {"mutant": mutant and asdict(mutant), "within": within, "cases": list(given)}
    job |= {"cache": str(cache), "seconds": seconds}
    command = [sys.executable, "-m", "tests.cuda.changed", "run"]
    try:
        done = subprocess.run(
            command, input=json.dumps(job), capture_output=True, text=True, timeout=_PROCESS, **_here()
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "", ""
    lines = done.stdout.splitlines()
    begun = [i for i, line in enumerate(lines) if line in given]
    if done.returncode == 1 or not begun:
        raise RuntimeError(f"{command} failed: {done.stderr[-2000:]}")
    return done.returncode, lines[begun[-1]], "\n".join(lines[begun[-1] + 1 :])


if __name__ == "__main__":
    if sys.argv[1] == "survey":
        Path(sys.argv[2]).write_text(json.dumps(survey("all" in sys.argv)))
    else:
        code = _run(json.load(sys.stdin))
        sys.stdout.flush()
        os._exit(code)  # what a change has done to memory shows no more
