"""Paddle 3's registry of operations: attributes with types and defaults, read from the header that it installs.

``python -m tests.paddle.registry`` writes those of the operations that are converted to `fluidnb/pir/registry.json`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from fluidnb.pir.signatures import LINES
from tests.paddle.harness import PYTHONS, ROOT

FILE = ROOT / "fluidnb" / "pir" / "registry.json"
#: Headers of operations, of which the first is generated from Paddle's YAML.
HEADERS = ("pd_op.h", "manual_op.h", "control_flow_op.h")
FOLDER = Path("site-packages", "paddle", "include", "paddle", "fluid", "pir", "dialect", "operator", "ir")
VERSION = "3.3.1"
#: Types of C++ -> kinds of attributes.
KINDS = {
    "int": "int", "int64_t": "long", "bool": "bool", "float": "float", "double": "float64", "std::string": "string",
    "std::vector<int>": "ints", "std::vector<int64_t>": "longs", "std::vector<float>": "floats",
    "std::vector<std::string>": "strings", "std::vector<phi::Scalar>": "scalars", "std::vector<bool>": "bools",
    "std::vector<double>": "float64s",
    "phi::DataType": "dtype", "phi::Place": "place", "phi::Scalar": "scalar", "phi::DataLayout": "layout",
}  # fmt: skip
#: Attributes of an operation: name -> its kind and its default, as C++ writes it; empty for none.
Attributes = dict[str, list[str]]


def headers() -> str:
    """The headers of the installed Paddle 3."""
    folder = next((PYTHONS[VERSION].parents[1] / "lib").glob(f"python*/{FOLDER}"))
    return "\n".join((folder / name).read_text() for name in HEADERS)


def registry(text: str) -> dict[str, Attributes]:
    """The attributes of each operation in a header, where it has as many as it says; what may be an operand is none."""
    text = re.sub(r"//[^\n]*", "", text)
    found = {}
    for part in map(" ".join, map(str.split, text.split("\nclass ")[1:])):
        name = re.search(r'"pd_op\.(\w+)"; }', part)
        count = re.search(r"attributes_num = (\d+);", part)
        builds = re.findall(r"static void Build\( ?pir::Builder &\w*, pir::OperationArgument &\w*(.*?)\);", part)
        if name is None or count is None:
            continue
        values = set(re.findall(r"pir::Value (\w+)_[,)]", ",".join(builds) + ","))
        attributes: Attributes = {}
        for argument in _arguments(builds[0]) if builds else ():
            kind, word, default = argument
            if kind in KINDS and word not in values:
                attributes[word] = [KINDS[kind], default]
        if len(attributes) != int(count[1]):
            continue
        found[name[1]] = attributes
    return found


def _arguments(text: str) -> list[tuple[str, str, str]]:
    """Type, name and default of each argument."""
    parts = re.split(r", (?=(?:const |pir::|phi::|int|bool|float|double|std::)\S* ?\S)", text.removeprefix(", "))
    found = []
    for part in parts:
        declared, _, default = part.partition("=")
        kind, _, word = declared.strip().rpartition(" ")
        found.append((kind.removeprefix("const ").rstrip("&"), word, default))
    return found


def stored(operations: dict[str, Attributes]) -> str:
    """The text of the file: how many operations there are, and the attributes of those that are converted."""
    forward = [name for name in operations if not re.search(r"_grad\d*_?$", name)]
    data = {"paddle": VERSION, "operations": len({name.rstrip("_") for name in forward}),
            "attributes": {n: operations[n] for n in sorted(LINES) if n in operations}}  # fmt: skip
    lines = json.dumps(data, indent=1)
    return re.sub(r"\[\s+(\".*?\"),\s+(\".*\")\s+\]", r"[\1, \2]", lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(stored(registry(headers())))
