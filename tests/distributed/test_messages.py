"""Messages between trainers and servers: numbers, names, arrays and SelectedRows; pushed twice they count once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.distributed import LocalEngine, split_batches
from fluidnb.distributed.shard import Shard
from fluidnb.values import SelectedRows
from tests.distributed.networks import batches, built, divided, shared_table, word2vec


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def values(message: Any) -> Iterator[Any]:
    """All values in a message, those in containers too."""
    if isinstance(message, dict):
        for key, value in message.items():
            yield from values(key)
            yield from values(value)
    elif isinstance(message, (list, tuple)):
        for value in message:
            yield from values(value)
    else:
        yield message


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("network", [word2vec, shared_table])
def test_messages_are_plain(network: Any, sync: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Recording(LocalEngine):
        def _call(self, endpoint: str, method: str, *args: Any, **check: Any) -> Any:
            answer = super()._call(endpoint, method, *args, **check)
            seen.extend([endpoint, method, *args, answer])
            return answer

    parts = built(network, sgd)
    with Recording(divided(parts, sync_mode=sync)) as engine:
        engine.train(split_batches(batches(parts[0], 2), 2))
    kinds = {type(value) for value in values(seen)}
    assert kinds <= {int, str, np.ndarray, SelectedRows, type(None)}
    assert not any(value.dtype.hasobject for value in values(seen) if isinstance(value, np.ndarray))


def test_a_repeated_or_stale_push_of_a_synchronous_step_is_ignored() -> None:
    shard = Shard("ps:0", trainers=2, sync=True)
    shard.publish({"w": np.zeros(1)}, False)
    for _ in range(2):
        shard.push(0, 0, 0, {"g.trainer_0": np.ones(1)})
    assert shard.state()["complete"] == [0]
    shard.push(0, 1, 0, {"g.trainer_1": np.ones(1)})
    arrival = shard.take(lambda: None)
    assert arrival is not None and sorted(arrival.values) == ["g.trainer_0", "g.trainer_1"]
    shard.publish({"w": np.ones(1)}, True)
    shard.push(0, 0, 0, {"g.trainer_0": np.ones(1)})  # of the step that is over
    assert shard.state()["complete"] == []


def test_a_repeated_push_without_waiting_for_all_is_applied_once() -> None:
    shard = Shard("ps:0", trainers=2, sync=False)
    shard.publish({"w": np.zeros(1)}, False)
    shard.restore({(0, "g"): 4})
    shard.push(0, 0, 4, {"g": np.ones(1)})  # comes back at once: nothing waits
    assert shard.state()["waiting"] == 0
    assert shard.state()["newest"] == {0: 4}
