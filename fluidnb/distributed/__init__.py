"""Distributed training: engines that run the programs of a `DistributeTranspiler`."""

from fluidnb.distributed.local import LocalEngine, split_batches
from fluidnb.distributed.ray_engine import RayEngine

__all__ = ["LocalEngine", "RayEngine", "split_batches"]
