"""Coverage: which operations of Paddle 3 are converted, with which attributes, to which operators; where these run."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fluidnb.op import Attr, get_op, has_op, kernels_of
from fluidnb.pir.convert import DROPPED, READ, STRUCTURAL
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


@dataclass(frozen=True, slots=True)
class AttributeCoverage:
    """An attribute of an operation in Paddle's registry.

    Args:
        operation: the operation, without ``pd_op.``.
        attribute: the attribute.
        kind: its type: ``int``, ``ints``, ``string``, ``bool``, ``dtype`` and others.
        default: its default, as Paddle's C++ writes it; empty for none.
        values: the values that are converted and run; empty where the attribute is counted in `OpenedModel.dropped`.
    """

    operation: str
    attribute: str
    kind: str
    default: str
    values: str


@cache
def registry() -> dict[str, Any]:
    """Paddle's registry: its version, how many operations it has, and the attributes of those that are converted.

    Example:
        >>> registry()["attributes"]["leaky_relu"]
        {'negative_slope': ['float64', '0.02']}
    """
    found: dict[str, Any] = json.loads(Path(__file__).with_name("registry.json").read_text("utf-8"))
    return found


def attribute_coverage() -> list[AttributeCoverage]:
    """The attributes of the operations that are converted, from Paddle's registry and the operators' definitions.

    Example:
        >>> [row.values for row in attribute_coverage() if row.attribute == "padding_mode"]
        ['zeros, border, reflection']
    """
    return [
        AttributeCoverage(operation, name, kind, default, _values(operation, name, kind))
        for operation, attributes in registry()["attributes"].items()
        for name, (kind, default) in attributes.items()
    ]


def _values(operation: str, name: str, kind: str) -> str:
    line = signature(operation)
    assert line is not None
    if (operation, name) in READ:
        return READ[operation, name]
    if name in line.dropped or name in DROPPED:
        return "all, without effect"
    target = line.renamed.get(name, name)
    if target in line.fixed:
        return json.dumps(line.fixed[target])
    if target in line.empty.values() or not has_op(line.operator):
        return "all"
    attr = get_op(line.operator).attrs.get(target)
    return "" if attr is None else _allowed(attr, kind)


def _allowed(attr: Attr, kind: str) -> str:
    """The values that a definition allows, as text."""
    if attr.enum is not None:
        return ", ".join(map(str, attr.enum))
    bounds = [f"{attr.ge:g} or more"] if attr.ge is not None else []
    bounds += [f"above {attr.gt:g}"] if attr.gt is not None else []
    bounds += ["a rule of several"] if attr.check is not None else []
    return ", ".join(bounds) or ("false, true" if kind == "bool" else "all")


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
    return _aligned(table)


def attribute_table(rows: Iterable[AttributeCoverage]) -> str:
    """Coverage of attributes as a table of text.

    Example:
        >>> print(attribute_table(row for row in attribute_coverage() if row.operation == "argsort"))
        operation  attribute   type  default  values
        argsort    axis        int   -1       all
                   descending  bool  false    false, true
                   stable      bool  false    all, without effect
    """
    table = [("operation", "attribute", "type", "default", "values")]
    last = ""
    for row in rows:
        name = row.operation if row.operation != last else ""
        table.append((name, row.attribute, row.kind, row.default, row.values or "dropped and counted"))
        last = row.operation
    return _aligned(table)


def _aligned(table: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join("  ".join(t.ljust(w) for t, w in zip(cells, widths, strict=True)).rstrip() for cells in table)


def _places(operator: str) -> tuple[str, ...]:
    if not has_op(operator):
        return ()
    places = {kernel.place for kernel in kernels_of(operator)}
    return ("CPU", *(("CUDA",) if "cuda" in places else ()))
