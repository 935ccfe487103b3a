"""Parameters compared without a run: files of tensors, or those of saved models."""

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fluidnb.compare.alignment import align
from fluidnb.compare.difference import Comparison, Tolerance, compare, described
from fluidnb.compare.recording import Array, tensors
from fluidnb.errors import EnforceNotMet
from fluidnb.files.numpy_arrays import load_arrays
from fluidnb.program import Program
from fluidnb.runtime.model_files import MODEL, PARAMETERS, PARAMS, PROGRAMS
from fluidnb.runtime.opened_model import open_model
from fluidnb.runtime.parameter_files import read_named

#: Endings of files that have names and tensors, and need no program.
_NAMED = (".pdparams", ".pdopt", ".safetensors", ".npz")
#: Numbers of a tensor that are looked at when its partner is searched for by values.
_SAMPLE = 1024
#: Two tensors are partners by their values where the distance of samples is below this share of their length.
_NEAR = 0.5


@dataclass(frozen=True)
class ParameterFile:
    """The tensors of one side.

    Args:
        title: its path.
        values: name -> tensor.
        program: the program that they belong to; None where there is none.
    """

    title: str
    values: dict[str, Array]
    program: Program | None = None


@dataclass(frozen=True, slots=True)
class TensorPair:
    """Two tensors that were compared.

    Args:
        how: what makes them partners: ``name``, ``structure`` (the same operators read them), ``values`` or ``shape``.
        comparison: their numbers compared.
        shapes, dtypes: those of the first and of the second.
        state: ``equal``, ``within tolerance``, ``differs``, ``shape`` or ``dtype``, which say what is another one.
        relative: the largest difference relative to the second's number in its place; infinite where that is 0.
        relative_at: where that is.
    """

    how: str
    comparison: Comparison
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    state: str
    relative: float = 0.0
    relative_at: tuple[int, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the two are the same tensor, within the tolerance."""
        return self.state in ("equal", "within tolerance")


@dataclass(frozen=True)
class ParameterDifference:
    """The difference between the parameters of two sides.

    Args:
        first, second: their paths.
        pairs: the tensors that were compared, in the order of the first.
        only_first, only_second: the tensors without a partner, with shape and dtype as text.
    """

    first: str
    second: str
    pairs: list[TensorPair]
    only_first: dict[str, str]
    only_second: dict[str, str]

    @property
    def equal(self) -> bool:
        """Whether every tensor has a partner and agrees with it."""
        return not self.only_first and not self.only_second and all(pair.agrees for pair in self.pairs)

    def data(self) -> dict[str, Any]:
        """The finding as data for JSON."""
        tensors = [
            {**asdict(pair.comparison), "text": described_pair(pair), "how": pair.how, "state": pair.state,
             "shapes": [list(shape) for shape in pair.shapes], "dtypes": list(pair.dtypes),
             "relative": pair.relative, "relative_at": list(pair.relative_at)} for pair in self.pairs
        ]  # fmt: skip
        return {"first": self.first, "second": self.second, "equal": self.equal, "tensors": tensors,
                "only_first": self.only_first, "only_second": self.only_second}  # fmt: skip


def has_parameters_alone(path: str) -> bool:
    """Whether a path is that of a file of parameters, not of a model.

    Example:
        >>> has_parameters_alone("a.safetensors"), has_parameters_alone("saved/")
        (True, False)
    """
    return path.endswith((*PARAMETERS, *_NAMED)) or os.path.basename(path) == PARAMS


def read_parameters(path: str) -> ParameterFile:
    """Reads the parameters of a file or of a saved model; no code in a file runs.

    Args:
        path: a ``.pdparams``, ``.pdopt``, ``.safetensors`` or ``.npz``, which need no program; a ``.pdiparams`` beside
            its program; or a model. Numbers without axes of an ONNX model are constants of operators, and left out.

    Raises:
        EnforceNotMet: the file or its program cannot be read.
    """
    if path.endswith(_NAMED):
        return ParameterFile(path, _arrays(path) if path.endswith(".npz") else read_named(path))
    if has_parameters_alone(path) and os.path.isfile(path) and not _has_program(path):
        raise EnforceNotMet(
            f"{path} has tensors by order, without names.", expected="its program beside it",
            received="no program of this name", hint="copy the .pdmodel or .json there, or compare the model's folder.",
        )  # fmt: skip
    model = open_model(os.path.dirname(path) or "." if os.path.basename(path) == PARAMS else path)
    values = tensors((v.name for v in model.parameters), model.scope)
    if model.path.endswith(".onnx"):
        values = {name: value for name, value in values.items() if value.ndim}
    return ParameterFile(path, values, model.program)


def compare_parameters(
    first: ParameterFile, second: ParameterFile, tolerance: Tolerance | None = None
) -> ParameterDifference:
    """Compares the tensors of two sides.

    Partners have one name; else the same operators read them, where both sides have a program; else one shape and
    numbers that are near; else a shape that no other tensor without a partner has. Shapes that differ in axes of one
    number are the same.

    Args:
        first, second: the two sides.
        tolerance: how far numbers may be apart.

    Example:
        >>> ones, other = np.ones((2, 2)), np.full((2, 2), 1.5)
        >>> found = compare_parameters(ParameterFile("a", {"w": ones}), ParameterFile("b", {"w": other, "v": ones}))
        >>> [(pair.comparison.first, pair.how, pair.state) for pair in found.pairs], found.only_second
        ([('w', 'name', 'differs')], {'v': '[2, 2] float64'})
    """
    partners = _partners(first, second)
    pairs = [
        _pair(name, first.values[name], partners[name][0], second.values[partners[name][0]], partners[name][1],
              tolerance or Tolerance())
        for name in first.values if name in partners
    ]  # fmt: skip
    taken = {partner for partner, _ in partners.values()}
    left = [{n: f"{list(v.shape)} {v.dtype}" for n, v in side.values.items() if n not in names}
            for side, names in ((first, set(partners)), (second, taken))]  # fmt: skip
    return ParameterDifference(first.title, second.title, pairs, left[0], left[1])


def described_pair(pair: TensorPair) -> str:
    """Two tensors compared, in words."""
    if pair.state == "shape":
        return pair.comparison.problem
    text = "equal" if pair.state == "equal" else described(pair.comparison)
    if pair.shapes[0] != pair.shapes[1]:
        text += f"; shape {list(pair.shapes[0])} and {list(pair.shapes[1])}"
    if pair.state == "dtype":
        kinds = f"dtype {pair.dtypes[0]} and {pair.dtypes[1]}"
        return kinds if pair.comparison.problem else f"{kinds}; {text}"
    if pair.state == "differs":
        text += f"; relative up to {pair.relative:.3g} at {list(pair.relative_at)}"
    return text


def _has_program(path: str) -> bool:
    """Whether the program of a file of parameters is beside it."""
    folder, name = os.path.split(path)
    stem = os.path.splitext(name)[0]
    names = [MODEL] if name == PARAMS else [stem + ending for ending in PROGRAMS]
    return any(os.path.isfile(os.path.join(folder, each)) for each in names)


def _arrays(path: str) -> dict[str, Array]:
    """The arrays of a ``.npz``."""
    try:
        found = load_arrays(path)
        if strange := next((name for name, value in found.items() if value.dtype.kind not in "fiub"), None):
            raise ValueError(f"{strange} of dtype {found[strange].dtype}")
        return found
    except (OSError, ValueError) as error:
        raise EnforceNotMet(
            f"Cannot read arrays from {path}.", expected="a .npz of real numbers", received=str(error)[:120],
            hint=f"np.savez({path!r}, **parameters) writes one.",
        ) from None  # fmt: skip


def _partners(first: ParameterFile, second: ParameterFile) -> dict[str, tuple[str, str]]:
    """Tensor of the first -> its partner, and what makes it the partner."""
    found = {name: (name, "name") for name in first.values if name in second.values}
    if first.program is not None and second.program is not None:
        aligned = align(first.program, second.program, {}, {}).names
        for name, partner in aligned.items():
            if name in first.values and partner in second.values and name not in found:
                found[name] = partner, "structure"
    rest = _by_shape(first.values, set(found))
    others = _by_shape(second.values, {partner for partner, _ in found.values()})
    for shape, names in rest.items():
        near = _nearest(names, first.values, others.get(shape, []), second.values)
        found |= {name: (partner, "values") for name, partner in near.items()}
        left = [name for name in names if name not in near]
        unused = [name for name in others.get(shape, []) if name not in near.values()]
        if len(left) == len(unused) == 1:
            found[left[0]] = unused[0], "shape"
    return found


def _by_shape(values: dict[str, Array], taken: set[str]) -> dict[tuple[int, ...], list[str]]:
    """Shape -> the tensors that have it and no partner yet."""
    found: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, value in values.items():
        if name not in taken:
            found[value.shape].append(name)
    return found


def _nearest(
    names: list[str], ours: dict[str, Array], others: list[str], theirs: dict[str, Array]
) -> dict[str, str]:
    """Pairs of tensors of one shape whose numbers are near, the nearest first; equal ones in their order."""
    if not names or not others:
        return {}
    a, b = _samples(ours[n] for n in names), _samples(theirs[n] for n in others)
    length = np.maximum(np.linalg.norm(a, axis=1)[:, None], np.linalg.norm(b, axis=1))
    apart = np.stack([np.linalg.norm(row - b, axis=1) for row in a])
    share = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
    found: dict[str, str] = {}
    for place in np.argsort(share, axis=None, kind="stable"):
        i, j = divmod(int(place), len(others))
        if share[i, j] < _NEAR and names[i] not in found and others[j] not in found.values():
            found[names[i]] = others[j]
    return found


def _counted(shape: tuple[int, ...]) -> list[int]:
    """The sizes of a shape without its axes of one number."""
    return [n for n in shape if n != 1]


def _samples(values: Iterable[Array]) -> Array:
    """Some numbers of each tensor, evenly spread, as rows."""
    rows = []
    for value in values:
        flat = value.reshape(-1)
        picked = np.linspace(0, max(flat.size - 1, 0), min(flat.size, _SAMPLE)).astype(int)
        rows.append(np.nan_to_num(flat[picked].astype(np.float64), posinf=0.0, neginf=0.0))
    return np.stack(rows)


def _pair(name: str, a: Array, partner: str, b: Array, how: str, tolerance: Tolerance) -> TensorPair:
    """Two tensors compared."""
    kinds, shapes = (str(a.dtype), str(b.dtype)), (a.shape, b.shape)
    if _counted(a.shape) == _counted(b.shape):  # a bias that was given axes for a sum
        a = a.reshape(b.shape)
    if a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b):
        return TensorPair(how, Comparison(name, partner, True, size=a.size), shapes, kinds, "equal")
    a, b = (each.astype(np.float32) if each.dtype.kind == "V" else each for each in (a, b))  # bfloat16
    found = compare(name, a, partner, b, tolerance)
    if a.shape != b.shape:
        return TensorPair(how, found, shapes, kinds, "shape")
    state = "dtype" if kinds[0] != kinds[1] else "within tolerance" if found.equal else "differs"
    if found.problem or not a.size:
        return TensorPair(how, found, shapes, kinds, state)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        relative = np.asarray(np.abs(x - y) / np.abs(y))
    relative[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
    relative[np.isnan(relative)] = np.inf
    place = np.unravel_index(int(relative.argmax()), relative.shape)
    return TensorPair(how, found, shapes, kinds, state, float(relative[place]), tuple(int(n) for n in place))
