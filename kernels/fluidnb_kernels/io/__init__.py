"""Feeding, fetching, printing, saving and loading."""
