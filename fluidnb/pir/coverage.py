"""Coverage: which operations of Paddle 3 are converted, to which operators, and where these run."""

from collections.abc import Iterable
from dataclasses import dataclass

from fluidnb.op import has_op, kernels_of
from fluidnb.pir.convert import STRUCTURAL
from fluidnb.pir.signatures import LINES, signature


@dataclass(frozen=True, slots=True)
class Coverage:
    """An operation of Paddle 3.

    Args:
        operation: its name, without ``pd_op.``.
        operator: the operator that it becomes; empty where it becomes several, or an attribute.
        runs: places that have the operator: ``CPU``, ``CUDA``; none where it is only drawn and saved.
        renamed: attributes with another name, as (Paddle 3's, ours).
        ignored: attributes without a counterpart, which change nothing.
    """

    operation: str
    operator: str
    runs: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...] = ()
    ignored: tuple[str, ...] = ()


def coverage() -> list[Coverage]:
    """The operations that can be converted, in order of their names, from the tables of the conversion.

    Example:
        >>> [row.operator for row in coverage() if row.operation == "matmul"]
        ['matmul_v2']
    """
    rows = [Coverage(name, "", ("CPU", "CUDA")) for name in STRUCTURAL]
    for name in LINES:
        line = signature(name)
        if line is not None:
            renamed, ignored = tuple(sorted(line.renamed.items())), tuple(sorted(line.dropped))
            rows.append(Coverage(name, line.operator, _places(line.operator), renamed, ignored))
    return sorted(rows, key=lambda row: row.operation)


def coverage_table(rows: Iterable[Coverage]) -> str:
    """Coverage as a table of text.

    Example:
        >>> print(coverage_table(coverage()[:1]))
        operation  operator  runs on    attributes
        abs        abs       CPU, CUDA
    """
    table = [("operation", "operator", "runs on", "attributes")]
    for row in rows:
        attributes = [f"{old} is {new}" for old, new in row.renamed] + [f"{name} ignored" for name in row.ignored]
        table.append((row.operation, row.operator or "-", ", ".join(row.runs) or "-", ", ".join(attributes)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(t.ljust(w) for t, w in zip(cells, widths, strict=True)).rstrip() for cells in table)


def _places(operator: str) -> tuple[str, ...]:
    if not has_op(operator):
        return ()
    places = {kernel.place for kernel in kernels_of(operator)}
    return ("CPU", *(("CUDA",) if "cuda" in places else ()))
