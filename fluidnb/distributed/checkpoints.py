"""Checkpoints of one parameter server: a file for each kept step, written atomically."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fluidnb.errors import EnforceNotMet
from fluidnb.files.atomic_write import atomic_write
from fluidnb.values import LoDTensor, SelectedRows

_FILE = re.compile(r"step_(\d+)\.npz")
_ROWS, _HEIGHT, _APPLIED = "@rows", "@height", "@applied"


class Checkpoints:
    """The checkpoints of a server; the newest are kept.

    Args:
        folder: of this training; each server has a folder inside it.
        endpoint: of the server.
        kept: how many files are kept.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(folder, "ps:0")
        ...     checkpoints.save(3, {"w": np.ones(2)})
        ...     checkpoints.steps(), checkpoints.load(3)["w"]
        ([3], array([1., 1.]))
    """

    def __init__(self, folder: str | Path, endpoint: str, kept: int = 3) -> None:
        self.folder, self.kept = Path(folder) / re.sub(r"[^\w.-]", "_", endpoint), kept

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, rising."""
        names = [path.name for path in self.folder.glob("step_*.npz")]
        return sorted(int(match[1]) for match in map(_FILE.fullmatch, names) if match)

    def save(self, step: int, values: Mapping[str, Any], applied: Mapping[tuple[int, str], int] | None = None) -> None:
        """Write the values of a step, and remove all but the newest files.

        Args:
            applied: (trainer, gradient) -> its training step that the values have seen.
        """
        rows = [[*key, at] for key, at in (applied or {}).items()]
        arrays: dict[str, Any] = {_APPLIED: np.array(json.dumps(rows))}
        for name, value in values.items():
            if isinstance(value, SelectedRows):
                arrays[name + _ROWS], arrays[name + _HEIGHT] = value.rows_, np.array(value.height_)
                value = value.value.array
            arrays[name] = value
        with atomic_write(self._path(step), parents=True) as file:
            np.savez(file, **arrays)
        for old in self.steps()[: -self.kept]:
            self._path(old).unlink(missing_ok=True)

    def load(self, step: int) -> dict[str, Any]:
        """The values of a step: arrays and SelectedRows by name.

        Raises:
            EnforceNotMet: there is no checkpoint of it.
        """
        if step not in self.steps():
            raise EnforceNotMet(
                f"There is no checkpoint of step {step} in {self.folder}.",
                expected=", ".join(map(str, self.steps())) or "a checkpoint", received=step,
                hint="RayEngine(transpiler, checkpoints=FOLDER) writes them.",
            )  # fmt: skip
        with np.load(self._path(step), allow_pickle=False) as stored:
            arrays = dict(stored)
        values: dict[str, Any] = {}
        del arrays[_APPLIED]
        for name, array in arrays.items():
            if name + _ROWS in arrays:
                array = SelectedRows(arrays[name + _ROWS], int(arrays[name + _HEIGHT]), LoDTensor(array))
            if not name.endswith((_ROWS, _HEIGHT)):
                values[name] = array
        return values

    def applied(self, step: int) -> dict[tuple[int, str], int]:
        """(Trainer, gradient) -> its training step that the checkpoint of a step has seen."""
        with np.load(self._path(step), allow_pickle=False) as stored:
            return {(trainer, name): at for trainer, name, at in json.loads(str(stored[_APPLIED]))}

    def drop_after(self, step: int) -> None:
        """Remove checkpoints of later steps, which another course of training wrote."""
        for later in self.steps():
            if later > step:
                self._path(later).unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.folder / f"step_{step:09d}.npz"
