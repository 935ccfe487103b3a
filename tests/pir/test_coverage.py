"""Coverage of Paddle 3's operations, from the tables of the conversion."""

from __future__ import annotations

from fluidnb.op import get_op, has_op
from fluidnb.pir.convert import STRUCTURAL
from fluidnb.pir.coverage import attribute_coverage, attribute_table, coverage, coverage_table, registry
from fluidnb.pir.signatures import LINES, signature

#: Defaults that Paddle's kernels refuse: its Python functions always give another value.
PLACEHOLDERS = {("group_norm", "groups"), ("unstack", "num"), ("yolo_box", "anchors")}


def test_every_operation_of_the_tables_is_there_once() -> None:
    rows = coverage()
    assert [row.operation for row in rows] == sorted({*LINES, *STRUCTURAL})
    for row in rows:
        assert (row.runs == ()) == bool(row.operator and not has_op(row.operator))
    assert {"if", "while", "full", "parameter"} <= set(STRUCTURAL)


def test_places_and_attributes() -> None:
    rows = {row.operation: row for row in coverage()}
    assert rows["einsum"].runs == ("CPU",) and rows["atan2"].runs == ("CPU", "CUDA")
    assert rows["leaky_relu"].renamed == (("negative_slope", "alpha"),)
    assert rows["argsort"].ignored == ("stable",)
    line = next(line for line in coverage_table(rows.values()).splitlines() if line.startswith("leaky_relu "))
    assert line.split() == ["leaky_relu", "leaky_relu", "CPU,", "CUDA", "negative_slope", "is", "alpha"]


def test_every_operation_runs() -> None:
    assert not [row.operation for row in coverage() if not row.runs]


def test_values_of_attributes() -> None:
    rows = {(row.operation, row.attribute): row for row in attribute_coverage()}
    values = {key: row.values for key, row in rows.items()}
    assert values["conv2d", "padding_algorithm"] == "EXPLICIT, SAME, VALID"
    assert values["conv2d", "strides"] == "above 0" and values["conv2d", "groups"] == "1 or more"
    assert values["leaky_relu", "negative_slope"] == "all" and values["topk", "largest"] == "false, true"
    assert values["quantize_linear", "qmax"] == "2^n - 1" and values["argsort", "stable"] == "all, without effect"
    assert {key for key, text in values.items() if not text} == {
        ("max_pool2d_with_index", "ceil_mode"), ("round", "decimals")}  # fmt: skip
    lines = attribute_table(rows.values()).splitlines()
    assert len(lines) == len(rows) + 1 and any(line.split()[:2] == ["round", "decimals"] for line in lines)


def test_the_registry_has_every_operation_of_the_table() -> None:
    """Three names are aliases, and `expand` has no attribute that is no operand."""
    assert LINES.keys() - registry()["attributes"].keys() == {"expand", "isfinite_v2", "isinf_v2", "isnan_v2"}
    assert registry()["operations"] > len(LINES)


def test_paddles_defaults_are_values_that_we_take() -> None:
    read = {"true": True, "false": False}
    count = 0
    for operation, attributes in registry()["attributes"].items():
        line = signature(operation)
        assert line is not None
        for name, (kind, default) in attributes.items():
            attr = get_op(line.operator).attrs.get(line.renamed.get(name, name))
            if attr is None or name in line.dropped or not default or kind in ("dtype", "place", "scalars"):
                continue
            text = default.strip()
            if text.startswith("{"):
                value = [float(t) if "float" in kind else int(t) for t in text.strip("{}").split(",") if t.strip()]
            elif kind == "string":
                value = text.strip('"')
            else:
                value = read[text] if text in read else float(text.rstrip("f"))
                value = int(value) if kind in ("int", "long") else value
            if (operation, name) in PLACEHOLDERS:
                continue
            attr.convert(operation, name, value)
            count += 1
    assert count > 150
