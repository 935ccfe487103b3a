"""Postprocessing: a model's results as labels, texts, boxes, regions of text or maps of classes."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluidnb.data.processing.config import ProcessingConfig
from fluidnb.data.processing.regions import regions
from fluidnb.data.processing.steps import size_of
from fluidnb.errors import EnforceNotMet, FluidError, NotBuiltYet


class Label(NamedTuple):
    """A class with its score."""

    number: int
    name: str
    score: float

    def __str__(self) -> str:
        return f"{self.score:.4f}  {self.number}  {self.name}".rstrip()


class Text(NamedTuple):
    """A line of text with the mean score of its characters."""

    text: str
    score: float

    def __str__(self) -> str:
        return f"{self.score:.4f}  {self.text}"


class Box(NamedTuple):
    """An object with its class, its score and its corners in pixels of the image."""

    number: int
    name: str
    score: float
    left: float
    top: float
    right: float
    bottom: float

    def __str__(self) -> str:
        corners = f"({self.left:.1f}, {self.top:.1f}) to ({self.right:.1f}, {self.bottom:.1f})"
        return f"{self.score:.4f}  {self.number}  {self.name}  {corners}"


def postprocess(config: ProcessingConfig, arrays: Sequence[np.ndarray], images: Any = None) -> list[Any]:
    """Applies the steps of a file to a model's results.

    Args:
        config: what `read_config` read.
        arrays: what the model computed.
        images: the images, as `preprocess` takes them: corners of regions of text are then in their pixels, else in
            those of the map that the model computed.

    Returns:
        For each image a list of `Label`, `Box` or `Region`, a `Text`, or an int array of (height, width) with a class
        for each pixel.

    Raises:
        NotBuiltYet: a step that is not here.
        EnforceNotMet: the results do not fit the file.
    """
    step = next((s for s in config.after if s.name in _STEPS), None)
    if step is None:
        names = ", ".join(s.name for s in config.after) or "no step"
        raise NotBuiltYet(
            f"{config.path} has {names} for the results, which is not here.", expected=", ".join(_STEPS),
            received=names, hint="model.run returns the arrays.",
        )  # fmt: skip
    try:
        found = _STEPS[step.name](config, step.options, arrays)
        if images is None or step.name != _REGIONS:
            return found
        sizes = [size_of(image) for image in (images if isinstance(images, list | tuple) else [images])]
        old: Any = arrays[0].shape[2:]
        return [[each.resized(old, size) for each in row] for row, size in zip(found, sizes, strict=True)]
    except FluidError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise EnforceNotMet(
            f"The model's results do not fit {step.name} of {config.path}.", hint="model.run returns the arrays.",
            received=f"{', '.join(f'{a.dtype}{list(a.shape)}' for a in arrays)}: {error}"[:200],
        ) from None  # fmt: skip


def _names(config: ProcessingConfig, options: Mapping[str, Any], listed: str, filed: str) -> list[str] | None:
    """Names of classes: in the file, or in a text file beside it."""
    if options.get(listed) is not None:
        found = options[listed]
        if isinstance(found, Mapping):
            return [str(found.get(i, found.get(str(i), ""))) for i in range(len(found))]
        return [str(name) for name in found]
    if not options.get(filed):
        return None
    path = os.path.join(os.path.dirname(config.path), os.path.basename(str(options[filed])))
    try:
        with open(path, encoding="utf-8") as file:
            return [line.rstrip("\r\n") for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise EnforceNotMet(
            f"{config.path} names {options[filed]}, which cannot be read.", expected=path, received=str(error)[:120],
            hint="put the file beside the model.",
        ) from None  # fmt: skip


def _class_names(config: ProcessingConfig, options: Mapping[str, Any]) -> list[str] | None:
    """Names of classes; lines of a file begin with the class's number."""
    names = _names(config, options, "label_list", "class_id_map_file")
    if names is None or options.get("label_list") is not None:
        return names
    parts = [line.split(options.get("delimiter") or " ", 1) for line in names if line.strip()]
    return [p[1].strip() if len(p) == 2 and p[0] == str(i) else " ".join(p).strip() for i, p in enumerate(parts)]


def _label(names: list[str] | None, number: int, score: float) -> Label:
    return Label(number, names[number] if names and number < len(names) else "", score)


