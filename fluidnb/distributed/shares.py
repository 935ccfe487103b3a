"""Shares of a batch: the part of each fed value that one trainer or one place gets."""

from typing import Any

import numpy as np

from fluidnb.errors import OpValueError
from fluidnb.values import LoDTensor
from fluidnb.values.lod import checked_lengths, convert


def shares_of(name: str, value: Any, count: int, who: str) -> list[Any]:
    """Divide a fed value by rows, or by sequences where it has LoD.

    Args:
        name: of the variable.
        value: ndarray, list, LoDTensor or (ndarray, lengths of sequences).
        count: how many shares.
        who: those who get them, for messages.

    Raises:
        OpValueError: rows or sequences cannot be shared equally.

    Example:
        >>> shares_of("x", np.arange(4), 2, "trainers")
        [array([0, 1]), array([2, 3])]
        >>> words = fluid.create_lod_tensor(np.arange(5)[:, None], [[2, 3]], fluid.CPUPlace())
        >>> [np.array(part).ravel().tolist() for part in shares_of("words", words, 2, "trainers")]
        [[0, 1], [2, 3, 4]]
    """
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], np.ndarray):
        value = LoDTensor(value[0], checked_lengths(convert(value[1]), None, name))
    lod = value.lod_ if isinstance(value, LoDTensor) else ()
    array = value if isinstance(value, list) else np.asarray(value)  # the executor gives a list its dtype
    rows = len(lod[0]) - 1 if lod else len(array) if isinstance(array, list) or array.ndim else 0
    if rows % count or not rows:
        unit = "sequences" if lod else "rows"
        raise OpValueError(
            f"A batch of {rows} {unit} cannot be shared equally by {count} {who}.",
            expected=f"a multiple of {count}", received=f"{rows} {unit} of {name}",
            hint="drop the last, smaller batch: fluid.batch(reader, size, drop_last=True).",
        )  # fmt: skip
    size, parts = rows // count, []
    for start in range(0, rows, size):
        end, levels = start + size, []
        first = start
        for level in lod:
            levels.append(tuple(offset - level[first] for offset in level[first : end + 1]))
            first, end = level[first], level[end]
        part = array[first:end]
        parts.append(LoDTensor(part, tuple(levels)) if isinstance(value, LoDTensor) else part)
    return parts
