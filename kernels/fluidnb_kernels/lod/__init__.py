"""Sequences of different lengths: their rank, their order, and rows that go two ways."""
