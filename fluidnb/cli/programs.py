"""Programs to show: of a file, of a folder, of a script."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from fluidnb.errors import FluidError, NotFound, near

if TYPE_CHECKING:
    from fluidnb.program import Program
    from fluidnb.viz import ProgramPicture


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments that name programs."""
    parser.add_argument("what", metavar="MODEL_OR_SCRIPT", type=Path,
                        help="a saved model: folder, prefix or file; or a Python script")
    script_options(parser)


def script_options(parser: ArgumentParser) -> None:
    """Declare the arguments that choose among the programs of a script."""
    parser.add_argument("--program", metavar="NAME", help="one of a script's programs, as the script calls it")
    parser.add_argument("--startup", action="store_true", help="a script's startup program")
    parser.add_argument("--run", action="store_true", help="run a script to its end, not only to its first exe.run()")
    parser.add_argument("--force", action="store_true", help="run a script even if PaddlePaddle is installed")


def open_programs(options: Namespace) -> list[ProgramPicture]:
    """The renderings of a script's programs, selected by options; see `named_programs`."""
    from fluidnb.viz import read_program

    return [read_program(program, title) for title, program in named_programs(options).items()]


def named_programs(options: Namespace) -> dict[str, Program]:
    """The programs that a command line names by title: a saved model, or those of a script with operators."""
    what: Path = options.what
    if what.suffix in (".py", ".ipynb"):
        return _chosen(options)
    if options.startup or options.program or options.run:
        raise FluidError(f"{what} is a saved model, which is one program.", hint="only scripts have several.")
    from fluidnb.runtime.model_files import find_model, read_program

    return {str(what): read_program(find_model(str(what))).program}


def print_processing(options: Namespace) -> None:
    """Print the processing of images that a file beside a saved model describes."""
    if options.what.suffix in (".py", ".ipynb"):
        return
    from fluidnb.runtime.model_files import find_config, find_model
    from fluidnb.runtime.opened_model import processing_facts

    facts = processing_facts(find_config(find_model(str(options.what)).program))
    for title, text in facts:
        print("\n" * (title == "images") + f"{title:8}  {text}")


def _chosen(options: Namespace) -> dict[str, Program]:
    """The programs of a script that the options select, by title."""
    from fluidnb.program import default_startup_program

    built = _built(options)
    if options.startup:
        return {"startup program": default_startup_program()}
    if options.program is not None:
        if options.program not in built:
            hint = near(options.program, built) or f"it has {', '.join(built)}" if built else None
            raise NotFound(f"{options.what} calls no program {options.program}.", hint=hint)
        return {options.program: built[options.program]}
    built = {title: program for title, program in built.items() if any(b.ops for b in program.desc.blocks)}
    if not built:
        raise FluidError(f"{options.what} builds no program.", hint="--run runs it to its end, not to its first run.")
    return built


class _Enough(BaseException):
    """The script runs a program: it has been built."""


def _built(options: Namespace) -> dict[str, Program]:
    """The programs of a script, by the names that it has for them; ``program`` is the default one."""
    from fluidnb.cli import script
    from fluidnb.program import Program, default_main_program, default_startup_program

    names: dict[str, Any] = {}
    with script.as_program(options.what, (), options.force), _until_a_run(options.run):
        try:
            names = script.run(options.what)
        except _Enough as enough:
            for frame in _frames(enough):
                names = {**frame.f_globals, **names, **frame.f_locals}
        except SystemExit:
            pass
        except Exception as error:
            script.print_error(error, options.what)
            raise FluidError(f"{options.what} did not come to its end.") from None
    known = {"program": default_main_program()}
    hidden = {id(default_main_program()), id(default_startup_program())}
    for name, value in names.items():
        if isinstance(value, Program) and id(value) not in hidden and not name.startswith("_"):
            known[name] = value
            hidden.add(id(value))
    return known


def _frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of the script that an error came through."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "__main__":
            yield trace.tb_frame
        trace = trace.tb_next


@contextmanager
def _until_a_run(whole: bool) -> Iterator[None]:
    """Inside, the first run of a program ends the script; unless it is to run as a whole."""
    from fluidnb.runtime import Executor

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise _Enough

    run = Executor.run
    if not whole:
        setattr(Executor, "run", stop)  # noqa: B010  (mypy knows methods as constants)
    try:
        yield
    finally:
        setattr(Executor, "run", run)  # noqa: B010
