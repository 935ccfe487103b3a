"""``%fluid compat``: makes ``import paddle`` import fluidnb."""

from __future__ import annotations

from argparse import Namespace

from IPython.core.magic_arguments import argument

from fluidnb import compat as names
from fluidnb_magics.commands import Section, command
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench

#: Whether they are on because of the magic, and not because a cell called compat.install().
_mine = False


@command(Section.SETTINGS)
@argument("state", nargs="?", choices=["on", "off"], help="shows the state if left out")
@argument("--force", action="store_true", help="run even if PaddlePaddle is installed")
def compat(bench: Workbench, args: Namespace) -> None:
    """Alias paddle, paddle.fluid and paddle.v2.fluid to fluidnb (on/off)."""
    global _mine
    if args.state == "on" and not names.is_installed():
        names.install(force=args.force)
        _mine = True
    elif args.state == "off":
        names.uninstall()
        _mine = False
    said = "import paddle.fluid imports fluidnb" if names.is_installed() else "import paddle does not import fluidnb"
    show(bench.shell, [[("compat ", "name"), ("on" if names.is_installed() else "off", "bold"), (f"  {said}", "dim")]])


def uninstall() -> None:
    """Removes the aliases if the magic installed them: the extension is unloaded."""
    global _mine
    if _mine:
        names.uninstall()
        _mine = False
