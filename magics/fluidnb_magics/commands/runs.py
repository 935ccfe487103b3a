"""``%fluid runs``: the training runs of the session."""

from fluidnb.errors import NotFound, near
from fluidnb.viz.time.training_runs import training_runs_html, training_runs_lines
from fluidnb_magics.arguments import positive, unquoted
from fluidnb_magics.commands._command import Namespace, Section, UsageError, Workbench, argument, command, show, width
from fluidnb_magics.commands._offers import training_runs
from fluidnb_magics.session.training import Run


@command(Section.RUN, "runs", training_runs)
@argument("runs", nargs="*", help="numbers or names of runs; all of them if left out")
@argument("--smooth", type=positive, metavar="N", help="draw the mean of N steps; 1 draws each, default by length")
@argument("--drop", action="store_true", help="forget these runs")
def runs(bench: Workbench, args: Namespace) -> None:
    """List the training runs of this session and plot their curves together.

    The list ends with the kernel; a plot stays in the notebook.
    """
    if args.drop and not args.runs:
        raise UsageError("%fluid runs --drop needs the runs to forget: %fluid runs 1 2 --drop.")
    chosen = find_runs(bench, args.runs) if args.runs else list(bench.runs)
    if args.drop:
        bench.runs[:] = [run for run in bench.runs if run not in chosen]
        chosen = list(bench.runs)
    show(bench.shell, training_runs_lines(chosen, width(bench.shell)), lambda: training_runs_html(chosen, args.smooth))


def find_runs(bench: Workbench, words: list[str]) -> list[Run]:
    """The runs that words mean."""
    known = {key: run for run in bench.runs for key in (run.name, str(run.number))}
    for word in words:
        if unquoted(word) not in known:
            raise NotFound(
                f"there is no run {word}.", expected=", ".join(known) or "no runs yet", received=word,
                hint=near(word, known) or "%fluid runs lists them.",
            )  # fmt: skip
    return [known[unquoted(word)] for word in words]
