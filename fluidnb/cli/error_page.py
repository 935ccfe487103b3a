"""The HTML file of a script that failed: the operator with its inputs, or the program that was being built."""

import sys
from pathlib import Path

from fluidnb.debug.session import post_mortem
from fluidnb.errors import FluidError
from fluidnb.program import default_main_program
from fluidnb.runtime.interpreter.failed_run import last_failed
from fluidnb.viz.saved_page.page import save_html

#: Steps before the one that failed, at most.
_STEPS = 200


def save_error_page(error: BaseException, script: Path, file: Path) -> None:
    """Write the failed run up to its operator; without one, the main program. Problems are printed on stderr."""
    title = f"{script.name}: {type(error).__name__}"
    try:
        failed = last_failed()
        if failed is None or all(str(each) != failed.error for each in _chain(error)):
            save_html(default_main_program(), file, title=title, note=str(error), report=_print)
            return
        session = post_mortem()
        try:
            save_html(session, file, _STEPS, title=title, report=_print)
        finally:
            session.close()
    except FluidError as problem:
        _print(f"no {file}: {problem}")


def _chain(error: BaseException | None) -> list[BaseException]:
    """An error with its causes."""
    errors: list[BaseException] = []
    while error is not None and error not in errors:
        errors.append(error)
        error = error.__cause__ or error.__context__
    return errors


def _print(text: str) -> None:
    print(text, file=sys.stderr)
