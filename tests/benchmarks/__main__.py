"""``python -m tests.benchmarks [WORK ...] [--peers fluidnb,torch] [--json FILE]``: measure, print, keep the numbers.

The exit status is 1 when a goal is missed or could not be measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.benchmarks.driver import ROOT, measure
from tests.benchmarks.report import all_met, save, table
from tests.benchmarks.works import PEERS, WORKS


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
    parser.add_argument("--json", type=Path, default=ROOT / ".bench" / "last.json", help="where the numbers go")
    options = parser.parse_args(argv)
    unknown = set(options.works) - WORKS.keys()
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    measured = {}
    missed = 0
    for name in options.works or WORKS:
        work = WORKS[name]
        results = measured[name] = measure(work, options.peers.split(","))
        print(table(work, results), end="\n\n", flush=True)
        missed += not all_met(work, results)
    save(measured, options.json)
    print(f"{len(measured) - missed} of {len(measured)} goals met; all numbers: {options.json}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
