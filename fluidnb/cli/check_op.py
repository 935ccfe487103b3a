"""``fluidnb check-op``: all checks of one operator: documents, OpTest, gradient, CUDA kernels, compilation."""

from __future__ import annotations

import doctest
import inspect
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fluidnb.cli.checkout import root, start
from fluidnb.cli.command import Command
from fluidnb.extras import is_installed, missing

if TYPE_CHECKING:
    from fluidnb.op import OpDef

#: pytest's exit status when nothing was selected.
_NO_TESTS = 5


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", help="the operator")
    parser.add_argument("--no-nvrtc", action="store_true", help="do not compile its CUDA files")


def run(options: Namespace) -> int:
    """Run the checks of an operator and print a line for each."""
    from fluidnb.op import get_op

    folder = root("tests")
    if not is_installed("pytest"):
        raise missing("pytest", "The command check-op")
    definition = get_op(options.name)
    gaps = list(undocumented(definition))
    failed = _report("documents", not gaps, "; ".join(gaps))
    failed |= _report("example of its docstring", _runs(definition))
    tests = [str(path.relative_to(folder)) for path in tests_of(folder, options.name)]
    status = start("pytest", "-q", *tests, "-k", options.name, folder=folder) if tests else _NO_TESTS
    if tests and status == _NO_TESTS:  # its cases have other names
        status = start("pytest", "-q", *tests, folder=folder)
    where = ", ".join(tests) or f'no file in tests/ops has "{options.name}"'
    failed |= _report("values, gradient and CUDA on the emulator", status == 0, where)
    if not options.no_nvrtc:
        failed |= _check_compilation(definition, folder)
    return int(failed)


def _check_compilation(definition: OpDef, folder: Path) -> bool:
    """Compile the CUDA files of an operator with NVRTC, where it is installed; whether that failed."""
    functions = [kernel.function for kernel in definition.kernels if kernel.place == "cuda"]
    if not functions:
        return _report("CUDA", bool(definition.host_only), definition.host_only or "no kernel and no host_only= reason")
    files = sorted({path.stem for function in functions for path in _sources(function)})
    if not files:
        return _report("NVRTC", True, "the kernels of other operators serve it")
    status = start(
        "pytest", "-q", "tests/cuda/test_compile.py", "--part", "more",
        "-k", f"test_a_file_compiles and ({' or '.join(files)})", folder=folder,
    )  # fmt: skip
    return _report("NVRTC", status in (0, _NO_TESTS), ", ".join(f"{file}.cu" for file in files))


def _sources(function: object) -> Iterator[Path]:
    """The CUDA files that the module of a kernel names."""
    for value in vars(inspect.getmodule(function)).values():
        path = getattr(value, "path", None)
        if isinstance(path, Path) and path.suffix == ".cu":
            yield path


def _runs(definition: OpDef) -> bool:
    """Whether the example in the docstring of an operator gives what it says."""
    import numpy as np

    import fluidnb as fluid

    names = {"fluid": fluid, "np": np}
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(definition.doc), names, definition.type, None, None)
    return doctest.DocTestRunner().run(test).failed == 0


def tests_of(folder: Path, name: str) -> list[Path]:
    """The test files of operators that mention one."""
    paths = sorted((folder / "tests" / "ops").glob("test_*.py"))
    return [path for path in paths if re.search(rf"\b{name}\b", path.read_text("utf-8"))]


def undocumented(definition: OpDef) -> Iterator[str]:
    """The documents that an operator lacks, a phrase each."""
    if not definition.doc.strip():
        yield "its kernel has no docstring"
    elif "Example:" not in definition.doc:
        yield "its docstring has no example"
    if definition.doc.strip() and not definition.is_grad and "Source:" not in definition.doc:
        yield "its docstring names no source (Source: a paper, or the operator of Fluid)"
    if "FILL IN" in definition.doc:
        yield "its docstring says FILL IN"
    for slot in (*definition.inputs.values(), *definition.outputs.values()):
        if not slot.doc:
            yield f"slot {slot.name} has no phrase"
    for name, attr in definition.attrs.items():
        if not attr.doc:
            yield f"attribute {name} has no phrase"


def _report(check: str, passed: bool, detail: str = "") -> bool:
    """Print the result of a check; whether it failed."""
    print(f"{'passed' if passed else 'FAILED'}  {check}" + (f"  ({detail})" if detail else ""), flush=True)
    return not passed


COMMAND = Command(
    "Check one operator: documents, values, gradient, CUDA.", arguments, run,
    example="examples:\n  fluidnb check-op clip\n  fluidnb check-op clip --no-nvrtc",
)  # fmt: skip
