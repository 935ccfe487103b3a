"""Models of Paddle 3 and of ONNX with random changes to what they hold: opened, drawn, and run with random feeds.

Changed bytes of such a file rarely say something else, so values and nodes are changed in place, copied and removed.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

import fluidnb as fluid
from fluidnb.memory import flags
from fluidnb.values.dtypes import np_dtype
from tests.fuzz.files import broken
from tests.fuzz.mutate_json import NUMBERS, changed
from tests.fuzz.oracle import RESULT, Outcome, judge
from tests.fuzz.programs import CASE_BYTES, LOOPS

__all__ = ["CASE_BYTES", "case", "run", "show", "smaller"]

TESTS = Path(__file__).parents[1]
FRACTIONS = (0.0, -1.0, 0.5, 1e30, -1e30, float("nan"), float("inf"))


@cache
def sources() -> list[str]:
    """The models: files of the tests, those of ONNX where its package is."""
    found = [*TESTS.glob("golden/pir/*/*/inference.json")]
    if find_spec("onnx") is not None:
        found += TESTS.glob("onnx/models/*.onnx")
    return sorted(str(path.relative_to(TESTS)) for path in found if path.stat().st_size < 40_000)


def case(dice: random.Random) -> dict[str, Any]:
    """A model, the seed of its changes and how many they are, and edits of the bytes of its parameters."""
    edits = []
    if dice.random() < 0.1:
        how = dice.choice(["flip", "number32", "number64", "cut", "double"])
        edits = [[how, dice.random() ** 2, dice.getrandbits(8)]]
    changes = dice.choice([1, 1, 1, 2, 5])
    return {"model": dice.choice(sources()), "seed": dice.getrandbits(32), "changes": changes, "edits": edits}


@cache
def operators() -> list[str]:
    """The types of ONNX's operators."""
    from onnx import defs

    return sorted({schema.name for schema in defs.get_all_schemas() if schema.domain == ""})


def fields(message: Any) -> list[tuple[Any, Any, int]]:
    """Every (message, field, index) of a protobuf message that is set; the index is -1 where the field is no list."""
    found: list[tuple[Any, Any, int]] = []
    for field, value in message.ListFields():
        if field.name in ("raw_data", "doc_string"):
            continue
        for index in range(len(value)) if field.is_repeated else (-1,):
            found.append((message, field, index))
            part = value if index < 0 else value[index]
            if field.message_type is not None:
                found += fields(part)
    return found


def change_message(model: Any, dice: random.Random) -> None:
    """Change one thing in an ONNX model, most often in one of its nodes."""
    part = dice.choice(model.graph.node) if model.graph.node and dice.random() < 0.7 else model
    message, field, index = dice.choice(fields(part) or fields(model))
    value, how, new = getattr(message, field.name), dice.random(), cast("Any", None)
    if index >= 0 and how < 0.15:
        del value[index]
    elif field.message_type is not None:
        same = [(m, f, i) for m, f, i in fields(model) if f.message_type is field.message_type]
        other, its, at = dice.choice(same)
        new = getattr(other, its.name)
        new = copy.deepcopy(new if at < 0 else new[at])
        if index >= 0 and how < 0.4:
            value.insert(index, new)
        else:
            (value if index < 0 else value[index]).CopyFrom(new)
    else:
        old = value if index < 0 else value[index]
        if field.name == "op_type":
            new = dice.choice(operators())
        elif isinstance(old, bool | int):
            new = dice.choice(NUMBERS) if how < 0.8 else old + 1
        elif isinstance(old, float):
            new = dice.choice(FRACTIONS)
        else:
            texts = [(m, f, i) for m, f, i in fields(model) if f.cpp_type == field.cpp_type and f.type == field.type]
            other, its, at = dice.choice(texts)
            new = getattr(other, its.name) if at < 0 else getattr(other, its.name)[at]
        try:
            if index < 0:
                setattr(message, field.name, new)
            else:
                value[index] = new
        except ValueError:  # an int32 or an enum without this number
            pass


def write(one: dict[str, Any], folder: str) -> str:
    """Write the changed model and give its path."""
    dice, source = random.Random(one["seed"]), TESTS / one["model"]
    path = Path(folder) / source.name
    if source.suffix == ".onnx":
        from tests.onnx.weights import filled

        model = filled(source.stem)
        for _ in range(one["changes"]):
            change_message(model, dice)
        path.write_bytes(broken(model.SerializeToString(), one["edits"]))
        return str(path)
    program = changed(json.loads(source.read_text()), dice, one["changes"])
    path.write_text(json.dumps(program))
    parameters = source.with_suffix(".pdiparams")
    if parameters.exists():
        shutil.copy(parameters, folder)
        if one["edits"]:
            (Path(folder) / parameters.name).write_bytes(broken(parameters.read_bytes(), one["edits"]))
    return str(path)


def run(one: dict[str, Any]) -> Outcome:
    """Change a model, open it, draw it and run it."""
    flags.values["max_loop_iterations"] = LOOPS
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, fluid.fresh():
        os.chdir(folder)
        try:
            path = write(one, folder)
            model = fluid.open(path)
            str(model), model.program._repr_html_(), model.program.summary()
            draw = np.random.default_rng(one["seed"])
            model.run({v.name: _feed(v, draw) for v in model.feeds})
        except BaseException as error:
            return judge(error, own=(__file__,))
        finally:
            os.chdir(here)
    return Outcome(RESULT)


def _feed(variable: Any, draw: np.random.Generator) -> Any:
    """Random values of a variable's declared shape; sizes that are not known, or are large, are 2."""
    sizes = [2 if size < 0 or size > 1000 else size for size in variable.shape]
    if int(np.prod(sizes)) > 1 << 20:
        sizes = [min(size, 2) for size in sizes]
    dtype = np_dtype(variable.dtype)
    values = draw.integers(0, 3, sizes) if dtype.kind in "iub" else draw.standard_normal(sizes)
    return values.astype(dtype)


def smaller(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cases with fewer changes."""
    if one["edits"]:
        yield one | {"edits": []}
    for changes in range(one["changes"]):
        yield one | {"changes": changes}


def show(one: dict[str, Any]) -> str:
    """Python code that runs the case again."""
    return f"from tests.fuzz import models\nprint(models.run({one!r}))"
