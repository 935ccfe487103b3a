"""``%fluid compat``: Paddle's names in this session, for cells that say ``import paddle``."""

from __future__ import annotations

from IPython.core.magic_arguments import argument, magic_arguments

from fluidnb import compat as names
from fluidnb_magics.arguments import parse_argstring
from fluidnb_magics.display import show
from fluidnb_magics.session.workbench import Workbench

#: Whether they are on because of the magic, and not because a cell called compat.install().
_mine = False


@magic_arguments("fluid compat")
@argument("state", nargs="?", choices=["on", "off"], help="left out, it says whether they are on")
@argument("--force", action="store_true", help="run even if PaddlePaddle is installed")
def compat(bench: Workbench, line: str) -> None:
    """Let ``import paddle``, ``paddle.fluid`` and ``paddle.v2.fluid`` mean fluidnb in this session, or no longer."""
    global _mine
    args = parse_argstring(compat, line)
    if args.state == "on" and not names.is_installed():
        names.install(force=args.force)
        _mine = True
    elif args.state == "off":
        names.uninstall()
        _mine = False
    said = "import paddle.fluid as fluid means fluidnb" if names.is_installed() else "import paddle means no fluidnb"
    show(bench.shell, [[("compat ", "name"), ("on" if names.is_installed() else "off", "bold"), (f"  {said}", "dim")]])


def take_back() -> None:
    """When the extension goes: off, if the magic turned them on."""
    global _mine
    if _mine:
        names.uninstall()
        _mine = False
