"""The seed of shuffling: the host's generator, which `fluid.seed` sets."""

from fluidnb.values.seeding import generator, seed

__all__ = ["generator", "seed"]
