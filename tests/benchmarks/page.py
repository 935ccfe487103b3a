"""The page with the figures, ``notebooks/benchmarks.ipynb``: `make bench` fills its data cell and runs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

#: The id of the cell with the figures.
CELL = "benchmarks-data"


def compact(run: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a record to what the page shows: the machine, and the median times of each work."""
    works = {
        name: {
            "title": work["title"],
            "unit": work["unit"],
            "times": {peer: float(f"{row['median']:.4g}") for peer, row in work["peers"].items() if row["median"]},
        }
        for name, work in run["works"].items()
    }
    kept = {key: run[key] for key in ("at", "python", "machine", "cores", "threads")}
    return {**kept, "load": round(run["load"], 2), "works": works}


def write_page(
    one: Mapping[str, Any], several: Mapping[str, Any], scaling: Mapping[str, Any], runs: Sequence[Mapping[str, Any]],
    path: Path,
) -> None:  # fmt: skip
    """Put figures into the notebook and run it.

    Args:
        one: the record with one thread.
        several: the record with several threads.
        scaling: see `measure_scale`, by name.
        runs: the history, the oldest first; the last ten are shown.
        path: the notebook.
    """
    past = [compact(run) for run in runs[-10:]]
    data = {"one": compact(one), "several": compact(several), "scaling": scaling, "runs": past}
    nb = nbformat.read(path, as_version=4)
    (cell,) = (cell for cell in nb.cells if cell.id == CELL)
    cell.source = f"import json\n\nDATA = json.loads(\n    r'''{json.dumps(data)}'''\n)"
    NotebookClient(nb, timeout=120, kernel_name="python3", record_timing=False).execute()
    nbformat.write(nb, path)