def _top_k(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    names, scores = _class_names(config, options), arrays[0].reshape(len(arrays[0]), -1)
    best = np.argsort(-scores, 1, kind="stable")[:, : int(options.get("topk", 1))]
    return [[_label(names, int(i), float(row[i])) for i in of_row] for row, of_row in zip(scores, best, strict=True)]


def _above(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    names, least = _class_names(config, options), options.get("threshold", 0.5)
    rows = arrays[0].reshape(len(arrays[0]), -1)
    limits = np.broadcast_to(np.asarray(least, rows.dtype), rows.shape[1:])
    return [[_label(names, int(i), float(row[i])) for i in np.flatnonzero(row >= limits)] for row in rows]


def _characters(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    """Connectionist temporal classification: repeated characters once, without the blank, which is number 0."""
    names = _names(config, options, "character_dict", "character_dict_path")
    names = names or list("0123456789abcdefghijklmnopqrstuvwxyz")
    scores = arrays[-1]
    if scores.ndim != 3 or scores.shape[2] not in (len(names) + 1, len(names) + 2):
        raise EnforceNotMet(
            f"{config.path} has characters of another model.", received=f"{scores.dtype}{list(scores.shape)}",
            expected=f"scores of (images, columns, {len(names) + 1} or {len(names) + 2} characters)",
            hint="use the file that came with the model.",
        )  # fmt: skip
    table = ["", *names, " "]  # a space is the last one, where the model has it
    done = []
    for best, row in zip(scores.argmax(2), scores.max(2), strict=True):
        kept = (best != 0) & np.concatenate([[True], best[1:] != best[:-1]])
        done.append(Text("".join(table[i] for i in best[kept]), float(row[kept].mean()) if kept.any() else 0.0))
    return done


def _boxes(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    """Rows of class, score and corners; a second result counts the rows of each image."""
    names, least = options.get("label_list"), float(options.get("draw_threshold", 0.5))
    rows = arrays[0]
    if rows.ndim != 2 or rows.shape[1] != 6:
        raise ValueError("boxes are rows of 6 numbers")
    counts = [len(rows)] if len(arrays) < 2 else [int(n) for n in arrays[1].reshape(-1)]
    if sum(counts) != len(rows) or min(counts, default=0) < 0:
        raise ValueError(f"{len(rows)} boxes, and counts of {sum(counts)}")
    ends = np.cumsum(counts)
    return [
        [
            Box(*_label(names, int(row[0]), float(row[1])), *(float(n) for n in row[2:]))
            for row in rows[end - count : end] if row[1] > least and row[0] >= 0
        ]
        for count, end in zip(counts, ends, strict=True)
    ]  # fmt: skip


def _class_map(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    scores = arrays[0]
    if scores.ndim == 4:
        return list(scores.argmax(1).astype(np.int32))
    if scores.ndim != 3:
        raise ValueError("a map of classes has three axes")
    return list(scores.astype(np.int32))


def _text_regions(config: ProcessingConfig, options: Mapping[str, Any], arrays: Sequence[np.ndarray]) -> list[Any]:
    """Regions of text, from differentiable binarization: a probability for each pixel."""
    maps, kind, mode = arrays[0], options.get("box_type", "quad"), options.get("score_mode", "fast")
    if kind != "quad":
        raise NotBuiltYet(
            f"{config.path} has regions of text as {kind}.", expected="quad", received=kind,
            hint="box_type: quad gives rectangles.",
        )  # fmt: skip
    if maps.ndim != 4 or maps.shape[1] < 1:
        raise ValueError("a map of probabilities has four axes")
    numbers = [float(options.get(name, value)) for name, value in
               (("thresh", 0.3), ("box_thresh", 0.7), ("max_candidates", 1000), ("unclip_ratio", 2.0))]  # fmt: skip
    dilate = bool(options.get("use_dilation", False))
    return [
        regions(each, numbers[0], numbers[1], int(numbers[2]), numbers[3], dilate, mode == "slow")
        for each in maps[:, 0]
    ]


#: The step whose results are in pixels of a map.
_REGIONS = "DBPostProcess"
_Function = Callable[[ProcessingConfig, Mapping[str, Any], Sequence[np.ndarray]], list[Any]]
_STEPS: dict[str, _Function] = {
    "Topk": _top_k, "MultiLabelThreshOutput": _above, "CTCLabelDecode": _characters,
    "Boxes": _boxes, "ClassMap": _class_map, _REGIONS: _text_regions,
}  # fmt: skip
