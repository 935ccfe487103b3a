"""Mistakes around distributed training: each is one clear sentence, without any process started."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import layers
from fluidnb.distributed import LocalEngine, RayEngine
from fluidnb.distributed.checkpoints import Checkpoints
from fluidnb.distributed.ray_start import check_reachable
from fluidnb.errors import FluidError
from fluidnb.extras import MissingPackage
from tests.distributed.networks import built, divided, fit_a_line, wide_regression


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere", "127.0.0.1:port"])
def test_a_cluster_that_is_not_there(address: str) -> None:
    with pytest.raises(FluidError, match=f"No Ray cluster answers at {address}"):
        check_reachable(address)


def test_no_ray_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "ray" or name.startswith("ray.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackage, match="RayEngine needs the package ray, which is not installed") as caught:
        RayEngine(divided(built(fit_a_line, sgd))).__enter__()
    assert "pip install 'fluidnb[distributed]'" in str(caught.value)


def edited() -> fluid.DistributeTranspiler:
    """A transpiler whose program has got another layer since."""
    parts = built(fit_a_line, sgd)
    transpiler = divided(parts)
    with fluid.program_guard(parts[0], parts[1]):
        layers.scale(parts[2], scale=2.0)
    return transpiler


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.get_trainer_program(), lambda t: t.get_trainer_programs(1), lambda t: t.get_pserver_program("ps:0"),
        lambda t: LocalEngine(t).__enter__(), lambda t: RayEngine(t).__enter__(),
    ],
)  # fmt: skip
def test_a_program_that_was_edited_after_transpile(use: Any) -> None:
    with pytest.raises(FluidError, match="The program was edited after transpile") as caught:
        use(edited())
    assert "call transpile again" in str(caught.value)


class TooFew(fluid.transpiler.RoundRobin):
    """Forgets the last slice."""

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        return super().dispatch(varlist)[:-1]


class Elsewhere(fluid.transpiler.RoundRobin):
    """Knows a server that is not there."""

    def dispatch(self, varlist: Sequence[Any]) -> list[str]:
        return ["ps:9" for _ in varlist]


@pytest.mark.parametrize("method", [TooFew, Elsewhere])
def test_a_dispatcher_whose_endpoints_do_not_match(method: Any) -> None:
    with pytest.raises(FluidError, match=f"{method.__name__} does not give the slices of fc_.*an endpoint each"):
        divided(built(wide_regression, sgd), split_method=method)


def test_a_folder_with_checkpoints_of_an_earlier_training(tmp_path: Path) -> None:
    Checkpoints(tmp_path, "ps:0").save(3, {"w": np.ones(2)})
    with pytest.raises(FluidError, match="has checkpoints of an earlier training") as caught:
        RayEngine(divided(built(fit_a_line, sgd)), checkpoints=tmp_path).__enter__()
    assert "ps:0: steps [3]" in str(caught.value)
    assert Checkpoints(tmp_path, "ps:0").steps() == [3]


def test_a_checkpoint_keeps_what_its_parameters_have_seen(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path, "ps:0")
    checkpoints.save(1, {"w": np.ones(2)}, {(0, "w@GRAD"): 4, (1, "w@GRAD"): 2})
    assert checkpoints.applied(1) == {(0, "w@GRAD"): 4, (1, "w@GRAD"): 2}
    assert list(checkpoints.load(1)) == ["w"]


def test_a_dispatcher_without_endpoints() -> None:
    for dispatcher in (fluid.transpiler.HashName, fluid.transpiler.RoundRobin):
        with pytest.raises(FluidError, match=f"{dispatcher.__name__} needs an endpoint"):
            dispatcher([])
