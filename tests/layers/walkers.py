"""Running a program in both walkers."""

from __future__ import annotations

from typing import Any

import numpy as np

import fluidnb as fluid


def same(a: Any, b: Any) -> bool:
    """Whether two fetched values have the same bits and the same LoD."""
    if isinstance(a, fluid.LoDTensor):
        return bool(a.lod() == b.lod()) and np.array(a).tobytes() == np.array(b).tobytes()
    return bool(a.tobytes() == b.tobytes())


def both(fetch: list[Any], return_numpy: bool = True, **feed: Any) -> list[Any]:
    """The fetched values: the same from the replay, bound and found again, and from the machine."""
    exe = fluid.Executor(fluid.CPUPlace())
    given = {n: v if isinstance(v, fluid.LoDTensor) else np.asarray(v) for n, v in feed.items()}
    runs = [
        exe.run(feed=given, fetch_list=fetch, keep_scopes=machine, return_numpy=return_numpy)
        for machine in (False, False, True)
    ]
    for other in runs[1:]:
        assert all(same(x, y) for x, y in zip(other, runs[0], strict=True))
    return runs[0]


def sequences(array: Any, lengths: Any) -> fluid.LoDTensor:
    """A batch of sequences."""
    return fluid.create_lod_tensor(np.asarray(array, "float32"), lengths, fluid.CPUPlace())
