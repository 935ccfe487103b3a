"""Rules of the conversion, one by one, on programs written by hand; and files that are no programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import pir
from fluidnb.errors import EnforceNotMet, NotBuiltYet
from fluidnb.op import get_op, has_op
from fluidnb.pir.signatures import LINES, signature

Data = dict[str, Any]


def tensor(dtype: str, *shape: int) -> Data:
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{dtype}"}, list(shape), "NCHW", [], 0]}


def attribute(value: Any) -> Data:
    if isinstance(value, list):
        return {"#": "0.a_array", "D": [attribute(v) for v in value]}
    if isinstance(value, bool):
        return {"#": "0.a_bool", "D": value}
    kinds = {int: "0.a_i32", float: "0.a_f32", str: "0.a_str", dict: ""}
    return value if isinstance(value, dict) else {"#": kinds[type(value)], "D": value}


def op(kind: str, operands: list[int], results: list[tuple[int, Data]], *regions: Any, **attrs: Any) -> Data:
    made: Data = {
        "#": kind, "A": [{"N": n, "AT": attribute(v)} for n, v in attrs.items()], "I": [{"%": i} for i in operands],
        "O": [{"%": n, "TT": t} for n, t in results], "OA": [],
    }  # fmt: skip
    if regions:
        made["regions"] = [
            {"#": "region", "blocks": [{"#": "block", "args": block[0], "ops": block[1:]}]} for block in regions
        ]
    return made


def data(number: int, name: str, kind: Data) -> Data:
    return op("1.data", [], [(number, kind)], name=name)


def fetch(number: int, column: int = 0) -> Data:
    return op("1.fetch", [number], [(900 + column, tensor("f32"))], name=f"fetch_{column}", col=column)


def full(number: int, value: float, dtype: str = "f32", *shape: int) -> Data:
    return op("1.full", [], [(number, tensor(dtype, *shape))], shape=list(shape), value=value)


def written(folder: Path, *ops: Data) -> str:
    """A file with a program of these operations."""
    region = {"#": "region_0", "blocks": [{"#": "block_0", "args": [], "ops": list(ops)}]}
    program = {"base_code": {"magic": "pir", "version": 1}, "program": {"regions": [region]}}
    path = folder / "inference.json"
    path.write_text(json.dumps(program))
    return str(path)


X = tensor("f32", -1, 3)


def test_every_line_of_the_table_names_what_its_operator_has() -> None:
    """Slots and attributes that the table names exist, where the operator is here."""
    for name in LINES:
        line = signature(name)
        assert line is not None
        if not has_op(line.operator):
            continue
        definition = get_op(line.operator)
        slots = {slot for operand in line.operands for slot in (operand.slot, operand.list_slot)} - {""}
        assert slots <= set(definition.inputs), name
        assert {r.slot for r in line.results} - {""} <= set(definition.outputs), name
        attrs = {o.attr for o in line.operands} | set(line.renamed.values()) | set(line.fixed) | set(line.empty)
        assert (attrs | set(line.dtypes)) - {""} <= set(definition.attrs), name


def test_an_operation_without_a_counterpart_is_listed_and_drawn(tmp_path: Path) -> None:
    path = written(tmp_path, data(1, "x", X), op("1.fold_paper", [1, 0], [(2, X)], times=2), fetch(2))
    model = fluid.open(path)
    assert dict(model.unconverted) == {"pd_op.fold_paper": 1} and dict(model.unknown) == {"fold_paper": 1}
    assert "unknown   1 fold_paper" in str(model)
    assert [o.type for o in model.program.global_block().ops] == ["feed", "fold_paper", "fetch"]
    with pytest.raises(NotBuiltYet, match="fold_paper"):
        model.run(np.zeros((1, 3), "float32"))
    with pytest.raises(NotBuiltYet, match="1 pd_op.fold_paper"):
        model.save(str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_attributes_without_a_counterpart_are_listed(tmp_path: Path) -> None:
    relu = op("1.relu", [1], [(2, X)], struct_name="/Net/Act/", softly=False)
    path = written(tmp_path, data(1, "x", X), relu, fetch(2))
    done = pir.convert(pir.read(path))
    assert dict(done.dropped) == {"relu.softly": 1} and not done.unknown
    assert done.program.global_block().ops[1].attr("op_namescope") == "/Net/Act/"


def test_an_attribute_with_another_meaning_is_no_wrong_result(tmp_path: Path) -> None:
    path = written(tmp_path, data(1, "x", X), op("1.round", [1], [(2, X)], decimals=2), fetch(2))
    model = fluid.open(path)
    assert "unmatched  1 pd_op.round with decimals 2" in str(model) and not model.unknown
    for call in (lambda: model.run(np.zeros((1, 3), "float32")), lambda: model.save(str(tmp_path / "out"))):
        with pytest.raises(NotBuiltYet, match="1 pd_op.round with decimals 2"):
            call()
    path = written(tmp_path, data(1, "x", X), op("1.round", [1], [(2, X)], decimals=0), fetch(2))
    assert fluid.open(path).run(np.full((1, 3), 1.6, "float32"))[0].tolist() == [[2, 2, 2]]


def test_variables_that_loops_exchange(tmp_path: Path) -> None:
    """a, b = b, a in the body of a while: each is read before it is assigned."""
    one, flag = tensor("f32", 1), tensor("bool", 1)
    body = [
        [{"#": -1, "TT": one}, {"#": -2, "TT": one}, {"#": -3, "TT": one}],
        op("1.full", [], [(20, one)], shape=[1], value=1.0), op("1.add", [-3, 20], [(21, one)]),
        op("1.full", [], [(22, one)], shape=[1], value=3.0), op("1.less_than", [21, 22], [(23, flag)]),
        op("2.yield", [23, -2, -1, 21], []),
    ]  # fmt: skip
    path = written(
        tmp_path, data(1, "a", one), data(2, "b", one), full(3, 0.0, "f32", 1), full(4, 3.0, "f32", 1),
        op("1.less_than", [3, 4], [(5, flag)]),
        op("1.while", [5, 1, 2, 3], [(6, one), (7, one), (8, one)], body), fetch(6), fetch(7, 1),
    )  # fmt: skip
    feed = {"a": np.array([1], "float32"), "b": np.array([2], "float32")}
    assert [float(v[0]) for v in fluid.open(path).run(feed)] == [2.0, 1.0]


def test_a_name_that_a_feed_has_is_not_taken_again(tmp_path: Path) -> None:
    path = written(tmp_path, data(1, "relu_2", X), op("1.relu", [1], [(2, X)]), fetch(2))
    model = fluid.open(path)
    assert model.fetches[0].name == "relu_2_"
    assert model.run(np.array([[-1, 0, 1]], "float32"))[0].tolist() == [[0, 0, 1]]


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    lowest = op("1.full", [], [(2, tensor("f32", 3))], shape=[3], value={"#": "0.a_f64", "VD": "-INF"})
    path = written(tmp_path, data(1, "x", X), lowest, op("1.maximum", [1, 2], [(3, X)]), fetch(3))
    assert fluid.open(path).run(np.array([[-1, 0, 1]], "float32"))[0].tolist() == [[-1, 0, 1]]


@pytest.mark.parametrize(
    ("text", "received"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "hundreds deep"),
        ('{"a":' * 100_000, "hundreds deep"),
        ("[1, 2]", "a list"),
        ('{"nodes": [], "edges": []}', "an object with nodes, edges"),
        ('{"base_code": {"magic": "onnx"}}', "'onnx'"),
        ('{"base_code": {"magic": "pir"}, "program": {}}', "KeyError"),
        ('{"base_code": {"magic": "pir"}, "program": {"regions": [{"blocks": [{"args": [], "ops": [3]}]}]}}', "Error"),
        ("\x00\x01", "Expecting value"),
    ],
)
def test_files_that_are_no_programs(text: str, received: str, tmp_path: Path) -> None:
    path = tmp_path / "inference.json"
    path.write_text(text)
    with pytest.raises(EnforceNotMet, match="is no program of Paddle 3") as error:
        fluid.open(str(path))
    assert received in str(error.value)


def test_blocks_that_are_nested_too_deeply(tmp_path: Path) -> None:
    text = '{"#": "1.if", "A": [], "I": [], "O": [], "regions": [{"blocks": [{"args": [], "ops": [' * 400
    path = tmp_path / "inference.json"
    path.write_text(
        '{"base_code": {"magic": "pir"}, "program": {"regions": [{"blocks": [{"args": [], "ops": ['
        + text + "]}]}]}" * 400 + "]}]}]}}"
    )
    with pytest.raises(EnforceNotMet, match="is no program of Paddle 3"):
        fluid.open(str(path))


def test_values_that_nothing_computes(tmp_path: Path) -> None:
    with pytest.raises(EnforceNotMet, match="value 7 is used, and nothing computes it"):
        fluid.open(written(tmp_path, data(1, "x", X), op("1.relu", [7], [(2, X)]), fetch(2)))
    with pytest.raises(EnforceNotMet, match="value 1 is no vector"):
        fluid.open(written(tmp_path, data(1, "x", X), op("0.split", [1], [(2, X)]), fetch(2)))
