"""``%fluid place``: the device on which programs run."""

import re

from fluidnb import memory
from fluidnb.memory import size_text
from fluidnb.memory.pools import places
from fluidnb.values import CPUPlace, CUDAPlace, Place
from fluidnb.viz.base.device_names import device_name, places_here
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.commands._command import Namespace, Section, UsageError, Workbench, argument, command, show


def place_named(text: str) -> Place:
    """A place by the name that commands take: ``cuda:1``, ``CPUPlace()``."""
    match = re.fullmatch(r"(cpu|cuda|gpu)(?:place)?(?::(\d+)|\((\d*)\))?", text.strip().lower())
    if match is None:
        raise UsageError(f"{text} is not a place; use cpu, cuda, cuda:1 ...")
    return CPUPlace() if match[1] == "cpu" else CUDAPlace(int(match[2] or match[3] or 0))


@command(Section.SESSION, "place cpu", lambda bench, words: ["cpu", "cuda:0"])
@argument("place", nargs="?", help="cpu, cuda, or cuda:1 for the second device; lists the devices if left out")
def place(bench: Workbench, args: Namespace) -> None:
    """Choose the device on which programs of this session run, or list the devices.

    It applies to %fluid run, %fluid train, %%fluid --run, the debugger, the profiler and the widgets. Parameters are
    copied there at the next run.
    """
    if args.place is not None:
        bench.use(place_named(args.place))
    here, (why, hint) = places_here()
    others = [] if bench.place in here else [bench.place]
    lines = [_row(bench, there) for there in (*here, *others)]
    if why:
        lines += [[("  CUDAPlace(0)  ", ""), (why, "warn")], [(f"    {hint}", "dim")]]
    show(bench.shell, lines)


def _row(bench: Workbench, there: Place) -> Line:
    mark = "> " if there == bench.place else "  "
    name = device_name(there)
    # reading the pool of a device would initialize the device
    used = f"{size_text(memory.used(there))} in use" if there in places() else "not used yet"
    return [(f"{mark}{there}", "name"), (f"  {name}" if name else "", ""), (f"  {used}", "dim")]
