"""``%fluid place``: where the programs of this session run."""

from __future__ import annotations

import re

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from fluidnb import memory
from fluidnb.errors import EnforceNotMet
from fluidnb.memory import size_text
from fluidnb.values import CPUPlace, CUDAPlace, DeviceContext, Place
from fluidnb.viz.spans import Line
from fluidnb_magics.showing import show
from fluidnb_magics.workbench import Workbench


def place_named(text: str) -> Place:
    """A place by the name that commands take.

    Args:
        text: ``cpu``, ``cuda``, ``cuda:1``, or as Python writes it.

    Returns:
        The place.

    Raises:
        UsageError: another text.

    Example:
        >>> place_named("cuda:1"), place_named("CPUPlace()")
        (CUDAPlace(1), CPUPlace)
    """
    found = re.fullmatch(r"(cpu|cuda|gpu)(?:place)?(?::(\d+)|\((\d*)\))?", text.strip().lower())
    if found is None:
        raise UsageError(f"{text} is no place: cpu, cuda, cuda:1 ...")
    return CPUPlace() if found[1] == "cpu" else CUDAPlace(int(found[2] or found[3] or 0))


@magic_arguments("fluid place")
@argument("place", nargs="?", help="cpu, cuda, or cuda:1 for the second device; left out, what there is is shown")
def place(bench: Workbench, line: str) -> None:
    """Choose where %fluid run, %fluid train and %%fluid --run run programs, or show where that can be."""
    args = parse_argstring(place, line)
    if args.place is not None:
        bench.use(place_named(args.place))
    show(bench.shell, [_row(bench, CPUPlace()), _row(bench, CUDAPlace(0)), *_others(bench)])


def _others(bench: Workbench) -> list[Line]:
    return [] if bench.place in (CPUPlace(), CUDAPlace(0)) else [_row(bench, bench.place)]


def _row(bench: Workbench, there: Place) -> Line:
    mark = "> " if there == bench.place else "  "
    try:
        context = DeviceContext.get(there)
    except EnforceNotMet as error:
        return [(f"{mark}{there}  ", ""), (error.summary.rpartition(": ")[2], "warn")]
    name = getattr(context, "name", "")
    return [
        (f"{mark}{there}", "name"),
        (f"  {name}" if name else "", ""),
        (f"  {size_text(memory.used(there))} in use", "dim"),
    ]
