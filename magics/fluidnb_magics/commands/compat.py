"""``%fluid compat``: makes ``import paddle`` import fluidnb."""

from fluidnb import compat as names
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show

#: Whether the magic installed the aliases, and not a cell that called compat.install().
_mine = False


@command(Section.SESSION, "compat on")
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
    on = names.is_installed()
    text = "import paddle.fluid imports fluidnb" if on else "import paddle does not import fluidnb"
    show(bench.shell, [[("compat ", "name"), ("on" if on else "off", "bold"), (f"  {text}", "dim")]])


def uninstall() -> None:
    """Remove the aliases if the magic installed them: the extension is unloaded."""
    global _mine
    if _mine:
        names.uninstall()
        _mine = False
