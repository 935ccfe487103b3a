"""Arenas and pools: which buffer is where, when, and whose it is."""
