"""Distributed training: engines that run the programs of a `DistributeTranspiler`."""

from fluidnb.distributed.local import LocalEngine

__all__ = ["LocalEngine"]
