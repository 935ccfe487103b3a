"""The file beside a saved model that describes pre- and postprocessing: found, read, and as data.

Paddle's collections write three kinds. PaddleClas and PaddleOCR (``inference.yml``) have ``PreProcess.transform_ops``
and ``PostProcess``; PaddleDetection (``infer_cfg.yml``) has ``Preprocess``, ``label_list`` and ``draw_threshold``;
PaddleSeg (``deploy.yaml``) has ``Deploy.transforms`` and ``Deploy.output_op``.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from fluidnb.errors import EnforceNotMet
from fluidnb.extras import require

#: Limits of a file: bytes, values with those that aliases repeat, and lists in lists.
MOST_BYTES, MOST_VALUES, MOST_DEPTH = 16 << 20, 1_000_000, 32
#: Items of a list that are shown.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the processing: its name and its options."""

    name: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={_brief(v)}' for k, v in self.options.items())})"


@dataclass(frozen=True, slots=True)
class ProcessingConfig:
    """Processing of a model as a file describes it.

    Args:
        path: the file.
        kind: key of the file that lists the steps: ``PreProcess``, ``Preprocess`` or ``Deploy``.
        before: steps from an image to what is fed.
        after: steps from what is fetched to labels, texts or boxes.
    """

    path: str
    kind: str
    before: tuple[Step, ...]
    after: tuple[Step, ...]

    def facts(self) -> list[tuple[str, str]]:
        """The steps, as rows of a title and a text."""
        return [("before", str(step)) for step in self.before] + [("after", str(step)) for step in self.after]


def read_config(path: str) -> ProcessingConfig:
    """Reads a file; only plain values, and no code in it runs.

    Raises:
        EnforceNotMet: the file cannot be read, is too large, or describes no processing.
        MissingPackage: PyYAML is not installed.
    """
    yaml = require("yaml", f"Reading {path}")
    try:
        size = os.path.getsize(path)
        if size > MOST_BYTES:
            _refuse(path, f"at most {MOST_BYTES >> 20} MB", f"{size >> 20} MB")
        with open(path, encoding="utf-8") as file:
            data = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except OSError as error:
        raise EnforceNotMet(f"Cannot read {path}.", received=error.strerror, hint="correct its permissions.") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        _refuse(path, "YAML with plain values", " ".join(str(error).split())[:120])
    _check(data, path)
    if not isinstance(data, dict):
        _refuse(path, "names and values", type(data).__name__)
    for kind, steps in (("PreProcess", _transform_ops), ("Preprocess", _detection), ("Deploy", _segmentation)):
        if kind in data:
            try:
                before, after = steps(data)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                _refuse(path, f"{kind} with a list of steps", f"{type(error).__name__} {error}"[:120])
            return ProcessingConfig(path, kind, tuple(before), tuple(after))
    _refuse(path, "PreProcess, Preprocess or Deploy", ", ".join(map(str, list(data)[:8])) or "nothing")


def _check(data: Any, path: str) -> None:
    """Refuse what would take much time or memory: aliases repeat a value as often as they like."""
    waiting = [(data, 0)]
    count = 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if count > MOST_VALUES or depth > MOST_DEPTH:
            _refuse(path, f"at most {MOST_VALUES:,} values, {MOST_DEPTH} deep", "more")
        if isinstance(value, Mapping):
            waiting += [(v, depth + 1) for v in value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += [(v, depth + 1) for v in value]


def _transform_ops(data: dict[str, Any]) -> tuple[list[Step], list[Step]]:
    before = [
        Step(str(name), dict(options or {}))
        for item in data["PreProcess"]["transform_ops"]
        for name, options in item.items()
    ]
    after = dict(data.get("PostProcess") or {})
    if "name" in after:  # PaddleOCR: one step with its options
        return before, [Step(str(after.pop("name")), after)]
    return before, [Step(str(n), dict(o or {})) for n, o in after.items() if o is None or isinstance(o, dict)]


def _detection(data: dict[str, Any]) -> tuple[list[Step], list[Step]]:
    after: dict[str, Any] = {name: data[name] for name in ("draw_threshold", "label_list") if name in data}
    return _typed(data["Preprocess"]), [Step("Boxes", after)]


def _segmentation(data: dict[str, Any]) -> tuple[list[Step], list[Step]]:
    deploy = data["Deploy"]
    return _typed(deploy["transforms"]), [Step("ClassMap", {"output_op": deploy.get("output_op", "argmax")})]


def _typed(items: list[dict[str, Any]]) -> list[Step]:
    return [Step(str(item["type"]), {n: v for n, v in item.items() if n != "type"}) for item in items]


def _brief(value: Any) -> str:
    if isinstance(value, list) and len(value) > _SHOWN:
        return f"[{', '.join(map(str, value[:3]))}, … {len(value)}]"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _refuse(path: str, expected: str, received: str) -> NoReturn:
    raise EnforceNotMet(
        f"{path} describes no processing of images.", expected=expected, received=received,
        hint="export the model again, or delete the file: the model runs on arrays without it.",
    ) from None  # fmt: skip
