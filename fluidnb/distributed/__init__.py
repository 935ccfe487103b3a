"""Distributed training: engines for the programs of a `DistributeTranspiler`, a simulation of more."""

from fluidnb.distributed.local import LocalEngine, split_batches
from fluidnb.distributed.ray_engine import RayEngine
from fluidnb.distributed.simulator import Cluster, Forecast, Workload, calibrate, simulate, workload

__all__ = [
    "Cluster", "Forecast", "LocalEngine", "RayEngine", "Workload", "calibrate", "simulate", "split_batches", "workload",
]
