"""``%fluid kernels``: the kernels of operators, and those that cells wrote."""

from fluidnb.errors import OpValueError
from fluidnb.viz.base.styled_text import Line
from fluidnb_magics.arguments import unquoted
from fluidnb_magics.commands._command import Namespace, Section, Workbench, argument, command, show, width
from fluidnb_magics.commands._offers import op_types


def _offered(bench: Workbench, words: list[str]) -> list[str]:
    return [*([] if words else ["drop", "mine"]), *op_types(bench, words)]


@command(Section.KERNELS, "kernels *conv*", _offered)
@argument("what", nargs="?", default="", help="an operator, a family, a part of names (* and ?); or drop, or mine")
@argument("name", nargs="?", default="", help="with drop: the operator whose cell-defined kernels to remove")
@argument("place", nargs="?", default="", choices=["", "cpu", "cuda"], help="with drop: only the kernels of this place")
def kernels(bench: Workbench, args: Namespace) -> None:
    """List the CPU and CUDA kernels of operators.

    ``%fluid kernels mine`` reports the kernels and operators that %%kernel and %%op cells defined in this session,
    ``%fluid kernels drop OP`` removes them.
    """
    from fluidnb_kernels.lab import written, written_ops
    from fluidnb_kernels.lab.catalog import catalog_html, catalog_lines, read_catalog
    from fluidnb_kernels.lab.report import op_lines, trial_lines

    what = unquoted(args.what)
    if what == "drop":
        show(bench.shell, _drop(unquoted(args.name), args.place))
    elif what == "mine":
        lines = [line for trial in written() for line in trial_lines(trial)]
        lines += [line for trial in written_ops() for line in op_lines(trial)]
        hint: list[Line] = [[("no kernels yet: write one in a cell that starts with %%kernel OP", "dim")]]
        show(bench.shell, lines or hint)
    else:
        rows = read_catalog(what)
        show(bench.shell, catalog_lines(rows, width(bench.shell)), lambda: catalog_html(rows))


def _drop(name: str, place: str) -> list[Line]:
    from fluidnb_kernels.lab import take_back, written, written_ops

    own = next((t for t in written_ops() if t.op == name), None)
    if own is not None:
        own.take_back()
        return [[(name, "name"), ("  is not an operator any more", "")]]
    if not name:
        names = dict.fromkeys([*(t.op for t in written()), *(t.op for t in written_ops())])
        raise OpValueError(
            "drop needs the name of an operator.", expected=" or ".join(names) or "nothing was written yet",
            received="%fluid kernels drop",
        )  # fmt: skip
    return [[(t.op, "name"), (f"  on {t.place}, {', '.join(t.dtypes)}: removed", "")] for t in take_back(name, place)]
