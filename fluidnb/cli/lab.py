"""``fluidnb lab``: JupyterLab on the notebooks."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from fluidnb.cli.checkout import root, start
from fluidnb.cli.command import Command
from fluidnb.errors import FluidError
from fluidnb.extras import is_installed, missing

TOUR = "00_tour.ipynb"


def arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("where", nargs="?", type=Path, help="a notebook or a folder (default: the tour)")


def run(options: Namespace) -> int:
    """Open JupyterLab, and wait until it ends."""
    if not is_installed("jupyterlab"):
        raise missing("jupyterlab", "The command lab")
    where = options.where or root("notebooks") / "notebooks" / TOUR
    if not where.exists():
        raise FluidError(f"There is no {where}.", hint=_notebooks(where))
    print(f"opening JupyterLab on {where}; Ctrl-C twice ends it", flush=True)
    return start("jupyterlab", str(where), *options.rest)


def _notebooks(where: Path) -> str | None:
    """The notebooks that are where one was looked for."""
    names = sorted(path.name for path in where.parent.glob("*.ipynb"))
    return f"in {where.parent}: {', '.join(names[:6])}" if names else None


COMMAND = Command(
    "Open JupyterLab on the tour, or on a notebook of yours.", arguments, run, "JupyterLab",
    "examples:\n  fluidnb lab\n  fluidnb lab notebooks/book --no-browser",
)  # fmt: skip
