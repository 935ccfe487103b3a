"""``python -m tests.benchmarks [WORK ...] [--peers fluidnb,torch]``: measure, print, keep the numbers.

Without works everything is measured, by one thread and by two, and how times grow; then ``notebooks/benchmarks.ipynb``
is written. The exit status is 1 when a goal is missed or could not be measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.driver import ROOT, measure
from tests.benchmarks.page import write_page
from tests.benchmarks.report import all_met, history, record, remember, slower, table
from tests.benchmarks.scaling import SCALES, measure_scale, scale_table
from tests.benchmarks.works import PEERS, WORKS

#: Where the records of all runs are.
HISTORY = ROOT / ".bench" / "history.jsonl"
#: Works in which a second thread can help.
THREADED = ("c", "d", "e_static", "e", "g", "of_tanh", "of_softmax")


def run(works: Sequence[str], peers: Sequence[str], threads: int, path: Path) -> tuple[dict[str, Any], int]:
    """Measure some works, print them, keep the record; the record, and how many works missed a goal."""
    measured, missed = {}, 0
    for name in works:
        results = measured[name] = measure(WORKS[name], peers, threads)
        print(table(WORKS[name], results), end="\n\n", flush=True)
        missed += not all_met(WORKS[name], results)
    found = record(measured, threads)
    for sentence in slower(found, history(path)):
        print(f"slower: {sentence}")
    remember(found, path)
    return found, missed


def main(argv: list[str] | None = None) -> int:
    """Run the benchmarks that the command line names, all of them by default.

    Args:
        argv: the arguments; None takes those of the process.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="fluidnb beside its peers")
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"of {', '.join(WORKS)}; all by default")
    parser.add_argument("--peers", default=",".join(PEERS), help="who takes part (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of each process (default: %(default)s)")
    parser.add_argument("--json", type=Path, default=HISTORY, help="the file to which records are appended")
    options = parser.parse_args(argv)
    unknown = set(options.works) - WORKS.keys()
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    works, peers = options.works or list(WORKS), options.peers.split(",")
    one, missed = run(works, peers, options.threads, options.json)
    print(f"{len(works) - missed} of {len(works)} works met their goals; all numbers: {options.json}")
    if not options.works:
        several, _ = run(THREADED, peers, 2, options.json)
        scaling = {}
        for name, scale in SCALES.items():
            scaling[name] = measure_scale(scale, peers)
            print(scale_table(scaling[name]), end="\n\n", flush=True)
        page = ROOT / "notebooks" / "benchmarks.ipynb"
        write_page(one, several, scaling, history(options.json), page)
        print(f"the figures as tables and plots: {page}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
