"""Recorded runs of PaddlePaddle 2.6.2: small programs with what went in and what came out.

A bundle is two files in ``tests/golden/ops``: ``<name>.json`` describes the cases, ``<name>.npz`` holds for each case
its program (``<id>/pb``, bytes) and its arrays. ``python -m tests.ops.goldens FOLDER LIST NAME`` makes one from a
folder of recorded cases and a file with the ids to take.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.values import CPUPlace, LoDTensor, LoDTensorArray, Place

FOLDER = Path(__file__).parents[1] / "golden" / "ops"


class Case:
    """One recorded program.

    Attributes:
        id: for example ``mul/2d_f64``.
        check: ``close``; ``stats`` (random: shape, mean and spread count); ``dropout``.
        feeds: rows with var, key, lod.
        fetches: rows with var, key, lod, role (``fwd`` or ``grad:<input>``).
        forward_ops: how many operators of block 0 are the forward part.
    """

    def __init__(self, bundle: str, row: dict[str, Any]) -> None:
        self._bundle = bundle
        self.id, self.check, self.feeds, self.fetches = row["id"], row["check"], row["feeds"], row["fetches"]
        self.forward_ops = row["n_fwd_ops"]
        self.wide = any("float32" in f["dtype"] for f in self.fetches)

    @property
    def program(self) -> bytes:
        """The bytes of its ProgramDesc."""
        return _arrays(self._bundle)[f"{self.id}/pb"].tobytes()

    def array(self, key: str) -> np.ndarray:
        """One of its arrays."""
        return _arrays(self._bundle)[f"{self.id}/{key}"]

    def feed(self, place: Place = CPUPlace()) -> dict[str, LoDTensor]:  # noqa: B008  (there is one)
        """The feeds, on a place."""
        out = {}
        for row in self.feeds:
            tensor = LoDTensor()
            tensor.set(self.array(row["key"]), place)
            tensor.set_lod(row.get("lod") or [])
            out[row["var"]] = tensor
        return out

    def gradients(self) -> dict[str, str]:
        """Variable of a gradient -> input that it belongs to."""
        return {f["var"]: f["role"][5:] for f in self.fetches if f["role"].startswith("grad:")}

    def compare(self, got: Any, row: dict[str, Any]) -> None:
        """Assert that a fetched value is the recorded one.

        Args:
            got: a LoDTensor or LoDTensorArray.
            row: its row of ``fetches``.

        Raises:
            AssertionError: it is not.
        """
        if isinstance(got, LoDTensorArray):
            assert len(got) == len(row["keys"])
            pairs = list(zip(got, row["keys"], row["lod"], strict=True))
        else:
            pairs = [(got, row["key"], row.get("lod", []))]
        for tensor, key, lod in pairs:
            have, want = _no_size(np.asarray(tensor)), _no_size(self.array(key))
            assert (have.shape, have.dtype) == (want.shape, want.dtype), row["var"]
            if row["role"] == "fwd":
                assert [list(level) for level in tensor.lod()] == lod, row["var"]
            self._compare(have, want, row["var"])

    def _compare(self, have: np.ndarray, want: np.ndarray, name: str) -> None:
        if self.check in ("stats", "dropout"):
            if want.size > 50:
                spread = want.astype("f8").std()
                assert abs(have.mean() - want.mean()) < 0.2 * spread + 0.02, name
                assert 0.6 * spread - 0.05 < have.astype("f8").std() < 1.6 * spread + 0.05, name
        elif want.dtype.kind == "f":
            rtol, atol = (2e-4, 2e-5) if self.wide else (1e-7, 1e-9)
            np.testing.assert_allclose(have, want, rtol, atol, err_msg=name)
        else:
            np.testing.assert_array_equal(have, want, err_msg=name)


def _no_size(array: np.ndarray) -> np.ndarray:
    """Paddle 2 gives [] where Fluid 1 gives [1]."""
    return array.reshape(()) if array.size == 1 and array.ndim <= 1 else array


@cache
def _arrays(bundle: str) -> Any:
    return np.load(FOLDER / f"{bundle}.npz")


os.register_at_fork(after_in_child=_arrays.cache_clear)  # processes that share an open file share its position


def cases() -> list[Case]:
    """Every case of every bundle."""
    return [Case(p.stem, row) for p in sorted(FOLDER.glob("*.json")) for row in json.loads(p.read_text())]


def bundle(source: Path, ids: set[str], name: str) -> int:
    """Make a bundle.

    Args:
        source: a folder with ``index.json`` and the files that it names.
        ids: the cases to take.
        name: the bundle's name.

    Returns:
        How many cases were taken.
    """
    rows = [c for c in json.loads((source / "index.json").read_text())["cases"] if c["id"] in ids]
    arrays: dict[str, np.ndarray] = {}
    for row in rows:
        arrays[f"{row['id']}/pb"] = np.frombuffer((source / row.pop("pb")).read_bytes(), np.uint8)
        with np.load(source / row.pop("npz")) as held:
            arrays |= {f"{row['id']}/{key}": held[key] for key in held.files}
    FOLDER.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(FOLDER / f"{name}.npz", **arrays)
    lines = ",\n".join(json.dumps(row, separators=(", ", ": ")) for row in rows)
    (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    return len(rows)


if __name__ == "__main__":
    folder, wanted, title = sys.argv[1:]
    print(bundle(Path(folder), set(Path(wanted).read_text().split()), title))
