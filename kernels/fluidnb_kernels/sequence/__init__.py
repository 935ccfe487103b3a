"""Operators over sequences: concatenated rows of all sequences, without padding."""
