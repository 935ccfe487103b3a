"""Data: readers and their decorators, DataFeeder, data sets that need no network."""

from fluidnb.data import dataset, reader, seeding
from fluidnb.data.feeder import DataFeeder
from fluidnb.data.reader import batch

__all__ = ["DataFeeder", "batch", "dataset", "reader", "seeding"]
