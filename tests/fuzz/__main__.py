"""``make fuzz MINUTES=10``: runs each fuzzer for its share of the time and prints what it found, in small cases."""

from __future__ import annotations

import argparse
import shutil
import sys

from tests.fuzz import farm

TARGETS = ("calls", "programs", "files", "archives", "models", "cells", "messages", "memory_safety", "kernel_safety")


def main() -> int:
    """Run the fuzzers; 1 when one found something."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all of {', '.join(TARGETS)}")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all together")
    parser.add_argument("--first", type=int, default=0, help="first seed: another one gives other cases")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    args = parser.parse_args()
    unknown = set(args.targets) - set(TARGETS)
    if unknown:
        parser.error(f"there is no fuzzer {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    targets, found = args.targets or TARGETS, 0
    if not args.targets and shutil.which("g++") is None:
        targets = TARGETS[:-1]
        print("kernel_safety: left out, it needs g++")
    for target in targets:
        tally = farm.run(target, 60 * args.minutes / len(targets), args.first, args.workers)
        print(tally.report(target).encode("ascii", "backslashreplace").decode(), flush=True)
        found += len(tally.findings)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
